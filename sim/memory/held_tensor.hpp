#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "core/enum_names.hpp"
#include "operations/label.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// The lines of a report's memory table, which add up to what is allocated.
enum class MemoryLine : std::uint8_t { weights, gradients, optimizer, activations, buffers };

/// Content of a tensor. A kind's row of the table (held_tensor.cpp) has its line and its name.
enum class HeldKind : std::uint8_t {
  weights,
  frozen_weights,  ///< that are not trained
  cast_weights,    ///< casts of weights that products read in a quantised format
  gradients,
  pass_gradients,   ///< that last as long as one backward pass, in addition to their sums
  buckets,          ///< of gradients, to be exchanged
  stale_gradients,  ///< of the last step (docs/memory.md, section 2)
  master,           ///< optimizer: the fp32 copy of the weights
  moments,
  saved,         ///< by a forward operation, for the backward pass of its microbatch
  saved_scores,  ///< attention scores, softmax and dropout of these
  outputs,       ///< of the stage, until its backward pass
  recomputed,  ///< what operations save that run again, while the backward pass of one layer lasts
  weight_gradient,  ///< of the largest matrix, before it is added to those of other microbatches
  scores,           ///< of operations that run again
  head_input,       ///< what the last norm reads and gives
  logits,
  work_space,  ///< SoftwareProfile::fixed_work
  workspaces,  ///< of libraries
  passing,     ///< the layer's output, and the gradients that pass through it
  gathered,    ///< ZeRO 3: parameters of other ranks
  prefetched,  ///< ZeRO 3: those of the layers gathered ahead
  scattered,   ///< ZeRO 3: gradients before they are reduced to shards
  reduced,     ///< ZeRO 3: gradients while they are reduced
  messages,    ///< input and output of a stage
  sequences,   ///< buffers for whole sequences of a tensor group
  step_temporary,
  orthogonalisation,  ///< of the matrix that Muon steps
  reloaded,           ///< activations on their way to the host and back
  gathered_weights,   ///< copies while the step of a sharded optimizer gathers them
  codec,
  correction,  ///< what a trained correction adds (memory/memory_correction.hpp)
};

/// When memory may be at its most. The first six are moments of an iteration; what is allocated is the largest of their sums. A layer's
/// backward pass, or that of the head: in the first backward pass of an iteration, which has no gradients yet, or a later one; the end of a
/// fully sharded backward pass, where the gradients of embedding and head are scattered; or the optimizer's step. The others are of the caching allocator's blocks, some of which hold nothing at that moment: the pool is the largest
/// of theirs.
enum class Moment : std::uint8_t {
  backward,
  head,
  first_backward,
  first_head,
  edges,
  step,
  pool_backward,
  pool_head,
  pool_edges,
  pool_step,
};
inline constexpr std::initializer_list<Moment> allocated_moments{
    Moment::backward,   Moment::head,  Moment::first_backward,
    Moment::first_head, Moment::edges, Moment::step};
inline constexpr std::initializer_list<Moment> pool_moments{
    Moment::pool_backward, Moment::pool_head, Moment::pool_edges, Moment::pool_step};

/// A set of moments.
class Moments {
 public:
  constexpr Moments(std::initializer_list<Moment> moments) {
    for (const Moment moment : moments) bits_ |= bit(moment);
  }
  constexpr bool has(Moment moment) const { return (bits_ & bit(moment)) != 0; }

 private:
  static constexpr unsigned bit(Moment moment) { return 1U << static_cast<unsigned>(moment); }
  unsigned bits_ = 0;
};

/// Memory of one kind on a rank: `count` tensors of the same size, or a state of so many parameters.
struct HeldTensor {
  HeldKind kind = HeldKind::work_space;
  Label of = Label::whole_pass;  ///< the operation that holds it; whole_pass: none
  Bytes bytes{};                 ///< of all together
  double count = 1;              ///< layers times microbatches in flight; parameters
  Moments held;                  ///< when it is there

  Bytes size() const { return bytes / count; }
};
MemoryLine line_of(HeldKind kind);
/// "saved by attention"
std::string name_of(const HeldTensor& tensor);

Bytes sum_at(const std::vector<HeldTensor>& tensors, Moment moment);
/// The moment with the largest sum; of equal ones the first.
Moment largest_of(const std::vector<HeldTensor>& tensors, std::initializer_list<Moment> moments);

}  // namespace windtunnel
