#include "studies/baseline_estimators.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "core/testing.hpp"
#include "engine/program_simulator.hpp"
#include "engine/testing.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

using doctest::Approx;

/// p equal stages on nodes of their own; a message takes `hop`, and there is one replica.
BaselineInputs uniform(int p, int m, Seconds forward, Seconds backward, Seconds hop) {
  BaselineInputs in;
  in.microbatches = m;
  in.message = 1_GB;
  BaselineStage stage;
  stage.forward = stage.mean_forward = forward;
  stage.backward = backward;
  in.stages.assign(static_cast<std::size_t>(p), stage);
  in.hops.emplace_back(static_cast<std::size_t>(p) - 1, in.message / hop);
  return in;
}

/// The same pipeline simulated by the engine.
Seconds simulated(const BaselineInputs& in, testing::Sends sends) {
  testing::PipelineShape shape;
  shape.stages = static_cast<int>(in.stages.size());
  shape.microbatches = in.microbatches;
  shape.sends = sends;
  ProgramSet set = testing::make_pipeline(shape);
  testing::set_compute(set, in.stages[0].forward, in.stages[0].backward);
  set.message_bytes = {in.message};
  const Network network = testing::give_own_links(set, in.hops[0][0], Seconds{0});
  return simulate_programs(set, *make_heap_engine(network)).end;
}

double too_fast_by(Seconds estimate, Seconds truth) { return (truth - estimate) / truth; }

/// The job that Pipette's repository ships: 8.1 B, 64 A100, fp32, tensor 8 x pipeline 2 x data 4, 128 samples in microbatches of 4.
Transformer shipped_model() {
  Transformer model;
  model.layers = 64;
  model.hidden = 3072;
  model.vocab = 50256;
  model.sequence = 1024;
  return model;
}
BaselineInputs shipped_job() {
  const Transformer model = shipped_model();
  BaselineInputs in;
  in.microbatches = 8;  // 128 / (4 * 4)
  in.data = 4;
  in.message = Bytes{4.0 * 4 * model.sequence * model.hidden};  // 50.3 MB
  BaselineStage stage;
  stage.forward = stage.mean_forward = 1_s;
  stage.backward = 2_s;
  stage.gradients = released_gradients(model, 32, 8, 4_B);
  stage.ring.assign(4, 25_GBps);
  stage.data_in_node = 1;
  stage.in_node_rate = 600_GBps;
  in.stages.assign(2, stage);
  in.hops.assign(4, {25_GBps});
  return in;
}

TEST_CASE("a baseline is found by its name") {
  for (const Baseline baseline :
       {Baseline::amp, Baseline::varuna, Baseline::pipette, Baseline::megatron})
    CHECK(enumerator_named<Baseline>(name_of(baseline)) == baseline);
  CHECK(!enumerator_named<Baseline>("Pipette"));
}

TEST_CASE("Pipette's shipped job has 2.493 GB of gradients a rank, a third more than it needs") {
  // (50256 * 3072 + 16 * 3072^2 * 32) / 8 * 4 = 2.493 GB; with 12 h^2 it would be 1.889 GB.
  CHECK(released_gradients(shipped_model(), 32, 8, 4_B).value() == Approx(2.493e9).epsilon(1e-3));
}

TEST_CASE("Pipette's shipped job: a traversal takes 4.03 ms and the flat ring 149.6 ms") {
  // 2 (p-1) 50.33 MB / 25 GB/s = 4.027 ms;  2 (3/4) 2.493 GB / 25 GB/s = 149.6 ms
  const BaselineInputs in = shipped_job();
  BaselineOptions options;
  options.amp_hops = AmpHops::forward_and_backward;
  options.pipette_ring = RingLevels::one;
  BaselineInputs no_messages = in, no_gradients = in;
  no_messages.message = Bytes{0};
  for (BaselineStage& stage : no_gradients.stages) stage.gradients = Bytes{0};
  const auto difference = [&](const BaselineInputs& without, auto estimate) {
    return (estimate(in, options) - estimate(without, options)) / 1_ms;
  };
  CHECK(difference(no_messages, amp_estimate) == Approx(4.03).epsilon(1e-3));
  CHECK(difference(no_gradients, amp_estimate) == Approx(149.6).epsilon(1e-3));
  CHECK(difference(no_gradients, pipette_estimate) == Approx(149.6).epsilon(1e-3));
  // Pipette pays a traversal in each of 8 / 2 rounds.
  CHECK(difference(no_messages, pipette_estimate) == Approx(4 * 4.0265).epsilon(1e-3));
}

TEST_CASE("Pipette's ring in a node and its ring between nodes") {
  // 8 replicas, 4 in each of 2 nodes, 1 GB: 2 (3/4) 1 GB / 100 GB/s + 2 (1/2) 1 GB / 10 GB/s = 15 ms + 100 ms
  BaselineInputs in = uniform(2, 4, 1_s, 2_s, 1_ms);
  in.data = 8;
  for (BaselineStage& stage : in.stages) {
    stage.gradients = 1_GB;
    stage.ring = {10_GBps, 10_GBps};
    stage.data_in_node = 4;
    stage.in_node_rate = 100_GBps;
  }
  BaselineInputs without = in;
  for (BaselineStage& stage : without.stages) stage.gradients = Bytes{0};
  CHECK((pipette_estimate(in) - pipette_estimate(without)) / 1_ms == Approx(115));
  // Its objective looks at the nodes of the first stage alone.
  in.stages[1].ring = {1_GBps, 1_GBps};
  CHECK((pipette_estimate(in) - pipette_estimate(without)) / 1_ms == Approx(115));
  in.stages[1].ring = in.stages[0].ring;
  // Flat: 2 (7/8) 1 GB / 10 GB/s = 175 ms
  CHECK((amp_estimate(in) - amp_estimate(without)) / 1_ms == Approx(175));
}

TEST_CASE("AMP's own row: 2 microbatches on 16 T4, 1.2443 s in its log") {
  // Profiled forward time 0.1363 s, so 2 * 3 * 0.1363 = 0.818 s; (24 * 12 * 1024^2 + 52256 * 1024) parameters of 4 bytes over
  // 50 Gb/s: 2 (15/16) * 355.5 M * 4 B / 6.25 GB/s = 0.427 s.
  BaselineInputs in = uniform(1, 2, 0.1363_s, 0.2726_s, 1_ms);
  in.data = 16;
  in.stages[0].gradients = Bytes{4.0 * (24 * 12 * 1024.0 * 1024 + 52256 * 1024.0)};
  in.stages[0].ring.assign(4, 50_Gbps);
  in.stages[0].data_in_node = 4;
  in.stages[0].in_node_rate = 50_Gbps;
  CHECK(amp_estimate(in) / 1_s == Approx(1.2443).epsilon(1e-3));
}

TEST_CASE("the published formulas have the published values") {
  // p = 4, m = 16, F = 1, B = 2, c = 0.1 -> Pipette 59.4, AMP as Pipette states it 57.6
  BaselineOptions both;
  both.amp_hops = AmpHops::forward_and_backward;
  const BaselineInputs in = uniform(4, 16, 1_s, 2_s, 0.1_s);
  CHECK(pipette_estimate(in) / 1_s == Approx(59.4));
  CHECK(amp_estimate(in, both) / 1_s == Approx(57.6));
  CHECK(amp_estimate(in) / 1_s == Approx(57.3));  // its own code: 57 and one way of 3 hops
  CHECK(megatron_estimate(in) / 1_s == Approx(57));
}

TEST_CASE("Pipette's code drops the microbatches of an incomplete round") {
  // p = 4, m = 18: 18 // 4 = 4 rounds, the same 59.4 as m = 16; exactly 4.5 rounds, 4.5 * 12.6 + 9 = 65.7
  const BaselineInputs in = uniform(4, 18, 1_s, 2_s, 0.1_s);
  BaselineOptions exact;
  exact.rounds = Rounds::exact;
  CHECK(pipette_estimate(in) / 1_s == Approx(59.4));
  CHECK(pipette_estimate(in, exact) / 1_s == Approx(65.7));
  // m = 2 < p: one traversal, 12 + 0.6, and (m-1)(F+B) = 3
  CHECK(pipette_estimate(uniform(4, 2, 1_s, 2_s, 0.1_s)) / 1_s == Approx(15.6));
}

TEST_CASE("AMP hides the steady state's messages, Pipette almost none") {
  // p = 8, m = 64, F = 1, B = 2, c = 0.1. Simulated: eager 213 + 0.1 (2 * 7 * 8 + 12) = 225.4, blocking 213 + 0.1 (128 + 11) =
  // 226.9. AMP 214.4: 4.9 % and 5.5 % too fast. Pipette 8 (24 + 1.4) + 21 = 224.2: 0.5 % and 1.2 %.
  const BaselineInputs in = uniform(8, 64, 1_s, 2_s, 0.1_s);
  BaselineOptions both;
  both.amp_hops = AmpHops::forward_and_backward;
  const Seconds eager = simulated(in, testing::Sends::eager);
  const Seconds blocking = simulated(in, testing::Sends::blocking_pairs);
  CHECK(too_fast_by(amp_estimate(in, both), eager) >= 0.045);
  CHECK(too_fast_by(amp_estimate(in, both), blocking) >= 0.054);
  CHECK(too_fast_by(amp_estimate(in), eager) >= 0.045);
  CHECK(std::abs(too_fast_by(pipette_estimate(in), eager)) <= 0.01);
  CHECK(std::abs(too_fast_by(pipette_estimate(in), blocking)) <= 0.015);
}

TEST_CASE("Varuna's replay is what the engine simulates with eager sends") {
  for (const int p : {2, 4, 8})
    for (const int m : {1, 4, 16}) {
      const BaselineInputs in = uniform(p, m, 1_s, 2_s, 0.25_s);
      CHECK(varuna_estimate(in) / 1_s ==
            Approx(simulated(in, testing::Sends::eager) / 1_s).epsilon(1e-12));
    }
}

TEST_CASE("in Varuna's replay a stage has at most four messages on their way") {
  // Five stages, m = 5, passes of 1 s; the first hop takes 10 s, the others nothing. Stage 0 would send at 1, 2, 3, 4 and 5; the
  // fifth leaves when the first is there, at 11, and arrives at 21 instead of 15. Behind the first hop it passes 21-25 forward and
  // 25-29 back. Of stage 1's gradients the fourth leaves with it at 29, when the first has arrived: both are at stage 0 at 39,
  // two passes of 1 s. With unlimited sends: 11 + (5 + 3) 2 + 10 + 1 = 38.
  BaselineInputs in = uniform(5, 5, 1_s, 1_s, 10_s);
  for (std::size_t hop = 1; hop < 4; ++hop) in.hops[0][hop] = BytesPerSecond{1e30};
  CHECK(varuna_estimate(in) / 1_s == Approx(41));
}

TEST_CASE("the last edge of AMP's ring decides where its code slips") {
  BaselineInputs in = uniform(1, 1, 1_s, 2_s, 1_ms);
  in.data = 2;
  in.stages[0].gradients = 1_GB;
  in.stages[0].ring = {1_GBps, 10_GBps};
  BaselineOptions slip;
  slip.ring_pace = RingPace::last_edge;
  // 2 (1/2) 1 GB over 1 GB/s, or over 10 GB/s
  CHECK(amp_estimate(in) / 1_s == Approx(3 + 1.0));
  CHECK(amp_estimate(in, slip) / 1_s == Approx(3 + 0.1));
}

TEST_CASE("AMP averages where the others take the slowest") {
  // Two pipelines of two stages: hops of 1 s and 3 s. Stages of 2 s where they are, 1 s on the job's average GPU.
  BaselineInputs in = uniform(2, 1, 2_s, 4_s, 1_s);
  in.hops.push_back({in.message / 3_s});
  for (BaselineStage& stage : in.stages) stage.mean_forward = 1_s;
  CHECK(amp_estimate(in) / 1_s == Approx(3 + 3 + 2));  // 3F twice, and (1 + 3) / 2
  CHECK(pipette_estimate(in) / 1_s ==
        Approx(6 * 2 + 2 * 3));  // one traversal, forward and backward
  CHECK(varuna_estimate(in) / 1_s ==
        Approx(2 + 3 + 6 + 3 + 4));  // there and back over the slower hop
}

TEST_CASE("one replica reduces nothing, and one stage sends nothing") {
  const BaselineInputs in = uniform(1, 3, 1_s, 2_s, 1_s);
  for (const Baseline baseline :
       {Baseline::amp, Baseline::varuna, Baseline::pipette, Baseline::megatron})
    CHECK(baseline_estimate(baseline, in) / 1_s == Approx(9));
}

const Library& library() {
  static const Library library{source_dir()};
  return library;
}

struct Degrees {
  int tensor, pipeline, data, micro_batch;
};

Scenario scenario_from(const std::string& json) {
  Problems problems;
  const auto source = std::make_shared<const SourceText>(SourceText{"baseline.json", json});
  return read_scenario(parse_json(source, problems), library().root, library());
}

/// 32 V100 of 32 GB in 4 nodes of 8, 256 samples.
Scenario scenario_of(const Degrees& degrees, const std::string& model = "gpt-8.3b") {
  const auto text = [](int number) { return std::to_string(number); };
  const std::string json = R"({"model": ")" + model +
                           R"(", "platform": "pipette-v100-edr", "nodes": 4,
          "software": "megatron-lm-2021",
          "training": {"global_batch": 256, "micro_batch": )" +
                           text(degrees.micro_batch) +
                           R"(, "precision": "fp16", "recompute": "full"},
          "parallel": {"tensor": )" +
                           text(degrees.tensor) + R"(, "pipeline": )" + text(degrees.pipeline) +
                           R"(, "data": )" + text(degrees.data) + "}}";
  return scenario_from(json);
}

/// All plans of gpt-8.3b that make_plan() accepts on those 32 GPUs.
std::vector<Scenario> all_plans() {
  std::vector<Scenario> plans;
  for (const int tensor : {1, 2, 4, 8})
    for (const int pipeline : {1, 2, 4, 8})
      for (const int micro_batch : {1, 2, 4, 8})
        if (32 % (tensor * pipeline) == 0)
          plans.push_back(scenario_of({tensor, pipeline, 32 / (tensor * pipeline), micro_batch}));
  return plans;
}

std::vector<const Scenario*> ranked(const std::vector<Scenario>& plans, Baseline baseline) {
  std::vector<std::pair<BaselinePreference, const Scenario*>> liked;
  for (const Scenario& plan : plans)
    if (const auto preference = baseline_preference(baseline, plan))
      liked.emplace_back(*preference, &plan);
  std::stable_sort(liked.begin(), liked.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<const Scenario*> order;
  for (const auto& [preference, plan] : liked) order.push_back(plan);
  return order;
}

bool fits(const Scenario& scenario) {
  SimulateOptions heap;
  heap.make_engine = make_heap_engine;
  return simulate(scenario, heap).report.memory.fits;
}

TEST_CASE(
    "of AMP's ten favourites at least one does not fit, and of those who look at memory all do") {
  const std::vector<Scenario> plans = all_plans();
  const auto none_fits_of_top = [&](Baseline baseline) {
    std::vector<const Scenario*> order = ranked(plans, baseline);
    REQUIRE(!order.empty());
    if (order.size() > 10) order.resize(10);
    return std::count_if(order.begin(), order.end(),
                         [](const Scenario* plan) { return !fits(*plan); });
  };
  CHECK(none_fits_of_top(Baseline::amp) >= 1);
  CHECK(none_fits_of_top(Baseline::pipette) == 0);
  CHECK(none_fits_of_top(Baseline::megatron) == 0);
}

TEST_CASE(
    "Megatron's rule takes the fewest model-parallel degrees that fit, tensor before pipeline") {
  const std::vector<Scenario> plans = all_plans();
  const std::vector<const Scenario*> order = ranked(plans, Baseline::megatron);
  REQUIRE(!order.empty());
  const Parallel& first = order.front()->plan.parallel;
  for (const Scenario* plan : order) {
    const Parallel& other = plan->plan.parallel;
    CHECK(first.tensor * first.pipeline <= other.tensor * other.pipeline);
    if (first.tensor * first.pipeline == other.tensor * other.pipeline)
      CHECK(first.tensor >= other.tensor);
  }
}

TEST_CASE("Varuna leaves out tensor degrees and AMP nothing") {
  const Scenario wide = scenario_of({8, 2, 2, 1});
  CHECK(!baseline_preference(Baseline::varuna, wide));
  CHECK(baseline_preference(Baseline::amp, wide));
  // 8.3 B parameters and 22 bytes each on one 32 GB card
  CHECK(!baseline_preference(Baseline::varuna, scenario_of({1, 1, 32, 1})));
  CHECK(baseline_preference(Baseline::amp, scenario_of({1, 1, 32, 1})));
}

TEST_CASE("a scenario's links and gradients come from its tables") {
  // Data degrees run before pipeline degrees: with tensor 8 each rank group is a node, stages 0 and 1 are two nodes each.
  const Scenario scenario = scenario_of({8, 2, 2, 4});
  const BaselineInputs in = baseline_inputs(scenario);
  CHECK(in.microbatches == 32);  // 256 / (2 * 4)
  CHECK(in.message.value() == doctest::Approx(2.0 * 4 * 1024 * 3072));
  REQUIRE(in.stages.size() == 2);
  CHECK(in.stages[0].data_in_node == 1);
  REQUIRE(in.stages[0].ring.size() == 2);
  const BytesPerSecond nics = node_bandwidth(scenario.platform, NodeId{0});
  CHECK(in.stages[0].ring[0] == nics);
  REQUIRE(in.hops.size() == 2);
  CHECK(in.hops[0] == std::vector<BytesPerSecond>{nics});
  // The stage with the head is slower; a backward pass with recomputation takes three forward passes or so.
  CHECK(in.stages[1].forward > in.stages[0].forward);
  CHECK(in.stages[0].backward / in.stages[0].forward > 2);
  // Pipette's count: 16 h^2 in place of 12; both reduce fp16 gradients in two bytes.
  const double counted = baseline_inputs(scenario, GradientCount::released).stages[0].gradients /
                         in.stages[0].gradients;
  CHECK(counted == doctest::Approx(16.0 / 12).epsilon(0.02));
}

TEST_CASE("Pipette is asked for what its loops try, with the rate of one card") {
  // 4 nodes: stages of whole nodes are 1, 2 or 4.
  CHECK(baseline_preference(Baseline::pipette, scenario_of({8, 4, 1, 1})));
  CHECK(!baseline_preference(Baseline::pipette, scenario_of({4, 8, 1, 1})));
  CHECK(!baseline_preference(Baseline::pipette, scenario_of({8, 4, 1, 16})));
  const Scenario four_cards = scenario_from(
      R"({"model": "gpt-8.3b", "platform": "a100-80gb-4hdr", "nodes": 2,
          "training": {"global_batch": 32, "micro_batch": 1}, "parallel": {"tensor": 8, "pipeline": 2}})");
  const BytesPerSecond node = baseline_inputs(four_cards).hops[0][0];
  CHECK(baseline_inputs(four_cards, GradientCount::released, LinkRate::card).hops[0][0] ==
        node / 4.0);
}

TEST_CASE("a plan without stages takes each method's passes, and a ring where it has one") {
  // One stage: 256 / 4 = 64 microbatches of F + B. Varuna adds the gradient ring; AMP as well, but takes the backward pass, which
  // recomputes, for two forward passes.
  const Scenario scenario = scenario_of({8, 1, 4, 1}, "gpt-1.7b");
  SimulateOptions heap;
  heap.make_engine = make_heap_engine;
  const Report report = simulate(scenario, heap).report;
  const Seconds passes = (report.forward_time + report.backward_time) * 64.0;
  CHECK(baseline_estimate(Baseline::megatron, scenario) / passes == doctest::Approx(1));
  CHECK(baseline_estimate(Baseline::varuna, scenario) > passes);
  CHECK(baseline_estimate(Baseline::amp, scenario) < baseline_estimate(Baseline::varuna, scenario));
}

}  // namespace
}  // namespace windtunnel
