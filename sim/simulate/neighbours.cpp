#include "simulate/neighbours.hpp"

#include <cstddef>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "core/json_value.hpp"
#include "report/json_object.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

/// A job's iteration, and what it sends over each link meanwhile.
struct Sender {
  Seconds time{};
  std::map<std::string, BytesPerSecond> rates;
};

Sender simulated(Scenario job, const std::vector<NeighbourFlow>& beside) {
  job.placement_request = PlacementRequest::as_planned;
  job.platform.neighbours.insert(job.platform.neighbours.end(), beside.begin(), beside.end());
  const Report report = simulate(job).report;
  Sender sender{report.iteration_time, {}};
  for (const LinkUse& link : report.links)
    sender.rates[link.name] = total_of(link.carried) / report.iteration_time;
  return sender;
}

/// What `sender` sends over links that `job` uses too.
std::vector<NeighbourFlow> shared_flows(const Sender& sender, const Sender& job) {
  std::vector<NeighbourFlow> flows;
  for (const auto& [link, rate] : sender.rates)
    if (job.rates.contains(link)) flows.push_back({link, rate});
  return flows;
}

/// The resolved scenario with flows in place of second scenarios.
void write_flows(const std::vector<NeighbourFlow>& flows, JsonValue& resolved) {
  Origin origin;
  origin.kind = OriginKind::searched;
  JsonValue::Array entries;
  for (JsonValue& entry : resolved.find("neighbours")->array())
    if (entry.find("link") != nullptr) entries.push_back(std::move(entry));
  for (std::size_t i = entries.size(); i < flows.size(); ++i)
    entries.push_back(
        object_of({{"link", flows[i].link},
                   {"rate", canonical_text(JsonValue(flows[i].rate.value())) + " B/s"}}));
  set_at(resolved, "/neighbours", JsonValue(std::move(entries), origin));
}

}  // namespace

Scenario beside_neighbours(Scenario scenario) {
  const std::vector<NeighbourJob> jobs = std::exchange(scenario.neighbour_jobs, {});
  if (jobs.empty()) return scenario;
  const std::vector<NeighbourFlow> written = scenario.platform.neighbours;
  const Sender own = simulated(scenario, {});
  scenario.time_alone = own.time;
  std::vector<Sender> alone;
  for (const NeighbourJob& job : jobs) alone.push_back(simulated(*job.scenario, written));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    std::vector<NeighbourFlow> others = written;
    const auto add = [&](const Sender& sender) {
      const std::vector<NeighbourFlow> flows = shared_flows(sender, alone[i]);
      others.insert(others.end(), flows.begin(), flows.end());
    };
    add(own);
    for (std::size_t j = 0; j < jobs.size(); ++j)
      if (j != i) add(alone[j]);
    const Sender beside = simulated(*jobs[i].scenario, others);
    const std::vector<NeighbourFlow> flows = shared_flows(beside, own);
    scenario.platform.neighbours.insert(scenario.platform.neighbours.end(), flows.begin(),
                                        flows.end());
    scenario.neighbour_costs.push_back(
        {jobs[i].name, jobs[i].first_node, jobs[i].scenario->plan.num_nodes,
         static_cast<int>(flows.size()), alone[i].time, beside.time});
  }
  write_flows(scenario.platform.neighbours, scenario.resolved);
  return scenario;
}

}  // namespace windtunnel
