#include "platform/platform_json.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/contracts.hpp"
#include "core/object_reader.hpp"
#include "core/text_list.hpp"
#include "platform/network.hpp"
#include "units/member_reader.hpp"

namespace windtunnel {
namespace {

constexpr int most_nodes = 1'000'000;  ///< nor any cluster

std::optional<Host> read_host(ObjectReader& node_type, const std::string& prefix,
                              Sources& sources) {
  auto reader = node_type.optional_child("host");
  if (!reader) return std::nullopt;
  Host host;
  required(*reader, "link", host.link);
  defaulted(*reader, "link_efficiency", host.link_efficiency, least_ratio, 1);
  required(*reader, "memory_bandwidth", host.memory_bandwidth);
  defaulted(*reader, "memory_efficiency", host.memory_efficiency, least_ratio, 1);
  end_object(*reader, prefix + "host/", sources);
  return host;
}

/// The number of a NIC; nothing where something else stands there.
std::optional<int> read_nic(const JsonValue& cell, const std::string& pointer, Problems& problems) {
  const auto* nic = std::get_if<std::int64_t>(&cell.content);
  const bool is_small = nic != nullptr && *nic < 0,
             is_large = nic != nullptr && *nic >= most_node_parts;
  if (nic != nullptr && !is_small && !is_large) return static_cast<int>(*nic);
  problems.add({cell.origin, pointer,
                "NIC " + text_for_message(cell) + " is " +
                    (is_small   ? "too small"
                     : is_large ? "too large"
                                : "no number"),
                "NICs of a node are counted from 0"});
  return std::nullopt;
}

/// The NICs of a GPU: the number of one, or a list of them. Empty where one of them is wrong.
std::vector<int> read_nics(const JsonValue& cell, const std::string& pointer, Problems& problems) {
  std::vector<int> nics;
  bool are_right = true;
  const auto add = [&](const JsonValue& each, const std::string& at) {
    const std::optional<int> nic = read_nic(each, at, problems);
    are_right = are_right && nic;
    if (nic) nics.push_back(*nic);
  };
  if (!cell.is_array()) add(cell, pointer);
  for (std::size_t i = 0; cell.is_array() && i < cell.array().size(); ++i)
    add(cell.array()[i], pointer_join(pointer, std::to_string(i)));
  std::ranges::sort(nics);
  return are_right ? nics : std::vector<int>{};
}

/// Nothing is kept of a list that says what holds without it.
void read_nic_of_gpu(ObjectReader& reader, NodeType& node) {
  const JsonValue* value = reader.take("nic_of_gpu");
  if (value == nullptr || !reader.are_sound({"gpus", "nics"})) return;
  const std::string pointer = pointer_join(reader.pointer(), "nic_of_gpu");
  const std::string form = "write a list of " + std::to_string(node.gpus) +
                           " entries, each the number of a NIC or a list of different ones";
  std::vector<std::vector<int>> all;
  for (std::size_t gpu = 0; value->is_array() && gpu < value->array().size(); ++gpu)
    all.push_back(read_nics(value->array()[gpu], pointer_join(pointer, std::to_string(gpu)),
                            reader.problems()));
  if (!reader.are_sound({"nic_of_gpu"})) return;
  if (all.size() != static_cast<std::size_t>(node.gpus))
    return reader.problem(
        "nic_of_gpu",
        "nic_of_gpu says which NICs each of the " + std::to_string(node.gpus) + " GPUs uses", form);
  bool is_usual = true;
  for (int gpu = 0; gpu < node.gpus; ++gpu) {
    const std::vector<int>& nics = all[static_cast<std::size_t>(gpu)];
    const bool are_its =
        !nics.empty() && nics.back() < node.nics && std::ranges::adjacent_find(nics) == nics.end();
    if (!are_its)
      return reader.problem("nic_of_gpu",
                            "nic_of_gpu of GPU " + std::to_string(gpu) + " is " +
                                text_for_message(value->array()[static_cast<std::size_t>(gpu)]) +
                                ", and the NICs of its node are 0 to " +
                                std::to_string(node.nics - 1),
                            form);
    is_usual = is_usual && nics == nics_of({gpu}, node);
  }
  if (!is_usual) node.nic_of_gpu = std::move(all);
}

using Lanes = std::vector<std::vector<int>>;

/// One row of the lane matrix; what is no whole number leaves an empty row.
std::vector<int> read_row(const JsonValue& row, const std::string& pointer, Problems& problems) {
  constexpr std::int64_t most_lanes = 1000;
  std::vector<int> lanes;
  if (!row.is_array()) return lanes;
  for (std::size_t i = 0; i < row.array().size(); ++i) {
    const JsonValue& cell = row.array()[i];
    const std::int64_t* count = std::get_if<std::int64_t>(&cell.content);
    if (count == nullptr) return {};
    if (*count < 0 || *count > most_lanes)
      problems.add({cell.origin, pointer_join(pointer, std::to_string(i)),
                    "a link count of " + text_for_message(cell) + " is too " +
                        (*count < 0 ? "small" : "large"),
                    "write a whole number from 0 to " + std::to_string(most_lanes)});
    lanes.push_back(static_cast<int>(std::clamp<std::int64_t>(*count, 0, most_lanes)));
  }
  return lanes;
}

bool is_symmetric(const Lanes& lanes) {
  for (std::size_t i = 0; i < lanes.size(); ++i)
    for (std::size_t j = 0; j <= i; ++j)
      if (lanes[i][j] != lanes[j][i] || (i == j && lanes[i][j] != 0)) return false;
  return true;
}

void read_lanes(ObjectReader& reader, std::optional<int> gpus, Interconnect& interconnect) {
  const JsonValue* value = reader.require("lanes");
  if (value == nullptr) return;
  Lanes lanes;
  const std::string pointer = pointer_join(reader.pointer(), "lanes");
  if (value->is_array())
    for (std::size_t i = 0; i < value->array().size(); ++i)
      lanes.push_back(
          read_row(value->array()[i], pointer_join(pointer, std::to_string(i)), reader.problems()));
  if (!gpus) return;  // how many rows there must be, too
  const auto size = static_cast<std::size_t>(*gpus);
  bool square = lanes.size() == size;
  for (const std::vector<int>& row : lanes) square = square && row.size() == size;
  if (!square || !is_symmetric(lanes)) {
    const std::string n = std::to_string(*gpus);
    reader.problem("lanes", "lanes must be " + n + " rows of " + n +
                                " link counts, symmetric, with a zero diagonal");
    lanes.assign(size, std::vector<int>(size, 0));
  }
  interconnect.lanes = lanes;
}

Interconnect read_interconnect(ObjectReader reader, std::optional<int> gpus,
                               const std::string& prefix, Sources& sources) {
  Interconnect interconnect;
  required(reader, "kind", interconnect.kind);
  required(reader, "saturated_bandwidth", interconnect.saturated_bandwidth);
  defaulted(reader, "group_loss", interconnect.group_loss, 0, 1e3);
  required(reader, "floor_base", interconnect.floor_base);
  required(reader, "floor_per_gpu", interconnect.floor_per_gpu);
  required(reader, "half_size", interconnect.half_size, AmountRange{"1 B", "1 TB"});
  defaulted(reader, "half_size_exponent", interconnect.half_size_exponent, -2, 2);
  defaulted(reader, "sharpness", interconnect.sharpness, 0.1, 10);
  given(reader, "floor", interconnect.floor);
  given(reader, "all_to_all", interconnect.all_to_all);
  given(reader, "reduces_in_switch", interconnect.reduces_in_switch);
  given(reader, "switch_efficiency", interconnect.switch_efficiency, 0.01, 1);
  given(reader, "switch_channels", interconnect.switch_channels, 1, 64);
  if (reader.has("switch_size") || reader.has("small_bandwidth")) {
    required(reader, "switch_size", interconnect.switch_size);
    required(reader, "small_bandwidth", interconnect.small_bandwidth);
  }
  required(reader, "point_to_point", interconnect.point_to_point);
  required(reader, "point_to_point_latency", interconnect.point_to_point_latency);
  if (interconnect.kind == Interconnect::Kind::mesh) read_lanes(reader, gpus, interconnect);
  if (!reader.are_sound({"kind"})) reader.take("lanes");  // a misspelt mesh has them
  end_object(reader, prefix, sources);
  return interconnect;
}

NodeType read_node_type(ObjectReader reader, const std::string& prefix, Platform& platform,
                        const Device* read_before) {
  reader.take("extends");  // laid over before; here for the list of allowed keys
  NodeType node;
  given(reader, "count", node.count, 1, most_nodes);
  JsonValue* const device = read_before != nullptr ? nullptr : reader.require("device");
  if (read_before != nullptr) reader.take("device"), node.device = *read_before;
  if (device != nullptr && !device->is_string())
    node.device = read_device(*device, pointer_join(reader.pointer(), "device"), reader.problems());
  required(reader, "gpus", node.gpus, 1, most_node_parts);
  required(reader, "nics", node.nics, 1, most_node_parts);
  read_nic_of_gpu(reader, node);
  required(reader, "nic_rate", node.nic_rate);
  defaulted(reader, "nic_efficiency", node.nic_efficiency, least_ratio, 1);
  defaulted(reader, "compute_efficiency", node.compute_efficiency, least_ratio, most_factor);
  defaulted(reader, "in_node_collective_slowdown", node.in_node_collective_slowdown, 1,
            most_factor);
  defaulted(reader, "collective_overhead_factor", node.collective_overhead_factor, 0, most_factor);
  defaulted(reader, "launch_slowdown", node.launch_slowdown, least_ratio, most_factor);
  constexpr double most_spread = 2;
  defaulted(reader, "pass_spread", node.pass_spread, 0, most_spread);
  platform.sources.merge(read_sources(reader, prefix));
  const bool knows_gpus = reader.are_sound({"gpus"});
  node.interconnect = read_interconnect(reader.child("interconnect"),
                                        knows_gpus ? std::optional(node.gpus) : std::nullopt,
                                        prefix + "interconnect/", platform.sources);
  node.host = read_host(reader, prefix, platform.sources);
  reader.reject_unknown_keys();
  return node;
}

void read_node_types(ObjectReader& reader, Platform& platform, const Platform* read_before) {
  reader.require("node_types");
  for (ObjectReader& entry :
       reader.entries("node_types", "expected a list of at least one node type")) {
    const std::size_t i = platform.node_types.size();
    if (i > 0 && platform.node_types.back().count == 0)
      reader.problem("node_types", "only the last node type may leave its count open");
    platform.node_types.push_back(
        read_node_type(entry, place_in(reader, entry), platform,
                       read_before == nullptr ? nullptr : &read_before->node_types[i].device));
  }
  if (std::ranges::any_of(platform.node_types, [&](const NodeType& type) {
        return type.pass_spread != platform.node_types.front().pass_spread;
      }))
    reader.problem("node_types", "pass_spread must be the same for all node types",
                   "give each type the same; noise/slow_parts of a scenario are nodes known to be "
                   "slow");
}

/// Checks the size of a matrix cell; the diagonal is empty, so nothing there can be too small.
void check_matrix_cell(const JsonValue& cell, BytesPerSecond rate, bool is_diagonal,
                       const std::string& pointer, Problems& problems) {
  const RangeSide side = side_of(rate);
  const bool is_nothing = is_diagonal && side == RangeSide::below && rate >= BytesPerSecond{0};
  if (side == RangeSide::inside || is_nothing) return;
  problems.add({cell.origin, pointer,
                "a rate of " + text_for_message(cell) + " in the matrix is too " +
                    (side == RangeSide::below ? "small" : "large"),
                range_suggestion<BytesPerSecond>()});
}

/// One row of the matrix: numbers in `unit`. Empty when something else stands there.
std::vector<BytesPerSecond> read_matrix_row(const JsonValue& row, std::size_t diagonal,
                                            BytesPerSecond unit, const std::string& pointer,
                                            Problems& problems) {
  std::vector<BytesPerSecond> rates;
  if (!row.is_array()) return rates;
  for (std::size_t i = 0; i < row.array().size(); ++i) {
    const JsonValue& cell = row.array()[i];
    const std::optional<double> number = number_of(&cell);
    if (!number && i != diagonal) return {};
    rates.push_back(number.value_or(0) * unit);
    check_matrix_cell(cell, rates.back(), i == diagonal, pointer_join(pointer, std::to_string(i)),
                      problems);
  }
  return rates;
}

BytesPerSecond read_matrix_unit(ObjectReader& reader) {
  std::string problem;
  std::string suggestion;
  const std::string unit = reader.required_string("unit");
  const auto rate = parse_quantity<BytesPerSecond>("1 " + unit, problem, suggestion);
  if (!rate)
    reader.problem("unit", "\"" + unit + "\" is no unit of bandwidth", "\"GB/s\" or \"Gbps\"");
  return rate.value_or(1_GBps);  // within the range, as cells are likely to be
}

BandwidthMatrix read_matrix(ObjectReader reader, std::optional<int> nodes, Sources& sources) {
  BandwidthMatrix matrix;
  defaulted(reader, "rails", matrix.rails, 1, most_node_parts);
  const BytesPerSecond unit = read_matrix_unit(reader);
  Problems of_unknown_unit;
  Problems& problems = reader.are_sound({"unit"}) ? reader.problems() : of_unknown_unit;
  if (const JsonValue* rows = reader.require("rows"); rows != nullptr && rows->is_array())
    for (std::size_t i = 0; i < rows->array().size(); ++i)
      matrix.rate.push_back(read_matrix_row(
          rows->array()[i], i, unit,
          pointer_join(pointer_join(reader.pointer(), "rows"), std::to_string(i)), problems));
  end_object(reader, "bandwidth_matrix/", sources);
  const auto size = static_cast<std::size_t>(nodes.value_or(0));
  bool square = matrix.rate.size() == size;
  for (const auto& row : matrix.rate) square = square && row.size() == size;
  if (square) return matrix;
  if (nodes && reader.are_sound({"rows"})) {
    const std::string n = std::to_string(size);
    reader.problem("rows", "the platform has " + n + " nodes, so the matrix must be " + n +
                               " rows of " + n + " numbers (the diagonal is ignored)");
  }
  matrix.rate.clear();
  return matrix;
}

LinkOverride read_override(ObjectReader reader, int nodes, const std::string& prefix,
                           Sources& sources) {
  const int last = (nodes == 0 ? most_nodes : nodes) - 1;
  LinkOverride link;
  link.from = NodeId(reader.required_int("from", 0, last));
  link.to = NodeId(reader.required_int("to", 0, last));
  required(reader, "bandwidth", link.bandwidth);
  end_object(reader, prefix, sources);
  if (link.from == link.to && reader.are_sound({"from", "to"}))
    reader.problem("to", "a link joins two different nodes");
  return link;
}

/// True if no problem has been found with the number of nodes.
bool knows_counts(ObjectReader& reader, const Platform& platform) {
  const std::string list = pointer_join(reader.pointer(), "node_types");
  bool all = !reader.problems().is_spoiled(list);
  for (std::size_t i = 0; i < platform.node_types.size(); ++i)
    all = all && reader.problems().is_sound(list + "/" + std::to_string(i) + "/count");
  return all;
}

void read_link_overrides(ObjectReader& reader, Platform& platform) {
  for (ObjectReader& entry :
       reader.entries("link_overrides", "expected a list of {from, to, bandwidth, source}", 0))
    platform.link_overrides.push_back(
        read_override(entry, knows_counts(reader, platform) ? platform.available_nodes() : 0,
                      place_in(reader, entry), platform.sources));
  if (!reader.are_sound({"link_overrides"})) return;
  std::set<std::pair<NodeId, NodeId>> pairs;
  for (const LinkOverride& link : platform.link_overrides)
    if (!pairs.emplace(link.from, link.to).second)
      reader.problem("link_overrides", "the link from node " + std::to_string(link.from.index()) +
                                           " to node " + std::to_string(link.to.index()) +
                                           " has two rates; leave one out");
}

NicFault read_fault(ObjectReader reader, const Platform& platform, int nodes,
                    const std::string& prefix, Sources& sources) {
  NicFault fault;
  fault.node = NodeId(reader.required_int("node", 0, (nodes == 0 ? most_nodes : nodes) - 1));
  const bool knows_node = reader.are_sound({"node"}) && !platform.node_types.empty();
  const int nics = knows_node ? platform.type_of(fault.node).nics : most_node_parts;
  fault.nic = reader.required_int("nic", 0, std::max(nics, 1) - 1);
  required(reader, "share", fault.share, 0, 1);
  // A question is asked with it, not a machine described: sources are welcome, not required.
  if (reader.has("source")) sources.merge(read_sources(reader, prefix));
  reader.reject_unknown_keys();
  return fault;
}

/// Each NIC once, and one left in each node.
void check_faults(ObjectReader& reader, const Platform& platform) {
  std::map<NodeId, int> lost;
  for (std::size_t i = 0; i < platform.faults.size(); ++i) {
    const NicFault& fault = platform.faults[i];
    const auto is_same = [&](const NicFault& other) {
      return other.node == fault.node && other.nic == fault.nic;
    };
    const auto first = platform.faults.begin(), here = first + static_cast<std::ptrdiff_t>(i);
    const std::string node = "node " + std::to_string(fault.node.index());
    if (std::any_of(first, here, is_same))
      reader.problem("faults", "NIC " + std::to_string(fault.nic) + " of " + node +
                                   " has two faults; one says what share it carries");
    else if (fault.share == 0 && ++lost[fault.node] == platform.type_of(fault.node).nics)
      reader.problem("faults",
                     node + " loses all of its NICs, and a node without any cannot take part");
  }
}

void read_faults(ObjectReader& reader, Platform& platform) {
  const int nodes = knows_counts(reader, platform) ? platform.available_nodes() : 0;
  for (ObjectReader& entry :
       reader.entries("faults", "expected a list of {node, nic, share, source}", 0))
    platform.faults.push_back(
        read_fault(entry, platform, nodes, place_in(reader, entry), platform.sources));
  if (reader.are_sound({"faults", "node_types"})) check_faults(reader, platform);
}

void read_own_links(ObjectReader& reader, Platform& platform) {
  if (auto matrix = reader.optional_child("bandwidth_matrix")) {
    const bool is_counted = knows_counts(reader, platform);
    if (is_counted && platform.available_nodes() == 0)
      reader.problem("bandwidth_matrix",
                     "a measured matrix needs the count of every node type, one is open");
    else
      platform.matrix = read_matrix(
          *matrix, is_counted ? std::optional(platform.available_nodes()) : std::nullopt,
          platform.sources);
  }
  read_link_overrides(reader, platform);
  read_faults(reader, platform);
}

/// An interconnect that joins whole nodes joins equal ones, through a switch. The reason why this platform's cannot; empty: it can.
std::string why_no_domains(const Platform& platform, int domain_nodes) {
  if (platform.node_types.size() > 1) return "a domain is made of nodes of one type";
  const bool is_mesh = platform.node_types.front().interconnect.kind == Interconnect::Kind::mesh;
  if (is_mesh) return "a mesh of lanes joins the GPUs of one node only";
  if (platform.matrix || !platform.link_overrides.empty())
    return "rates measured between nodes do not say what a domain does";
  if (!platform.faults.empty())
    return "faults are of the NICs of nodes, and do not say what a domain does";
  const std::string key = platform.fabric.key_that_splits(domain_nodes);
  return key.empty() ? "" : key + " must be a multiple of domain_nodes";
}

/// Nothing is written back where it is absent. Without domains where they are refused: whoever reads on may rely on them.
void read_domains(ObjectReader& reader, Platform& platform) {
  const JsonValue* segment = reader.take("segment");
  const bool gives_segment = segment != nullptr && segment->origin.kind != OriginKind::defaulted;
  if (!reader.has("domain_nodes")) {
    if (gives_segment)
      reader.problem("segment",
                     "segment says how many nodes of an NVLink domain the job uses, and this "
                     "platform has no domain_nodes",
                     "leave it out");
    return;
  }
  const int nodes = reader.required_int("domain_nodes", 1, most_node_parts);
  if (gives_segment && reader.are_sound({"domain_nodes"}))
    reader.required_int("segment", 1, nodes);  // the plan's to use
  if (nodes == 1 || platform.node_types.empty() ||
      !reader.are_sound({"domain_nodes", "node_types", "fabric"}))
    return;
  if (const std::string why = why_no_domains(platform, nodes); why.empty())
    platform.domain_nodes = nodes;
  else
    reader.problem("domain_nodes", "domain_nodes is " + std::to_string(nodes) + ", but " + why);
}

constexpr std::string_view wildcard = "*";

std::optional<Source> parse_source(std::string_view text) {
  const std::size_t colon = text.find(':');
  if (colon == std::string_view::npos) return std::nullopt;
  const auto evidence = enumerator_named<Evidence>(text.substr(0, colon));
  const std::size_t start = text.find_first_not_of(' ', colon + 1);
  if (!evidence || start == std::string_view::npos) return std::nullopt;
  return Source{*evidence, std::string(text.substr(start)), {}};
}

/// The entries of "source" as written, key -> Source; a single text stands under the wildcard.
Sources read_entries(ObjectReader& reader) {
  Sources entries;
  JsonValue* value = reader.take("source");
  if (value == nullptr) return entries;
  const auto read_one = [&](const std::string& key, const JsonValue& text, const std::string& at) {
    std::optional<Source> source;
    if (text.is_string()) source = parse_source(text.string());
    if (!source) {
      reader.problems().add({text.origin, at, "source of " + key + " does not say what kind it is",
                             "begin with \"measured: \", \"datasheet: \", \"fitted: \" or "
                             "\"assumed: \""});
      source = Source{};
    }
    source->file = text.origin.source;
    entries.emplace(key, *source);
  };
  const std::string pointer = pointer_join(reader.pointer(), "source");
  if (!value->is_object()) {
    read_one(std::string(wildcard), *value, pointer);
    return entries;
  }
  for (const JsonValue::Member& member : value->object()) {
    read_one(member.key, member.value, pointer_join(pointer, member.key));
    if (member.key != wildcard && reader.value().find(member.key) == nullptr)
      reader.problems().add({member.key_origin,
                             pointer_join(pointer, member.key),
                             "source of " + member.key + ", but there is no such key here",
                             {}},
                            {pointer_join(reader.pointer(), member.key)});
  }
  return entries;
}

std::optional<Source> source_of(const JsonValue::Member& member, const Sources& entries) {
  if (member.value.origin.kind == OriginKind::command_line)
    return Source{Evidence::assumed, "given on the command line", {}};
  if (const auto own = entries.find(member.key); own != entries.end()) return own->second;
  if (const auto rest = entries.find(std::string(wildcard)); rest != entries.end())
    return rest->second;
  return std::nullopt;
}

}  // namespace

Platform read_platform(JsonValue& value, const std::string& pointer, Problems& problems,
                       const Platform* read_before) {
  ObjectReader reader(value, pointer, problems);
  Platform platform;
  platform.name = reader.required_string("name");
  platform.description = read_preamble(reader);
  read_node_types(reader, platform, read_before);
  read_fabric(reader.child("fabric"), platform, reader.are_sound({"node_types"}));
  read_own_links(reader, platform);
  read_domains(reader, platform);
  if (reader.has("domain_nodes"))
    platform.sources.merge(read_sources(reader));
  else
    reader.take("source");  // no number stands in the outermost object; a text for the reader
  reader.reject_unknown_keys();
  return platform;
}

bool carries_number(const JsonValue& value) {
  if (value.is_string())
    return !value.string().empty() && value.string().front() >= '0' &&
           value.string().front() <= '9';
  if (value.is_array()) return std::ranges::any_of(value.array(), carries_number);
  return value.is_number();
}

Sources read_sources(ObjectReader& reader, const std::string& prefix) {
  Sources sources;
  const bool says_none = !reader.has("source");
  const Sources entries = read_entries(reader);
  if (!reader.value().is_object()) return sources;
  std::vector<const JsonValue::Member*> missing;
  for (const JsonValue::Member& member : reader.value().object()) {
    const JsonValue& value = member.value;
    if (member.key == "name" || member.key == "description" || member.key == "source" ||
        value.origin.kind == OriginKind::defaulted || !carries_number(value))
      continue;
    if (const std::optional<Source> source = source_of(member, entries))
      sources.emplace(prefix + member.key, *source);
    else
      missing.push_back(&member);
  }
  const std::vector<std::string> nothing;  // the number itself is none the worse
  if (says_none && missing.size() > 1) {
    const auto key = [](const JsonValue::Member* member) { return member->key; };
    reader.problems().add({missing.front()->value.origin, reader.pointer(),
                           listed(missing, key) + " have no source, and every number needs one",
                           R"(add "source": "assumed: why", which holds for all of them)"},
                          nothing);
    return sources;
  }
  for (const JsonValue::Member* member : missing)
    reader.problems().add({member->value.origin, pointer_join(reader.pointer(), member->key),
                           member->key + " has no source, and every number needs one",
                           "add \"source\": {\"" + member->key + "\": \"assumed: why\"}"},
                          nothing);
  return sources;
}

void set_source(JsonValue& object, const std::string& key, const std::string& source) {
  const JsonValue* old = object.find("source");
  if (old == nullptr || !old->is_object()) {
    JsonValue sources{JsonValue::Object{}};
    if (old != nullptr) sources.set("*", *old);
    object.set("source", std::move(sources));
  }
  object.find("source")->set(key, JsonValue(source));
}

std::string read_preamble(ObjectReader& reader) {
  reader.take("$schema");
  return reader.has("description") ? reader.required_text("description") : std::string{};
}

}  // namespace windtunnel
