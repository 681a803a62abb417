#pragma once

#include <array>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "core/enum_array.hpp"
#include "operations/operation.hpp"
#include "plan/plan.hpp"

namespace windtunnel {

/// The direction of a pass through its chunk.
enum class Direction : std::uint8_t {
  forward,
  backward,        ///< input and weight gradients
  input_gradient,  ///< where the schedule splits the backward pass
  weight_gradient,
  /// A forward pass together with a backward pass of the device's other chunk, for schedules that run them so; made after all rewriting.
  overlapped,
};

/// A model chunk of a stage.
struct ChunkRole {
  int layers = 0;
  bool first = false;            ///< has the embedding
  bool last = false;             ///< has the head
  int expert_layers = 0;         ///< how many of `layers` have experts
  double seen_share = 1;         ///< Transformer::seen_share() of its layers
  int not_recomputed = 0;        ///< how many of `layers` RecomputedLayers leaves out
  bool leaves_out_last = false;  ///< so that the last of them is one of these
  auto operator<=>(const ChunkRole&) const = default;
};

/// The bytes that collectives of a pass carry, on one rank.
struct PassBytes {
  Bytes activation{};                           ///< the whole input of a layer
  Bytes logits{};                               ///< for the whole vocabulary
  Bytes layer_parameters{}, layer_gradients{};  ///< of a layer's matrices, without those of experts
  Bytes weight{}, gradient{};                   ///< of one parameter
  /// The bytes of one rank's tokens in an exchange, with a copy for each GPU that gets one: on the way to their experts, as gradients on
  /// that way, and on the way back.
  Bytes dispatch{}, gradient_dispatch{}, combine{};
  Bytes expert_inputs{};  ///< inputs of an expert that the ranks with its pieces gather
  Bytes key_values{};     ///< of whole sequences, for the heads of one rank
  Bytes attended{};       ///< queries, keys, values and attention's output of a rank's tokens
};

/// A compressed collective or message: the bytes it moves, the codec's time on the GPU, and what the codec keeps in memory.
struct Encoded {
  Bytes payload{};
  Seconds codec{};
  KeptByCodec kept = {};
};

/// The passes of a chunk, by Direction.
struct ChunkOperations {
  EnumArray<Direction, PassOperations> passes;
  /// The messages that one rank sends if the neighbouring chunks are on other stages: its output to the next chunk, which it keeps until
  /// the backward pass, and a gradient of the same size to the previous chunk.
  Operation message, gradient_message;
  PassOperations& at(Direction direction) { return passes[direction]; }
  const PassOperations& at(Direction direction) const { return passes[direction]; }
  /// Calls `change` with each operation, those of a layer once.
  template <class Change>
  void for_each(const Change& change) {
    for (PassOperations& pass : passes) pass.for_each(change);
    change(message);
    change(gradient_message);
  }
};

/// The operations of a stage, by chunk; stages and chunks that are alike share them.
using StageOperations = std::vector<std::shared_ptr<const ChunkOperations>>;

/// If a module that is part of an operation is recomputed: what runs again, in a layer that has the whole operation, and what the forward
/// pass no longer keeps.
struct RecomputedPart {
  Label of{};
  Operation operation;
  Kept freed{};
};

/// Inputs of passes that rewrite operations.
struct PassContext {
  const Plan* plan = nullptr;
  const SoftwareProfile* software = nullptr;
  ChunkRole chunk;
  PassBytes bytes;
  bool model_shares_experts = false;  ///< every token also takes shared experts
  bool halves_are_parallel = false;   ///< Transformer::parallel_residual
  Operation attention_core;           ///< forward; set if it is recomputed, or sequences are split
  Operation core_backward;            ///< set if sequences are split
  std::vector<RecomputedPart>
      recomputed_parts;  ///< where modules are recomputed, in the order of the forward pass
  /// What RecomputedUnit::operations runs again of a layer that has the operation: attention without its core, no last products.
  Operation attention_again, feed_forward_again, experts_again;
  double expert_matrix = 1;         ///< of one matrix of a routed expert, parameters on a rank
  Seconds collective_launch{};      ///< CPU time to launch a tensor collective
  double launch_slowdown = 1;       ///< of the node's CPU
  double taken_by_collectives = 0;  ///< share of the multiprocessors, while one lasts
  std::function<Seconds(Bytes traffic)> memory_time;  ///< of kernels that move memory alone
  /// Compresses a collective if the scenario asks for it; otherwise the payload is unchanged and there is no codec. Messages keep their
  /// payload, since some of them may be sent uncompressed.
  std::function<Encoded(Label, Bytes payload)> encode;
};

/// Rewrites the operations of a chunk for one way of splitting the model, or of saving memory or bytes. Its input is what the passes
/// before it in the list have made of the model's operations.
struct OperationPass {
  const char* name;
  void (*rewrite)(ChunkOperations&, const PassContext&);
};

/// All passes, in the order in which they are applied.
const std::vector<OperationPass>& operation_passes();

}  // namespace windtunnel
