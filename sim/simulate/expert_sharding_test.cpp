// ZeRO with experts: states of dense layers among all replicas, those of experts among the ranks that hold the same ones.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>
#include <string>

#include "simulate/expert_fixtures.hpp"

namespace windtunnel {
namespace {

using namespace two_by_two;

Scenario scenario_of(int zero_stage, int expert, const Overrides& more = {}) {
  return two_by_two::scenario_of(zero_stage, expert, "", more);
}

constexpr double nic = 25e9;

TEST_CASE("ZeRO 2 scatters experts' gradients among two copies on every microbatch") {
  // With four experts on four ranks nobody else has them; with two on a rank, ranks 0 and 2, and 1 and 3, have the same. What is more:
  // the half of 4 bytes a gradient, of two microbatches, from each of four ranks.
  const Report shared = play(scenario_of(2, 2)), alone = play(scenario_of(2, 4));
  CHECK(sent(shared, Traffic::data_gradients) - sent(alone, Traffic::data_gradients) ==
        doctest::Approx(2 * 4 * 0.5 * 4 * of_rank));
  // Once an iteration the half of 2 bytes a parameter comes back.
  CHECK(sent(shared, Traffic::zero_gather) - sent(alone, Traffic::zero_gather) ==
        doctest::Approx(4 * 0.5 * 2 * of_rank));
  // Rings of two across nodes, each pair over its own NICs, with a latency of 5 us each.
  constexpr double paper = 2 * (5e-6 + 0.5 * 4 * of_rank / nic) + 5e-6 + 0.5 * 2 * of_rank / nic;
  CHECK(shared.breakdown.of(Line::data_comm).value() -
            alone.breakdown.of(Line::data_comm).value() ==
        doctest::Approx(paper).epsilon(1e-6));
  // Twice what ZeRO 1 scatters once an iteration.
  CHECK(sent(shared, Traffic::data_gradients) ==
        doctest::Approx(2 * sent(play(scenario_of(1, 2)), Traffic::data_gradients)));
}

TEST_CASE("ZeRO 2 keeps a quarter of dense gradients and half of experts', ZeRO 3 of weights too") {
  const StageMemory none = play(scenario_of(0, 2)).memory.stages.front(),
                    two = play(scenario_of(2, 2)).memory.stages.front(),
                    three = play(scenario_of(3, 2)).memory.stages.front();
  const double kept = (none.parameters - of_rank) / 4 + of_rank / 2;
  CHECK(two.gradients / none.gradients == doctest::Approx(kept / none.parameters));
  CHECK(two.weights == none.weights);
  CHECK(three.weights / none.weights == doctest::Approx(kept / none.parameters));
  CHECK(three.optimizer == two.optimizer);
}

TEST_CASE(
    "ZeRO 3 gathers a layer's experts before both passes and scatters them behind the second") {
  const Overrides apart{{"/parallel/zero_prefetch", "0"}};
  const Report shared = play(scenario_of(3, 2, apart)), alone = play(scenario_of(3, 4, apart));
  CHECK(sent(shared, Traffic::zero_gather) - sent(alone, Traffic::zero_gather) ==
        doctest::Approx(2 * 2 * 4 * 0.5 * 2 * of_rank));
  CHECK(sent(shared, Traffic::data_gradients) - sent(alone, Traffic::data_gradients) ==
        doctest::Approx(2 * 4 * 0.5 * 4 * of_rank));
  // With nothing gathered ahead: two gathers and a scatter a microbatch, each behind latencies of 15 and 5 us.
  constexpr double paper = 2 * (3 * 20e-6 + (2 * 0.5 * 2 + 0.5 * 4) * of_rank / nic);
  CHECK(shared.breakdown.of(Line::data_comm).value() -
            alone.breakdown.of(Line::data_comm).value() ==
        doctest::Approx(paper).epsilon(1e-6));
}

TEST_CASE("sharded experts take as long as numbers as operation by operation") {
  CHECK(rc::check([] {
    const int expert = *rc::gen::element(1, 2, 4), zero = *rc::gen::element(2, 3);
    const auto one_of = [](const char* a, const char* b) {
      return *rc::gen::element<std::string>(a, b);
    };
    Overrides more{{"/model/layers", one_of("1", "3")},
                   {"/model/moe/shared_ffn_hidden", one_of("0", "512")},
                   {"/training/recompute", one_of("none", "full")},
                   {"/software/experts/dispatch", one_of("all_to_all", "one_copy_per_node")}};
    if (zero == 3) more.emplace_back("/parallel/zero_prefetch", one_of("0", "1"));
    if (zero == 2) more.emplace_back("/parallel/overlap_gradient_reduce", one_of("false", "true"));
    const Scenario scenario = scenario_of(zero, expert, more);
    // Beside gathers, exchanges across nodes are flows on the same NICs; the heap shares none.
    const Report folded = play(scenario, Detail::pass, EngineKind::heap),
                 layered = play(scenario, Detail::layer, EngineKind::heap);
    RC_ASSERT(std::abs(layered.iteration_time / folded.iteration_time - 1) < 1e-9);
    for (std::size_t kind = 0; kind < folded.traffic.size(); ++kind)
      RC_ASSERT(std::abs(layered.traffic[kind].value() - folded.traffic[kind].value()) <=
                1e-9 * folded.traffic[kind].value());
  }));
}

}  // namespace
}  // namespace windtunnel
