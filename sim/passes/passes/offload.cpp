#include "passes/pass.hpp"

namespace windtunnel {
namespace {

/// Takes the offloaded share from what a layer keeps for its backward pass.
Bytes take_offloaded(std::vector<Operation>& layer, double share) {
  Bytes taken{};
  for (Operation& operation : layer)
    for (const Kept kind : {Kept::tensors, Kept::scores}) {
      Divisible<Bytes>& kept = operation.held.at(kind);
      taken += kept.sum() * share;
      kept = kept * (1 - share);
    }
  return taken;
}

/// Activations on the host: behind its forward kernels a layer's are copied there, and back before its backward ones, on streams of
/// their own overlapped with the kernels of the neighbouring layers. The GPU holds them for two layers: the one that computes, and the one whose
/// copy runs (OffloadActivations in torchtune/training/_activation_offloading.py, torchtune at bd2a0fc, whose streams run a few tensors
/// apart; fine_grained_activation_offload.py in megatron/core/pipeline_parallel, Megatron-LM at d98e8a6, which keeps the last layer's on the
/// GPU). What of a copy lasts longer than its layer, kernels wait for: set_copy_times() in cost/stage_cost.cpp. Limits: what embedding,
/// head and stages keep stays on the GPU; kernels overlapped with copies lose no memory bandwidth.
void offload_activations(ChunkOperations& chunk, const PassContext& in) {
  const double share = in.plan->training.activation_offload;
  if (share == 0) return;
  constexpr double layers_held = 2;
  Operation copies = kernel(Label::activation_copies, {});
  copies.payload = take_offloaded(chunk.at(Direction::forward).layer, share);
  chunk.at(Direction::forward).layer.push_back(copies);
  chunk.at(Direction::input_gradient).layer.push_back(copies);
  copies.held.at(Kept::reloaded).whole = copies.payload * layers_held;
  chunk.at(Direction::backward).layer.push_back(copies);
}

}  // namespace

const OperationPass& offload_pass() {
  static const OperationPass pass{"offload", offload_activations};
  return pass;
}

}  // namespace windtunnel
