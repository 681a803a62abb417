// Pipelines without communication time take what theory says, whatever the schedule.
#include <doctest/doctest.h>

#include <algorithm>

#include "engine/program_simulator.hpp"
#include "engine/testing.hpp"
#include "schedule/pipeline_program.hpp"

namespace windtunnel {
namespace {

/// Passes of one chunk.
struct PassTimes {
  Seconds forward{}, input_gradient{}, weight_gradient{};
};

/// A pipeline of equal stages whose messages take no time.
ProgramSet free_pipeline(const SchedulePtr& schedule, const PipelineShape& shape,
                         const PassTimes& times) {
  ProgramSet set;
  for (std::size_t chunk = 1; chunk <= static_cast<std::size_t>(shape.chunks); ++chunk) {
    const Seconds backward = times.input_gradient + times.weight_gradient;
    for (const Seconds time :
         {times.forward, backward, times.input_gradient, times.weight_gradient, backward,
          times.forward, times.input_gradient, times.weight_gradient})
      set.work.push_back(testing::work(time));
    set.work.resize(chunk * num_chunk_rows);
  }
  set.work.insert(set.work.end(), num_device_rows, Work{});
  set.message_bytes.assign(num_message_rows, 1_B);
  testing::add_stages(set, shape, schedule, BytesPerSecond{1e30});
  return set;
}

/// Time beyond the busy time of one stage, as a fraction of it.
double bubble(const SchedulePtr& schedule, int p, int m, int v, PipelineSend send,
              const PassTimes& times) {
  PipelineShape shape;
  shape.stages = p;
  shape.microbatches = m;
  shape.chunks = v;
  shape.send = send;
  const auto engine = make_heap_engine(Network{});
  const EngineResult result = simulate_programs(free_pipeline(schedule, shape, times), *engine);
  const Seconds busy =
      (times.forward + times.input_gradient + times.weight_gradient) * (1.0 * m * v);
  return (result.end - busy) / busy;
}

constexpr PipelineSend sends[] = {PipelineSend::eager, PipelineSend::blocking_pairs};

TEST_CASE("GPipe and 1F1B idle (p-1)/m of their work") {
  for (const PipelineSend send : sends) {
    for (const int p : {1, 2, 3, 4, 8}) {
      for (const int rounds : {1, 2, 5}) {
        const int m = p * rounds;
        for (const SchedulePtr& schedule : {schedule_named("gpipe"), schedule_named("1f1b")}) {
          CHECK(bubble(schedule, p, m, 1, send, {1_s, 1_s, 1.5_s}) ==
                doctest::Approx((p - 1.0) / m).epsilon(1e-9));
        }
      }
    }
  }
}

TEST_CASE("interleaving v chunks divides the bubble by v, however messages are sent") {
  // Narayanan et al. 2021, 2.2.2: (p-1)/(v m), with passes of a chunk 1/v as long.
  for (const PipelineSend send : sends) {
    for (const int p : {2, 3, 4, 8}) {
      for (const int rounds : {1, 2, 4}) {
        for (const int v : {1, 2, 3, 4}) {
          const int m = p * rounds;
          for (const PassTimes& t : {PassTimes{1_s, 1_s, 1_s}, PassTimes{1_s, 0.5_s, 0.25_s}})
            CHECK(bubble(schedule_named("interleaved_1f1b"), p, m, v, send, t) ==
                  doctest::Approx((p - 1.0) / (v * m)).epsilon(1e-9));
        }
      }
    }
  }
}

TEST_CASE("the last pair of passes shares its exchange, as in Megatron-LM's interleaved loop") {
  // p = 4, m = 8, v = 2, F + B = 3 ms: busy 8 * 2 * 3 = 48 ms, idle 3 passes of 3 ms, 57 ms in all. With that exchange cut in two
  // each stage would lag the next by a pair in the drain as well: 66 ms.
  const PassTimes times{1_ms, 1_ms, 1_ms};
  const double idle =
      bubble(schedule_named("interleaved_1f1b"), 4, 8, 2, PipelineSend::blocking_pairs, times);
  CHECK(48_ms * (1 + idle) / 57_ms == doctest::Approx(1).epsilon(1e-9));
}

TEST_CASE("zero-bubble H1 idles (p-1)(F + B - W)") {
  // Qi et al. 2024, table 1, on equal stages; F, B, W of one microbatch.
  for (const int p : {1, 2, 4, 8}) {
    for (const int rounds : {1, 2, 4}) {
      for (const PassTimes& t : {PassTimes{1_s, 1_s, 1_s}, PassTimes{1_s, 1.25_s, 0.75_s}}) {
        const int m = p * rounds;
        const Seconds idle = (t.forward + t.input_gradient - t.weight_gradient) * (p - 1.0);
        const Seconds busy = (t.forward + t.input_gradient + t.weight_gradient) * (1.0 * m);
        CHECK(bubble(schedule_named("zero_bubble_h1"), p, m, 1, PipelineSend::eager, t) ==
              doctest::Approx(idle / busy).epsilon(1e-9));
      }
    }
  }
}

TEST_CASE("zero-bubble V idles p-1 passes of a chunk, all before its stages begin") {
  // Qi et al. 2024, section 6: no bubble between first and last pass where F = B = W and m >= 2 p - 1. Stage i begins i passes late.
  for (const int p : {2, 3, 4, 8})
    for (const int m : {2 * p - 1, 4 * p})
      CHECK(bubble(schedule_named("zero_bubble_v"), p, m, 2, PipelineSend::eager,
                   {1_s, 1_s, 1_s}) == doctest::Approx((p - 1.0) / (6.0 * m)).epsilon(1e-9));
}

TEST_CASE("DualPipe idles (p/2 - 1) (F&B + B - 3 W), DualPipeV as long on half as many devices") {
  // DeepSeek-V3 (arXiv:2412.19437), table 2: p parts of the model, B the whole backward pass; F&B is F + B where nothing overlaps. Exact
  // for F = W = B / 2, all of 1 s here: idle (p/2 - 1) (3 + 2 - 3) = p - 2. A device of DualPipe computes 3 m s, one of DualPipeV 6 m s;
  // bubble() takes 6 m s for both.
  const PassTimes equal{1_s, 1_s, 1_s};
  for (const int p : {2, 4, 8, 16})
    for (const int m : {2 * p, 4 * p}) {
      CAPTURE(p);
      CAPTURE(m);
      const double both = bubble(schedule_named("dualpipe"), p, m, 2, PipelineSend::eager, equal);
      CHECK((both + 1) * 6 * m == doctest::Approx(3 * m + p - 2).epsilon(1e-9));
      if (p == 2) continue;  // one device has no neighbour
      const double v =
          bubble(schedule_named("dualpipe_v"), p / 2, m, 2, PipelineSend::eager, equal);
      CHECK(v * 6 * m == doctest::Approx(p - 2).epsilon(1e-9));
    }
}

}  // namespace
}  // namespace windtunnel
