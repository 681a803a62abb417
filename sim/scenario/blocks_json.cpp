#include "scenario/blocks_json.hpp"

#include <cmath>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "core/number_in.hpp"
#include "platform/platform_json.hpp"
#include "scenario/key_table.hpp"
#include "scenario/overrides.hpp"
#include "units/member_reader.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

constexpr double most_sigma = 2;
constexpr double least_slowdown = 0.1, most_slowdown = 100;
constexpr double most_correlation = 0.999;
constexpr double most_stalls_per_hour = 1e6;
constexpr int most_parts = 1 << 20;
constexpr AmountRange stall_range{"1 us", "1 h"};

/// The sources of the numbers in this object, where it names any.
void end_part(ObjectReader& reader, const std::string& prefix, Sources& sources) {
  if (reader.has("source")) sources.merge(read_sources(reader, prefix));
  reader.take("source");
  reader.reject_unknown_keys();
}

NoiseBlock::SlowPart read_slow_part(ObjectReader& reader, const std::string& prefix,
                                    Sources& sources) {
  NoiseBlock::SlowPart part;
  if (reader.has("gpu") == reader.has("node"))
    reader.problem(reader.has("gpu") ? "node" : "gpu",
                   reader.has("gpu") ? "gpu and node both say which part is slow"
                                     : "neither gpu nor node says which part is slow",
                   reader.has("gpu") ? "write one of them" : "write \"gpu\": 11");
  given(reader, "gpu", part.gpu, 0, most_parts - 1);
  given(reader, "node", part.node, 0, most_parts - 1);
  required(reader, "slowdown", part.slowdown, least_slowdown, most_slowdown);
  end_part(reader, prefix, sources);
  return part;
}

void read_slow_parts(ObjectReader& reader, NoiseBlock& noise) {
  JsonValue* const list = reader.take("slow_parts");
  if (list == nullptr) return;
  if (!list->is_array()) {
    reader.problem("slow_parts", "slow_parts is " + text_for_message(*list) + ", which is no list",
                   "write [{\"gpu\": 11, \"slowdown\": 1.25}]");
    return;
  }
  for (ObjectReader& entry : reader.entries("slow_parts", {}, 0))
    noise.slow_parts.push_back(read_slow_part(entry, place_in(reader, entry), noise.sources));
}

constexpr double most_tokens = 1e18;
constexpr int most_steps = 1'000'000'000;
constexpr int most_spares = 100'000;
constexpr double most_failures_per_year = 1e4;
constexpr double most_price = 1e6;
constexpr double most_watts = 1e6;
constexpr double most_overhead = 10;
constexpr double most_emissions = 100;
constexpr int most_checkpoints = 1'000'000;

constexpr AmountRange waiting{"0 s", "8760 h"};
constexpr AmountRange interval_range{"1 s", "8760 h"};
constexpr AmountRange storage_range{"1 MB/s", "1000 TB/s"};

void read_length(ObjectReader& reader, JobBlock& job) {
  const bool has_tokens = reader.has("tokens"), has_steps = reader.has("steps");
  if (has_tokens == has_steps) {
    reader.problem(has_tokens ? "steps" : "tokens",
                   has_tokens ? "tokens and steps both say how long the job is"
                              : "neither tokens nor steps say how long the job is",
                   has_tokens ? "write one of them" : "write \"tokens\": 2e12");
    reader.take("tokens");
    reader.take("steps");
    return;
  }
  if (has_tokens) job.tokens = reader.required_number("tokens", 1, most_tokens);
  if (has_steps) job.steps = static_cast<int>(reader.required_int("steps", 1, most_steps));
  reader.take("tokens");
  reader.take("steps");
}

/// An object of the block, all keys of which `read` asks for.
template <class Read>
void read_part(ObjectReader part, const Read& read) {
  read(part);
  part.reject_unknown_keys();
}

constexpr AmountRange most_margin{"0 B", "1 PB"};

/// The list at `key`, or null where there is none; no list, and an empty one, are problems.
const JsonValue::Array* list_at(ObjectReader& reader, const std::string& key,
                                const std::string& of) {
  const JsonValue* list = reader.take(key);
  if (list == nullptr) return nullptr;
  if (list->is_array() && !list->array().empty()) return &list->array();
  reader.problem(key,
                 list->is_array()
                     ? key + " is an empty list"
                     : key + " is " + text_for_message(*list) + ", which is not a list",
                 "write [ ... ] with " + of);
  return nullptr;
}

/// A word or flag, as Key::get has it; nothing, with a problem, for what is neither.
std::optional<int> read_element(const Key& key, const JsonValue& element, const std::string& at,
                                Problems& problems) {
  const bool is_flag = key.value.kind == KeyValue::Kind::flag;
  if (is_flag && element.is_bool()) return std::get<bool>(element.content) ? 1 : 0;
  std::string known;
  for (int i = 0; !is_flag && i <= key.value.most; ++i) {
    if (element.is_string() && element.string() == text_of(key, i)) return i;
    known += (i == 0 ? "" : ", ") + text_of(key, i);
  }
  problems.add(
      {element.origin,
       at,
       text_for_message(element) + (is_flag ? " is no true or false" : " is none of " + known),
       {}});
  return std::nullopt;
}

std::vector<int> read_values(ObjectReader& reader, const Key& key) {
  const std::string name = key.name();
  std::vector<int> values;
  if (key.value.kind == KeyValue::Kind::whole_number) {
    values = reader.optional_int_list(name, key.value.least, key.value.most);
    const JsonValue* list = reader.take(name);
    if (list != nullptr && list->is_array() && list->array().empty())
      reader.problem(name, name + " is an empty list", "leave the key out to try all");
    return values;
  }
  const bool is_flag = key.value.kind == KeyValue::Kind::flag;
  const JsonValue::Array* list = list_at(reader, name, is_flag ? "true or false" : "names");
  const std::string at = pointer_join(reader.pointer(), name);
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i)
    if (const auto value =
            read_element(key, (*list)[i], pointer_join(at, std::to_string(i)), reader.problems()))
      values.push_back(*value);
  return values;
}

/// "5 %" as 0.05.
std::optional<double> parse_share(std::string_view text) {
  const auto trim = [](std::string_view part) {
    while (part.starts_with(' ')) part.remove_prefix(1);
    while (part.ends_with(' ')) part.remove_suffix(1);
    return part;
  };
  constexpr double percent = 100;
  text = trim(text);
  if (!text.ends_with('%')) return std::nullopt;
  text = trim(text.substr(0, text.size() - 1));
  const std::optional<double> number = number_in(text);
  if (!number || *number < 0 || *number > percent) return std::nullopt;
  return *number / percent;
}

MemoryMargin read_margin(ObjectReader& reader) {
  constexpr const char* key = "memory_margin";
  reader.set_default(key, std::string("5 %"));
  const JsonValue* value = reader.take(key);
  MemoryMargin margin;
  if (value == nullptr) return margin;
  const std::string wanted = "write \"5 %\" or \"2 GiB\"";
  if (!value->is_string()) {
    reader.problem(
        key,
        "memory_margin is " + text_for_message(*value) + ", which is neither a share nor a size",
        wanted);
    return margin;
  }
  if (const auto share = parse_share(value->string())) return {*share, Bytes{}};
  std::string problem, suggestion;
  const auto amount = parse_quantity<Bytes>(value->string(), problem, suggestion);
  if (amount && side_of(*amount, most_margin) == RangeSide::inside) return {0, *amount};
  if (amount)
    reader.problem(key, "memory_margin is " + text_for_message(*value) + ", which is too large",
                   range_suggestion<Bytes>(most_margin));
  else
    reader.problem(key, "memory_margin is neither a share nor a size: " + problem, wanted);
  return margin;
}

SearchLists read_lists(ObjectReader& reader) {
  SearchLists lists;
  for (const SearchKey& searched : search_keys()) {
    std::vector<int> values = read_values(reader, *searched.key);
    if (!values.empty()) lists[searched.key->name()] = std::move(values);
  }
  return lists;
}

void check_pointer(const JsonValue::Member& member, const std::string& at, Problems& problems) {
  if (is_known_pointer(member.key)) return;
  const std::string nearest = closest_known_pointer(member.key);
  problems.add(
      {member.key_origin, at,
       text_for_message(JsonValue(member.key)) + " points to nothing in a scenario",
       nearest.empty() ? "such as \"/parallel/tensor\"" : "did you mean \"" + nearest + "\"?"},
      {pointer_join(at, nearest.empty() ? member.key : nearest)});
}

/// What is wrong with `value`, which is no object with something in it.
std::string object_complaint(const std::string& name, const JsonValue& value) {
  if (value.is_object()) return name + " is empty";
  return name + " is " + text_for_message(value) + ", which is not an object";
}

/// Whether the matrix has no such pointer, as far as it could be read; a misspelt one is what was meant.
bool is_missing_in(const JsonValue* matrix, const std::string& key, const std::string& at,
                   const Problems& problems) {
  if (matrix == nullptr || !matrix->is_object() || problems.is_spoiled(at)) return false;
  return matrix->find(key) == nullptr && !problems.is_spoiled(pointer_join(at, key));
}

/// Needed unless points are listed.
void check_matrix(ObjectReader& reader) {
  const bool is_needed = !reader.has("points") && !reader.has("include");
  JsonValue* matrix =
      is_needed
          ? reader.require("matrix", "an object with lists of values by JSON pointer; or points")
          : reader.take("matrix");
  if (matrix == nullptr) return;
  const std::string at = pointer_join(reader.pointer(), "matrix");
  if (!matrix->is_object() || matrix->object().empty()) {
    reader.problem("matrix", object_complaint("matrix", *matrix), "write {\"/nodes\": [8, 16]}");
    return;
  }
  for (const JsonValue::Member& member : matrix->object()) {
    check_pointer(member, at, reader.problems());
    if (!member.value.is_array() || member.value.array().empty())
      reader.problems().add(
          {member.value.origin, pointer_join(at, member.key),
           member.value.is_array()
               ? std::string("the list is empty")
               : "the values are " + text_for_message(member.value) + ", which is not a list",
           "write [ ... ]"});
  }
}

/// The name of a point, which no other has.
void check_label(ObjectReader point, std::set<std::string>& known) {
  const JsonValue* given = point.take("label");
  if (given == nullptr) return;
  const std::string label = point.required_string("label");
  if (given->is_string() && label.empty())
    point.problem("label", "the label is empty", "write a name, or leave it out");
  else if (!known.insert(label).second && !label.empty())
    point.problem("label", "another point is called \"" + label + "\" too");
}

/// As SweepPoints has at most.
constexpr int most_points = 10'000'000;

/// A label, the number of a point, or its values.
void check_baseline(ObjectReader& reader) {
  const JsonValue* baseline = reader.take("baseline");
  if (baseline == nullptr || baseline->is_string()) return;
  if (baseline->is_integer())
    reader.required_int("baseline", 0, most_points - 1);
  else if (!baseline->is_object() || baseline->object().empty())
    reader.problem("baseline", object_complaint("baseline", *baseline),
                   "write the label of a point, its number, or its values: {\"/nodes\": 8}");
}

/// A list of objects with pointers as keys; those of `exclude` must be in the matrix, others may have a label of `labels`.
void check_points(ObjectReader& reader, const char* key, std::set<std::string>& labels) {
  JsonValue* points = reader.take(key);
  if (points == nullptr) return;
  const std::string at = pointer_join(reader.pointer(), key);
  if (!points->is_array()) {
    reader.problem(key,
                   std::string(key) + " is " + text_for_message(*points) + ", which is not a list",
                   "write [ {\"/nodes\": 8} ]");
    return;
  }
  const JsonValue* matrix = reader.value().find("matrix");
  const std::string of_matrix = pointer_join(reader.pointer(), "matrix");
  for (std::size_t i = 0; i < points->array().size(); ++i) {
    JsonValue& point = points->array()[i];
    const std::string here = pointer_join(at, std::to_string(i));
    if (!point.is_object() || point.object().empty()) {
      reader.problems().add(
          {point.origin, here, object_complaint("the point", point), "write {\"/nodes\": 8}"});
      continue;
    }
    const bool is_excluded = std::string(key) == "exclude";
    if (!is_excluded) check_label(ObjectReader(point, here, reader.problems()), labels);
    for (const JsonValue::Member& member : point.object()) {
      if (!is_excluded && member.key == "label") continue;
      if (!is_excluded)
        check_pointer(member, here, reader.problems());
      else if (is_missing_in(matrix, member.key, of_matrix, reader.problems()))
        reader.problems().add({member.key_origin,
                               here,
                               text_for_message(JsonValue(member.key)) + " is not in the matrix",
                               {}});
    }
  }
}

}  // namespace

double NoiseBlock::StepJitter::all_in(Seconds step) const {
  return all_lasts && step > *all_lasts ? all * std::sqrt(*all_lasts / step) : all;
}

bool NoiseBlock::is_none() const {
  return pass_jitter == 0 && spread.gpu == 0 && spread.node == 0 && step_jitter.all == 0 &&
         step_jitter.gpu == 0 && step_jitter.node == 0 && slow_parts.empty() && links.rate == 0 &&
         links.latency == 0 && stalls.per_gpu_hour == 0;
}

NoiseBlock read_noise(ObjectReader reader) {
  NoiseBlock noise;
  const auto read_part = [&](const char* key, const auto& read) {
    ObjectReader part = reader.child(key);
    read(part);
    end_part(part, std::string(key) + "/", noise.sources);
  };
  read_preamble(reader);
  noise.name = reader.optional_string("name", "noise");
  defaulted(reader, "pass_jitter", noise.pass_jitter, 0, most_sigma);
  read_part("spread", [&](ObjectReader& part) {
    defaulted(part, "gpu", noise.spread.gpu, 0, most_sigma);
    defaulted(part, "node", noise.spread.node, 0, most_sigma);
  });
  read_part("step_jitter", [&, &jitter = noise.step_jitter](ObjectReader& part) {
    defaulted(part, "all", jitter.all, 0, most_sigma);
    given(part, "all_lasts", jitter.all_lasts, stall_range);
    defaulted(part, "gpu", jitter.gpu, 0, most_sigma);
    defaulted(part, "node", jitter.node, 0, most_sigma);
    defaulted(part, "correlation", jitter.correlation, 0, most_correlation);
  });
  read_slow_parts(reader, noise);
  read_part("links", [&](ObjectReader& part) {
    defaulted(part, "rate", noise.links.rate, 0, most_sigma);
    defaulted(part, "latency", noise.links.latency, 0, most_sigma);
  });
  read_part("stalls", [&](ObjectReader& part) {
    defaulted(part, "per_gpu_hour", noise.stalls.per_gpu_hour, 0, most_stalls_per_hour);
    defaulted(part, "median", noise.stalls.median, stall_range);
    defaulted(part, "spread", noise.stalls.spread, 0, most_sigma);
  });
  end_part(reader, {}, noise.sources);
  return noise;
}

JobBlock read_job(ObjectReader reader) {
  JobBlock job;
  read_length(reader, job);
  defaulted(reader, "plan", job.plan);
  if (job.plan == JobPlan::best && reader.has("step_time"))
    reader.problem("plan", "plan is \"best\", and step_time is that of one plan",
                   "leave out one of them");
  given(reader, "step_time", job.step_time, AmountRange{"1 us", "24 h"});
  read_part(reader.child("start"), [&](ObjectReader& start) {
    given(start, "time", job.start_time, waiting);
    defaulted(start, "warm_up", job.warm_up, waiting);
  });
  if (auto evaluation = reader.optional_child("evaluation")) {
    required(*evaluation, "every", job.evaluation_every, 1, most_steps);
    required(*evaluation, "time", job.evaluation_time, waiting);
    evaluation->reject_unknown_keys();
  }
  read_part(reader.child("checkpoint"), [&](ObjectReader& checkpoint) {
    defaulted(checkpoint, "kind", job.checkpoint_kind);
    defaulted(checkpoint, "sharded", job.sharded);
    given(checkpoint, "interval", job.interval, interval_range);
    defaulted(checkpoint, "storage_bandwidth", job.storage_bandwidth, storage_range);
    defaulted(checkpoint, "node_bandwidth", job.node_bandwidth, storage_range);
    defaulted(checkpoint, "snapshot_bandwidth", job.snapshot_bandwidth, storage_range);
    defaulted(checkpoint, "kept", job.kept_checkpoints, 1, most_checkpoints);
  });
  read_part(reader.child("failures"), [&](ObjectReader& failures) {
    for (std::size_t i = 0; i < num_failing_parts; ++i)
      defaulted(failures, name_of(static_cast<FailingPart>(i)), job.failures_per_year[i], 0,
                most_failures_per_year);
  });
  read_part(reader.child("restart"), [&](ObjectReader& restart) {
    given(restart, "detection", job.detection, waiting);
    defaulted(restart, "repair", job.repair, waiting);
    defaulted(restart, "spare_nodes", job.spare_nodes, 0, most_spares);
    defaulted(restart, "elastic", job.elastic);
  });
  if (auto part = reader.optional_child("price")) {
    JobBlock::Price& price = job.price.emplace(JobBlock::Price{});
    required(*part, "gpu_hour", price.gpu_hour, 0, most_price);
    defaulted(*part, "storage_tb_month", price.storage_tb_month, 0, most_price);
    price.currency = part->optional_string("currency", price.currency);
    part->reject_unknown_keys();
  }
  if (auto part = reader.optional_child("power")) {
    JobBlock::Power& power = job.power.emplace(JobBlock::Power{});
    required(*part, "computing", power.computing, 0, most_watts);
    required(*part, "communicating", power.communicating, 0, most_watts);
    required(*part, "idle", power.idle, 0, most_watts);
    defaulted(*part, "node", power.node, 0, most_watts);
    defaulted(*part, "pue", power.overhead, 1, most_overhead);
    given(*part, "kg_co2_per_kwh", power.kg_co2_per_kwh, 0, most_emissions);
    part->reject_unknown_keys();
  }
  reader.reject_unknown_keys();
  return job;
}

SearchLists read_supported(ObjectReader reader) {
  SearchLists lists = read_lists(reader);
  read_sources(reader);
  reader.reject_unknown_keys();
  return lists;
}

SearchBlock read_search(ObjectReader reader) {
  SearchBlock block;
  block.values = read_lists(reader);
  block.memory_margin = read_margin(reader);
  block.placement = reader.optional_enum("placement", PlacementChoice::megatron);
  block.objective = reader.optional_enum("objective", Objective::time);
  reader.reject_unknown_keys();
  return block;
}

SweepChoices check_sweep(ObjectReader reader) {
  check_matrix(reader);
  std::set<std::string> labels;
  for (const char* key : {"exclude", "include", "points"}) check_points(reader, key, labels);
  check_baseline(reader);
  SweepChoices
      choices;  // what is not given is not written back: results are kept under the hash of the block
  given(reader, "objective", choices.objective);
  given(reader, "plan", choices.plan);
  reader.reject_unknown_keys();
  return choices;
}

}  // namespace windtunnel
