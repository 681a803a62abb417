// The programs of simulated scenarios, on both engines, against the exact makespans of 1F1B with messages:
//   eager sends:     (m+p-1)(F+B) + c (2 (p-1) m/p + 2 (p-2))    p divides m
//   blocking pairs:  (m+p-1)(F+B) + c (2 m + 2 p - 5)            p > 2;  p = 2: c (m+1)
// F, B: a microbatch forward, backward on each of p equal stages; c: one message over a link of its own; m microbatches.
#include <doctest/doctest.h>

#include "engine/program_simulator.hpp"
#include "engine/testing.hpp"
#include "schedule/pipeline_program.hpp"

namespace windtunnel {
namespace {

struct Case {
  int stages, microbatches;
  double backward;  ///< over forward, which takes 1 s
  PipelineSend send;
};

/// Equal stages; messages of 80 MB.
ProgramSet pipeline_of(const Case& given) {
  PipelineShape shape;
  shape.send = given.send;
  shape.stages = given.stages;
  shape.microbatches = given.microbatches;
  ProgramSet set;
  set.work.resize(num_chunk_rows + num_device_rows);
  set.work[row_of(ChunkRow::forward, 0)] = testing::work(1_s);
  set.work[row_of(ChunkRow::backward, 0)] = testing::work(1_s * given.backward);
  set.message_bytes.assign(num_message_rows, 80_MB);
  testing::add_stages(set, shape, schedule_named("1f1b"),
                      BytesPerSecond{1});  // until own links replace it
  return set;
}

double closed_form(const Case& given, double hop) {
  const double p = given.stages, m = given.microbatches;
  const double full = (m + p - 1) * (1 + given.backward);
  if (given.send == PipelineSend::eager) return full + hop * (2 * (p - 1) * m / p + 2 * (p - 2));
  return full + hop * (p > 2 ? 2 * m + 2 * p - 5 : m + 1);
}

double makespan(MakeEngine kind, const Case& given) {
  ProgramSet set = pipeline_of(given);
  // 2 ms + 80 MB / 10 GB/s = 10 ms a message
  const Network network = testing::give_own_links(set, 10_GBps, 2_ms);
  const auto engine = kind(network);
  return simulate_programs(set, *engine).end / 1_s;
}

void check(MakeEngine kind, PipelineSend send) {
  constexpr double hop = 0.01, precision = 1e-6;  // SimGrid counts bytes in whole units
  for (const int p : {2, 3, 4, 8, 16}) {
    for (const int rounds : {1, 2, 8}) {
      for (const double backward : {1.0, 2.0, 3.0}) {
        const Case given{p, p * rounds, backward, send};
        CAPTURE(p);
        CAPTURE(rounds);
        CAPTURE(backward);
        const double end =
            testing::in_child_process([&] { return std::vector{makespan(kind, given)}; }).front();
        CHECK(end == doctest::Approx(closed_form(given, hop)).epsilon(precision));
      }
    }
  }
}

TEST_CASE("a scenario's 1F1B programs with eager sends meet the closed form on both engines") {
  check(make_heap_engine, PipelineSend::eager);
  check(make_simgrid_engine, PipelineSend::eager);
}

TEST_CASE("a scenario's 1F1B programs with blocking pairs meet the closed form on both engines") {
  check(make_heap_engine, PipelineSend::blocking_pairs);
  check(make_simgrid_engine, PipelineSend::blocking_pairs);
}

}  // namespace
}  // namespace windtunnel
