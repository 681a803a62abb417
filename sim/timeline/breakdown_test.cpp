#include "timeline/breakdown.hpp"

#include <doctest/doctest.h>

#include <tuple>

namespace windtunnel {
namespace {

constexpr DeviceId device{0};

Work work_of(Seconds compute, Seconds tensor, Seconds codec, Seconds optimizer, Seconds other) {
  return {compute + tensor + codec + optimizer + other, {compute, tensor, codec, optimizer, other}};
}

Op op_of(Phase phase) {
  Op op;
  op.phase = phase;
  return op;
}

Waiting waiting(Seconds begin, Seconds sent, Seconds end, Phase cause) {
  return {begin, begin, sent, end, cause, Traffic::pipeline_forward};
}

TEST_CASE("a computing span is split into its parts") {
  BreakdownListener listener(1);
  listener.on_compute(device, Stream::compute, op_of(Phase::forward),
                      work_of(5_s, 2_s, 1_s, 0_s, 3_s), 10_s, 21_s);
  const Breakdown& breakdown = listener.of(device);
  CHECK(breakdown.of(Line::compute) == 5_s);
  CHECK(breakdown.of(Line::tensor_comm) == 2_s);
  CHECK(breakdown.of(Line::codec) == 1_s);
  CHECK(breakdown.of(Line::optimizer) == 0_s);
  CHECK(breakdown.of(Line::other) == 3_s);
  CHECK(breakdown.total() == 11_s);
}

TEST_CASE("a span counts for as long as it lasted, rounding of its parts included") {
  // 0.1 + 0.2 is 0.30000000000000004: the optimizer's line takes what is left of 0.3 s.
  BreakdownListener listener(1);
  listener.on_compute(device, Stream::compute, op_of(Phase::optimizer),
                      work_of(0.1_s, 0_s, 0_s, 0.2_s, 0_s), 0_s, 0.3_s);
  CHECK(listener.of(device).total() == 0.3_s);
  CHECK(listener.of(device).of(Line::other) == 0_s);
}

TEST_CASE("waiting is a bubble until the message is sent, and pipeline_comm from then on") {
  BreakdownListener listener(1);
  // sent in the middle: 2 s bubble, 3 s transfer
  listener.on_wait(device, Stream::compute, op_of(Phase::activation),
                   waiting(0_s, 2_s, 5_s, Phase::activation));
  // sent before the wait began: all transfer
  listener.on_wait(device, Stream::compute, op_of(Phase::gradient),
                   waiting(5_s, 1_s, 6_s, Phase::gradient));
  // handed over at the end (no time on the way): all bubble
  listener.on_wait(device, Stream::compute, op_of(Phase::gradient),
                   waiting(6_s, 10_s, 10_s, Phase::gradient));
  CHECK(listener.of(device).of(Line::pipeline_bubble) == 6_s);
  CHECK(listener.of(device).of(Line::pipeline_comm) == 4_s);
  CHECK(listener.of(device).total() == 10_s);
}

TEST_CASE(
    "a wait for a collective is counted on its line, but for what slower peers take to enter it") {
  for (const auto& [cause, line] : {std::pair{Phase::gradient_reduce, Line::data_comm},
                                    {Phase::parameter_gather, Line::data_comm},
                                    {Phase::expert_exchange, Line::expert_comm},
                                    {Phase::context_exchange, Line::context_comm},
                                    {Phase::tensor_reduce, Line::tensor_comm}}) {
    BreakdownListener listener(1);
    // until 1 s its stream has other work, until 3 s a peer has not entered, until 7 s it runs
    Waiting wait = waiting(0_s, 3_s, 7_s, cause);
    wait.entered = 1_s;
    listener.on_wait(device, Stream::compute, op_of(cause), wait);
    CHECK(listener.of(device).of(Line::pipeline_bubble) == 0_s);
    CHECK(listener.of(device).of(Line::peer_wait) == 2_s);
    CHECK(listener.of(device).of(line) == 5_s);
    CHECK(listener.of(device).total() == 7_s);
  }
}

TEST_CASE(
    "waiting for another stage's part of the embedding is a bubble, for the own codec never") {
  for (const auto& [cause, line, bubble] :
       {std::tuple{Phase::embedding_sync, Line::embedding_sync, 1_s},
        {Phase::encode, Line::codec, 0_s}}) {
    BreakdownListener listener(1);
    listener.on_wait(device, Stream::compute, op_of(cause), waiting(0_s, 1_s, 4_s, cause));
    CHECK(listener.of(device).of(Line::pipeline_bubble) == bubble);
    CHECK(listener.of(device).of(line) == 4_s - bubble);
  }
}

TEST_CASE("other streams do not count while the compute stream is busy") {
  BreakdownListener listener(1);
  listener.on_compute(device, Stream::codec, op_of(Phase::encode), work_of(0_s, 0_s, 1_s, 0_s, 0_s),
                      0_s, 1_s);
  listener.on_wait(device, Stream::data, op_of(Phase::gradient_reduce),
                   waiting(0_s, 1_s, 2_s, Phase::gradient_reduce));
  listener.on_compute(device, Stream::compute, op_of(Phase::forward),
                      work_of(3_s, 0_s, 0_s, 0_s, 0_s), 0_s, 3_s);
  listener.on_device_end(device, 3_s);
  CHECK(listener.of(device).of(Line::compute) == 3_s);
  CHECK(listener.of(device).total() == 3_s);
}

TEST_CASE("what other streams do after the compute stream's end counts until the device ends") {
  BreakdownListener listener(1);
  listener.on_compute(device, Stream::compute, op_of(Phase::backward),
                      work_of(3_s, 0_s, 0_s, 0_s, 0_s), 0_s, 3_s);
  // entered at 2, begun at 4, ended at 7: [3, 4) waiting for peers, [4, 7) data_comm
  listener.on_wait(device, Stream::data, op_of(Phase::gradient_reduce),
                   waiting(2_s, 4_s, 7_s, Phase::gradient_reduce));
  // meanwhile
  listener.on_compute(device, Stream::codec, op_of(Phase::encode), work_of(0_s, 0_s, 1_s, 0_s, 0_s),
                      6.5_s, 7.5_s);
  // nothing in [7.5, 8), then an op of 1 s
  listener.on_compute(device, Stream::data, op_of(Phase::optimizer),
                      work_of(0_s, 0_s, 0_s, 1_s, 0_s), 8_s, 9_s);
  listener.on_device_end(device, 9_s);
  const Breakdown& breakdown = listener.of(device);
  CHECK(breakdown.of(Line::compute) == 3_s);
  CHECK(breakdown.of(Line::peer_wait) == 1_s);
  CHECK(breakdown.of(Line::data_comm) == 3_s);
  CHECK(breakdown.of(Line::codec) == 0.5_s);
  CHECK(breakdown.of(Line::other) == 0.5_s);
  CHECK(breakdown.of(Line::optimizer) == 1_s);
  CHECK(breakdown.total() == 9_s);
}

TEST_CASE("the lines of a long iteration add up to its end") {
  // 200 000 spans of 1/3 ms in three parts and as many waits of 0.1 ms: 86.67 s, to 1e-9
  const Work work = work_of(0.1_ms, 0.2_ms, 0_s, 0_s, Seconds{1e-3 / 3} - 0.3_ms);
  BreakdownListener listener(1);
  Seconds now{};
  for (int i = 0; i < 200000; ++i) {
    const Seconds computed = now + work.duration;
    listener.on_compute(device, Stream::compute, op_of(Phase::forward), work, now, computed);
    now = computed + 0.1_ms;
    listener.on_wait(device, Stream::compute, op_of(Phase::gradient),
                     waiting(computed, computed + 0.03_ms, now, Phase::gradient));
  }
  listener.on_device_end(device, now);
  CHECK(listener.of(device).total() / now == doctest::Approx(1).epsilon(1e-9));
}

TEST_CASE("devices are counted each on their own, and lines have the names of the report") {
  BreakdownListener listener(2);
  listener.on_compute(DeviceId{1}, Stream::compute, op_of(Phase::forward),
                      work_of(2_s, 0_s, 0_s, 0_s, 0_s), 0_s, 2_s);
  CHECK(listener.of(DeviceId{0}).total() == 0_s);
  CHECK(listener.of(DeviceId{1}).total() == 2_s);
  CHECK(std::string(name_of(Line::pipeline_bubble)) == "pipeline_bubble");
}

}  // namespace
}  // namespace windtunnel
