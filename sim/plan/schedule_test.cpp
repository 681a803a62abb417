#include "plan/schedule.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <set>
#include <string>
#include <tuple>

#include "plan/plan.hpp"
#include "platform/testing.hpp"

namespace windtunnel {
namespace {

/// "F0 F1.1 B0 W0": microbatch, and chunk where it is not 0.
std::string text_of(const std::vector<Step>& order) {
  std::string text;
  for (const Step& step : order) text += token_of(step) + " ";
  return text;
}

TEST_CASE("interleaving sends groups of p microbatches through all chunks") {
  // p = 2, m = 4, v = 2, first stage: 2 (2-0-1) + (2-1) 2 = 4 warm-up forwards
  CHECK(text_of(schedule_named("interleaved_1f1b")->order({2, 4, 2}, StageId{0})) ==
        "F0 F1 F0.1 F1.1 F2 B0.1 F3 B1.1 F2.1 B0 F3.1 B1 B2.1 B3.1 B2 B3 ");
}

TEST_CASE("interleaving with one group runs all forwards first, as Megatron-LM does") {
  CHECK(text_of(schedule_named("interleaved_1f1b")->order({2, 2, 2}, StageId{1})) ==
        "F0 F1 F0.1 F1.1 B0.1 B1.1 B0 B1 ");
}

TEST_CASE("zero-bubble H1 delays weight gradients by the stage's index") {
  CHECK(text_of(schedule_named("zero_bubble_h1")->order({3, 4, 1}, StageId{0})) ==
        "F0 F1 F2 B0 W0 F3 B1 W1 B2 W2 B3 W3 ");
  CHECK(text_of(schedule_named("zero_bubble_h1")->order({3, 4, 1}, StageId{2})) ==
        "F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 W2 W3 ");
}

/// ScheduleZBVZeroBubble._calculate_single_rank_operations of PyTorch at 1fd7abc (torch/distributed/pipelining/schedules.py), loop by
/// loop: counters f0 to w1 number the microbatches, those that are only there to fill the pipeline are removed at the end. I is its
/// name for a backward pass of the input.
std::string pytorch_zbv(int group_size, int n_microbatches, int rank) {
  const int n_micro = std::max(2 * group_size - 1, n_microbatches);
  std::vector<std::pair<std::string, int>> ops;
  int f0 = 0, f1 = 0, b0 = 0, b1 = 0;
  const int warmup_n1 = 2 * (group_size - rank) - 1;
  for (int i = 0; i < warmup_n1; ++i) ops.emplace_back("F0", f0++);
  const int warmup_n2 = rank;
  for (int i = 0; i < warmup_n2; ++i) {
    ops.emplace_back("F1", f1++);
    ops.emplace_back("F0", f0++);
  }
  const int warmup_n3 = group_size - rank;
  for (int i = 0; i < warmup_n3; ++i) {
    ops.emplace_back("F1", f1++);
    ops.emplace_back("I1", b1);
    ops.emplace_back("W1", b1++);
  }
  while (f1 < f0 || f0 < n_micro) {
    if (f0 < n_micro) ops.emplace_back("F0", f0++);
    ops.emplace_back("I0", b0);
    ops.emplace_back("W0", b0++);
    ops.emplace_back("F1", f1++);
    ops.emplace_back("I1", b1);
    ops.emplace_back("W1", b1++);
  }
  int w0 = b0, w1 = b1;
  const int cooldown_n1 = rank;
  for (int i = 0; i < cooldown_n1; ++i) {
    ops.emplace_back("I0", b0++);
    ops.emplace_back("I1", b1++);
  }
  const int cooldown_n2 = group_size - rank;
  for (int i = 0; i < cooldown_n2; ++i) {
    ops.emplace_back("I0", b0++);
    ops.emplace_back("W0", w0++);
  }
  while (w1 < b1) ops.emplace_back("W1", w1++);
  while (w0 < b0) ops.emplace_back("W0", w0++);
  std::string text;
  for (const auto& [kind, microbatch] : ops) {
    if (microbatch >= n_microbatches) continue;
    text += (kind[0] == 'I' ? "B" : kind.substr(0, 1)) + std::to_string(microbatch) +
            (kind[1] == '1' ? ".1 " : " ");
  }
  return text;
}

TEST_CASE("zero-bubble V runs the passes of PyTorch's loops in their order") {
  // Stage 1 of 2, 3 microbatches, by hand.
  CHECK(text_of(schedule_named("zero_bubble_v")->order({2, 3, 2}, StageId{1})) ==
        "F0 F0.1 F1 F1.1 B0.1 W0.1 F2 B0 W0 F2.1 B1.1 W1.1 B1 B2.1 B2 W1 W2.1 W2 ");
  for (const int p : {1, 2, 3, 4, 7, 8}) {
    for (const int m : {1, 2, p, 2 * p - 2, 2 * p - 1, 2 * p, 5 * p + 1}) {
      for (int s = 0; s < p && m > 0; ++s) {
        CAPTURE(p);
        CAPTURE(m);
        CHECK(text_of(schedule_named("zero_bubble_v")->order({p, m, 2}, StageId{s})) ==
              pytorch_zbv(p, m, s));
      }
    }
  }
}

TEST_CASE("every schedule runs each pass once, forward before backward before weight gradient") {
  for (const SchedulePtr& schedule : named_schedules()) {
    for (const int p : {1, 2, 4}) {
      for (const int groups : {1, 3}) {
        const int v = schedule->takes(3) && p > 1 ? 3 : schedule->fewest_chunks();
        const int m = groups * p;
        for (int s = 0; s < p; ++s) {
          std::set<std::tuple<Phase, int, std::uint32_t>> done;
          const auto before = [&done](Phase phase, const Step& step) {
            return done.count({phase, step.chunk, step.microbatch}) == 1;
          };
          for (const Step& step : schedule->order({p, m, v}, StageId{s})) {
            CHECK(done.insert({step.phase, step.chunk, step.microbatch}).second);
            if (step.phase == Phase::backward) CHECK(before(Phase::forward, step));
            if (step.phase == Phase::weight_gradient) CHECK(before(Phase::backward, step));
          }
          const int passes = schedule->splits_backward ? 3 : 2;
          CHECK(done.size() == static_cast<std::size_t>(passes * m * v));
        }
      }
    }
  }
}

TEST_CASE("a plan runs the order that the user wrote, in place of a named one") {
  Plan plan;
  plan.parallel.pipeline = 2;
  plan.microbatches = 4;
  plan.parallel.schedule = schedule_named("zero_bubble_h1");
  const std::vector<Step> named = schedule_order(plan, StageId{1});
  const auto write_down = [&plan](const char* name) {
    plan.parallel.schedule = written_schedule(schedule_orders(*schedule_named(name), {2, 4, 1}));
  };
  write_down("zero_bubble_h1");
  CHECK(plan.parallel.schedule->name == "custom");
  CHECK(schedule_order(plan, StageId{1}) == named);
  CHECK(plan.parallel.schedule->splits_backward);
  write_down("gpipe");
  CHECK(schedule_order(plan, StageId{1}) == schedule_named("gpipe")->order({2, 4, 1}, StageId{1}));
  CHECK_FALSE(plan.parallel.schedule->splits_backward);
}

TEST_CASE("names of schedules are different, and no file writes the name of a user's own") {
  std::set<std::string> names{"custom"};
  for (const SchedulePtr& schedule : named_schedules()) CHECK(names.insert(schedule->name).second);
}

TEST_CASE("a written schedule keeps its way through the chunks") {
  const ScheduleOrders orders = schedule_orders(*schedule_named("zero_bubble_v"), {2, 4, 2});
  CHECK(orders.shape.chunk_path == ChunkPath::v);
  CHECK(written_schedule(orders)->chunk_path == ChunkPath::v);
}

TEST_CASE("a schedule of two chunks takes no other number of them") {
  CHECK(schedule_named("zero_bubble_v")->takes(2));
  CHECK_FALSE(schedule_named("zero_bubble_v")->takes(1));
  CHECK_FALSE(schedule_named("zero_bubble_v")->takes(3));
  CHECK(names_of_chunked_schedules(2) == "interleaved_1f1b or zero_bubble_v");
  CHECK(names_of_chunked_schedules(3) == "interleaved_1f1b");
}

TEST_CASE("the default schedules are 1F1B and, for several chunks, interleaved 1F1B") {
  CHECK(default_schedule() == schedule_named("1f1b"));
  CHECK(default_schedule(2) == schedule_named("interleaved_1f1b"));
  const auto defaults = std::count_if(named_schedules().begin(), named_schedules().end(),
                                      [](const SchedulePtr& each) { return each->is_default; });
  CHECK(defaults == 2);
}

TEST_CASE("the schema of scenarios names the schedules of the table") {
  Problems problems;
  const JsonValue schema =
      testing::parse_file(source_dir() / "docs/scenario.schema.json", problems);
  REQUIRE(problems.empty());
  const JsonValue* const words = find_at(schema, "/definitions/schedule_name/enum");
  REQUIRE(words != nullptr);
  std::string names;
  for (const JsonValue& word : words->array()) names += (names.empty() ? "" : ", ") + word.string();
  CHECK(names == schedule_name_list());
}

}  // namespace
}  // namespace windtunnel
