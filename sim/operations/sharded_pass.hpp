#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "units/quantity.hpp"

namespace windtunnel {

/// What an operation of a sharded pass does (ZeRO 3, fully sharded data parallelism). The collectives first.
enum class ShardedWork : std::uint8_t {
  gather_edges,   ///< the parameters of embedding and head
  gather_layer,   ///< the parameters of one layer
  scatter_layer,  ///< the gradients of one layer
  scatter_edges,  ///< the gradients of embedding and head
  edges,          ///< kernels: all of the pass but its layers
  layer,          ///< kernels: one layer
};
inline constexpr std::uint32_t num_sharded_collectives = 4;
constexpr bool is_collective(ShardedWork work) {
  return static_cast<std::uint32_t>(work) < num_sharded_collectives;
}

/// One step of a sharded pass. Operations of a stream follow one another in the order of the list.
struct ShardedOperation {
  ShardedWork work = ShardedWork::edges;
  bool on_data_stream = false;  ///< else on the stream of the kernels
  int after = -1;  ///< the earlier operation, on the other stream, whose end it waits for; -1: none
  /// Of a layer: the collectives that run while its kernels do, or with no prefetch in front of and behind them.
  std::uint8_t gathers = 0, scatters = 0;
};

enum class ShardedDirection : std::uint8_t { forward, backward };

/// The operations of one pass through `layers` layers, of which `prefetch` are gathered ahead of the one that computes.
///
/// A layer's parameters are gathered before its kernels, forward and backward, and its gradients scattered behind the backward ones.
/// With prefetch, layer l + prefetch is asked for when layer l begins; collectives follow one another on a stream of their own, and
/// what the layers before leave to scatter goes first. Without it everything is on one stream. Embedding and head are gathered
/// before the forward pass and scattered behind the backward one.
/// Source: Rajbhandari et al. 2020, arXiv:1910.02054, section 7.2; the prefetch, _prefetch_handle in
/// torch/distributed/fsdp/_runtime_utils.py, PyTorch 2.1; that gradients are scattered on each microbatch, _post_backward_hook there.
std::vector<ShardedOperation> sharded_pass(ShardedDirection direction, int layers, int prefetch);

/// How long the operations take, each on its own.
struct ShardedTimes {
  Seconds gather_edges{}, edges{}, gather_layer{}, layer{}, scatter_layer{}, scatter_edges{};
  /// Iota: what a second of collectives beside kernels costs them. Their memory traffic is what interferes, so it is the time
  /// that the collectives take when nobody else is on the network.
  double interference = 0;
  bool prefetches = true;
};

/// Of an operation: that of its work; for a layer, slowed by the collectives beside it:
///   layer + iota min(collectives, layer);  without prefetch  layer + (max(1, iota) - 1) collectives
/// (own form, fitted to llm-foundry-fsdp: docs/model.md, section 6).
Seconds duration_of(const ShardedOperation& operation, const ShardedTimes& times);

/// When the last operation ends, where each takes what `duration` says and nobody else is on the network.
Seconds time_alone(const std::vector<ShardedOperation>& operations,
                   const std::function<Seconds(const ShardedOperation&)>& duration);

}  // namespace windtunnel
