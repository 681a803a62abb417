#include <algorithm>

#include "passes/pass.hpp"

namespace windtunnel {
namespace {

void move_edges_forward(PassOperations& pass) {
  pass.before.insert(pass.before.end(), pass.after.begin(), pass.after.end());
  pass.after.clear();
}

void gather_layers(PassOperations& pass, const PassContext& in, Overlap overlap) {
  move_edges_forward(pass);
  pass.prefetch = std::max(1, in.plan->parallel.zero_prefetch);
  pass.interference = in.software->exposed_gather_factor;
  pass.layer.insert(pass.layer.begin(),
                    collective(Label::gather_layer, in.bytes.layer_parameters, overlap));
}

/// ZeRO 3, fully sharded data parallelism: a layer's parameters are gathered over the replicas before its kernels, forward and
/// backward, and its gradients scattered behind the backward ones, in their own type. Embedding and head are gathered before the
/// forward pass, stay, and are scattered behind the backward one.
/// Sources: Rajbhandari et al. 2020, arXiv:1910.02054, section 7.2. Gradients of each microbatch: DeepSpeed 0.16.5, partition_grads in
/// runtime/zero/stage3.py, adds them to the shard; PyTorch 2.1, _post_backward_hook in torch/distributed/fsdp/_runtime_utils.py, does
/// so outside of no_sync(). Embedding and head: the root unit of PyTorch FSDP (Zhao et al., VLDB 2023, section 4.2).
/// With `zero_prefetch` 0 nothing runs beside kernels. With `zero_group` the states are shared out in groups of neighbouring replicas,
/// and each shard of gradients is then all-reduced among the groups, on every microbatch: hybrid sharding, _reduce_grad in
/// torch/distributed/fsdp/_runtime_utils.py, PyTorch 2.1 (Zhao et al., VLDB 2023, section 3.2.2).
/// Limit: what the pass does beside its layers stands before them, so that no scatter hides behind the embedding.
void shard_parameters(ChunkOperations& chunk, const PassContext& in) {
  if (in.plan->parallel.zero_stage != 3 || in.plan->parallel.data == 1) return;
  const bool prefetches = in.plan->parallel.zero_prefetch > 0;
  const Overlap ahead = prefetches ? Overlap::prefetched : Overlap::none;
  PassOperations& forward = chunk.at(Direction::forward);
  gather_layers(forward, in, ahead);
  forward.before.insert(forward.before.begin(),
                        collective(Label::gather_edges, in.bytes.edge_parameters));
  const int ways = sharding_ways(in.plan->parallel);
  const Overlap behind = prefetches ? Overlap::trailing : Overlap::none;
  for (const Direction direction : {Direction::backward, Direction::input_gradient}) {
    PassOperations& backward = chunk.at(direction);
    gather_layers(backward, in, ahead);
    backward.layer.push_back(collective(Label::scatter_layer, in.bytes.layer_gradients, behind));
    backward.after.push_back(collective(Label::scatter_edges, in.bytes.edge_gradients));
    if (ways == in.plan->parallel.data) continue;
    const double shard = 1.0 / ways;
    backward.layer.push_back(
        collective(Label::reduce_layer, in.bytes.layer_gradients * shard, behind));
    backward.after.push_back(collective(Label::reduce_edges, in.bytes.edge_gradients * shard));
  }
}

}  // namespace

const OperationPass& sharding_pass() {
  static const OperationPass pass{"sharding", shard_parameters};
  return pass;
}

}  // namespace windtunnel
