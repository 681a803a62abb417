#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "operations/operation.hpp"
#include "plan/plan.hpp"

namespace windtunnel {

/// Which way a pass goes through its chunk.
enum class Direction : std::uint8_t {
  forward,
  backward,        ///< input and weight gradients
  input_gradient,  ///< where the schedule splits the backward pass
  weight_gradient,
  /// Forward together with a backward pass of the device's other chunk; only of schedules that run them so, behind all rewriting.
  overlapped,
};
inline constexpr int num_directions = 5;

/// A model chunk of a stage.
struct ChunkRole {
  int layers = 0;
  bool first = false;     ///< has the embedding
  bool last = false;      ///< has the head
  int expert_layers = 0;  ///< of `layers`, those with experts
  bool operator==(const ChunkRole&) const = default;
};

/// Amounts that collectives of a pass carry, on one rank.
struct PassBytes {
  Bytes activation{};                           ///< the input of a layer, whole
  Bytes layer_parameters{}, layer_gradients{};  ///< of its matrices, without those of experts
  Bytes weight{}, gradient{};                   ///< one of them
  /// What one rank's tokens weigh in an exchange, a copy for each GPU that gets one: as they go to their experts, as their gradients do,
  /// and as either comes back.
  Bytes dispatch{}, gradient_dispatch{}, combine{};
  Bytes expert_inputs{};  ///< what the ranks that cut an expert gather of its inputs
  Bytes key_values{};     ///< of whole sequences, the heads of one rank
  Bytes attended{};       ///< queries, keys, values and attention's output of a rank's tokens
};

/// What a collective or message is when it is compressed: what it moves, the codec's time on the GPU, and what the codec keeps.
struct Encoded {
  Bytes payload{};
  Seconds codec{};
  KeptByCodec kept = {};
};

/// The passes of a chunk, by Direction.
struct ChunkOperations {
  std::array<PassOperations, num_directions> passes;
  /// What the chunk sends to the one behind it, if that is on another stage, as one rank does: its output, which it keeps until the
  /// backward pass. And the gradient that it sends to the one before it, which weighs as much.
  Operation message, gradient_message;
  PassOperations& at(Direction direction) { return passes[static_cast<std::size_t>(direction)]; }
  const PassOperations& at(Direction direction) const {
    return passes[static_cast<std::size_t>(direction)];
  }
  /// Calls `change` with each operation, those of a layer once.
  template <class Change>
  void for_each(const Change& change) {
    for (PassOperations& pass : passes) pass.for_each(change);
    change(message);
    change(gradient_message);
  }
};

/// Those of a stage, by chunk; stages and chunks that are alike share them.
using StageOperations = std::vector<std::shared_ptr<const ChunkOperations>>;

/// What of a layer's operation runs again where a module is recomputed that is a part of it, as in a layer that has it whole, and what
/// the forward pass then keeps no more.
struct PartAgain {
  Label of{};
  Operation operation;
  Kept freed{};
};

/// What rewriting goes by.
struct PassContext {
  const Plan* plan = nullptr;
  const SoftwareProfile* software = nullptr;
  ChunkRole chunk;
  PassBytes bytes;
  bool model_shares_experts = false;  ///< every token takes some beside its own
  Operation attention_core;           ///< forward; where it is recomputed, or sequences are cut
  Operation core_backward;            ///< where sequences are cut
  std::vector<PartAgain>
      parts_again;  ///< where modules are recomputed, in the order of the forward pass
  /// The halves of a layer, as far as RecomputedUnit::operations runs them again; of attention no core.
  Operation attention_again, feed_forward_again;
  Seconds collective_launch{};  ///< CPU time to launch a tensor collective
  /// Compresses a collective as the scenario asks; where it does not, the payload stays and there is no codec. Messages keep their payload,
  /// of which some may go as they are.
  std::function<Encoded(Label, Bytes payload)> encode;
};

/// Rewrites the operations of a chunk for one way of splitting it, or of saving memory or bytes. It finds what the model does, as
/// those before it in the list have rewritten it.
struct OperationPass {
  const char* name;
  void (*rewrite)(ChunkOperations&, const PassContext&);
};

/// All of them, in the order in which they are applied.
const std::vector<OperationPass>& operation_passes();

}  // namespace windtunnel
