#include "plan/schedule.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <array>
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

TEST_CASE("interleaving with one group alternates where the stack does") {
  // p = 2, v = 2, last stage: 2 (2-1-1) + (2-1) 2 = 2 warm-up forwards
  CHECK(text_of(schedule_named("interleaved_1f1b")
                    ->order({2, 2, 2, ChunkPath::loop, true}, StageId{1})) ==
        "F0 F1 F0.1 B0.1 F1.1 B1.1 B0 B1 ");
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

/// Calls of the loops of github.com/deepseek-ai/DualPipe at 3da1bbe, in the words of their methods: chunks count from 0 in each phase,
/// `enable_zb` puts weight gradients off, which are taken up first in, first out.
class PublishedCalls {
 public:
  /// `chunk_of`: of phases 0 and 1; with a stride of 2 the microbatches of chunk c have the numbers c, c + 2, c + 4...
  PublishedCalls(std::array<int, 2> chunk_of, int stride) : chunk_of_(chunk_of), stride_(stride) {}

  void forward_chunk(int phase) { add(Phase::forward, phase, forwards_[at(phase)]++, false); }
  void backward_chunk(int phase, bool enable_zb = false) {
    const int number = backwards_[at(phase)]++;
    add(Phase::backward, phase, number, false);
    if (enable_zb)
      store_.emplace_back(phase, number);
    else
      add(Phase::weight_gradient, phase, number, true);
  }
  void forward_backward_chunk(int phase0, int phase1) {
    forward_chunk(phase0);
    const int number = backwards_[at(phase1)]++;
    add(Phase::backward, phase1, number, true);
    add(Phase::weight_gradient, phase1, number, true);
  }
  void weight_chunk() {
    const auto [phase, number] = store_.at(0);
    store_.erase(store_.begin());
    add(Phase::weight_gradient, phase, number, false);
  }
  std::vector<Step> steps;

 private:
  static std::size_t at(int phase) { return static_cast<std::size_t>(phase); }
  void add(Phase kind, int phase, int number, bool joined) {
    const int chunk = chunk_of_[at(phase)];
    const int microbatch = stride_ == 1 ? number : 2 * number + chunk;
    steps.push_back(
        {kind, static_cast<std::uint16_t>(chunk), static_cast<std::uint32_t>(microbatch), joined});
  }

  std::array<int, 2> chunk_of_;
  int stride_;
  std::array<int, 2> forwards_{}, backwards_{};
  std::vector<std::pair<int, int>> store_;
};

/// DualPipeV.step of dualpipe/dualpipev.py, step by step.
std::vector<Step> published_dualpipe_v(int num_ranks, int rank, int num_chunks) {
  PublishedCalls calls({0, 1}, 1);
  const int step_1 = (num_ranks - rank - 1) * 2;
  for (int i = 0; i < step_1; ++i) calls.forward_chunk(0);
  const int step_2 = rank + 1;
  for (int i = 0; i < step_2; ++i) {
    calls.forward_chunk(0);
    calls.forward_chunk(1);
  }
  const int step_3 = num_ranks - rank - 1;
  for (int i = 0; i < step_3; ++i) {
    calls.backward_chunk(1, true);
    calls.weight_chunk();
    calls.forward_chunk(1);
  }
  const int step_4 = num_chunks - num_ranks * 2 + rank + 1;
  for (int i = 0; i < step_4; ++i) {
    if (i == 0 && rank == num_ranks - 1) {
      calls.forward_chunk(0);
      calls.backward_chunk(1);
    } else {
      calls.forward_backward_chunk(0, 1);
    }
    calls.forward_backward_chunk(1, 0);
  }
  const int step_5 = num_ranks - rank - 1;
  for (int i = 0; i < step_5; ++i) {
    calls.backward_chunk(1);
    calls.forward_backward_chunk(1, 0);
  }
  const int step_6 = rank + 1;
  bool enable_zb = false;
  for (int i = 0; i < step_6; ++i) {
    if (i == step_6 / 2 && rank % 2 == 1) enable_zb = true;
    calls.backward_chunk(1, enable_zb);
    if (i == step_6 / 2 && rank % 2 == 0) enable_zb = true;
    calls.backward_chunk(0, enable_zb);
  }
  const int step_7 = num_ranks - rank - 1;
  for (int i = 0; i < step_7; ++i) {
    calls.weight_chunk();
    calls.backward_chunk(0, true);
  }
  const int step_8 = rank + 1;
  for (int i = 0; i < step_8; ++i) calls.weight_chunk();
  return calls.steps;
}

/// DualPipe.step of dualpipe/dualpipe.py, step by step. Its module[0] is our chunk 0; in the second half of the ranks phase 0 is the
/// reverse direction.
std::vector<Step> published_dualpipe(int num_ranks, int rank, int num_chunks) {
  const bool is_in_second_half = rank >= num_ranks / 2;
  const bool is_middle_rank = rank == num_ranks / 2 - 1 || rank == num_ranks / 2;
  PublishedCalls calls(is_in_second_half ? std::array{1, 0} : std::array{0, 1}, 2);
  const int num_half_ranks = num_ranks / 2, half_rank = std::min(rank, num_ranks - 1 - rank);
  const int half_num_chunks = num_chunks / 2;
  const int step_1 = (num_half_ranks - half_rank - 1) * 2;
  for (int i = 0; i < step_1; ++i) calls.forward_chunk(0);
  const int step_2 = half_rank + 1;
  for (int i = 0; i < step_2; ++i) {
    calls.forward_chunk(0);
    calls.forward_chunk(1);
  }
  const int step_3 = num_half_ranks - half_rank - 1;
  for (int i = 0; i < step_3; ++i) {
    calls.backward_chunk(1, true);
    calls.weight_chunk();
    calls.forward_chunk(1);
  }
  const int step_4 = half_num_chunks - num_ranks + half_rank + 1;
  for (int i = 0; i < step_4; ++i) {
    if (i == 0 && is_middle_rank) {
      calls.forward_chunk(0);
      calls.backward_chunk(1);
    } else {
      calls.forward_backward_chunk(0, 1);
    }
    calls.forward_backward_chunk(1, 0);
  }
  const int step_5 = num_half_ranks - half_rank - 1;
  for (int i = 0; i < step_5; ++i) {
    calls.backward_chunk(1);
    calls.forward_backward_chunk(1, 0);
  }
  const int step_6 = half_rank + 1;
  bool enable_zb = false;
  for (int i = 0; i < step_6; ++i) {
    if (i == step_6 / 2 && half_rank % 2 == 1) enable_zb = true;
    calls.backward_chunk(1, enable_zb);
    if (i == step_6 / 2 && half_rank % 2 == 0) enable_zb = true;
    calls.backward_chunk(0, enable_zb);
  }
  const int step_7 = num_half_ranks - half_rank - 1;
  for (int i = 0; i < step_7; ++i) {
    calls.weight_chunk();
    calls.backward_chunk(0, true);
  }
  const int step_8 = half_rank + 1;
  for (int i = 0; i < step_8; ++i) calls.weight_chunk();
  return calls.steps;
}

TEST_CASE("DualPipe and DualPipeV run the passes of the published loops in their order") {
  for (const int p : {2, 4, 6, 8, 16})
    for (const int m : {2 * p, 2 * p + 2, 5 * p})
      for (int s = 0; s < p; ++s) {
        CAPTURE(p);
        CAPTURE(m);
        CAPTURE(s);
        CHECK(schedule_named("dualpipe")->order({p, m, 2}, StageId{s}) ==
              published_dualpipe(p, s, m));
      }
  for (const int p : {1, 2, 3, 4, 7, 8})
    for (const int m : {2 * p, 2 * p + 1, 5 * p})
      for (int s = 0; s < p; ++s) {
        CAPTURE(p);
        CAPTURE(m);
        CAPTURE(s);
        CHECK(schedule_named("dualpipe_v")->order({p, m, 2}, StageId{s}) ==
              published_dualpipe_v(p, s, m));
      }
}

TEST_CASE("DualPipeV on one stage, by hand") {
  // F0 of phase 0, F0 of phase 1; then F1 and the backward pass of 0 apart, F1.1 with the other half of it; drained by full and by
  // input gradients alone, whose weight gradient comes last.
  CHECK(text_of(schedule_named("dualpipe_v")->order({1, 2, 2}, StageId{0})) ==
        "F0 F0.1 F1 B0.1 W0.1 F1.1 B0 W0 B1.1 W1.1 B1 W1 ");
}

TEST_CASE("what DualPipe cannot run is reported with its numbers") {
  const Schedule& dualpipe = *schedule_named("dualpipe");
  CHECK(dualpipe.misfit({4, 8, 2}).empty());
  CHECK(dualpipe.misfit({3, 8, 2}) == "schedule dualpipe needs an even number of stages, not 3");
  CHECK(dualpipe.misfit({4, 6, 2}) ==
        "dualpipe needs at least 2 microbatches per stage: 6 microbatches on 4 stages");
  CHECK(dualpipe.misfit({4, 9, 2}) ==
        "dualpipe needs an even number of microbatches: 9 microbatches on 4 stages");
  CHECK(schedule_named("dualpipe_v")->misfit({3, 7, 2}).empty());
}

TEST_CASE("every schedule runs each pass once, forward before backward before weight gradient") {
  for (const SchedulePtr& schedule : named_schedules()) {
    for (const int p : {1, 2, 4}) {
      for (const int groups : {1, 3}) {
        const int v = schedule->takes(3) && p > 1 ? 3 : schedule->fewest_chunks();
        const int m = std::max(groups * p, schedule->fewest_microbatches(p, v));
        if (!schedule->misfit({p, m, v}).empty()) continue;
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
          const int copies = schedule->is_bidirectional() ? 2 : 1;
          CHECK(done.size() == static_cast<std::size_t>(passes * m * v / copies));
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
  CHECK(names_of_chunked_schedules(2) == "interleaved_1f1b, zero_bubble_v, dualpipe or dualpipe_v");
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
