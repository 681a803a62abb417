#include "schedule/pipeline_program.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>

namespace windtunnel {
namespace {

/// "F0 F1 B0 …" of the compute stream; exchanges in brackets, messages as >f0 (send activation) <b1
/// (receive gradient).
std::string text_of(const StageProgram& program) {
  std::string text;
  std::uint32_t open = 0;
  for (const Op& op : program.streams[0]) {
    const std::string number = std::to_string(op.microbatch);
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
      else
        text += name_of(op.phase);
    } else if (op.kind == OpKind::collective) {
      text += name_of(op.phase);
    } else {
      text += std::string(op.kind == OpKind::send ? ">" : "<") +
              (op.phase == Phase::activation ? "f" : "b") + number;
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

StageProgram program_of(Schedule schedule, const PipelineShape& shape, int stage) {
  const OrderShape order{shape.stages, shape.microbatches, shape.chunks};
  return make_pipeline_program(shape, schedule_order(schedule, order, StageId{stage}),
                               StageId{stage});
}

TEST_CASE("1F1B of the first of two stages warms up with one forward") {
  const PipelineShape shape = shape_of(PipelineSend::eager, 2, 3);
  CHECK(text_of(program_of(Schedule::one_f_one_b, shape, 0)) ==
        "F0 >f0 F1 >f1 <b0 B0 F2 >f2 <b1 B1 <b2 B2 optimizer overhead ");
  CHECK(text_of(program_of(Schedule::one_f_one_b, shape, 1)) ==
        "<f0 F0 B0 >b0 <f1 F1 B1 >b1 <f2 F2 B2 >b2 optimizer overhead ");
}

TEST_CASE("blocking pairs join a send of one direction with a receive of the other") {
  const PipelineShape shape = shape_of(PipelineSend::blocking_pairs, 3, 3);
  CHECK(text_of(program_of(Schedule::one_f_one_b, shape, 1)) ==
        "[<f0] F0 [>f0] [<f1] F1 [>f1 <b0] B0 [>b0 <f2] F2 [>f2 <b1] B1 [>b1] [<b2] B2 [>b2] "
        "optimizer overhead ");
}

TEST_CASE("GPipe runs all forwards, then all backwards in reverse") {
  const PipelineShape shape = shape_of(PipelineSend::eager, 2, 2);
  CHECK(text_of(program_of(Schedule::gpipe, shape, 0)) ==
        "F0 >f0 F1 >f1 <b1 B1 <b0 B0 optimizer overhead ");
}

TEST_CASE("the tail reduces gradients, then synchronises embeddings on the edge stages only") {
  PipelineShape shape = shape_of(PipelineSend::eager, 3, 1);
  shape.gradient_reduce = shape.embedding_sync = true;
  CHECK(text_of(program_of(Schedule::one_f_one_b, shape, 2)) ==
        "<f0 F0 B0 >b0 gradient all-reduce embedding all-reduce optimizer overhead ");
  CHECK(text_of(program_of(Schedule::one_f_one_b, shape, 1)) ==
        "<f0 F0 >f0 <b0 B0 >b0 gradient all-reduce optimizer overhead ");
}

TEST_CASE(
    "overlapped tensor collectives run on their own stream beside the last part of the backward "
    "op") {
  PipelineShape shape = shape_of(PipelineSend::eager, 1, 1);
  shape.tensor = TensorCollectives::overlapped;
  const StageProgram program = program_of(Schedule::one_f_one_b, shape, 0);
  const auto& tensor = program.streams[static_cast<std::size_t>(Stream::tensor)];
  REQUIRE(tensor.size() == 3);
  CHECK(tensor[0].kind == OpKind::wait);
  CHECK(tensor[1].kind == OpKind::collective);
  CHECK(tensor[2].kind == OpKind::record);
  CHECK(program.num_events == 2);
}

TEST_CASE("every message sent is received once, whatever the schedule") {
  for (const Schedule schedule :
       {Schedule::gpipe, Schedule::one_f_one_b, Schedule::zero_bubble_h1}) {
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
