// Gain of compressing backward messages in a 1F1B pipeline: seconds of communication on the critical path.
#include <doctest/doctest.h>

#include "engine/program_simulator.hpp"
#include "engine/testing.hpp"
#include "schedule/pipeline_program.hpp"

namespace windtunnel {
namespace {

enum class Compressed { nothing, epilogue, all_backward };

PipelineShape shape_of(PipelineSend send, int stages, int microbatches, Compressed compressed) {
  PipelineShape shape;
  shape.send = send;
  shape.stages = stages;
  shape.microbatches = microbatches;
  if (compressed == Compressed::nothing) return shape;
  shape.compressed.gradients = CodecParts::two;
  if (compressed == Compressed::all_backward) return shape;
  const OrderShape order{stages, microbatches, 1};
  for (int s = 0; s < stages; ++s)
    shape.compressed.gradient_messages.push_back(
        epilogue_passes(schedule_named("1f1b")->order(order, StageId{s}), order));
  return shape;
}

/// Equal stages, a forward pass of 1 s, a backward pass of 2 s, messages of `hop`, compressed ones at no time. Each with a codec of
/// `codec` at either end.
Seconds iteration(const PipelineShape& shape, Seconds hop, Seconds codec = Seconds{0}) {
  ProgramSet set;
  set.work = {testing::work(1_s), testing::work(2_s)};
  set.work.resize(num_work_rows(1, false));
  set.work.resize(num_work_rows(1, true), testing::work(codec));
  const Bytes whole = 1_B * (hop / 1_s);
  set.message_bytes = {whole, whole, 0_B, 0_B, 0_B, 0_B};
  testing::add_stages(set, shape, schedule_named("1f1b"), BytesPerSecond{1});
  const auto engine = make_heap_engine(Network{});
  return simulate_programs(set, *engine).end;
}

/// Messages on the critical path: ((m + p - 1) * 3 s + n hop) solved for n.
double exposed_messages(PipelineSend send, int p, int m, Compressed compressed) {
  constexpr Seconds hop = 10_ms;
  return (iteration(shape_of(send, p, m, compressed), hop) - 3_s * (m + p - 1)) / hop;
}

void check(PipelineSend send, int p, int m, double nothing, double epilogue, double all) {
  CHECK(exposed_messages(send, p, m, Compressed::nothing) == doctest::Approx(nothing));
  CHECK(exposed_messages(send, p, m, Compressed::epilogue) == doctest::Approx(epilogue));
  CHECK(exposed_messages(send, p, m, Compressed::all_backward) == doctest::Approx(all));
}

TEST_CASE("with blocking pairs the epilogue's messages are all that is exposed of the backward") {
  // 2m + 2p - 5 messages without compression; p - 1 of them are the epilogue's.
  check(PipelineSend::blocking_pairs, 4, 16, 35, 32, 32);
  check(PipelineSend::blocking_pairs, 8, 32, 75, 68, 68);
}

TEST_CASE("with eager sends every backward message counts") {
  // 2 (p-1) m/p + 2 (p-2) without compression.
  check(PipelineSend::eager, 4, 16, 28, 25, 14);
  check(PipelineSend::eager, 8, 32, 68, 61, 34);
}

TEST_CASE("a codec that takes longer than the message it saves loses") {
  const auto time = [](Seconds codec) {
    return iteration(shape_of(PipelineSend::blocking_pairs, 4, 16, Compressed::epilogue), 10_ms,
                     codec);
  };
  const Seconds plain =
      iteration(shape_of(PipelineSend::blocking_pairs, 4, 16, Compressed::nothing), 10_ms);
  // A hop saves 10 ms and costs a codec at either end.
  CHECK(time(4.9_ms) < plain);
  CHECK(time(5.1_ms) > plain);
}

TEST_CASE(
    "an encoder that overlaps with the passes hides where a pass follows before the message is "
    "needed") {
  // The middle stage of three decodes a gradient and encodes one a microbatch, the latter during its next forward pass.
  PipelineShape overlapped = shape_of(PipelineSend::eager, 3, 9, Compressed::nothing);
  overlapped.compressed.gradients = CodecParts::one;
  PipelineShape between = overlapped;
  overlapped.compressed.gradient_encoder = CodecStream::codec;
  CHECK(iteration(overlapped, 10_ms, 50_ms) < iteration(between, 10_ms, 50_ms));
}

}  // namespace
}  // namespace windtunnel
