#include "passes/pass.hpp"

namespace windtunnel {
namespace {

Operation all_reduce(const PassContext& in, Overlap overlap = Overlap::none, double share = 1) {
  Operation operation = collective(Label::reduce_activation, in.bytes.activation * share, overlap);
  operation.launch = in.collective_launch * share;
  operation.share = share;
  return operation;
}

/// Matrices, and the tensors between the two products of a half of a layer, are divided; messages where the stack scatters them.
void divide_held(ChunkOperations& chunk, const PassContext& in) {
  const double degree = in.plan->parallel.tensor;
  chunk.for_each([degree](Operation& operation) {
    for (Divisible<double>* counted :
         {&operation.held.parameters, &operation.held.frozen, &operation.held.matrices})
      counted->divided /= degree;
    for (Divisible<Bytes>& tensor : operation.held.tensors)
      tensor.divided = tensor.divided / degree;
  });
  const ScatteredMessages scattered = in.software->scatter_pipeline_messages;
  if (scattered != ScatteredMessages::none) chunk.message.payload = chunk.message.payload / degree;
  if (scattered == ScatteredMessages::all)
    chunk.gradient_message.payload = chunk.gradient_message.payload / degree;
}

/// Kernels behind which an all-reduce follows: all that are cut, or the last of them where both halves of a layer read its input, so that
/// their outputs are summed up before they are reduced; backward so are the gradients of that input.
std::vector<bool> reduced(const std::vector<Operation>& layer, const PassContext& in) {
  std::vector<bool> result(layer.size());
  bool is_last = true;
  for (std::size_t i = layer.size(); i-- > 0;) {
    if (!is_cut_by_tensor(layer[i].label)) continue;
    result[i] = is_last || !in.halves_are_parallel;
    is_last = false;
  }
  return result;
}

/// The layer with its all-reduces, each behind its kernel. Where they hide, each is overlapped with a weight gradient that is taken out of the
/// kernels, out of each in proportion.
std::vector<Operation> with_all_reduces(const std::vector<Operation>& layer, const PassContext& in,
                                        bool hides) {
  constexpr double products_per_collective = 4;
  const std::vector<bool> is_reduced = reduced(layer, in);
  Seconds all{}, products{};
  double collectives = 0;
  for (std::size_t i = 0; i < layer.size(); ++i) {
    if (!is_cut_by_tensor(layer[i].label)) continue;
    all += layer[i].time;
    products += layer[i].products;
    if (is_reduced[i]) collectives += layer[i].share;
  }
  const Seconds each = products / products_per_collective, taken = each * collectives;
  std::vector<Operation> result;
  result.reserve(layer.size() * 3);
  for (std::size_t i = 0; i < layer.size(); ++i) {
    Operation& rest = result.emplace_back(layer[i]);
    if (hides && is_cut_by_tensor(rest.label) && all > Seconds{0}) rest.time *= (all - taken) / all;
    if (!is_reduced[i]) continue;
    result.push_back(all_reduce(in, hides ? Overlap::with_next : Overlap::none, layer[i].share));
    if (hides) result.push_back(kernel(Label::weight_gradients, each * layer[i].share));
  }
  return result;
}

/// Messages, scattered over the tensor group when they were sent, that a pass gathers before it begins: what it received, and backward
/// also what the stage itself had sent.
int gathered_messages(const PassContext& in, Direction direction) {
  const SoftwareProfile& software = *in.software;
  const ScatteredMessages scattered = software.scatter_pipeline_messages;
  if (in.plan->parallel.sequence_parallel || scattered == ScatteredMessages::none) return 0;
  if (direction == Direction::forward) return software.gather_scattered_messages;
  return (software.gather_scattered_messages && scattered == ScatteredMessages::all) +
         software.regathers_outputs;
}

/// Its bytes are counted in no traffic class.
Operation gather_message() { return collective(Label::gather_message, Bytes{0}); }

/// Tensor parallelism (Shoeybi et al. 2019, arXiv:1909.08053, section 3): every layer all-reduces one activation behind its attention
/// and one behind its feed-forward network, forward; and backward one for the input of each. The embedding is all-reduced forward,
/// the input of the head backward. RowParallelLinear.forward and VocabParallelEmbedding.forward in megatron/mpu/layers.py,
/// _CopyToModelParallelRegion.backward in megatron/mpu/mappings.py, Megatron-LM v2.5.
///  - Where both halves of a layer read its input, one all-reduce a layer and direction does (Chowdhery et al. 2022, arXiv:2204.02311,
///    section 2; ParallelTransformerLayer.forward in megatron/model/transformer.py of GPT-NeoX). Limit: GPT-NeoX itself reduces the
///    input's gradients of either half on their own, since each ColumnParallelLinear copies its input by itself.
///  - Stacks that overlap (SoftwareProfile::overlap_backward_tensor_collectives) run a weight gradient during each backward
///    all-reduce, a quarter of the layer's backward weight products (docs/model.md, model E):
///    ColumnParallelLinearWithAsyncAllreduce.backward in megatron/mpu/layers.py at 16c9044 (September 2021). A backward pass without
///    weight gradients, or with those of adapters alone, has nothing to hide them behind.
///  - A stage message that was scattered over the tensor group is gathered again on receipt (_communicate in
///    megatron/p2p_communication.py, v2.5), unless the next layer wants it scattered. DeepSpeed scatters and gathers too
///    (PartitionedTensor in deepspeed/runtime/utils.py), gradients from 0.5.2 on.
///  - Where each rank computes the whole loss, the head's logits are gathered; of their gradient it keeps its share (output_layouts of the
///    head in torchtitan/models/llama3/infra/parallelize.py with disable_loss_parallel, June 2025).
void split_over_tensor_group(ChunkOperations& chunk, const PassContext& in) {
  if (in.plan->parallel.tensor == 1) return;
  divide_held(chunk, in);
  PassOperations& forward = chunk.at(Direction::forward);
  PassOperations& backward = chunk.at(Direction::backward);
  PassOperations& input_gradient = chunk.at(Direction::input_gradient);
  const bool has_weight_gradients = !in.plan->training.lora.is_used();
  forward.layer = with_all_reduces(forward.layer, in, false);
  backward.layer = with_all_reduces(
      backward.layer, in, in.software->overlap_backward_tensor_collectives && has_weight_gradients);
  input_gradient.layer = with_all_reduces(input_gradient.layer, in, false);
  if (in.chunk.last && !in.plan->training.loss_parallel) {
    Operation gather = collective(Label::gather_activation, in.bytes.logits);
    gather.launch = in.collective_launch;
    forward.after.push_back(gather);
  }
  for (const Direction direction :
       {Direction::forward, Direction::backward, Direction::input_gradient}) {
    std::vector<Operation>& before = chunk.at(direction).before;
    const bool begins_model = direction == Direction::forward ? in.chunk.first : in.chunk.last;
    if (begins_model)
      before.push_back(all_reduce(in));
    else
      before.insert(before.begin(), static_cast<std::size_t>(gathered_messages(in, direction)),
                    gather_message());
  }
}

}  // namespace

const OperationPass& tensor_pass() {
  static const OperationPass pass{"tensor", split_over_tensor_group};
  return pass;
}

}  // namespace windtunnel
