#include "simulate/neighbours.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/json_value.hpp"
#include "report/json_object.hpp"
#include "simulate/simulate.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

/// A job's iteration, and what it sends over each link meanwhile.
struct Sender {
  Seconds time{};
  bool fits = true;
  std::vector<NeighbourFlow> flows;
};

Sender simulated(Scenario job, const std::vector<NeighbourFlow>& neighbours) {
  job.placement_request = PlacementRequest::as_planned;
  job.platform.neighbours = neighbours;
  const Report report = simulate(job).report;
  Sender sender{report.iteration_time, report.memory.fits, {}};
  for (const LinkUse& link : report.links)
    sender.flows.push_back(
        {link.name, total_of(link.carried) / report.iteration_time, 1, /*is_simulated=*/true});
  return sender;
}

int num_shared_links(const Sender& a, const Sender& b) {
  std::set<std::string> links;
  for (const NeighbourFlow& flow : a.flows) links.insert(flow.link);
  return static_cast<int>(std::ranges::count_if(
      b.flows, [&](const NeighbourFlow& flow) { return links.contains(flow.link); }));
}

/// The resolved scenario with flows in place of second scenarios.
void write_flows(const std::vector<NeighbourFlow>& flows, JsonValue& resolved) {
  Origin origin;
  origin.kind = OriginKind::searched;
  JsonValue::Array entries;
  for (JsonValue& entry : resolved.find("neighbours")->array())
    if (entry.find("link") != nullptr) entries.push_back(std::move(entry));
  for (std::size_t i = entries.size(); i < flows.size(); ++i)
    entries.push_back(object_of({{"link", flows[i].link}, {"rate", exact_amount(flows[i].rate)}}));
  set_at(resolved, "/neighbours", JsonValue(std::move(entries), origin));
}

}  // namespace

Scenario with_neighbours(Scenario scenario) {
  const std::vector<NeighbourJob> jobs = std::exchange(scenario.neighbour_jobs, {});
  if (jobs.empty()) return scenario;
  std::vector<NeighbourFlow>& flows = scenario.platform.neighbours;
  const std::vector<NeighbourFlow> written = flows;
  const auto add = [](std::vector<NeighbourFlow>& all, const Sender& sender) {
    all.insert(all.end(), sender.flows.begin(), sender.flows.end());
  };
  const Sender own = simulated(scenario, written);
  scenario.time_alone = own.time;
  std::vector<Sender> alone;
  for (const NeighbourJob& job : jobs) alone.push_back(simulated(*job.scenario, written));
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    std::vector<NeighbourFlow> others = written;
    add(others, own);
    for (std::size_t j = 0; j < jobs.size(); ++j)
      if (j != i) add(others, alone[j]);
    const Sender together = simulated(*jobs[i].scenario, others);
    add(flows, together);
    scenario.neighbour_costs.push_back(
        {jobs[i].name, jobs[i].first_node, jobs[i].scenario->plan.num_nodes,
         num_shared_links(together, own), alone[i].time, together.time, together.fits});
  }
  write_flows(flows, scenario.resolved);
  return scenario;
}

Seconds time_alone(Scenario scenario) {
  std::erase_if(scenario.platform.neighbours,
                [](const NeighbourFlow& flow) { return flow.is_simulated; });
  return simulate(scenario).report.iteration_time;
}

}  // namespace windtunnel
