// Simulating one replica for all gives the same as simulating each: hand-made scenarios, then drawn ones, on both engines.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <string>

#include "core/testing.hpp"
#include "lower/program_builder.hpp"
#include "report/report_json.hpp"
#include "simulate/drawn_scenario_fixtures.hpp"
#include "simulate/forked_fixtures.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

Scenario read_collapsing(const std::string& text, const Overrides& overrides = {}) {
  const Library library{source_dir()};
  Problems problems;
  const auto source = std::make_shared<const SourceText>(SourceText{"collapse.json", text});
  ReadOptions options;
  options.overrides = overrides;
  return read_scenario(parse_json(source, problems), library.root, library, options);
}

Scenario collapsing_scenario(const std::string& parallel, const Overrides& overrides = {},
                             const std::string& platform = "a100-80gb-4hdr", int batch = 48) {
  return read_collapsing(R"({"model": "gpt-1.7b", "platform": ")" + platform +
                             R"(", "software": "megatron-lm-2021", "training": {"global_batch": )" +
                             std::to_string(batch) +
                             R"(, "micro_batch": 1, "precision": "fp16"}, "parallel": {)" +
                             parallel + "}}",
                         overrides);
}

Report report_of(const Scenario& scenario, MakeEngine engine, Replicas replicas) {
  SimulateOptions options;
  options.make_engine = engine;
  options.replicas = replicas;
  Report report = simulate(scenario, options).report;
  report.wall = Seconds{0};
  return report;
}

/// Every time of a report, then every amount: what is compared when texts differ in the last digits.
struct Figures {
  std::vector<double> times, amounts;
};

Figures figures_of(const Report& report) {
  Figures figures;
  const auto add_breakdown = [&](const Breakdown& breakdown) {
    for (const Seconds time : breakdown.seconds) figures.times.push_back(time / Seconds{1});
  };
  figures.times.push_back(report.iteration_time / Seconds{1});
  add_breakdown(report.breakdown);
  for (const StageTime& stage : report.stage_times) {
    figures.times.push_back(stage.end / Seconds{1});
    add_breakdown(stage.breakdown);
  }
  for (const Bytes bytes : report.traffic) figures.amounts.push_back(bytes / Bytes{1});
  for (const LinkUse& link : report.links)
    for (const Bytes bytes : link.carried) figures.amounts.push_back(bytes / Bytes{1});
  for (const double count :
       {static_cast<double>(report.activities), static_cast<double>(report.flows),
        static_cast<double>(report.simulated_microbatches), report.memory.max_total / Bytes{1}})
    figures.amounts.push_back(count);
  return figures;
}

/// Relative to the iteration; infinite where the reports differ in more than times.
double difference(const Figures& a, const Figures& b) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  if (a.amounts != b.amounts || a.times.size() != b.times.size()) return infinite;
  double most = 0;
  for (std::size_t i = 0; i < a.times.size(); ++i)
    most = std::max(most, std::abs(a.times[i] - b.times[i]) / a.times.front());
  return most;
}

std::string bytes_of(const std::vector<double>& numbers) {
  return {reinterpret_cast<const char*>(numbers.data()), numbers.size() * sizeof(double)};
}
std::vector<double> numbers_of(const std::string& bytes) {
  std::vector<double> numbers(bytes.size() / sizeof(double));
  std::memcpy(numbers.data(), bytes.data(), numbers.size() * sizeof(double));
  return numbers;
}

/// Through the simgrid engine, of which there is one in a process.
Figures figures_in_child(const Scenario& scenario, Replicas replicas) {
  const std::vector<ChildOutcome> outcomes = testing::run_forked(2, 1, [&](std::size_t i) {
    const Figures figures = figures_of(report_of(scenario, make_simgrid_engine, replicas));
    return bytes_of(i == 0 ? figures.times : figures.amounts);
  });
  return {numbers_of(std::get<std::string>(outcomes[0])),
          numbers_of(std::get<std::string>(outcomes[1]))};
}

/// The report's text without what says how it came about.
std::string text_of(Report report) {
  report.simulated_replicas = 0;
  return to_json(report);
}

struct Compared {
  int simulated_replicas = 0;
  double heap = 0, simgrid = 0;  ///< differences
};

Compared compare(const Scenario& scenario) {
  const Report one = report_of(scenario, make_heap_engine, Replicas::collapsed_when_exact);
  Compared compared;
  compared.simulated_replicas = one.simulated_replicas;
  if (one.simulated_replicas == 0) return compared;
  const Report each = report_of(scenario, make_heap_engine, Replicas::each);
  if (text_of(one) != text_of(each))
    compared.heap = std::max(1e-300, difference(figures_of(one), figures_of(each)));
  compared.simgrid = difference(figures_in_child(scenario, Replicas::collapsed_when_exact),
                                figures_in_child(scenario, Replicas::each));
  return compared;
}

/// Number of replicas simulated on behalf of all; the report is the same to the last character on the heap engine, to 1e-9 with contention.
int check(const Scenario& scenario) {
  const Compared compared = compare(scenario);
  CHECK(compared.heap == 0);
  CHECK(compared.simgrid <= 1e-9);
  return compared.simulated_replicas;
}

TEST_CASE("replicas on nodes or network cards of their own are simulated once") {
  CHECK(check(collapsing_scenario(R"("tensor": 8, "pipeline": 4, "data": 4)")) == 1);
  CHECK(check(collapsing_scenario(R"("tensor": 4, "pipeline": 4, "data": 4)")) == 1);
  CHECK(check(collapsing_scenario(R"("tensor": 2, "pipeline": 2, "data": 8)")) == 1);
  CHECK(check(collapsing_scenario(R"("tensor": 8, "pipeline": 1, "data": 4)")) == 1);
}

TEST_CASE("sharded optimizers, overlapped reductions and tensor groups across nodes collapse too") {
  CHECK(check(collapsing_scenario(R"("tensor": 8, "pipeline": 2, "data": 4, "zero_stage": 1)")) ==
        1);
  CHECK(check(collapsing_scenario(
            R"("tensor": 8, "pipeline": 2, "data": 4, "overlap_gradient_reduce": true)")) == 1);
  CHECK(check(collapsing_scenario(R"("tensor": 8, "pipeline": 2, "data": 2)", {},
                                  "jean-zay-v100")) == 1);
  CHECK(
      check(collapsing_scenario(
          R"("tensor": 8, "pipeline": 2, "data": 4, "schedule": "interleaved_1f1b", "virtual_pipeline": 2, "overlap_gradient_reduce": true)")) ==
      1);
}

TEST_CASE("a collapsed iteration folds as it would otherwise") {
  const Scenario scenario = collapsing_scenario(R"("tensor": 4, "pipeline": 4, "data": 4)", {},
                                                "a100-80gb-4hdr", 4 * 480);
  CHECK(check(scenario) == 1);
  CHECK(
      report_of(scenario, make_heap_engine, Replicas::collapsed_when_exact).simulated_microbatches >
      0);
}

TEST_CASE("replicas that share a network card are simulated each") {
  // GPUs 0 and 1 share card 0 of 4, and are stage 0 of two replicas.
  CHECK(check(collapsing_scenario(R"("tensor": 1, "pipeline": 4, "data": 8)")) == 0);
}

TEST_CASE("replicas behind a tapered leaf switch are simulated each") {
  const Overrides tapered{{"/platform/fabric/nodes_per_leaf", "4"},
                          {"/platform/fabric/oversubscription", "2"}};
  CHECK(check(collapsing_scenario(R"("tensor": 8, "pipeline": 4, "data": 4)", tapered)) == 0);
}

TEST_CASE("an open count of nodes is that of the job, and its last leaf has their uplinks") {
  // Six nodes, four a leaf: leaf 1 has two nodes, and so half of leaf 0's uplinks, unless the cluster has more.
  const auto time = [](const Overrides& count) {
    Overrides tapered{{"/platform/fabric/nodes_per_leaf", "4"},
                      {"/platform/fabric/oversubscription", "16"}};
    tapered.insert(tapered.end(), count.begin(), count.end());
    return report_of(collapsing_scenario(R"("tensor": 8, "pipeline": 1, "data": 6)", tapered),
                     make_heap_engine, Replicas::each)
        .iteration_time;
  };
  CHECK(time({}) == time({{"/platform/node_types/0/count", "6"}}));
  CHECK(time({}) > time({{"/platform/node_types/0/count", "8"}}));
}

TEST_CASE("one slow link makes all replicas of a ring differ") {
  const Overrides slow{
      {"/platform/link_overrides",
       R"([{"from": 0, "to": 4, "bandwidth": "10 GB/s", "source": "assumed: a bad cable"}])"}};
  CHECK(check(collapsing_scenario(R"("tensor": 8, "pipeline": 4, "data": 4)", slow)) == 0);
}

TEST_CASE("one slow node makes all replicas of a ring differ") {
  Scenario scenario = collapsing_scenario(R"("tensor": 8, "pipeline": 4, "data": 4)");
  std::vector<NodeType>& types = scenario.platform.node_types;
  types.push_back(types.front());
  types.front().count = 1;
  types.front().compute_efficiency *= 0.9;
  types.back().count = 15;
  scenario.nodes.front() = types.front();
  CHECK(check(scenario) == 0);
}

TEST_CASE("measured links and replicas that fill nodes unevenly are simulated each") {
  CHECK(check(collapsing_scenario(R"("tensor": 8, "pipeline": 4, "data": 4)", {},
                                  "pipette-a100-hdr")) == 0);
  // Three replicas of half a node each: the ring has two flows out of the first node and one into the second.
  CHECK(check(collapsing_scenario(R"("tensor": 4, "pipeline": 2, "data": 3)", {{"/nodes", "3"}})) ==
        0);
}

TEST_CASE("a timeline shows every replica") {
  SimulateOptions options;
  options.make_engine = make_heap_engine;
  options.keep_timeline = true;
  const Simulation simulation =
      simulate(collapsing_scenario(R"("tensor": 8, "pipeline": 2, "data": 4)"), options);
  CHECK(simulation.report.simulated_replicas == 0);
  const bool has_last =
      std::any_of(simulation.timeline.computes.begin(), simulation.timeline.computes.end(),
                  [](const Span& span) { return span.device == DeviceId{7}; });
  CHECK(has_last);
}

TEST_CASE("a deadlock names the devices of every replica") {
  BuiltPrograms built{{}, Network{}, {}, {}, false, {}};
  StageProgram& program = built.programs.programs.emplace_back();
  Op receive;
  receive.kind = OpKind::receive;
  program.streams[0] = {receive};
  program.num_slots = 1;
  built.programs.devices.resize(2);
  const auto message = [&] {
    try {
      simulate_programs(built, make_heap_engine);
    } catch (const DeadlockError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  const std::string of_each = message();
  built.collapsed = collapse(built.programs, built.network);
  REQUIRE(built.collapsed);
  CHECK(of_each != "");
  CHECK(message() == of_each);
}

TEST_CASE("any replicas come out the same, simulated once or each") {
  testing::Draws draws;
  draws.tensor = {1, 2, 4, 8};
  draws.data = {2, 4, 6, 8};
  draws.least_microbatches = 4;
  draws.most_microbatches = 24;
  draws.platforms = {"selene-a100", "a100-80gb-4hdr", "dgx1-v100"};
  int num_drawn = 0, num_collapsed = 0;
  const bool same = rc::check([&] {
    const std::string text = testing::drawn_scenario(draws);
    RC_LOG() << text;
    const std::string rate = *rc::gen::element<std::string>("2 Gbps", "20 Gbps", "200 Gbps");
    RC_LOG() << rate;
    const Scenario scenario = read_collapsing(text, {{"/platform/node_types/0/nic_rate", rate}});
    const Compared compared = compare(scenario);
    ++num_drawn;
    if (compared.simulated_replicas > 0) ++num_collapsed;
    RC_ASSERT(compared.heap == 0);
    RC_ASSERT(compared.simgrid <= 1e-9);
  });
  CHECK(same);
  CHECK(num_collapsed * 5 > num_drawn);
}

}  // namespace
}  // namespace windtunnel
