#include "workload/transformer.hpp"

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

double tokens(const Transformer& model, const LayerShape& shape) {
  return static_cast<double>(shape.microbatch) * model.sequence;
}

/// Attention heads of the microbatch on one rank: z = b a / t.
double local_heads(const Transformer& model, const LayerShape& shape) {
  return static_cast<double>(shape.microbatch) * model.heads / shape.tensor;
}

/// Bytes an element of an activation has in this precision, as the coefficients below count 2.
double element_scale(const LayerShape& shape) { return element_size(shape.precision) / Bytes{2}; }

/// The weight products of a layer's halves, forward: QKV and projection, MLP in and MLP out.
std::vector<Gemm> attention_products(const Transformer& model, const LayerShape& shape) {
  const double t = shape.tensor, h = model.hidden, n = tokens(model, shape);
  return {{n, model.qkv_width() / t, h}, {n, h, h / t}};
}
std::vector<Gemm> feed_forward_products(const Transformer& model, const LayerShape& shape) {
  const double t = shape.tensor, h = model.hidden, n = tokens(model, shape);
  return {{n, model.mlp_input_width() / t, h}, {n, h, model.ffn_hidden / t}};
}

/// Each product's two backward products: the input gradient (M,K,N) and the weight gradient
/// (K,N,M).
std::vector<Gemm> backward_products(const std::vector<Gemm>& forward) {
  std::vector<Gemm> products;
  for (const Gemm& g : forward) {
    products.push_back({g.m, g.k, g.n, g.batch});
    products.push_back({g.k, g.n, g.m, g.batch});
  }
  return products;
}

/// Traffic of the memory-bound kernels that do not touch the s x s scores:
///   [whole T h + T (small h + ffn f) / t] bytes at two bytes an element.
/// The model E of docs/model.md has 22 T h + 20 T h / t forward and 46 T h + 60 T h / t backward
/// for f = 4 h; the share of the MLP's inner width (16 of 20, 48 of 60) is written with f, and a
/// gated MLP reads two of it and writes one (assumed, no measurement). Sequence parallelism shards
/// the whole part too (Korthikanti et al. 2022, 4.2.2).
Bytes token_traffic(const Transformer& model, const LayerShape& shape, double whole, double small,
                    double ffn) {
  const double t = shape.tensor, n = tokens(model, shape);
  const double gate = model.gated_mlp ? 1.5 : 1.0;
  const double whole_share = shape.sequence_parallel ? t : 1.0;
  return Bytes{n * (whole * model.hidden / whole_share +
                    (small * model.hidden + ffn * gate * model.ffn_hidden) / t)} *
         element_scale(shape);
}

/// What kernels that are not fused move beside the traffic of the fused ones, in bytes at two bytes
/// an element, counted from what each reads and writes: [our own count, of Megatron-LM 1.1.5 in
/// PyTorch]. Of scores, forward: the mask read and written (4). Backward: the mask's gradient cloned
/// and masked (8). Of tokens, forward: bias added before GeLU (4 f), bias and residual added around
/// each of two dropouts (2 x 8 h); backward they take no pass of their own.
constexpr double unfused_scores_forward = 4, unfused_scores_backward = 8, unfused_ffn_forward = 4,
                 unfused_hidden_forward = 16;
constexpr int unfused_kernels_forward = 5, unfused_kernels_backward = 1;
constexpr int unfused_feed_forward_kernels =
    2;  ///< of the forward ones: bias, and bias with residual

/// Traffic on the s x s scores, `passes` bytes an element (9 forward, 11 backward at two bytes).
Bytes score_traffic(const Transformer& model, const LayerShape& shape, double passes) {
  const double s = model.sequence;
  return Bytes{passes * local_heads(model, shape) * s * s} * element_scale(shape);
}

/// Causal flash attention needs half of the scores: 2 z s^2 (h/a) FLOPs forward, 2.5 times that
/// backward (Dao 2023, arXiv:2307.08691, 3.1: five products against two).
Flops flash_forward_flops(const Transformer& model, const LayerShape& shape) {
  const double s = model.sequence;
  return Flops{2.0 * local_heads(model, shape) * s * s * model.head_size()};
}
constexpr double flash_backward_ratio = 2.5;

}  // namespace

const char* name_of(Recompute recompute) {
  switch (recompute) {
    case Recompute::none:
      return "none";
    case Recompute::selective:
      return "selective";
    case Recompute::full:
      return "full";
  }
  return "?";
}

const char* name_of(Precision precision) {
  switch (precision) {
    case Precision::fp32:
      return "fp32";
    case Precision::tf32:
      return "tf32";
    case Precision::fp16:
      return "fp16";
    case Precision::bf16:
      return "bf16";
  }
  return "?";
}

Bytes element_size(Precision precision) {
  switch (precision) {
    case Precision::fp32:
    case Precision::tf32:
      return Bytes{4};
    case Precision::fp16:
    case Precision::bf16:
      return Bytes{2};
  }
  WT_UNREACHABLE();
}

int padded_vocab(const Transformer& model, int tensor_ways) {
  const int multiple = model.vocab_divisor * tensor_ways;
  return (model.vocab + multiple - 1) / multiple * multiple;
}

double layer_matrix_parameters(const Transformer& model, int tensor_ways) {
  const double h = model.hidden;
  return (h * model.qkv_width() + h * h + h * model.mlp_input_width() + h * model.ffn_hidden) /
         tensor_ways;
}

std::vector<MatrixShape> layer_matrices(const Transformer& model, int tensor_ways) {
  const double h = model.hidden, t = tensor_ways;
  return {{model.qkv_width() / t, h},
          {h, h / t},
          {model.mlp_input_width() / t, h},
          {h, model.ffn_hidden / t}};
}

double layer_parameters(const Transformer& model, int tensor_ways) {
  const double h = model.hidden;
  const double matrices = layer_matrix_parameters(model, tensor_ways);
  if (!model.has_biases()) return matrices + 2 * h;  // two norms' weights
  const double column_biases = (model.qkv_width() + model.mlp_input_width()) / tensor_ways;
  const double row_biases = 2 * h, norms = 4 * h;
  return matrices + column_biases + row_biases + norms;
}

double word_embedding_parameters(const Transformer& model, int tensor_ways) {
  return static_cast<double>(padded_vocab(model, tensor_ways)) * model.hidden / tensor_ways;
}

double embedding_parameters(const Transformer& model, int tensor_ways) {
  const double h = model.hidden;
  return word_embedding_parameters(model, tensor_ways) +
         (model.has_learned_positions() ? model.sequence * h : 0) +
         (model.has_embedding_norm() ? 2 * h : 0);
}

double head_parameters(const Transformer& model, int tensor_ways, HeadPlace place) {
  const double norm = (model.has_biases() ? 2.0 : 1.0) * model.hidden;
  const bool own_words = !model.tied_embeddings || place == HeadPlace::on_another_stage;
  return norm + (own_words ? word_embedding_parameters(model, tensor_ways) : 0);
}

double total_parameters(const Transformer& model) {
  Transformer unpadded = model;
  unpadded.vocab_divisor = 1;
  return model.layers * layer_parameters(unpadded, 1) + embedding_parameters(unpadded, 1) +
         head_parameters(unpadded, 1, HeadPlace::with_embedding);
}

LayerWork layer_forward(const Transformer& model, const LayerShape& shape) {
  LayerWork work;
  work.attention = attention_core_forward(model, shape);
  work.attention.linear = attention_products(model, shape);
  work.attention.memory_traffic += token_traffic(model, shape, 11, 4, 0);
  work.attention.memory_kernels = 5;
  work.feed_forward.linear = feed_forward_products(model, shape);
  work.feed_forward.memory_traffic = token_traffic(model, shape, 11, 0, 4);
  work.feed_forward.memory_kernels = 4;
  if (shape.fused_kernels) return work;
  constexpr double half = 0.5;
  work.attention.memory_traffic += token_traffic(model, shape, half * unfused_hidden_forward, 0, 0);
  work.attention.memory_kernels += unfused_kernels_forward - unfused_feed_forward_kernels;
  work.feed_forward.memory_traffic +=
      token_traffic(model, shape, half * unfused_hidden_forward, 0, unfused_ffn_forward);
  work.feed_forward.memory_kernels += unfused_feed_forward_kernels;
  return work;
}

LayerWork layer_backward(const Transformer& model, const LayerShape& shape) {
  LayerWork work;
  work.attention.linear = backward_products(attention_products(model, shape));
  work.attention.memory_traffic = token_traffic(model, shape, 23, 12, 0);
  work.attention.memory_kernels = 10;
  work.feed_forward.linear = backward_products(feed_forward_products(model, shape));
  work.feed_forward.memory_traffic = token_traffic(model, shape, 23, 0, 12);
  work.feed_forward.memory_kernels = 8;
  if (shape.attention == Attention::flash) {
    work.attention.flash = flash_forward_flops(model, shape) * flash_backward_ratio;
    return work;
  }
  work.attention.attention = backward_products(attention_core_forward(model, shape).attention);
  work.attention.memory_traffic +=
      score_traffic(model, shape, 11 + (shape.fused_kernels ? 0 : unfused_scores_backward));
  if (!shape.fused_kernels) work.attention.memory_kernels += unfused_kernels_backward;
  return work;
}

KernelWork attention_core_forward(const Transformer& model, const LayerShape& shape) {
  KernelWork work;
  work.memory_kernels = 3;  // scale and mask, softmax, dropout
  if (shape.attention == Attention::flash) {
    work.memory_kernels = 0;
    work.flash = flash_forward_flops(model, shape);
    return work;
  }
  const double s = model.sequence, d = model.head_size(), z = local_heads(model, shape);
  work.attention = {{s, s, d, z}, {s, d, s, z}};
  work.memory_traffic =
      score_traffic(model, shape, 9 + (shape.fused_kernels ? 0 : unfused_scores_forward));
  return work;
}

namespace {
constexpr double cross_entropy_forward_share = 0.6;  // fitted with model E, docs/model.md

/// Logits on one rank: T V' / t elements.
double local_logits(const Transformer& model, const LayerShape& shape) {
  return tokens(model, shape) * padded_vocab(model, shape.tensor) / shape.tensor;
}

Gemm head_product(const Transformer& model, const LayerShape& shape) {
  const double columns = static_cast<double>(padded_vocab(model, shape.tensor)) / shape.tensor;
  return {tokens(model, shape), columns, static_cast<double>(model.hidden)};
}
}  // namespace

KernelWork head_forward(const Transformer& model, const LayerShape& shape,
                        double cross_entropy_bytes) {
  KernelWork work;
  work.linear = {head_product(model, shape)};
  work.memory_traffic =
      Bytes{cross_entropy_forward_share * cross_entropy_bytes * local_logits(model, shape)};
  return work;
}

KernelWork head_backward(const Transformer& model, const LayerShape& shape,
                         double cross_entropy_bytes) {
  KernelWork work;
  work.linear = backward_products({head_product(model, shape)});
  work.memory_traffic =
      Bytes{(1 - cross_entropy_forward_share) * cross_entropy_bytes * local_logits(model, shape)};
  return work;
}

KernelWork embedding_pass(const Transformer& model, const LayerShape& shape) {
  KernelWork work;
  // Look-up, positions, sum, dropout and mask: 7 elements a token and hidden unit (model E,
  // docs/model.md).
  work.memory_traffic = activation_size(model, shape) * 7.0;
  return work;
}

Bytes activation_size(const Transformer& model, const LayerShape& shape) {
  return element_size(shape.precision) * (tokens(model, shape) * model.hidden);
}

namespace {
/// FLOPs of one forward pass of one sample through the layers: 2 per weight and token, and two s x
/// s products (counted whole, without the causal half, as Narayanan et al. 2021 do).
double forward_layer_flops(const Transformer& model) {
  const double s = model.sequence;
  return model.layers * (2 * s * layer_matrix_parameters(model, 1) + 4 * s * s * model.hidden);
}
/// Of that, the attention core, which selective recomputation runs again.
double attention_core_flops(const Transformer& model) {
  const double s = model.sequence;
  return model.layers * 4 * s * s * model.hidden;
}
double head_flops(const Transformer& model) {
  return 2.0 * model.sequence * model.hidden * model.vocab;
}
constexpr double forward_and_backward = 3;  // the backward pass costs twice the forward pass
}  // namespace

Flops model_flops(const Transformer& model, double global_batch) {
  return Flops{global_batch * forward_and_backward *
               (forward_layer_flops(model) + head_flops(model))};
}

Flops hardware_flops(const Transformer& model, double global_batch, Recompute recompute) {
  double again = 0;
  if (recompute == Recompute::full) again = forward_layer_flops(model);
  if (recompute == Recompute::selective) again = attention_core_flops(model);
  return model_flops(model, global_batch) + Flops{global_batch * again};
}

}  // namespace windtunnel
