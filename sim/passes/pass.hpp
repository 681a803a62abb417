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
};
inline constexpr int num_directions = 4;

/// A model chunk of a stage.
struct ChunkRole {
  int layers = 0;
  bool first = false;  ///< has the embedding
  bool last = false;   ///< has the head
  bool operator==(const ChunkRole&) const = default;
};

/// Amounts that collectives of a pass carry, on one rank.
struct PassBytes {
  Bytes activation{};  ///< the input of a layer, whole
  Bytes layer_parameters{}, layer_gradients{};
  Bytes edge_parameters{}, edge_gradients{};  ///< of embedding and head
};

/// What a collective is when it is compressed: what it moves, and the codec's time on the GPU.
struct Encoded {
  Bytes payload{};
  Seconds codec{};
};

/// The passes of a chunk, by Direction.
struct ChunkOperations {
  std::array<PassOperations, num_directions> passes;
  PassOperations& at(Direction direction) { return passes[static_cast<std::size_t>(direction)]; }
  const PassOperations& at(Direction direction) const {
    return passes[static_cast<std::size_t>(direction)];
  }
};

/// Those of a stage, by chunk; stages and chunks that are alike share them.
using StageOperations = std::vector<std::shared_ptr<const ChunkOperations>>;

/// What rewriting goes by.
struct PassContext {
  const Plan* plan = nullptr;
  const SoftwareProfile* software = nullptr;
  ChunkRole chunk;
  PassBytes bytes;
  Operation attention_core;  ///< forward; where it is recomputed
  /// Compresses a collective as the scenario asks; where it does not, the payload stays and there is no codec.
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
