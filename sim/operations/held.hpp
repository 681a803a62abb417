#pragma once

#include <cstdint>

#include "core/enum_array.hpp"
#include "units/divisible.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// The tensors that an operation keeps in memory: a forward operation until the backward pass of the same microbatch, a backward
/// operation until the backward pass of its layer ends.
enum class Kept : std::uint8_t {
  input,  ///< the layer's input, all that is kept if everything else is recomputed; not counted by itself
  saved,  ///< what the layer keeps if single operations are recomputed and others are saved; not counted by itself
  /// Subsets of the tensors that are not kept if one module is recomputed: a norm's output, an up-projection's output, and the input
  /// of the last product. Last, the tensors that stay if the operation's whole module is recomputed. None is counted on its own.
  norm,
  up_projected,
  activated,
  module_input,
  tensors,  ///< what the backward pass reads, without attention scores
  scores,   ///< attention scores, softmax and dropout
  passing,  ///< backward: the layer's output, and the gradients that pass through it
  weight_gradient,  ///< backward: the gradient of the largest matrix, before it is added to those of other microbatches
  head_input,  ///< backward: what the last norm reads and gives, until the head's backward pass ends
  logits,      ///< backward: logits, and what the loss makes of them
  gathered,    ///< backward: parameters of other ranks, of the unit that computes
  unit,        ///< backward: those of one layer; not counted by itself
  prefetched,  ///< backward: those of the units gathered ahead
  reduced,  ///< backward: gradients of a unit in the type that they are added up in, while they are scattered
  reloaded,  ///< backward: activations that the host had, of this layer and the next
};

/// Number of ranks over which each state of an operation's parameters is sharded.
struct StateShards {
  double weights = 1, gradients = 1, optimizer = 1;
};

/// Memory that a codec keeps on a rank for an operation, throughout an iteration.
struct KeptByCodec {
  Bytes
      residuals{};  ///< error feedback: what compression lost of the last message or gradients, in fp32; for messages only at the sender
  Bytes factors{};  ///< factors that a codec sends; one of them is kept to start the next iteration
  Bytes
      buffers{};  ///< encoded bytes before sending and after receiving; collectives of the same traffic class share them
  Bytes total() const { return residuals + factors + buffers; }
};

/// Memory that an operation holds on its rank. Parameters are listed with the forward operation.
struct Held {
  Divisible<double> parameters;
  Divisible<double> frozen = {};    ///< how many of `parameters` are not trained
  Divisible<double> matrices = {};  ///< how many of `parameters` are of weight matrices of a layer
  StateShards shards;
  EnumArray<Kept, Divisible<Bytes>> tensors{};
  KeptByCodec codec = {};

  Divisible<Bytes>& at(Kept kind) { return tensors[kind]; }
  const Divisible<Bytes>& at(Kept kind) const { return tensors[kind]; }
};

}  // namespace windtunnel
