#include "questions/collective.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "core/contracts.hpp"
#include "core/count_text.hpp"
#include "core/json_value.hpp"
#include "core/problem.hpp"
#include "core/text_list.hpp"
#include "core/utf8.hpp"
#include "cost/collective_algorithm.hpp"
#include "cost/collective_cost.hpp"
#include "cost/expert_exchange.hpp"
#include "engine/engine.hpp"
#include "platform/network.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

/// A platform with one node for each NVLink domain, and the GPUs on which a collective runs there, each a member.
struct Machine {
  Platform job;
  std::vector<std::vector<int>> gpus = {};  ///< by member: itself
  CollectiveMembers members = {};
};

/// The first `run.gpus` of each of the first nodes.
Machine machine_of(const CollectiveRun& run, const Platform& platform) {
  Machine machine{in_domains(platform, run.nodes)};
  std::vector<NodeId> nodes;
  for (int node = 0; node < run.nodes; ++node) {
    const int domain = node / platform.domain_nodes;
    const int first = node % platform.domain_nodes * platform.node_types.front().gpus;
    for (int gpu = 0; gpu < run.gpus; ++gpu) {
      nodes.push_back(NodeId{domain});
      machine.gpus.push_back({first + gpu});
    }
  }
  machine.members = {std::move(nodes), {}, {}};
  return machine;
}

/// Time of flows between members in different nodes.
Seconds simulate_flows(const std::vector<MemberFlow>& flows, const Machine& on) {
  Network network(on.job, on.members.layout.num_nodes());
  const auto endpoint = [&](std::size_t member) {
    return Network::Endpoint{on.members.nodes[member], on.gpus[member]};
  };
  std::vector<RoutedFlow> routed;
  for (const MemberFlow& flow : flows)
    routed.push_back({network.route(endpoint(flow.from), endpoint(flow.to)), flow.bytes});
  return time_of_flows(network, routed);
}

/// The smallest training that a platform can be read with.
JsonValue platform_scenario(const JsonValue& scenario) {
  const auto number = [](std::int64_t value) { return JsonValue(value); };
  JsonValue whole = scenario;
  whole.set("model", JsonValue(JsonValue::Object{}));
  JsonValue& model = *whole.find("model");
  model.set("family", JsonValue(std::string("gpt")));
  for (const auto& [key, value] :
       {std::pair("layers", 1), {"hidden", 64}, {"heads", 1}, {"sequence", 64}, {"vocab", 64}})
    model.set(key, number(value));
  whole.set("training", JsonValue(JsonValue::Object{}));
  for (const char* key : {"global_batch", "micro_batch"})
    whole.find("training")->set(key, number(1));
  return whole;
}

InputError refused(const std::string& message) { return InputError({{{}, {}, message, {}}}); }

/// Each GPU sends flows of its own over the network, which take some 5 kB each.
void require_size(const CollectiveRun& run, const Fabric& fabric) {
  constexpr std::int64_t most_flows = 131'072;
  const std::int64_t gpus = std::int64_t{run.gpus} * run.nodes;
  const bool is_exchange = run.operation == CollectiveOperation::all_to_all;
  const int to_a_node = fabric.separates_rails() ? 2 : 1;
  if (gpus * (is_exchange ? (run.nodes - 1) * to_a_node : 1) <= most_flows) return;
  throw refused(std::string(is_exchange ? "an all-to-all" : "a collective") + " on " +
                std::to_string(run.nodes) + " nodes of " + std::to_string(run.gpus) +
                " GPUs has more than the " + std::to_string(most_flows) +
                " flows between GPUs that are simulated");
}

void require_gpus(const CollectiveRun& run, const Platform& platform) {
  const int available = platform.available_nodes();
  const bool enough_nodes = available == 0 || run.nodes <= available;
  const int gpus = platform.type_of(NodeId{0}).gpus;
  if (enough_nodes && run.gpus <= gpus) return;
  throw refused("the collective ran on " + std::to_string(run.gpus) + " GPUs of each of " +
                std::to_string(run.nodes) + " nodes, but platform \"" + platform.name +
                "\" has nodes of " + std::to_string(gpus) + " GPUs" +
                (available == 0 ? "" : ", and " + std::to_string(available) + " of them"));
}

/// Each GPU sends one share of its payload to each other.
CollectiveSteps all_to_all(const CollectiveRun& run, const Machine& on) {
  ExpertGroup group;
  group.ranks = on.members.layout.num_members();
  group.nodes = on.members.layout.num_nodes();
  group.most_in_node = 0;
  group.fewest_in_node = group.ranks;
  for (const std::vector<std::size_t>& here : on.members.layout.by_node) {
    group.most_in_node = std::max(group.most_in_node, static_cast<int>(here.size()));
    group.fewest_in_node = std::min(group.fewest_in_node, static_cast<int>(here.size()));
  }
  const ExchangeBytes bytes = exchange_bytes(run.payload, {}, group, ExpertDispatch::all_to_all);
  const ExchangeTime time = exchange_time(bytes, group, on.members.type_of(0), on.job.fabric);
  return {"pairwise",
          time.fixed,
          time.latency,
          {},
          exchange_flows(on.members, bytes.between_nodes, on.job.fabric)};
}

/// On `gpus` GPUs: of one node, or of whole nodes.
CollectiveRun run_on(const CollectiveQuestion& question, const Platform& platform, int gpus,
                     Bytes payload) {
  CollectiveRun run;
  run.operation = question.operation;
  run.payload = payload;
  run.algorithm = question.algorithm;
  const int whole = platform.type_of(NodeId{0}).gpus;
  run.nodes = std::max(gpus / whole, 1);
  run.gpus = std::min(gpus, whole);
  if (run.gpus * run.nodes != gpus)
    throw refused(std::to_string(gpus) + " GPUs are no whole nodes of platform \"" + platform.name +
                  "\", which has " + std::to_string(whole) + " in each (write " +
                  std::to_string(run.nodes * whole) + " or " +
                  std::to_string((run.nodes + 1) * whole) + ")");
  return run;
}

/// 1 MiB to 4 GiB; nothing smaller is constrained by what was measured.
std::vector<Bytes> usual_payloads() {
  std::vector<Bytes> payloads;
  for (Bytes payload = 1_MiB; payload <= 4_GiB; payload *= 4) payloads.push_back(payload);
  return payloads;
}

std::string rate_text(double bytes_per_second) { return to_text(BytesPerSecond{bytes_per_second}); }
std::string time_text(double seconds) { return to_text(Seconds{seconds}); }
std::string size_text(double bytes) { return to_text(Bytes{bytes}); }

/// True if a number of a platform's file belongs to its links.
bool is_of_links(const std::string& key) {
  return key.find("/interconnect/") != std::string::npos || key.find("/nic") != std::string::npos ||
         key.starts_with("fabric/");
}

JsonValue sources_json(const Platform& platform) {
  JsonValue sources{JsonValue::Object{}};
  for (const auto& [key, source] : platform.sources)
    if (is_of_links(key))
      sources.set(key,
                  object_of({{"evidence", name_of(source.evidence)}, {"source", source.text}}));
  return sources;
}

/// "8 GPUs and 8 NICs of 50 GB/s per node; of 15 numbers for its links 5 are assumed"
std::string links_text(const Platform& platform) {
  const NodeType& node = platform.node_types.front();
  int known = 0, assumed = 0;
  for (const auto& [key, source] : platform.sources) {
    known += is_of_links(key) ? 1 : 0;
    assumed += is_of_links(key) && source.evidence == Evidence::assumed ? 1 : 0;
  }
  return count_text(node.gpus, "GPU") + " and " + count_text(node.nics, "NIC") + " of " +
         to_text(node.nic_rate) + " per node; of " + count_text(known, "number") +
         " for its links " + std::to_string(assumed) + " " +
         is_or_are(static_cast<std::size_t>(assumed)) + " assumed";
}

/// Chart of bus bandwidth over payloads; with several numbers of GPUs, over those, for the largest payload.
Chart bandwidth_chart(const JsonValue::Array& rows, bool over_gpus) {
  Chart chart;
  chart.label = "Bus bandwidth";
  const auto number_at = [](const JsonValue& row, const char* key) {
    return number_of(row.find(key)).value();
  };
  double most = 0;
  const double largest = number_at(rows.back(), "bytes");
  for (const JsonValue& row : rows) {
    const double rate = number_at(row, "bus_bandwidth_bytes_per_s");
    most = std::max(most, rate);
    if (!over_gpus || number_at(row, "bytes") == largest)
      chart.points.push_back({number_at(row, over_gpus ? "gpus" : "bytes"), rate});
  }
  chart.x = {chart.points.front().x, chart.points.back().x, over_gpus ? number_mark : bytes_mark,
             over_gpus ? "GPUs, " + size_text(largest) : "payload", true};
  for (const Chart::Point& point : chart.points) chart.x.marks.push_back(point.x);
  chart.y = {0, most * 1.05, rate_mark, "bus bandwidth"};
  return chart;
}

}  // namespace

CollectiveResult simulate_collective(const CollectiveRun& run, const Platform& platform) {
  require_size(run, platform.fabric);
  require_gpus(run, platform);
  Machine on = machine_of(run, platform);
  if (const std::string why = why_not_joined(on.job, on.members.layout.num_nodes()); !why.empty())
    throw refused(why);
  on.members.gpus_of = [&on](std::size_t i) -> const std::vector<int>& { return on.gpus[i]; };
  on.members.type_of = [&on](std::size_t i) -> const NodeType& {
    return on.job.type_of(on.members.nodes[i]);
  };
  const RingKind work = run.operation == CollectiveOperation::all_reduce ? RingKind::all_reduce
                        : run.operation == CollectiveOperation::all_gather
                            ? RingKind::all_gather
                            : RingKind::reduce_scatter;
  const CollectiveSteps steps =
      run.operation == CollectiveOperation::all_to_all
          ? all_to_all(run, on)
          : collective_algorithm(run.algorithm)
                .steps(collective_task(on.job, on.members, run.payload, work, true));
  const Seconds between =
      steps.flows.empty() ? steps.latency : steps.latency + simulate_flows(steps.flows, on);
  return {std::max(steps.fixed, between), steps.algorithm};
}

Platform read_platform(const JsonValue& scenario, const std::filesystem::path& folder,
                       const Library& library, const ReadOptions& reading) {
  return machine_of(read_scenario(platform_scenario(scenario), folder, library, reading).platform);
}

BytesPerSecond bus_bandwidth(const CollectiveRun& run, Seconds time) {
  const double half = run.operation == CollectiveOperation::all_reduce ? 1.0 : 0.5;
  return ring_all_reduce_volume(run.payload, run.gpus * run.nodes) * half / time;
}

document::Document collective_document(const CollectiveQuestion& question,
                                       const Platform& platform) {
  std::vector<int> sizes = question.gpus;
  if (sizes.empty()) sizes.push_back(platform.node_types.front().gpus * platform.domain_nodes);
  std::vector<Bytes> payloads = question.bytes.empty() ? usual_payloads() : question.bytes;
  std::ranges::sort(sizes);
  std::ranges::sort(payloads);
  JsonValue::Array rows;
  for (const int gpus : sizes)
    for (const Bytes payload : payloads) {
      const CollectiveRun run = run_on(question, platform, gpus, payload);
      const CollectiveResult result = simulate_collective(run, platform);
      rows.push_back(
          object_of({{"gpus", gpus},
                     {"nodes", run.nodes},
                     {"bytes", payload},
                     {"time_s", result.time},
                     {"algorithm", result.algorithm},
                     {"algorithm_bandwidth_bytes_per_s", (payload / result.time).value()},
                     {"bus_bandwidth_bytes_per_s", bus_bandwidth(run, result.time).value()}}));
    }
  const std::string kind = dashed_name(question.operation);
  const JsonValue data = object_of({{"schema", "windtunnel/collective-v1"},
                                    {"version", WINDTUNNEL_VERSION},
                                    {"kind", kind},
                                    {"platform", platform.name},
                                    {"sources", sources_json(platform)},
                                    {"rows", JsonValue(rows)}});
  document::Table table{"rrrl?r", {{"GPUs", "payload", "time", "algorithm", "bus bandwidth"}}};
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::string row = "/rows/" + std::to_string(i);
    table.rows.push_back({document::figure(data, row + "/gpus", grouped_text),
                          document::figure(data, row + "/bytes", size_text),
                          document::figure(data, row + "/time_s", time_text),
                          rows[i].find("algorithm")->string(),
                          document::figure(data, row + "/bus_bandwidth_bytes_per_s", rate_text)});
  }
  std::vector<std::string> warnings;
  const std::string wanted =
      detail::with_spaces(question.algorithm);  // "flat" and "hierarchical" choose
  if ((wanted == "ring" || wanted == "tree" || wanted == "nvls tree") &&
      !std::all_of(rows.begin(), rows.end(), [&](const JsonValue& row) {
        return lower_case(row.find("algorithm")->string()).starts_with(wanted);
      }))
    warnings.push_back("--algorithm " + question.algorithm +
                       ": where there is none for the operation and these GPUs, the row's own "
                       "algorithm is timed");
  std::vector<document::Part> parts{table};
  if (rows.size() > 1) parts.push_back(bandwidth_chart(rows, sizes.size() > 1));
  return {data,
          "collective",
          kind + " on " + platform.name,
          {links_text(platform)},
          "",
          {},
          {{"times", "Times", "Alone on the network", parts}},
          "windtunnel collective --json",
          warnings};
}

Seconds time_of_flows(const Network& network, const std::vector<RoutedFlow>& flows) {
  /// Nothing happens when a message is through: the engine says when the last one was.
  class NoEvents final : public EventHandler {
    void on_event(std::uint64_t) override {}
  };
  const std::unique_ptr<Engine> engine = make_native_engine(network);
  for (const RoutedFlow& flow : flows)
    engine->start_flow(flow.route.up, flow.route.down, flow.bytes, 0);
  NoEvents events;
  engine->run(events);
  return engine->now();
}

Bisection simulate_bisection(const Platform& job, int nodes) {
  constexpr Bytes of_each = 1_GB;  // any: latencies are left out
  WT_EXPECT(nodes > 1);
  Bisection found;
  Network network(job, nodes);
  const int senders = nodes / 2;
  std::vector<RoutedFlow> flows;
  for (int node = 0; node < senders; ++node) {
    const int partner = node + nodes - senders;
    found.nics += node_bandwidth(job, NodeId(node));
    const int gpus = std::min(job.type_of(NodeId(node)).gpus, job.type_of(NodeId(partner)).gpus);
    for (int gpu = 0; gpu < gpus; ++gpu)
      flows.push_back({network.route(Network::Endpoint{NodeId(node), {gpu}},
                                     Network::Endpoint{NodeId(partner), {gpu}}),
                       of_each});
  }
  std::vector<Bytes> over_link(network.links().size());
  for (const RoutedFlow& flow : flows)
    for (const PathId path : {flow.route.up, flow.route.down})
      for (const LinkId link : network.path(path)) over_link[link.index()] += of_each;
  found.carried = of_each * static_cast<double>(flows.size()) / time_of_flows(network, flows);
  Seconds longest{};
  for (std::size_t i = 0; i < over_link.size(); ++i) {
    const Link& link = network.links()[i];
    if (over_link[i] / link.bandwidth <= longest) continue;
    longest = over_link[i] / link.bandwidth;
    found.fullest = link.name;
    found.fullest_bandwidth = link.bandwidth;
  }
  return found;
}

std::string network_text(const Scenario& scenario) {
  constexpr int digits = 3;
  const FabricKind& kind = *scenario.platform.fabric.kind;
  std::vector<std::pair<std::string, int>> alike;  // nodes in a row
  for (const NodeType& node : scenario.nodes) {
    const std::string of = count_text(node.gpus, "GPU") + " and " + count_text(node.nics, "NIC") +
                           " of " + to_text(node.effective_nic_rate());
    if (alike.empty() || alike.back().first != of) alike.emplace_back(of, 0);
    ++alike.back().second;
  }
  const auto nodes_text = [](const auto& nodes) {
    return std::to_string(nodes.second) + " of " + nodes.first;
  };
  const std::string text = "fabric     " + kind.name + ": " + kind.about + "\nnodes      " +
                           listed(alike, nodes_text) + "\n";
  const auto num_nodes = static_cast<int>(scenario.nodes.size());
  if (num_nodes < 2) return text;
  const Bisection half = simulate_bisection(scenario.platform, num_nodes);
  return text + "bisection  " + to_text(half.carried) + " of " + to_text(half.nics) +
         " of the NICs, an oversubscription of " + significant_text(half.taper(), digits) +
         "; slowest with equal messages: " + half.fullest + " (" + to_text(half.fullest_bandwidth) +
         ")\n";
}

JsonValue network_json(const Scenario& scenario) {
  const auto num_nodes = static_cast<int>(scenario.nodes.size());
  JsonValue network =
      object_of({{"fabric", scenario.platform.fabric.kind->name}, {"nodes", num_nodes}});
  if (num_nodes < 2) return network;
  const Bisection half = simulate_bisection(scenario.platform, num_nodes);
  const auto number = [](BytesPerSecond rate) { return rate / BytesPerSecond{1}; };
  network.set("bisection",
              object_of({{"bytes_per_s", number(half.carried)},
                         {"nics_bytes_per_s", number(half.nics)},
                         {"taper", half.taper()},
                         {"fullest_link", half.fullest},
                         {"fullest_link_bytes_per_s", number(half.fullest_bandwidth)}}));
  return network;
}

}  // namespace windtunnel
