#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

#include "units/divisible.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// Tensors that an operation keeps. A forward operation keeps them until the backward pass of the same microbatch, a backward one
/// while the backward pass of one layer lasts.
enum class Kept : std::uint8_t {
  input,  ///< of the layer: what it keeps if everything else is computed again; not counted by itself
  saved,  ///< of the layer: what it keeps if operations are computed again one by one, but some are saved; not counted by itself
  /// Of the tensors, those that are not kept where one module runs again: the output of a norm, what an up-projection gives, and what goes
  /// into the last product. Then what stays where the operation's module runs again whole. Not counted by themselves.
  norm,
  up_projected,
  activated,
  module_input,
  tensors,          ///< what the backward pass reads, but for attention scores
  scores,           ///< attention scores, softmax and dropout
  passing,          ///< backward: the layer's output, gradients on their way through it
  weight_gradient,  ///< backward: of the largest matrix, before it is added to those of other microbatches
  logits,           ///< backward: logits, their fp32 copy, exponentials
  gathered,         ///< backward: parameters of other ranks
};
inline constexpr std::size_t num_kept = 12;

/// Among how many ranks the states of an operation's parameters are shared out.
struct StateWays {
  double weights = 1, gradients = 1, optimizer = 1;
};

/// What a codec keeps on a rank for an operation, all through an iteration.
struct KeptByCodec {
  Bytes
      residuals{};  ///< error feedback: what was lost of the last message or gradients, in fp32; of a message only at its sender
  Bytes factors{};  ///< of codecs that send them; one also starts the next iteration
  Bytes
      buffers{};  ///< encoded bytes before they are sent and after they are received; collectives of a traffic class share them
  Bytes total() const { return residuals + factors + buffers; }
};

/// What an operation holds in the memory of its rank. Its parameters stand with the forward operation.
struct Held {
  Divisible<double> parameters;
  StateWays ways;
  std::array<Divisible<Bytes>, num_kept> tensors{};
  KeptByCodec codec = {};

  Divisible<Bytes>& at(Kept kind) { return tensors[static_cast<std::size_t>(kind)]; }
  const Divisible<Bytes>& at(Kept kind) const { return tensors[static_cast<std::size_t>(kind)]; }
};

}  // namespace windtunnel
