// A folded iteration equals the one that is simulated microbatch by microbatch.
#include "simulate/folding.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <memory>
#include <string>

#include "core/testing.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

Scenario folding_scenario(const std::string& parallel, const std::string& more = {}) {
  const Library library{source_dir()};
  const std::string text = R"({
    "model": "gpt-1.7b", "platform": "selene-a100", "software": "megatron-lm-2021",
    "training": {"global_batch": 480, "micro_batch": 1, "precision": "fp16"}, )" +
                           more + R"("parallel": {)" + parallel + "}}";
  Problems problems;
  const auto source = std::make_shared<const SourceText>(SourceText{"folding.json", text});
  return read_scenario(parse_json(source, problems), library.root, library);
}

Report report_of(const Scenario& scenario, Folding folding,
                 MakeEngine make_engine = make_native_engine) {
  SimulateOptions options;
  options.make_engine = make_engine;
  options.folding = folding;
  return simulate(scenario, options).report;
}

void check_equal(double folded, double whole) {
  CHECK(folded == doctest::Approx(whole).epsilon(1e-9));
}

void check_same_report(const Report& folded, const Report& whole) {
  check_equal(folded.iteration_time.value(), whole.iteration_time.value());
  check_equal(folded.mfu, whole.mfu);
  for (int line = 0; line < num_lines; ++line) {
    const Seconds off =
        folded.breakdown.of(static_cast<Line>(line)) - whole.breakdown.of(static_cast<Line>(line));
    CHECK(std::abs(off / whole.iteration_time) < 1e-9);
  }
  for (std::size_t i = 0; i < whole.traffic.size(); ++i) {
    check_equal(folded.traffic[i].value(), whole.traffic[i].value());
    CHECK(folded.messages[i].uncompressed == whole.messages[i].uncompressed);
  }
  CHECK(folded.memory.max_total == whole.memory.max_total);
  REQUIRE(folded.links.size() == whole.links.size());
  for (std::size_t i = 0; i < whole.links.size(); ++i) {
    CHECK(folded.links[i].name == whole.links[i].name);
    check_equal(total_of(folded.links[i].carried).value(),
                total_of(whole.links[i].carried).value());
  }
  for (std::size_t i = 0; i < whole.stage_times.size(); ++i) {
    check_equal(folded.stage_times[i].end.value(), whole.stage_times[i].end.value());
    check_equal(folded.stage_times[i].breakdown.of(Line::compute).value(),
                whole.stage_times[i].breakdown.of(Line::compute).value());
  }
  check_equal(folded.last_stage_backward.value(), whole.last_stage_backward.value());
}

/// Simulates with and without folding; returns how many microbatches were simulated with it.
int check_fold(const Scenario& scenario) {
  const Report folded = report_of(scenario, Folding::when_exact);
  check_same_report(folded, report_of(scenario, Folding::never));
  return folded.simulated_microbatches;
}

Scenario scheduled(const std::string& send, const std::string& schedule) {
  Scenario scenario = folding_scenario(
      R"("tensor": 8, "pipeline": 4, "data": 1, "pipeline_send": ")" + send + "\", " + schedule);
  // Which messages meet depends on these.
  scenario.software.tensor_collective_overhead = {};
  scenario.software.batch_read.reset();
  return scenario;
}

const std::string one_f_one_b = R"("schedule": "1f1b")";
const std::string zero_bubble = R"("schedule": "zero_bubble_h1")";
const std::string v_shaped = R"("schedule": "zero_bubble_v", "virtual_pipeline": 2)";
const std::string interleaved = R"("schedule": "interleaved_1f1b", "virtual_pipeline": 3)";

TEST_CASE("timers of the last stage stand still while it waits for slower nodes") {
  Scenario scenario = scheduled("eager", one_f_one_b);
  const Report alike = report_of(scenario, Folding::when_exact);
  for (NodeType& node : scenario.nodes) node.pass_spread = 0.1;
  for (NodeType& type : scenario.platform.node_types) type.pass_spread = 0.1;
  const Report unequal = report_of(scenario, Folding::when_exact);
  // Four nodes: the largest of four standard normal values is 1.03 on average.
  CHECK(std::log(unequal.iteration_time / alike.iteration_time) ==
        doctest::Approx(0.103).epsilon(0.06));
  CHECK(unequal.last_stage_forward == alike.last_stage_forward);
  check_fold(scenario);
}

TEST_CASE("a folded iteration equals the whole one, under any schedule that repeats") {
  CHECK(check_fold(scheduled("eager", one_f_one_b)) > 0);
  CHECK(check_fold(scheduled("eager", interleaved)) > 0);
  CHECK(check_fold(scheduled("blocking_pairs", one_f_one_b)) > 0);
  CHECK(check_fold(scheduled("eager", zero_bubble)) > 0);
  CHECK(check_fold(scheduled("blocking_pairs", zero_bubble)) > 0);
  CHECK(check_fold(scheduled("eager", v_shaped)) > 0);
}

TEST_CASE("messages that meet slow each other down alike in every period") {
  // Activations and gradients of a stage leave at the same time.
  const Scenario scenario = scheduled("blocking_pairs", interleaved);
  CHECK(check_fold(scenario) > 0);
  const auto on_heap = [&](Folding folding) {
    return report_of(scenario, folding, make_heap_engine);
  };
  CHECK(on_heap(Folding::when_exact).simulated_microbatches == 0);
  check_same_report(on_heap(Folding::when_exact), on_heap(Folding::never));
}

TEST_CASE("uneven stages fold with the slowest stage's period") {
  const Scenario scenario = folding_scenario(
      R"("tensor": 8, "pipeline": 4, "data": 1, "schedule": "1f1b", "stage_layers": [5, 7, 8, 4])");
  CHECK(check_fold(scenario) > 0);
}

TEST_CASE("replicas whose links differ fold with the gradient rings at the end") {
  const Scenario scenario =
      folding_scenario(R"("tensor": 8, "pipeline": 2, "data": 2, "schedule": "1f1b")");
  CHECK(check_fold(scenario) > 0);
}

TEST_CASE("any number of microbatches comes out, also one that is no multiple of the period") {
  for (int batch = 477; batch <= 483; ++batch) {
    Scenario scenario =
        folding_scenario(R"("tensor": 8, "pipeline": 4, "data": 1, "schedule": "1f1b")");
    scenario.plan.microbatches = scenario.plan.training.global_batch = batch;
    CHECK(check_fold(scenario) > 0);
  }
}

Scenario on_shared_node(int tensor) {
  Scenario scenario = folding_scenario(
      R"("tensor": )" + std::to_string(tensor) +
      R"(, "pipeline": 2, "data": 8, "schedule": "1f1b", "rank_order": "tensor-data-pipeline")");
  scenario.platform.node_types.front().nics = 4;
  for (NodeType& node : scenario.nodes) node.nics = 4;
  scenario.plan.microbatches = 480;
  return scenario;
}

TEST_CASE("messages of replicas that share a NIC are not folded: replicas drift apart") {
  // Eight GPUs of a node are a stage of eight replicas, two to each of its four NICs.
  CHECK(report_of(on_shared_node(1), Folding::when_exact).simulated_microbatches == 0);
}

TEST_CASE("messages on NICs of their own fold, though one node sends them all") {
  CHECK(check_fold(on_shared_node(2)) > 0);
}

TEST_CASE("all forwards first, few microbatches, and kept timelines are not folded") {
  const auto fold = [](const Scenario& scenario) {
    return find_fold(
        {&scenario.model, &scenario.platform, &scenario.nodes, &scenario.software, &scenario.plan});
  };
  CHECK_FALSE(fold(folding_scenario(R"("tensor": 8, "pipeline": 4, "schedule": "gpipe")")));
  CHECK_FALSE(
      fold(folding_scenario(R"("tensor": 8, "pipeline": 4, "data": 8, "schedule": "1f1b")")));
  const Scenario scenario = folding_scenario(R"("tensor": 8, "pipeline": 4, "schedule": "1f1b")");
  CHECK(fold(scenario));
  SimulateOptions options;
  options.make_engine = make_heap_engine;
  options.keep_timeline = true;
  CHECK(simulate(scenario, options).report.simulated_microbatches == 0);
}

}  // namespace
}  // namespace windtunnel
