#include "timeline/timeline.hpp"

#include <doctest/doctest.h>

#include "timeline/breakdown.hpp"

namespace windtunnel {
namespace {

TEST_CASE("the timeline keeps what took time, in the order it ended") {
  TimelineListener listener;
  Op op;
  op.microbatch = 3;
  listener.on_compute(DeviceId{1}, Stream::compute, op, Work{}, 0_s, 2_s);
  listener.on_wait(DeviceId{0}, Stream::compute, op,
                   Waiting{.begin = 0_s, .sent = 2_s, .end = 3_s});
  listener.on_wait(DeviceId{0}, Stream::compute, op,
                   Waiting{.begin = 3_s, .sent = 1_s, .end = 3_s});
  listener.on_message(ChannelId{0}, op, 1_MB, 2_s, 2_s, 3_s);
  listener.on_collective(CollectiveId{4}, op, 3_s, 5_s);

  const Timeline& timeline = listener.timeline();
  REQUIRE(timeline.computes.size() == 1);
  CHECK(timeline.computes[0].device == DeviceId{1});
  CHECK(timeline.computes[0].op.microbatch == 3);
  CHECK(timeline.waits.size() == 1);
  REQUIRE(timeline.messages.size() == 1);
  CHECK(timeline.messages[0].bytes == 1_MB);
  REQUIRE(timeline.collectives.size() == 1);
  CHECK(timeline.collectives[0].collective == CollectiveId{4});
  CHECK(timeline.end == 5_s);
}

TEST_CASE("a pair passes every call on to both listeners") {
  TimelineListener timeline;
  BreakdownListener breakdown(1);
  ListenerPair pair(timeline, breakdown);
  const Work work{2_s, {2_s, 0_s, 0_s, 0_s, 0_s}};
  pair.on_compute(DeviceId{0}, Stream::compute, Op{}, work, 0_s, 2_s);
  pair.on_wait(DeviceId{0}, Stream::compute, Op{},
               Waiting{.begin = 2_s, .sent = 2_s, .end = 3_s, .cause = Phase::gradient});
  pair.on_message(ChannelId{0}, Op{}, 1_MB, 2_s, 2_s, 3_s);
  pair.on_collective(CollectiveId{0}, Op{}, 2_s, 3_s);
  pair.on_device_end(DeviceId{0}, 4_s);
  CHECK(timeline.timeline().computes.size() == 1);
  CHECK(timeline.timeline().waits.size() == 1);
  CHECK(timeline.timeline().messages.size() == 1);
  CHECK(timeline.timeline().collectives.size() == 1);
  CHECK(breakdown.of(DeviceId{0}).of(Line::compute) == 2_s);
  CHECK(breakdown.of(DeviceId{0}).of(Line::pipeline_comm) == 1_s);
  CHECK(breakdown.of(DeviceId{0}).total() == 4_s);
}

}  // namespace
}  // namespace windtunnel
