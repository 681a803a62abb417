// Whole runs of schedules whose forward and backward passes run at once.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <initializer_list>
#include <string>

#include "core/testing.hpp"
#include "lower/program_builder.hpp"
#include "scenario/testing.hpp"
#include "simulate/built_scenario.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

using testing::read_text;

Simulation run_dual(const Scenario& scenario, Detail detail = Detail::pass,
                    MakeEngine engine = make_heap_engine) {
  SimulateOptions options;
  options.make_engine = engine;
  options.detail = detail;
  return simulate(scenario, options);
}

/// Drawn values of a plan.
struct Drawn {
  std::string schedule = "dualpipe";
  int pipeline = 2, data = 8, tensor = 1, expert = 8, expert_tensor = 1, microbatches = 8;
  int layers_of_part = 2, dense_layers = 0, shared = 512;
  std::string recompute = "none", precision = "bf16", dispatch = "one_copy_per_node";
  bool overlap_shared = false;
  int zero_stage = 1;
};

std::string text_of(const Drawn& d) {
  const auto text = [](int number) { return std::to_string(number); };
  const int parts = d.schedule == "dualpipe" ? d.pipeline : 2 * d.pipeline;
  return R"({"platform": "dgx-h100", "nodes": )" + text(d.pipeline * d.data * d.tensor / 8) +
         R"(, "software": "megatron-core-2026@0", "model": {"layers": )" +
         text(parts * d.layers_of_part) +
         R"(, "hidden": 1024, "heads": 16, "sequence": 1024, "vocab": 32000, "ffn_hidden": 4096, "tied_embeddings": false,
    "moe": {"experts": 16, "top_k": 2, "ffn_hidden": 1024, "shared_ffn_hidden": )" +
         text(d.shared) + R"(, "dense_layers": )" + text(d.dense_layers) +
         R"(}}, "training": {"global_batch": )" + text(d.data * d.microbatches) +
         R"(, "micro_batch": 1, "attention": "flash", "recompute": ")" + d.recompute +
         R"(", "precision": ")" + d.precision + R"("}, "parallel": {"tensor": )" + text(d.tensor) +
         R"(, "sequence_parallel": )" + (d.tensor > 1 ? "true" : "false") + R"(, "pipeline": )" +
         text(d.pipeline) + R"(, "data": )" + text(d.data) + R"(, "expert": )" + text(d.expert) +
         R"(, "expert_tensor": )" + text(d.expert_tensor) + R"(, "zero_stage": )" +
         text(d.zero_stage) + R"(, "schedule": ")" + d.schedule +
         R"(", "virtual_pipeline": 2, "pipeline_send": "eager"}})";
}

Drawn drawn() {
  const auto one_of = [](const std::vector<int>& of) { return *rc::gen::elementOf(of); };
  const auto word = [](const std::vector<std::string>& of) { return *rc::gen::elementOf(of); };
  Drawn d;
  d.schedule = word({"dualpipe", "dualpipe_v"});
  d.pipeline = one_of({2, 4});
  d.tensor = one_of({1, 1, 2});
  d.data = one_of({8, 16});
  d.expert = one_of({2, 4, 8, 16});
  d.expert_tensor = d.tensor > 1 ? 2 : one_of({1, 1, 2});
  // Where experts are cut and exchanged across nodes, formula and flows differ under any schedule.
  if (d.expert_tensor > 1) d.expert = one_of({2, 4});
  d.expert = std::min(d.expert, d.data * d.tensor);
  d.microbatches = 2 * d.pipeline + 2 * one_of({0, 1, 3});
  d.layers_of_part = one_of({1, 2, 3});
  d.dense_layers = one_of({0, 0, 1});
  d.shared = one_of({0, 512});
  d.recompute = word({"none", "selective", "full"});
  d.precision = word({"bf16", "fp8"});
  d.dispatch = word({"one_copy_per_node", "all_to_all"});
  d.overlap_shared = one_of({0, 1}) == 1;
  d.zero_stage = one_of({0, 1});
  return d;
}

Overrides stack_of(const Drawn& d) {
  return {{"/software/experts/dispatch", d.dispatch},
          {"/software/experts/overlap_shared", d.overlap_shared ? "true" : "false"}};
}

Seconds of_all_stages(const Report& report, Line line) {
  Seconds sum{};
  for (const StageTime& stage : report.stage_times) sum += stage.breakdown.of(line);
  return sum;
}

TEST_CASE("passes at once take as long as numbers as operation by operation") {
  CHECK(rc::check([] {
    const Drawn d = drawn();
    RC_LOG() << text_of(d) << " " << d.dispatch << (d.overlap_shared ? ", overlapped" : "");
    const Scenario scenario = read_text(text_of(d), stack_of(d));
    const Report folded = run_dual(scenario).report,
                 layered = run_dual(scenario, Detail::layer).report;
    RC_ASSERT(std::abs(layered.iteration_time / folded.iteration_time - 1) < 1e-9);
    // Compares all stages: those of both ends of DualPipe end together, and rounding picks the one that is last. Operation by operation,
    // waiting for an exchange that queues behind another one is a bubble until it begins.
    const auto must_agree = [&](std::initializer_list<Line> lines) {
      Seconds difference{};
      for (const Line line : lines)
        difference += of_all_stages(layered, line) - of_all_stages(folded, line);
      RC_ASSERT(std::abs(difference / folded.iteration_time) < 1e-9);
    };
    must_agree({Line::compute});
    must_agree({Line::tensor_comm});
    must_agree({Line::expert_comm, Line::pipeline_bubble, Line::pipeline_comm});
    for (std::size_t kind = 0; kind < folded.traffic.size(); ++kind)
      RC_ASSERT(std::abs(layered.traffic[kind].value() - folded.traffic[kind].value()) <=
                1e-9 * folded.traffic[kind].value());
  }));
}

TEST_CASE("exchanges hide behind the other microbatch, at the price of its multiprocessors") {
  Drawn d;
  d.expert = 16;
  d.data = 16;
  const auto exposed = [&d](const std::string& schedule, const Overrides& more) {
    Drawn other = d;
    other.schedule = schedule;
    return run_dual(read_text(text_of(other), more)).report;
  };
  const Report v = exposed("zero_bubble_v", {}), dual = exposed("dualpipe_v", {});
  CHECK(dual.breakdown.of(Line::expert_comm) < v.breakdown.of(Line::expert_comm) * 0.5);
  CHECK(dual.breakdown.of(Line::compute) > v.breakdown.of(Line::compute));
  // Exchanges that take no multiprocessors away cost the kernels nothing.
  const Report free = exposed("dualpipe_v", {{"/software/experts/exchange_multiprocessors", "0"}});
  CHECK(free.breakdown.of(Line::compute) / v.breakdown.of(Line::compute) == doctest::Approx(1));
}

TEST_CASE("DualPipe holds each part of the model twice, and reduces its gradients among both") {
  Drawn d;
  d.pipeline = 4;
  d.microbatches = 8;
  const Scenario scenario = read_text(text_of(d));
  const Report dual = run_dual(scenario).report;
  Drawn once = d;
  once.schedule = "1f1b";
  std::string text = text_of(once);
  text.replace(text.find("\"virtual_pipeline\": 2"), 21, "\"virtual_pipeline\": 1");
  // 1F1B on as many stages: the model of text_of() has as many layers a part for both.
  const Report plain = run_dual(read_text(text, {{"/model/layers", "8"}})).report;
  const auto parameters = [](const Report& report) {
    double all = 0;
    for (const StageMemory& stage : report.memory.stages) all += stage.parameters;
    return all;
  };
  CHECK(dual.num_gpus == plain.num_gpus);
  CHECK(parameters(dual) / parameters(plain) == doctest::Approx(2).epsilon(0.01));
  for (const StageMemory& stage : dual.memory.stages)
    CHECK(stage.microbatches_in_flight == 2.5);  // p + 1 chunks of two a stage
  // Model FLOPs do not depend on who computes them.
  CHECK(dual.model_flops_per_gpu * dual.iteration_time /
            (plain.model_flops_per_gpu * plain.iteration_time) ==
        doctest::Approx(1).epsilon(1e-9));
  // Tokens are sent as often.
  for (const Traffic traffic : {Traffic::expert_dispatch, Traffic::expert_combine,
                                Traffic::pipeline_forward, Traffic::pipeline_backward})
    CHECK(dual.traffic[static_cast<std::size_t>(traffic)] /
              plain.traffic[static_cast<std::size_t>(traffic)] ==
          doctest::Approx(1).epsilon(1e-9));
  CHECK(scenario.plan.parallel.gradient_replicas() == 16);
}

TEST_CASE("both ends of DualPipe are alike: its stages in pairs hold and compute the same") {
  Drawn d;
  d.pipeline = 4;
  d.microbatches = 10;
  const Report report = run_dual(read_text(text_of(d))).report;
  const auto& stages = report.memory.stages;
  for (std::size_t s = 0; s < 2; ++s) {
    CHECK(stages[s].parameters == doctest::Approx(stages[3 - s].parameters));
    CHECK(stages[s].allocated / stages[3 - s].allocated == doctest::Approx(1));
  }
}

TEST_CASE("the stages at both ends hold the same chunks the other way round, on any kind of node") {
  // Three nodes of V100s and one of T4s: the first stage is on V100s, the last one on both. The head has most of the work.
  const Scenario scenario = read_text(
      R"({"platform": "aws-t4-v100-mixed", "model": {"layers": 4, "hidden": 1024, "heads": 16, "sequence": 512, "vocab": 256000, "tied_embeddings": false},
    "training": {"global_batch": 32, "micro_batch": 1}, "parallel": {"tensor": 1, "context": 2, "context_method": "all_to_all", "pipeline": 2, "data": 4,
    "schedule": "dualpipe", "virtual_pipeline": 2, "pipeline_send": "eager"}})");
  const BuiltScenario built = build(scenario);
  const ProgramSet& set = built.programs.programs;
  const auto forward = [&](int replica, int stage, std::uint16_t chunk) {
    const DeviceId id = scenario.plan.device(replica, StageId{stage}, 0);
    const ProgramDevice& device = set.devices[id.index()];
    Seconds sum{};
    for (const Op& op : set.programs[device.program].streams.front())
      if (op.kind == OpKind::compute && op.phase == Phase::forward && op.chunk == chunk)
        sum += set.work_of(device, op).duration;
    return sum;
  };
  for (const int replica : {0, 7}) {
    CHECK(forward(replica, 0, 1) > forward(replica, 0, 0) * 2);
    CHECK(forward(replica, 1, 0) > forward(replica, 1, 1) * 2);
  }
  // Every device finds each collective that its program enters.
  CHECK(run_dual(scenario, Detail::layer).report.iteration_time > Seconds{0});
}

TEST_CASE("long iterations are folded, with microbatches from both ends in pairs") {
  for (const char* schedule : {"dualpipe", "dualpipe_v"}) {
    CAPTURE(schedule);
    Drawn d;
    d.schedule = schedule;
    d.microbatches = 402;
    const Scenario scenario = read_text(text_of(d));
    SimulateOptions options;
    options.make_engine = make_heap_engine;
    options.folding = Folding::when_exact;
    const Report folded = simulate(scenario, options).report;
    options.folding = Folding::never;
    const Report whole = simulate(scenario, options).report;
    CHECK(folded.simulated_microbatches > 0);
    CHECK(folded.simulated_microbatches < 402);
    CHECK(folded.iteration_time / whole.iteration_time == doctest::Approx(1).epsilon(1e-9));
    for (int line = 0; line < num_lines; ++line)
      CHECK(std::abs((folded.breakdown.of(static_cast<Line>(line)) -
                      whole.breakdown.of(static_cast<Line>(line))) /
                     whole.iteration_time) < 1e-9);
  }
}

TEST_CASE("the engines agree on passes at once, whose exchanges meet messages between stages") {
  Drawn d;
  d.data = 16;
  d.expert = 16;
  const Scenario scenario = read_text(text_of(d));
  const auto time = [&scenario](MakeEngine engine) {
    return run_dual(scenario, Detail::layer, engine).report.iteration_time.value();
  };
  CHECK(time(make_simgrid_engine) == doctest::Approx(time(make_native_engine)).epsilon(1e-9));
}

}  // namespace
}  // namespace windtunnel
