#pragma once

#include "plan/plan.hpp"
#include "schedule/program.hpp"

namespace windtunnel {

/// Rows of each device's work table, in the order the programs below refer to them.
enum class WorkRow : std::uint16_t {
  forward,              ///< one microbatch through the stage
  backward,             ///< one microbatch back, recomputation included
  backward_overlapped,  ///< the last part of it, during which cross-node tensor collectives run
  optimizer,
  overhead,
};
inline constexpr int num_work_rows = 5;

/// Rows of the message size table.
enum class MessageRow : std::uint16_t { activation, gradient };
inline constexpr int num_message_rows = 2;

/// Positions in each device's list of collectives.
enum class CollectiveSlot : std::uint32_t {
  gradient_reduce,
  embedding_sync,
  tensor_forward,   ///< all of a stage's forward all-reduces of one microbatch, across nodes
  tensor_exposed,   ///< backward ones that nothing hides (recomputation, head, embedding)
  tensor_backward,  ///< backward ones that weight gradients may hide
};
inline constexpr int num_collective_slots = 5;

/// How tensor-parallel collectives appear in the program.
enum class TensorCollectives {
  inside_compute,  ///< in one node: a number, part of the compute op
  exposed,         ///< across nodes: flows, after the compute op
  overlapped,  ///< across nodes: the backward ones run beside the overlapped part of the backward
               ///< op
};

/// What a pipeline program is made for.
struct PipelineShape {
  Schedule schedule = Schedule::one_f_one_b;
  PipelineSend send = PipelineSend::eager;
  int stages = 1;
  int microbatches = 1;
  TensorCollectives tensor = TensorCollectives::inside_compute;
  bool gradient_reduce = false;  ///< more than one replica
  bool embedding_sync = false;   ///< tied embeddings on different stages
};

/// The program of `stage`: its microbatches in the schedule's order, then gradient reduction,
/// embedding synchronisation (first and last stage), optimizer and overhead. One microbatch's
/// activation arrives in slot i, its gradient in slot m + i.
///   GPipe: Huang et al. 2019 (arXiv:1811.06965), all forwards, then all backwards in reverse
///   order. 1F1B:  Narayanan et al. 2021 (arXiv:2104.04473) 2.2, p - s - 1 warm-up forwards on
///   stage s, then pairs.
/// `eager`: receive, compute, send. `blocking_pairs`: every message is posted inside an exchange
/// that both ends enter; in the steady state an exchange sends one direction and receives the
/// other.
StageProgram make_pipeline_program(const PipelineShape& shape, StageId stage);

}  // namespace windtunnel
