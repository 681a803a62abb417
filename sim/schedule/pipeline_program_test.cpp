#include "schedule/pipeline_program.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>

namespace windtunnel {
namespace {

/// "F0 F1 B0 …" of the compute stream; exchanges in brackets, messages as >f0 (send activation) <b1
/// (receive gradient). Behind a dot the model chunk, if not the first.
std::string text_of(const StageProgram& program) {
  std::string text;
  std::uint32_t open = 0;
  for (const Op& op : program.streams[0]) {
    const std::string number =
        std::to_string(op.microbatch) + (op.chunk > 0 ? "." + std::to_string(op.chunk) : "");
    if (op.kind == OpKind::exchange) {
      text += "[";
      open = op.slot;
      continue;
    }
    if (op.kind == OpKind::compute) {
      if (op.phase == Phase::forward)
        text += "F" + number;
      else if (op.phase == Phase::backward)
        text += "B" + number;
      else if (op.phase == Phase::encode || op.phase == Phase::decode)
        text += (op.phase == Phase::encode ? "e" : "d") + number;
      else
        text += name_of(op.phase);
    } else if (op.kind == OpKind::collective) {
      text += name_of(op.phase);
    } else {
      text += std::string(op.kind == OpKind::send ? ">" : "<") +
              (op.phase == Phase::activation ? "f" : "b") + number;
      if (op.kind == OpKind::send && op.work >= static_cast<int>(MessageRow::encoded_activation))
        text += op.work >= static_cast<int>(MessageRow::encoded_activation_second) ? "''" : "'";
    }
    if (open > 0 && --open == 0) text += "]";
    text += " ";
  }
  return text;
}

PipelineShape shape_of(PipelineSend send, int stages, int microbatches, int chunks = 1) {
  PipelineShape shape;
  shape.send = send;
  shape.stages = stages;
  shape.microbatches = microbatches;
  shape.chunks = chunks;
  return shape;
}

StageProgram program_of(const SchedulePtr& schedule, const PipelineShape& shape, int stage) {
  const OrderShape order{shape.stages, shape.microbatches, shape.chunks};
  PipelineShape mapped = shape;
  mapped.chunk_path = schedule->chunk_path;
  return make_pipeline_program(mapped, schedule->order(order, StageId{stage}), StageId{stage});
}

TEST_CASE("1F1B of the first of two stages warms up with one forward") {
  const PipelineShape shape = shape_of(PipelineSend::eager, 2, 3);
  CHECK(text_of(program_of(schedule_named("1f1b"), shape, 0)) ==
        "F0 >f0 F1 >f1 <b0 B0 F2 >f2 <b1 B1 <b2 B2 optimizer overhead ");
  CHECK(text_of(program_of(schedule_named("1f1b"), shape, 1)) ==
        "<f0 F0 B0 >b0 <f1 F1 B1 >b1 <f2 F2 B2 >b2 optimizer overhead ");
}

TEST_CASE("blocking pairs join a send of one direction with a receive of the other") {
  const PipelineShape shape = shape_of(PipelineSend::blocking_pairs, 3, 3);
  CHECK(text_of(program_of(schedule_named("1f1b"), shape, 1)) ==
        "[<f0] F0 [>f0] [<f1] F1 [>f1 <b0] B0 [>b0 <f2] F2 [>f2 <b1] B1 [>b1] [<b2] B2 [>b2] "
        "optimizer overhead ");
}

TEST_CASE("interleaved, every pair of passes shares one exchange, the last one included") {
  // forward_backward_pipelining_with_interleaving of Megatron-LM 2.5 (megatron/schedules.py), written out by hand for p = 2, m = 4,
  // v = 2: four forwards of warm-up on stage 0, two on stage 1.
  const PipelineShape shape = shape_of(PipelineSend::blocking_pairs, 2, 4, 2);
  CHECK(text_of(program_of(schedule_named("interleaved_1f1b"), shape, 0)) ==
        "F0 [>f0] F1 [>f1 <f0.1] F0.1 [>f0.1 <f1.1] F1.1 [>f1.1 <b0.1] "
        "F2 B0.1 [>f2 >b0.1 <b1.1] F3 B1.1 [>f3 >b1.1 <f2.1 <b0] F2.1 B0 [>f2.1 <f3.1 <b1] "
        "F3.1 B1 [>f3.1 <b2.1] "
        "B2.1 [>b2.1 <b3.1] B3.1 [>b3.1 <b2] B2 [<b3] B3 optimizer overhead ");
  CHECK(text_of(program_of(schedule_named("interleaved_1f1b"), shape, 1)) ==
        "[<f0] F0 [>f0 <f1] F1 [>f1 <f0.1] "
        "F0.1 B0.1 [>b0.1 <f1.1] F1.1 B1.1 [>b1.1 <f2 <b0] F2 B0 [>f2 >b0 <f3 <b1] "
        "F3 B1 [>f3 >b1 <f2.1] F2.1 B2.1 [>b2.1 <f3.1] F3.1 B3.1 [>b3.1 <b2] "
        "B2 [>b2 <b3] B3 [>b3] optimizer overhead ");
}

TEST_CASE("interleaved with one group, the first gradient is received after the last send") {
  // The same function with all_warmup_microbatches: send_forward_recv_forward, then recv_backward.
  const PipelineShape shape = shape_of(PipelineSend::blocking_pairs, 2, 2, 2);
  CHECK(text_of(program_of(schedule_named("interleaved_1f1b"), shape, 0)) ==
        "F0 [>f0] F1 [>f1 <f0.1] F0.1 [>f0.1 <f1.1] F1.1 [>f1.1] [<b0.1] "
        "B0.1 [>b0.1 <b1.1] B1.1 [>b1.1 <b0] B0 [<b1] B1 optimizer overhead ");
}

TEST_CASE("in a V the last stage hands its activations to itself, and the first ends the model") {
  const PipelineShape shape = shape_of(PipelineSend::eager, 2, 1, 2);
  const StageProgram first = program_of(schedule_named("zero_bubble_v"), shape, 0);
  const StageProgram last = program_of(schedule_named("zero_bubble_v"), shape, 1);
  CHECK(text_of(first) ==
        "F0 >f0 <f0.1 F0.1 B0.1 >b0.1 weight gradient <b0 B0 weight gradient optimizer overhead ");
  CHECK(text_of(last) ==
        "<f0 F0 F0.1 >f0.1 <b0.1 B0.1 weight gradient B0 >b0 weight gradient optimizer overhead ");
  // One channel to the only neighbour, for activations and gradients.
  CHECK(first.targets == std::vector<StageId>{StageId{1}});
  CHECK(last.targets == std::vector<StageId>{StageId{0}});
}

TEST_CASE("in the middle of a V activations of chunk 0 and gradients of chunk 1 go up") {
  const PipelineShape shape = shape_of(PipelineSend::eager, 3, 1, 2);
  const StageProgram middle = program_of(schedule_named("zero_bubble_v"), shape, 1);
  REQUIRE(middle.targets == std::vector<StageId>{StageId{2}, StageId{0}});
  int sends = 0;
  for (const Op& op : middle.streams[0]) {
    if (op.kind != OpKind::send) continue;
    const bool up = (op.phase == Phase::activation) == (op.chunk == 0);
    CHECK(middle.targets[op.peer] == StageId{up ? 2 : 0});
    ++sends;
  }
  CHECK(sends == 4);
}

TEST_CASE("every message of a V arrives in a slot that its receiver waits for") {
  const PipelineShape shape = shape_of(PipelineSend::eager, 4, 8, 2);
  std::map<std::pair<std::size_t, std::uint32_t>, int> sent, received;
  for (int s = 0; s < shape.stages; ++s) {
    const StageProgram program = program_of(schedule_named("zero_bubble_v"), shape, s);
    for (const Op& op : program.streams[0]) {
      if (op.kind == OpKind::send) ++sent[{program.targets[op.peer].index(), op.slot}];
      if (op.kind == OpKind::receive) ++received[{static_cast<std::size_t>(s), op.slot}];
    }
  }
  CHECK(sent == received);
  // 2 p - 1 steps between parts of the model, one of them inside the last stage; there and back.
  CHECK(sent.size() == 2 * 8 * (2 * 4 - 1 - 1));
}

TEST_CASE("GPipe runs all forwards, then all backwards in reverse") {
  const PipelineShape shape = shape_of(PipelineSend::eager, 2, 2);
  CHECK(text_of(program_of(schedule_named("gpipe"), shape, 0)) ==
        "F0 >f0 F1 >f1 <b1 B1 <b0 B0 optimizer overhead ");
}

TEST_CASE("a program ends with the operations of the end, in their order") {
  PipelineShape shape = shape_of(PipelineSend::eager, 3, 1);
  shape.gradient_reduction = GradientReduction::per_iteration;
  shape.end = {collective(Label::reduce_gradients, {}),
               collective(Label::synchronise_embedding, {}), kernel(Label::optimizer_step, {}),
               kernel(Label::iteration_overhead, {})};
  CHECK(text_of(program_of(schedule_named("1f1b"), shape, 2)) ==
        "<f0 F0 B0 >b0 gradient all-reduce embedding all-reduce optimizer overhead ");
  shape.end = {collective(Label::scatter_gradients, {}), kernel(Label::optimizer_step, {}),
               collective(Label::gather_parameters, {}), kernel(Label::iteration_overhead, {})};
  CHECK(text_of(program_of(schedule_named("1f1b"), shape, 1)) ==
        "<f0 F0 >f0 <b0 B0 >b0 gradient all-reduce optimizer parameter all-gather overhead ");
}

TEST_CASE("where tensor groups cross nodes, a bucket is reduced behind its share of the layers") {
  PipelineShape shape = shape_of(PipelineSend::eager, 1, 1);
  const auto operations = std::make_shared<ChunkOperations>();
  for (const Direction direction : {Direction::forward, Direction::backward}) {
    PassOperations& pass = operations->at(direction);
    pass.before = {kernel(Label::batch_read, {})};
    pass.layer = {kernel(Label::feed_forward, {}), collective(Label::reduce_activation, Bytes{1})};
    pass.after = {kernel(Label::launch_floor, {})};
    pass.layers = 2;
  }
  shape.operations = {operations};
  shape.tensor_crosses_nodes = true;
  shape.gradient_reduction = GradientReduction::per_iteration;
  shape.reductions = {{collective(Label::reduce_gradients, {}, Overlap::trailing)}};
  shape.gradient_buckets = 4;  // of the chunk with most layers: two a layer here
  const StageProgram program = program_of(schedule_named("1f1b"), shape, 0);
  std::string kernels;
  for (const Op& op : program.streams[static_cast<std::size_t>(Stream::compute)]) {
    if (op.phase == Phase::backward) kernels += "B";
    if (op.phase == Phase::tensor_reduce) kernels += "t";
    if (op.kind == OpKind::record) kernels += "|";
  }
  CHECK(kernels ==
        "ttBBt|B|BtBB|B|");  // but for the first, each behind what the one before costs it
  int reductions = 0;
  for (const Op& op : program.streams[static_cast<std::size_t>(Stream::data)])
    if (op.kind == OpKind::collective) ++reductions;
  CHECK(reductions == 4);
}

/// Epilogue messages in two parts, as Optimus-CC sends them.
PipelineShape epilogue_shape(PipelineSend send, int stages, int microbatches) {
  PipelineShape shape = shape_of(send, stages, microbatches);
  shape.compressed.gradients = CodecParts::two;
  const OrderShape order{stages, microbatches, 1};
  for (int s = 0; s < stages; ++s)
    shape.compressed.gradient_messages.push_back(
        epilogue_passes(schedule_named("1f1b")->order(order, StageId{s}), order));
  return shape;
}

TEST_CASE("only what is sent behind the last forward is encoded, and in two parts") {
  const PipelineShape shape = epilogue_shape(PipelineSend::eager, 2, 3);
  CHECK(text_of(program_of(schedule_named("1f1b"), shape, 1)) ==
        "<f0 F0 B0 >b0 <f1 F1 B1 >b1 <f2 F2 B2 e2 >b2' >b2'' optimizer overhead ");
  CHECK(text_of(program_of(schedule_named("1f1b"), shape, 0)) ==
        "F0 >f0 F1 >f1 <b0 B0 F2 >f2 <b1 B1 <b2 <b2 d2 B2 optimizer overhead ");
}

TEST_CASE("in an exchange both parts of a message are posted together") {
  const PipelineShape shape = epilogue_shape(PipelineSend::blocking_pairs, 3, 3);
  CHECK(text_of(program_of(schedule_named("1f1b"), shape, 1)) ==
        "[<f0] F0 [>f0] [<f1] F1 [>f1 <b0] B0 [>b0 <f2] F2 [>f2 <b1] B1 e1 [>b1' >b1''] "
        "[<b2 <b2] d2 B2 e2 [>b2' >b2''] optimizer overhead ");
}

TEST_CASE("stage s of p compresses its last p - s backward messages") {
  // 1 + 2 + ... + p - 1 in a pipeline: 6 of 48 at p = 4, m = 16; 28 of 224 at p = 8, m = 32 (Optimus-CC).
  for (const PipelineSend send : {PipelineSend::eager, PipelineSend::blocking_pairs}) {
    for (const int p : {4, 8}) {
      const PipelineShape shape = epilogue_shape(send, p, 4 * p);
      int encoded = 0, whole = 0;
      for (int s = 0; s < p; ++s) {
        const StageProgram program = program_of(schedule_named("1f1b"), shape, s);
        for (const Op& op : program.streams[0]) {
          if (op.kind != OpKind::send || op.phase != Phase::gradient) continue;
          if (op.work == static_cast<int>(MessageRow::encoded_gradient)) ++encoded;
          if (op.work == static_cast<int>(MessageRow::gradient)) ++whole;
        }
      }
      CHECK(encoded == (p == 4 ? 6 : 28));
      CHECK(encoded + whole == (p == 4 ? 48 : 224));
    }
  }
}

TEST_CASE("an encoder on its own stream waits for the pass, and sends from there") {
  PipelineShape shape = shape_of(PipelineSend::eager, 2, 2);
  shape.compressed.activations = CodecParts::one;
  shape.compressed.activation_encoder = CodecStream::codec;
  const StageProgram program = program_of(schedule_named("gpipe"), shape, 0);
  const auto& codec = program.streams[static_cast<std::size_t>(Stream::codec)];
  REQUIRE(codec.size() == 6);
  CHECK(codec[0].kind == OpKind::wait);
  CHECK(codec[1].phase == Phase::encode);
  CHECK(codec[2].kind == OpKind::send);
  CHECK(program.num_events == 2);
}

TEST_CASE("every message sent is received once, whatever the schedule") {
  for (const SchedulePtr& schedule :
       {schedule_named("gpipe"), schedule_named("1f1b"), schedule_named("zero_bubble_h1")}) {
    for (const PipelineSend send : {PipelineSend::eager, PipelineSend::blocking_pairs}) {
      for (const int p : {1, 2, 5}) {
        for (const int m : {1, 3, 8}) {
          const PipelineShape shape = shape_of(send, p, m);
          std::map<std::pair<std::uint32_t, std::uint32_t>, int>
              balance;  // (receiving stage, slot)
          for (int s = 0; s < p; ++s) {
            const StageProgram program = program_of(schedule, shape, s);
            for (const Op& op : program.streams[0]) {
              if (op.kind == OpKind::send) ++balance[{program.targets[op.peer].index(), op.slot}];
              if (op.kind == OpKind::receive) --balance[{static_cast<std::uint32_t>(s), op.slot}];
            }
          }
          CHECK(balance.size() == static_cast<std::size_t>(2 * (p - 1) * m));
          for (const auto& [message, count] : balance) CHECK(count == 0);
        }
      }
    }
  }
}

}  // namespace
}  // namespace windtunnel
