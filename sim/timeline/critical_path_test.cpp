#include "timeline/critical_path.hpp"

#include <doctest/doctest.h>

#include "engine/testing.hpp"

namespace windtunnel {
namespace {

using testing::make_pipeline;
using testing::PipelineShape;
using testing::Sends;

struct Run {
  ProgramSet set;
  Timeline timeline;
  CriticalPath path;
};

Run run_of(const PipelineShape& shape, Seconds forward, Seconds backward, Seconds hop) {
  Run run;
  run.set = make_pipeline(shape);
  testing::set_compute(run.set, forward, backward);
  run.set.message_bytes = {1_GB, 1_GB};
  const Network network = testing::give_own_links(run.set, 1_GB / hop, Seconds{0});
  TimelineListener listener;
  const auto engine = make_heap_engine(network);
  simulate_programs(run.set, *engine, &listener);
  run.timeline = listener.timeline();
  run.path = find_critical_path(run.set, run.timeline);
  return run;
}

Seconds time_in(const CriticalPath& path, Activity::Kind kind) {
  Seconds sum{};
  for (const CriticalStep& step : path.steps)
    if (step.activity.kind == kind) sum += step.end - step.begin;
  return sum;
}

void check_gapless(const Run& run) {
  Seconds at{};
  for (const CriticalStep& step : run.path.steps) {
    CHECK(step.begin.value() == doctest::Approx(at.value()).epsilon(1e-9));
    at = step.end;
  }
  CHECK(at.value() == doctest::Approx(run.timeline.end.value()).epsilon(1e-9));
}

TEST_CASE("the critical path of 1F1B is its passes and the hops of the closed form") {
  // p = 4, m = 16, F = 1, B = 2, c = 0.1. Eager: (m+p-1)(F+B) + c (2 (p-1) m/p + 2 (p-2)) = 57 + 2.8; with blocking pairs
  // 57 + c (2m + 2p - 5) = 57 + 3.5.
  const Run eager = run_of({4, 1, 16, Sends::eager}, 1_s, 2_s, 0.1_s);
  check_gapless(eager);
  CHECK(time_in(eager.path, Activity::Kind::compute).value() == doctest::Approx(57).epsilon(1e-9));
  CHECK(time_in(eager.path, Activity::Kind::message).value() == doctest::Approx(2.8).epsilon(1e-9));
  const Run blocking = run_of({4, 1, 16, Sends::blocking_pairs}, 1_s, 2_s, 0.1_s);
  check_gapless(blocking);
  CHECK(time_in(blocking.path, Activity::Kind::compute).value() ==
        doctest::Approx(57).epsilon(1e-9));
  CHECK(time_in(blocking.path, Activity::Kind::message).value() ==
        doctest::Approx(3.5).epsilon(1e-9));
}

TEST_CASE("what is on the path has no slack, and what is not has what it could wait") {
  // p = 2, m = 2. Stage 1 computes without a gap from 1.1 on: F0 B0 F1 B1 until 7.1; stage 0 F0 F1 until 2, B0 4.2 to 6.2, B1 7.2
  // to 9.2. F1 of stage 0 arrives at 2.1 and is needed at 4.1: 2 s of slack. B0 of stage 0 could last until 7.2: 1 s.
  const Run run = run_of({2, 1, 2, Sends::eager}, 1_s, 2_s, 0.1_s);
  CHECK(run.timeline.end.value() == doctest::Approx(9.2).epsilon(1e-9));
  for (std::size_t i = 0; i < run.timeline.computes.size(); ++i) {
    const Span& span = run.timeline.computes[i];
    double slack = 0;
    if (span.device == DeviceId{0} && span.op.phase == Phase::forward && span.op.microbatch == 1)
      slack = 2;
    if (span.device == DeviceId{0} && span.op.phase == Phase::backward && span.op.microbatch == 0)
      slack = 1;
    CHECK(run.path.compute_slack[i].value() == doctest::Approx(slack));
  }
  CHECK(run.path.steps.size() == 8);  // F0, hop, four passes, hop, B1
}

TEST_CASE("events of another stream and collectives are followed to what they waited for") {
  // Device 0 computes 3 s on one stream and records it; another stream waits for it, then both devices enter a collective of 1 s;
  // device 1 came after 2 s: the path is device 0's 3 s and the collective, and device 1 has 1 s of slack.
  ProgramSet set;
  set.work = {testing::work(3_s), testing::work(2_s)};
  StageProgram first, second;
  first.streams[static_cast<std::size_t>(Stream::compute)] = {testing::compute(0),
                                                              testing::record(0)};
  first.streams[static_cast<std::size_t>(Stream::data)] = {testing::wait(0),
                                                           testing::collective(0)};
  first.num_events = 1;
  second.streams[static_cast<std::size_t>(Stream::compute)] = {testing::compute(1),
                                                               testing::collective(0)};
  first.num_collectives = second.num_collectives = 1;
  set.programs = {first, second};
  set.devices = {{0, 0, {}, {CollectiveId{0}}}, {1, 0, {}, {CollectiveId{0}}}};
  set.collectives = {{{DeviceId{0}, DeviceId{1}}, 1_s, Seconds{}, {}, Bytes{}}};
  const Network network;
  TimelineListener listener;
  const auto engine = make_heap_engine(network);
  simulate_programs(set, *engine, &listener);
  const CriticalPath path = find_critical_path(set, listener.timeline());
  REQUIRE(path.steps.size() == 2);
  CHECK(path.steps[0].end == 3_s);
  CHECK(path.steps[1].activity.kind == Activity::Kind::collective);
  CHECK(path.steps[1].end == 4_s);
  REQUIRE(path.compute_slack.size() == 2);
  CHECK(path.compute_slack[0] == 1_s);  // ends first: device 1's
  CHECK(path.compute_slack[1] == 0_s);
}

TEST_CASE(
    "a collective that is entered from two streams takes on each as long as the collective took") {
  // Microbatch 0 from another stream, 0 to 1 s; microbatch 1 after 3 s of computing, slower: 3 to 5 s.
  ProgramSet set;
  StageProgram program;
  Op first = testing::collective(0), second = testing::collective(0);
  second.microbatch = 1;
  program.streams[static_cast<std::size_t>(Stream::compute)] = {testing::compute(0), second};
  program.streams[static_cast<std::size_t>(Stream::data)] = {first};
  program.num_collectives = 1;
  set.programs = {program};
  set.work = {testing::work(3_s)};
  ProgramDevice device;
  device.collectives = {CollectiveId{0}};
  set.devices = {device};
  set.collectives = {{{DeviceId{0}}, 1_s, Seconds{}, {}, Bytes{}}};
  Timeline timeline;
  timeline.computes = {{DeviceId{0}, Stream::compute, testing::compute(0), 0_s, 3_s}};
  timeline.collectives = {{CollectiveId{0}, first, 0_s, 1_s}, {CollectiveId{0}, second, 3_s, 5_s}};
  timeline.end = 5_s;
  const CriticalPath path = find_critical_path(set, timeline);
  REQUIRE(path.steps.size() == 2);
  CHECK(path.steps[1].end == 5_s);
  CHECK(path.collective_slack[0] == 4_s);
}

}  // namespace
}  // namespace windtunnel
