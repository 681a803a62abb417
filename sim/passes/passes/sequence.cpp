#include <utility>

#include "passes/pass.hpp"

namespace windtunnel {
namespace {

/// Share of the halves of a layer whose first products have adapters, which read what is gathered for them in 16 bits
/// (return_layernorm_output_gathered in transformer_engine/pytorch/module/layernorm_linear.py, Transformer Engine 2.8).
double read_by_adapters(const Lora& lora) {
  using enum LoraTarget;
  constexpr double half = 0.5;
  return (lora.has(q_proj) || lora.has(k_proj) || lora.has(v_proj) ? half : 0) +
         (lora.has(gate_proj) || lora.has(up_proj) ? half : 0);
}

/// Bytes of a tensor that are gathered, as a share of the whole tensor: forward of inputs, the mean of both halves, backward of gradients.
double gathered_share(const PassContext& in, bool forward) {
  const Training& training = in.plan->training;
  if (!in.software->fp8_tensor_gathers || training.scales_rows()) return 1;
  const double operand = operand_size(training.precision) / element_size(training.precision),
               whole = forward ? read_by_adapters(training.lora) : 0;
  return operand * (1 - whole) + whole;
}

/// True if inputs are kept in shares and gathered again for gradients of weights, which frozen products do not have
/// (LinearWithFrozenWeight in megatron/core/tensor_parallel/layers.py, Megatron-Core 0.12).
bool regathers_inputs(const PassContext& in) {
  return in.software->regathers_inputs && !in.plan->training.lora.is_used();
}

/// `products`: what it overlaps with, piece by piece.
Operation half_of(const Operation& all_reduce, Label label, double gathered = 1,
                  Seconds products = {}) {
  Operation half = all_reduce;
  half.label = label;
  half.products = products;
  if (label == Label::gather_activation) {
    half.overlap = Overlap::none;
    half.payload = half.payload * gathered;
  }
  return half;
}

/// Each all-reduce as a gather and a scatter, which nothing hides unless they run in pieces.
std::vector<Operation> with_halves(const std::vector<Operation>& operations, double gathered,
                                   const PassContext& in) {
  std::vector<Operation> result;
  Seconds ahead{}, behind{};  // of the kernels before it
  for (const Operation& operation : operations) {
    if (operation.label != Label::reduce_activation) {
      result.push_back(operation);
      if (!in.plan->parallel.async_tensor_parallel) continue;
      behind = operation.scattered_products;
      // A cast by rows stands between a gather and its product.
      if (!in.plan->training.scales_rows()) ahead = operation.gathered_products;
      continue;
    }
    result.push_back(half_of(operation, Label::gather_activation, gathered, ahead));
    result.push_back(half_of(operation, Label::scatter_activation, 1, behind));
  }
  return result;
}

/// The same of a backward layer, and between the two the gather of what the half of the layer began with, which was kept in shares. Where
/// it hides it overlaps with input gradients, as much as the tensor pass has during a scatter: a quarter of the layer's products, which is
/// taken out of the kernels, out of each in proportion.
std::vector<Operation> with_regathers(const std::vector<Operation>& layer, double gathered,
                                      bool hides) {
  constexpr double products_per_collective = 4;
  const auto is_reduced = [&](std::size_t i) {
    return i + 1 < layer.size() && layer[i + 1].label == Label::reduce_activation;
  };
  const auto is_half = [&](std::size_t i) {
    return is_cut_by_tensor(layer[i].label) && layer[i].label != Label::weight_gradients;
  };
  Seconds kernels{}, products{};
  double collectives = 0;
  for (std::size_t i = 0; i < layer.size(); ++i) {
    if (!is_half(i)) continue;
    kernels += layer[i].time;
    products += layer[i].products;
    if (is_reduced(i)) collectives += layer[i].share;
  }
  const Seconds each = products / products_per_collective;
  std::vector<Operation> result;
  for (std::size_t i = 0; i < layer.size(); ++i) {
    const Operation& operation = layer[i];
    if (operation.label != Label::reduce_activation) {
      result.push_back(operation);
      if (hides && is_half(i) && kernels > Seconds{0})
        result.back().time *= (kernels - each * collectives) / kernels;
      continue;
    }
    const Operation gather = half_of(operation, Label::gather_activation, gathered);
    result.push_back(gather);
    result.push_back(gather);
    if (hides) {
      result.back().overlap = Overlap::with_next;
      result.push_back(kernel(Label::input_gradients, each * operation.share));
    }
    result.push_back(half_of(operation, Label::scatter_activation));
  }
  return result;
}

/// Korthikanti et al. 2022, eq. 4: no tensor of a layer is whole. Messages are sent as they are. Where the stack keeps what it gathered,
/// the head's product has its input whole; of its two tensors the other is what the last norm reads. Limit: so have the products of a
/// layer, which is not counted.
void divide_held(ChunkOperations& chunk, const PassContext& in) {
  const double degree = in.plan->parallel.tensor;
  const bool keeps_gathered = !in.software->regathers_inputs;
  chunk.for_each([degree, keeps_gathered](Operation& operation) {
    for (Divisible<Bytes>& tensor : operation.held.tensors) tensor.whole = tensor.whole / degree;
    Divisible<Bytes>& of_head = operation.held.at(Kept::head_input);
    if (keeps_gathered) of_head.whole = of_head.whole * ((1 + degree) / 2);
  });
  const ScatteredMessages scattered =
      in.software->scatter_pipeline_messages;  // done by the tensor pass
  if (scattered == ScatteredMessages::none) chunk.message.payload = chunk.message.payload / degree;
  if (scattered != ScatteredMessages::all)
    chunk.gradient_message.payload = chunk.gradient_message.payload / degree;
}

/// The collectives of embedding and head: the embedding scatters its output and gathers its gradient, the head gathers its input, backward
/// once more where the stack keeps shares, and scatters that input's gradient. Of the tensor pass's all-reduces the payload is known.
void split_edges(ChunkOperations& chunk, const PassContext& in) {
  const auto split = [&](Direction direction, bool gathers_after, bool gathers_before) {
    PassOperations& pass = chunk.at(direction);
    std::vector<Operation> before;
    for (const Operation& operation : pass.before) {
      if (operation.label != Label::reduce_activation) {
        before.push_back(operation);
        continue;
      }
      if (gathers_before) before.push_back(half_of(operation, Label::gather_activation));
      before.push_back(half_of(operation, Label::scatter_activation));
    }
    pass.before = std::move(before);
    if (!gathers_after) return;
    Operation gather = collective(Label::gather_activation, in.bytes.activation);
    gather.launch = in.collective_launch;
    pass.after.insert(pass.after.begin(), gather);
  };
  split(Direction::forward, in.chunk.last, false);
  for (const Direction direction : {Direction::backward, Direction::input_gradient})
    split(direction, in.chunk.first, regathers_inputs(in));
}

/// Sequence parallelism: each all-reduce is a reduce-scatter and an all-gather of the same bytes. Backward the gradient of a half's
/// output is gathered, which nothing hides; then, where the stack keeps a half's input in shares, that input, during an input gradient;
/// and the gradient of the input is scattered during a weight gradient (Korthikanti et al. 2022, 4.2.2;
/// LinearWithGradAccumulationAndAsyncCommunication.backward in megatron/core/tensor_parallel/layers.py, Megatron-Core 0.12, and in
/// megatron/mpu/layers.py at 2514892, October 2022).
void split_sequence(ChunkOperations& chunk, const PassContext& in) {
  if (!in.plan->parallel.sequence_parallel || in.plan->parallel.tensor == 1) return;
  divide_held(chunk, in);
  const bool regathers = regathers_inputs(in),
             hides = in.software->overlap_backward_tensor_collectives;
  const auto split = [&](Direction direction, bool again, bool overlaps) {
    std::vector<Operation>& layer = chunk.at(direction).layer;
    const double gathered = gathered_share(in, direction == Direction::forward);
    layer = again ? with_regathers(layer, gathered, overlaps) : with_halves(layer, gathered, in);
  };
  split(Direction::forward, false, false);
  split(Direction::backward, regathers, hides);
  split(Direction::input_gradient, regathers, false);
  split_edges(chunk, in);
}

}  // namespace

const OperationPass& sequence_pass() {
  static const OperationPass pass{"sequence", split_sequence};
  return pass;
}

}  // namespace windtunnel
