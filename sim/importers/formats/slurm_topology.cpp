#include <algorithm>
#include <functional>
#include <map>
#include <set>
#include <utility>

#include "core/count_text.hpp"
#include "core/file_io.hpp"
#include "core/json_build.hpp"
#include "core/text_list.hpp"
#include "core/utf8.hpp"
#include "importers/base_platform.hpp"
#include "importers/importer.hpp"
#include "importers/log_text.hpp"
#include "report/json_object.hpp"

namespace windtunnel::formats {
namespace {

constexpr std::size_t most_hosts = 100'000;

/// A line of topology.conf: a switch with the nodes or switches below it.
struct SlurmSwitch {
  std::vector<std::string> nodes, switches;
  Origin origin;
  std::size_t num_nodes = 0;  ///< below it, at any depth
};

/// "n[01-03,7]" and the texts behind it, put together: Slurm's host list, with any number of brackets in a name. Empty where it is none, or of too many hosts.
std::vector<std::string> expanded_hosts(const std::string& name) {
  constexpr std::ptrdiff_t most_brackets = 8;
  if (std::ranges::count(name, '[') > most_brackets) return {};
  const std::size_t open = name.find('['), close = name.find(']');
  if (open == std::string::npos && close == std::string::npos) return {name};
  if (open == std::string::npos || close == std::string::npos || close < open) return {};
  const std::vector<std::string> ends = expanded_hosts(name.substr(close + 1));
  std::vector<std::string> hosts;
  for (std::size_t from = open + 1; from <= close;) {
    const std::size_t comma = std::min(name.find(',', from), close);
    const std::string range = name.substr(from, comma - from);
    const std::string low = range.substr(0, range.find('-'));
    const auto first = count_in(low),
               last = count_in(low.size() == range.size() ? low : range.substr(low.size() + 1));
    if (!first || !last || *last < *first || static_cast<std::size_t>(*last - *first) >= most_hosts)
      return {};
    for (long long number = *first; number <= *last; ++number) {
      std::string digits = std::to_string(number);
      if (digits.size() < low.size()) digits.insert(0, low.size() - digits.size(), '0');
      for (const std::string& end : ends) hosts.push_back(name.substr(0, open) + digits + end);
      if (hosts.size() > most_hosts) return {};
    }
    from = comma + 1;
  }
  return hosts;
}

class SlurmTopologyImport : PlatformImport {
 public:
  SlurmTopologyImport(const ImportRequest& request, const Library& library)
      : PlatformImport(request, library),
        text_(read_source_or_stdin(request.inputs.front()), problems_,
              [](std::string_view line) { return line.find("SwitchName="); }) {}

  Imported run() {
    for (const LogLine& line : text_.lines())
      if (problems_.empty()) read_line(line);
    problems_.throw_if_any();
    if (switches_.empty())
      problem(text_.end(), "no line that begins with SwitchName=",
              "import the topology.conf of topology/tree; blocks are not read");
    problems_.throw_if_any();
    find_root();
    problems_.throw_if_any();
    base_.only_node_type();
    describe_document(" with the switches of " + file_);
    set_number(base_.only_node_type(), "count", nodes_.size(), "measured: nodes in " + file_);
    write_fabric();
    note("topology.conf has no rates, and Slurm does not use LinkSpeed: the cards are those of " +
         base_.name() +
         ", and the uplinks of a switch carry what the NICs below it do, as one "
         "pool; if they carry less, write " +
         (tiers_.empty() ? "their rates into fabric/links" : "fabric/taper"));
    constexpr std::size_t most_named = 8;
    const auto leaves = std::ranges::count_if(
        switches_, [](const auto& each) { return each.second.switches.empty(); });
    imported_.text =
        file_ + ": " + count_text(nodes_.size(), "node") + ", laid into " + base_.name() +
        "\n\n  nodes      " + listed(nodes_, {}, most_named) + "\n  switches   " +
        std::to_string(switches_.size()) + ", " + std::to_string(leaves) +
        " of them with nodes\n  fabric     " +
        (tiers_.empty() ? "edge_list: switches of a tier differ"
                        : "fat_tree, nodes below a switch of each tier: " +
                              listed(tiers_, [](std::int64_t n) { return std::to_string(n); })) +
        "\n";
    imported_.found = object_of({{"nodes", array_of(nodes_)},
                                 {"switches", switches_.size()},
                                 {"nodes_per_switch", array_of(tiers_)}});

    return finished();
  }

 private:
  /// "SwitchName=s0 Nodes=n[0-15] LinkSpeed=100"; keys in any case, comments behind "#".
  void read_line(const LogLine& line) {
    SlurmSwitch entry{{}, {}, text_.at(line), 0};
    std::string name;
    for (const LogWord& word : line.words) {
      if (word.text.starts_with('#')) break;
      const std::size_t equals = std::min(word.text.find('='), word.text.size());
      const std::string key = lower_case(word.text.substr(0, equals));
      const std::string value = word.text.substr(std::min(equals + 1, word.text.size()));
      if (key == "switchname")
        name = value;
      else if (key == "nodes")
        entry.nodes = host_list(line, word, value);
      else if (key == "switches")
        entry.switches = host_list(line, word, value);
      else if (key != "linkspeed")
        return text_.problem(line, word,
                             "\"" + word.text + "\" is no part of a line of topology/tree",
                             "SwitchName=, Nodes=, Switches= or LinkSpeed=");
    }
    if (line.words[0].text.starts_with('#')) return;
    if (!is_plain_text(name) || entry.nodes.empty() == entry.switches.empty())
      return problem(text_.at(line), "a switch needs a name, and either nodes or switches below it",
                     "as in SwitchName=leaf0 Nodes=node[00-15]");
    if (!switches_.emplace(name, entry).second)
      problem(text_.at(line), "a second line of switch " + name);
  }

  /// Names with commas between them, those in brackets aside.
  std::vector<std::string> host_list(const LogLine& line, const LogWord& word,
                                     const std::string& list) {
    std::vector<std::string> hosts;
    bool is_inside = false;  // of brackets
    for (std::size_t from = 0, at = 0; at <= list.size(); ++at) {
      const char c = at < list.size() ? list[at] : ',';
      is_inside = at < list.size() && c != ']' && (is_inside || c == '[');
      if (c != ',' || is_inside) continue;
      const std::vector<std::string> some = expanded_hosts(list.substr(from, at - from));
      if (some.empty() || !std::ranges::all_of(some, is_plain_text) ||
          num_names_ + some.size() > most_hosts) {
        text_.problem(line, word,
                      "\"" + list.substr(from, at - from) +
                          "\" is no list of names, or they are more than " +
                          std::to_string(most_hosts) + " in all",
                      "as node[00-15,20]");
        return {};
      }
      num_names_ += some.size();
      hosts.insert(hosts.end(), some.begin(), some.end());
      from = at + 1;
    }
    return hosts;
  }

  /// The switch that is below no other; numbers the nodes in the order of the tree.
  void find_root() {
    std::map<std::string, std::string> above;
    for (const auto& [name, entry] : switches_)
      for (const std::string& child : entry.switches) {
        if (switches_.count(child) == 0)
          problem(entry.origin, "no line of switch " + child, "the file may be truncated");
        if (!above.emplace(child, name).second)
          problem(entry.origin, child + " is below " + above.at(child) + " and below " + name,
                  "give switches that share their uplinks one line, as Slurm has it");
      }
    std::vector<std::string> roots;
    for (const auto& [name, entry] : switches_)
      if (above.count(name) == 0) roots.push_back(name);
    if (roots.size() != 1)
      problem(text_.end(),
              roots.empty() ? "each switch is below another"
                            : "no switch joins " + listed(roots, {}, 8),
              "one switch must be above all others");
    if (!problems_.empty()) return;
    root_ = roots.front();
    std::set<std::string> seen;
    visit(root_, 0, seen);
    if (switches_.size() != depth_.size())
      problem(text_.end(), "some switches are below each other in a circle");
    if (nodes_.size() < 2) problem(text_.end(), "fewer than two nodes");
  }

  void visit(const std::string& name, std::size_t depth, std::set<std::string>& seen) {
    constexpr std::size_t most_tiers = 16;
    SlurmSwitch& entry = switches_.at(name);
    depth_[name] = depth;
    if (depth > most_tiers) return problem(entry.origin, "more than 16 tiers of switches");
    const std::size_t before = nodes_.size();
    for (const std::string& node : entry.nodes) {
      if (!seen.insert(node).second)
        return problem(entry.origin, node + " is below two switches, and a node has one here");
      leaf_of_.push_back(name);
      nodes_.push_back(node);
    }
    for (const std::string& child : entry.switches) visit(child, depth + 1, seen);
    entry.num_nodes = nodes_.size() - before;
  }

  /// Nodes below a switch of each tier, the leaves first and without the root, above which nothing is; empty where switches of a tier differ.
  std::vector<std::int64_t> regular_tiers() const {
    std::map<std::size_t, std::set<std::size_t>, std::greater<>> sizes;  // by depth
    for (const auto& [name, entry] : switches_) sizes[depth_.at(name)].insert(entry.num_nodes);
    for (const auto& [name, entry] : switches_)
      if (entry.switches.empty() != (depth_.at(name) == sizes.begin()->first)) return {};
    std::vector<std::int64_t> tiers;
    for (const auto& [depth, nodes] : sizes) {
      if (nodes.size() > 1) return {};
      const auto number = static_cast<std::int64_t>(*nodes.begin());
      // A tier whose switches have one switch each below them is the same one again
      if ((depth > 0 || tiers.empty()) && (tiers.empty() || number > tiers.back()))
        tiers.push_back(number);
    }
    return tiers;
  }

  void write_fabric() {
    tiers_ = regular_tiers();
    const std::int64_t domain = base_.platform().domain_nodes;
    for (const std::int64_t nodes : tiers_)
      if (nodes % domain != 0)
        throw base_error(base_.name() + " has NVLink domains of " + std::to_string(domain) +
                             " nodes, and a switch in " + file_ + " has " + std::to_string(nodes),
                         "name a base whose domains fit below a switch");
    const std::string source = "measured: Slurm's topology.conf, " + file_;
    JsonValue& fabric = replace_fabric(tiers_.empty() ? "edge_list" : "fat_tree");
    if (!tiers_.empty()) return set_number(fabric, "nodes_per_switch", array_of(tiers_), source);
    JsonValue::Array links;
    const auto add = [&](const std::string& from, const std::string& to, std::size_t nodes) {
      // An entry holds so many cables; they are one pool, so that fewer and faster ones are the same
      const std::size_t cables =
          std::min<std::size_t>(nodes * static_cast<std::size_t>(node().nics), 10'000);
      const BytesPerSecond rate =
          node().nic_rate * node().nics * static_cast<double>(nodes) / static_cast<double>(cables);
      links.push_back(array_of(std::vector<std::string>{
          from, to, std::to_string(cables) + " x " + exact_number(rate.value() / 1e9) + " GB/s"}));
    };
    for (std::size_t i = 0; i < nodes_.size(); ++i)
      add("node" + std::to_string(i), "switch " + leaf_of_[i], 1);
    for (const auto& [name, entry] : switches_)
      for (const std::string& child : entry.switches)
        if (const std::size_t nodes = switches_.at(child).num_nodes; nodes > 0)
          add("switch " + child, "switch " + name, nodes);
    set_number(fabric, "links", JsonValue(std::move(links)), source + ", rates of " + base_.name());
  }

  const LogText text_;
  std::map<std::string, SlurmSwitch> switches_;
  std::map<std::string, std::size_t> depth_;
  std::vector<std::string> nodes_, leaf_of_;  ///< in the order of the tree
  std::string root_;
  std::size_t num_names_ = 0;  ///< in all lists
  std::vector<std::int64_t> tiers_;
};

}  // namespace

Importer slurm_topology() {
  return {"slurm-topology",
          "switches of Slurm's topology.conf, to a platform",
          "a topology.conf of Slurm's topology/tree",
          {"--base"},
          import_by<SlurmTopologyImport>};
}

}  // namespace windtunnel::formats
