#include "workload/transformer.hpp"

#include <algorithm>

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

double tokens(const Transformer& model, const LayerShape& shape) {
  return static_cast<double>(shape.microbatch) * model.sequence / shape.context;
}

/// Attention heads of the microbatch on one rank: z = b a / (t c). Where it has a part of the queries of c times as many heads, that is
/// as much work.
double local_heads(const Transformer& model, const LayerShape& shape) {
  return static_cast<double>(shape.microbatch) * model.heads / shape.tensor / shape.context;
}

/// Bytes an element of an activation has in this precision, as the coefficients below count 2.
double element_scale(const LayerShape& shape) { return element_size(shape.precision) / Bytes{2}; }

/// The product of `rows` tokens with each matrix, repeated `batch` times.
std::vector<Gemm> products_with(const std::vector<MatrixShape>& matrices, double rows,
                                double batch = 1, double group_rows = 0) {
  std::vector<Gemm> products;
  for (const MatrixShape& matrix : matrices)
    products.push_back({rows, matrix.rows, matrix.columns, batch, group_rows});
  return products;
}

/// The weight products of a layer's halves, forward. Matrices into latent vectors are not divided among the tensor group, but its tokens
/// are where sequences are split.
std::vector<Gemm> attention_products(const Transformer& model, const LayerShape& shape) {
  const std::vector<MatrixShape> matrices = attention_shapes(model, shape.tensor);
  std::vector<Gemm> products = products_with(matrices, tokens(model, shape));
  for (std::size_t i = 0; i < matrices.size(); ++i)
    if (!matrices[i].is_divided && shape.sequence_parallel) products[i].m /= shape.tensor;
  return products;
}
std::vector<Gemm> feed_forward_products(const Transformer& model, const LayerShape& shape) {
  return products_with(mlp_shapes(model, model.ffn_hidden, shape.tensor), tokens(model, shape));
}

/// Each product's two backward products: the input gradient (M,K,N) and the weight gradient
/// (K,N,M).
std::vector<Gemm> backward_products(const std::vector<Gemm>& forward) {
  std::vector<Gemm> products;
  for (const Gemm& g : forward) {
    products.push_back({g.m, g.k, g.n, g.batch, g.group_rows, g.one_by_one});
    products.push_back({g.k, g.n, g.m, g.batch, g.group_rows, g.one_by_one});
  }
  return products;
}

/// Traffic of the memory-bound kernels that do not touch the s x s scores:
///   [whole T h + T (small h + ffn f) / t] bytes at two bytes an element.
/// LayerTraffic counts a split part for f = 4 h. A fifth of it is attention's (`small`), and the rest is expressed with
/// the MLP's inner width f; a gated MLP reads two of it and writes one (assumed, no measurement). Sequence parallelism shards the
/// whole part too (Korthikanti et al. 2022, 4.2.2).
Bytes token_traffic(const Transformer& model, const LayerShape& shape, double whole, double small,
                    double ffn) {
  const double t = shape.tensor, n = tokens(model, shape);
  const double gate = model.gated_mlp ? 1.5 : 1.0;
  const double whole_share = shape.sequence_parallel ? t : 1.0;
  return Bytes{n * (whole * model.hidden / whole_share +
                    (small * model.hidden + ffn * gate * model.ffn_hidden) / t)} *
         element_scale(shape);
}

/// Traffic that unfused kernels add to that of fused ones, in bytes at two bytes
/// an element, counted from what each reads and writes: [our own count, of Megatron-LM 1.1.5 in
/// PyTorch]. Of scores, forward: the mask read and written (4). Backward: the mask's gradient cloned
/// and masked (8). Of tokens, forward: bias added before GeLU (4 f), bias and residual added around
/// each of two dropouts (2 x 8 h); backward they take no pass of their own.
constexpr double unfused_scores_forward = 4, unfused_scores_backward = 8, unfused_ffn_forward = 4,
                 unfused_hidden_forward = 16;
constexpr int unfused_kernels_forward = 5, unfused_kernels_backward = 1;
constexpr int unfused_feed_forward_kernels =
    2;  ///< of the forward ones: bias, and bias with residual

/// Attention's share of a layer's traffic: half of the work on the hidden state, a fifth of the split part.
constexpr double attention_hidden_share = 0.5, attention_split_share = 0.2;
constexpr double ffn_ratio =
    4;  ///< inner widths of the MLP in hidden sizes, as split traffic counts them

const LayerTraffic::Pass& traffic_of(const LayerShape& shape, bool backward) {
  return backward ? shape.traffic.backward : shape.traffic.forward;
}

/// Traffic on the s x s scores, `passes` bytes an element at two bytes.
Bytes score_traffic(const Transformer& model, const LayerShape& shape, double passes) {
  const double s = model.sequence;
  return Bytes{passes * local_heads(model, shape) * s * s} * element_scale(shape);
}

/// Traffic of casting one element from bf16 for the products:  2 + [largest value read first] 2 + copies * operand.
/// Read once, written once or twice: by rows, and transposed or scaled by columns, for the product that sums over the other dimension.
/// Sources: Transformer Engine 2.x, cast_transpose.cu (fp8), quantize_mxfp8 (rowwise and columnwise), nvfp4 quantisation, which
/// scales by the tensor's largest value as well; an unfused cast, as of attention's output and of gradients.
Bytes cast_traffic(const LayerShape& shape, double copies) {
  const bool reads_first = shape.reads_for_scale || shape.precision == Precision::nvfp4;
  const Bytes read = element_size(shape.precision);
  return read * (reads_first ? 2.0 : 1.0) + operand_size(shape.precision) * copies;
}

/// Casts of torchao with a scale for each row of what a product sums over, in bytes of an element [own count of the kernels in
/// get_tensor_memory_traffic_ovhd_s, torchao/testing/float8/roofline_utils.py, torchao at 6243040]. Forward input and weight (2 + 1).
/// Backward input and weight transposed (2 + 2) and cast (2 + 1), the former in one kernel with its cast by rows, which a forward pass
/// has done (-2); the output's gradient in both layouts (2 + 1 + 2, 2 + 1). Backward products have one scale: what each gives, inputs of
/// each matrix apart, is read and multiplied (2 + 2; addmm_float8_unwrapped in torchao/float8/float8_ops.py).
constexpr double row_cast_forward = 3, row_cast_input = 5, row_cast_weight = 7,
                 row_cast_gradient = 8, row_rescale = 4;

Bytes row_casts(const Gemm& product, double matrices, bool backward) {
  const double input = product.m * product.k, weight = product.n * product.k;
  if (!backward) return Bytes{row_cast_forward * (input + weight)};
  return Bytes{(row_cast_input + row_rescale * matrices) * input +
               (row_cast_weight + row_rescale) * weight +
               row_cast_gradient * product.m * product.n};
}

/// Adds the casts of a pass: of each product's input (forward) or output gradient (backward), and of its weights.
/// `into_matrices`: those that are one product into a half of a layer here, and one each in stacks that cast by rows.
void add_casts(KernelWork& work, const std::vector<Gemm>& forward, const LayerShape& shape,
               bool backward, double into_matrices = 1) {
  if (!is_quantized(shape.precision)) return;
  for (const Gemm& product : forward) {
    if (shape.row_cast_efficiency > 0) {
      const double matrices = &product == &forward.front() ? into_matrices : 1;
      work.memory_traffic +=
          row_casts(product, matrices, backward) * (product.batch / shape.row_cast_efficiency);
      work.memory_kernels += backward ? 6 : 2;
      continue;
    }
    const double tokens = product.m * (backward ? product.n : product.k) * product.batch,
                 weights = shape.casts_weights ? product.n * product.k * product.batch : 0;
    work.memory_traffic += cast_traffic(shape, shape.frozen ? 1 : shape.operand_copies) * tokens +
                           cast_traffic(shape, shape.operand_copies) * weights;
    work.memory_kernels += shape.casts_weights ? 2 : 1;
  }
}

/// Causal flash attention needs half of the scores, 2 z s^2 (h/a) FLOPs forward, fewer where layers have windows; 2.5 times that
/// backward (Dao 2023, arXiv:2307.08691, 3.1: five products against two).
Flops flash_forward_flops(const Transformer& model, const LayerShape& shape) {
  const double s = model.sequence;
  const double widths = model.key_width() + model.value_width();
  return Flops{local_heads(model, shape) * s * s * widths * shape.seen_share};
}
constexpr double flash_backward_ratio = 2.5;

AttentionShape flash_shape(const Transformer& model, const LayerShape& shape, bool backward) {
  const double parts = shape.attends_by_parts ? shape.context : 1;
  return {.heads = local_heads(model, shape) * parts,
          .queries = model.sequence / parts,
          .head_size = static_cast<double>(model.key_width()),
          .causal = true,
          .backward = backward};
}

/// Bytes that merging moves for each value: in the first step of a ring, and in each of the c - 1 others.
struct MergedBytes {
  double first = 0, further = 0;
};

/// Traffic of merging in a pass, per value of queries (or attention's output) and per value of keys and values, and its kernels per step.
struct RingTraffic {
  MergedBytes queries, keys;
  int kernels = 0;
};

/// Counted from what each kernel of RingMerging's sources reads and writes [own count, no measurement of them alone], on the rank that
/// computes with all its queries in each step and, but for its own, half of the others' keys: the last of a ring whose parts are
/// balanced. In bytes, of bf16 and fp32:
///  - fused, forward: weighed (2 + 2); added (4 + 2). Backward, queries: copied (2 + 2), added (4 + 2); keys: half a copy, half sums
///    and a whole one for the rank's own.
///  - fused, fp8: each step dequantised (1 + 4), then weighed (4 + 4) or added (8 + 4); last cast to bf16 (4 + 2) and fp8 (2 + 1).
///    Backward each step is kept (1 + 1), dequantised (1 + 4) and read for the sum (4), which is written (4) and cast (4 + 2).
///  - by operation, forward: each step cast (2 + 4), the others' difference taken (8 + 4), weighed (4 + 4) and subtracted (8 + 4), the
///    last cast (4 + 2); keys made contiguous or joined for their gather (2 + 2). Backward zeros (4), sums (6 + 4), a cast (4 + 2); keys
///    also joined for their gather (2 + 2) and, with half a sum, for theirs on the way (4 + 4 each time).
RingTraffic ring_traffic(const LayerShape& shape, bool backward) {
  switch (shape.merging) {
    case RingMerging::uncounted:
      return {};
    case RingMerging::fused:
      if (shape.fp8_attention)
        return backward ? RingTraffic{{21, 11}, {21, 11}, 2} : RingTraffic{{22, 17}, {}, 3};
      return backward ? RingTraffic{{4, 6}, {5, 3}, 3} : RingTraffic{{4, 6}, {}, 2};
    case RingMerging::by_operation:
      return backward ? RingTraffic{{20, 10}, {28, 25}, 7} : RingTraffic{{12, 38}, {4, 4}, 11};
  }
  WT_UNREACHABLE();
}

/// Heads of keys and values that go round.
double exchanged_key_heads(const Transformer& model, const LayerShape& shape) {
  const int heads = shape.merging == RingMerging::by_operation ? model.heads : model.kv_heads;
  return std::max(1.0, static_cast<double>(heads) / shape.tensor);
}

void add_merging(KernelWork& work, const Transformer& model, const LayerShape& shape,
                 bool backward) {
  if (!shape.attends_by_parts || shape.context == 1) return;
  const RingTraffic ring = ring_traffic(shape, backward);
  const auto bytes = [&shape](const MergedBytes& each) {
    return each.first + each.further * (shape.context - 1);
  };
  const double keys = exchanged_key_heads(model, shape) * (model.key_width() + model.value_width());
  work.memory_traffic +=
      Bytes{tokens(model, shape) *
            (bytes(ring.queries) * model.heads_width() / shape.tensor + bytes(ring.keys) * keys)} *
      element_scale(shape);
  work.memory_kernels += ring.kernels * shape.context;
}

}  // namespace

RecomputedModules RecomputedModules::of_selective() {
  RecomputedModules modules;
  modules.add(RecomputedModule::attention_core);
  return modules;
}

bool is_quantized(Precision precision) { return base_precision(precision) != precision; }

Precision base_precision(Precision precision) {
  switch (precision) {
    case Precision::fp8:
    case Precision::mxfp8:
    case Precision::nvfp4:
      return Precision::bf16;
    case Precision::fp32:
    case Precision::tf32:
    case Precision::fp16:
    case Precision::bf16:
      return precision;
  }
  WT_UNREACHABLE();
}

Bytes element_size(Precision precision) {
  switch (base_precision(precision)) {
    case Precision::fp32:
    case Precision::tf32:
      return Bytes{4};
    case Precision::fp16:
    case Precision::bf16:
      return Bytes{2};
    default:
      WT_UNREACHABLE();
  }
}

Bytes operand_size(Precision precision) {
  constexpr double mx_block = 32, nvfp4_block = 16;  // values that share a scale of one byte
  switch (precision) {
    case Precision::fp8:
      return Bytes{1};
    case Precision::mxfp8:
      return Bytes{1 + 1 / mx_block};
    case Precision::nvfp4:
      return Bytes{1.0 / 2 + 1 / nvfp4_block};
    default:
      return element_size(precision);
  }
}

/// A token at place i sees min(i, w) tokens: of s^2/2 pairs, w s - w^2/2.
double Transformer::seen_share(int first, int count) const {
  if (!window || window->size >= sequence || count == 0) return 1;
  const double w = static_cast<double>(window->size) / sequence;
  const double inside = 2 * w - w * w;
  const int windowed = std::clamp(first + count - window->from_layer, 0, count);
  return 1 - (1 - inside) / window->every * windowed / count;
}

int padded_vocab(const Transformer& model, int tensor_parallel) {
  const int multiple = model.vocab_divisor * tensor_parallel;
  return (model.vocab + multiple - 1) / multiple * multiple;
}

int Transformer::expert_layers(int first, int count) const {
  int found = 0;
  for (int layer = first; moe && layer < first + count; ++layer) found += has_experts(layer);
  return found;
}

namespace {

double elements(const std::vector<MatrixShape>& matrices) {
  double sum = 0;
  for (const MatrixShape& matrix : matrices) sum += matrix.rows * matrix.columns;
  return sum;
}

/// Biases of an expert of `width`, one for each column of its products.
double expert_biases(const Transformer& model, double width) {
  return model.moe->bias ? (model.gated_mlp ? 2.0 : 1.0) * width + model.hidden : 0;
}

}  // namespace

Divisible<double> attention_matrices(const Transformer& model) {
  Divisible<double> sum;
  for (const MatrixShape& matrix : attention_shapes(model, 1))
    (matrix.is_divided ? sum.divided : sum.whole) += matrix.rows * matrix.columns;
  return sum;
}

Divisible<double> feed_forward_matrices(const Transformer& model) {
  return {0, elements(mlp_shapes(model, model.ffn_hidden, 1))};
}

double router_matrix(const Transformer& model) {
  return model.hidden * static_cast<double>(model.moe->experts);
}

double expert_matrices(const Transformer& model) {
  return elements(mlp_shapes(model, model.moe->ffn_hidden, 1)) * model.moe->experts;
}

double shared_expert_matrices(const Transformer& model) {
  return elements(mlp_shapes(model, model.moe->shared_ffn_hidden, 1));
}

double layer_matrix_parameters(const Transformer& model, int tensor_parallel) {
  return layer_matrix_parameters(
      model, tensor_parallel,
      model.expert_layers(0, model.layers) / static_cast<double>(model.layers));
}

double layer_matrix_parameters(const Transformer& model, int tensor_parallel, double with_experts) {
  const Divisible<double> attention = attention_matrices(model);
  const double feed_forward = feed_forward_matrices(model).divided;
  if (!model.moe && !model.mla) return (attention.divided + feed_forward) / tensor_parallel;
  return attention.on_rank(tensor_parallel) +
         (feed_forward * (1 - with_experts) + shared_expert_parameters(model) * with_experts) /
             tensor_parallel;
}

double router_parameters(const Transformer& model) {
  if (!model.moe) return 0;
  const Transformer::Experts& moe = *model.moe;
  return model.norms_of_feed_forward() * model.norm_parameters() + router_matrix(model) +
         (moe.router_bias ? moe.experts : 0) + (moe.shared_gate ? model.hidden : 0);
}

double expert_parameters(const Transformer& model) {
  if (!model.moe) return 0;
  return expert_matrices(model) + expert_biases(model, model.moe->ffn_hidden) * model.moe->experts;
}

double shared_expert_parameters(const Transformer& model) {
  if (!model.moe || model.moe->shared_ffn_hidden == 0) return 0;
  return shared_expert_matrices(model) + expert_biases(model, model.moe->shared_ffn_hidden);
}

std::vector<MatrixShape> attention_shapes(const Transformer& model, int tensor_parallel) {
  const double h = model.hidden, t = tensor_parallel;
  const MatrixShape projection{h, model.heads_width() / t};
  if (!model.mla) return {{model.qkv_width() / t, h}, projection};
  const Transformer::LatentAttention& latent = *model.mla;
  const double queries = model.heads * static_cast<double>(model.key_width()) / t,
               keys_values = model.heads * (latent.key_size + latent.value_size) / t;
  const double query_rank = latent.query_rank, key_value_rank = latent.key_value_rank;
  std::vector<MatrixShape> shapes;
  if (query_rank > 0) shapes.push_back({query_rank, h, false});
  shapes.push_back({queries, query_rank > 0 ? query_rank : h});
  shapes.push_back({key_value_rank + latent.rope_size, h, false});
  shapes.push_back({keys_values, key_value_rank});
  shapes.push_back(projection);
  return shapes;
}

std::vector<MatrixShape> mlp_shapes(const Transformer& model, int width, int tensor_parallel) {
  const double h = model.hidden, columns = static_cast<double>(width) / tensor_parallel;
  return {{(model.gated_mlp ? 2 : 1) * columns, h}, {h, columns}};
}

Divisible<double> attention_parameters(const Transformer& model) {
  const double h = model.hidden;
  const double norms = model.norms_of_attention() * model.norm_parameters();
  const Divisible<double> matrices = attention_matrices(model);
  if (model.mla)
    return {matrices.whole + norms + model.mla->query_rank + model.mla->key_value_rank,
            matrices.divided};
  const bool by_head = model.qk_norm == QueryKeyNorm::heads;
  const double widths = (model.heads + model.kv_heads) * static_cast<double>(model.head_size());
  double whole = norms + (by_head ? 2.0 * model.head_size() : 0);
  if (model.projection_bias.value_or(model.has_biases())) whole += h;
  double divided = matrices.divided;
  if (model.has_biases() || model.qkv_bias) divided += model.qkv_width();
  if (model.qk_norm == QueryKeyNorm::width) divided += widths;
  if (model.attention_sinks) divided += model.heads;
  return {whole, divided};
}

Divisible<double> feed_forward_parameters(const Transformer& model) {
  const double norms = model.norms_of_feed_forward() * model.norm_parameters(),
               matrices = feed_forward_matrices(model).divided;
  if (!model.has_biases()) return {norms, matrices};
  return {norms + model.hidden, matrices + model.mlp_input_width()};
}

namespace {
/// All of the word embedding, padded.
double padded_words(const Transformer& model, int tensor_parallel) {
  return static_cast<double>(padded_vocab(model, tensor_parallel)) * model.hidden;
}
}  // namespace

double word_embedding_parameters(const Transformer& model, int tensor_parallel) {
  return padded_words(model, tensor_parallel) / tensor_parallel;
}

Divisible<double> embedding_parameters(const Transformer& model, int tensor_parallel) {
  const double h = model.hidden;
  return {(model.has_learned_positions() ? model.sequence * h : 0) +
              (model.has_embedding_norm() ? 2 * h : 0),
          padded_words(model, tensor_parallel)};
}

Divisible<double> head_parameters(const Transformer& model, int tensor_parallel, HeadPlace place) {
  const bool copies = place == HeadPlace::on_another_stage;
  const int words = model.tied_embeddings ? copies : 1 + (copies && model.mtp_layers > 0);
  constexpr double norms = 3, joined = 2;  // of what is embedded and of what is joined, and behind
  const double h = model.hidden, depths = model.mtp_layers;
  return {model.norm_parameters() * (1 + norms * depths),
          words * padded_words(model, tensor_parallel) + joined * h * h * depths};
}

double total_parameters(const Transformer& model) {
  Transformer unpadded = model;
  unpadded.vocab_divisor = 1;
  unpadded.mtp_layers = 0;
  const int with_experts = model.expert_layers(0, model.layers);
  const double experts =
      router_parameters(model) + expert_parameters(model) + shared_expert_parameters(model);
  return model.layers * attention_parameters(model).sum() +
         (model.layers - with_experts) * feed_forward_parameters(model).sum() +
         with_experts * experts + embedding_parameters(unpadded, 1).sum() +
         head_parameters(unpadded, 1, HeadPlace::with_embedding).sum();
}

double active_parameters(const Transformer& model) {
  if (!model.moe) return total_parameters(model);
  const double idle = 1 - static_cast<double>(model.moe->top_k) / model.moe->experts;
  return total_parameters(model) -
         model.expert_layers(0, model.layers) * expert_parameters(model) * idle;
}

namespace {
/// Bytes that a norm reads and writes for each value: it, and backward also both of its gradients, at two bytes.
constexpr double two_bytes = 2;
double norm_passes(bool backward) { return backward ? 3 : 2; }

/// Rotation, copies and norms. Latent attention has keys for every head.
void add_query_key_work(KernelWork& work, const Transformer& model, const LayerShape& shape,
                        bool backward) {
  const LayerTraffic::Pass& traffic = traffic_of(shape, backward);
  const double each = model.mla ? 2 * traffic.latent_heads * model.heads
                                : traffic.heads * (model.heads + model.kv_heads);
  work.memory_traffic +=
      Bytes{each * tokens(model, shape) * model.key_width() / shape.tensor} * element_scale(shape);
  if (model.qk_norm == QueryKeyNorm::none) return;
  const double width = (model.heads + model.kv_heads) * static_cast<double>(model.head_size());
  work.memory_traffic += element_size(shape.precision) *
                         (norm_passes(backward) * tokens(model, shape) * width / shape.tensor);
  work.memory_kernels += 2;
}

/// `norms` more than the one before a half that LayerTraffic counts, or fewer where the halves of a layer share theirs. A norm is one
/// kernel forward, two backward.
void add_norms(KernelWork& half, const Transformer& model, const LayerShape& shape, int norms,
               bool backward) {
  half.memory_traffic +=
      token_traffic(model, shape, norms * norm_passes(backward) * two_bytes, 0, 0);
  half.memory_kernels += norms * (backward ? 2 : 1);
}

/// The work of both halves but for the attention core and, backward, before each product has become two. Of its kernels attention has
/// five of nine.
LayerWork layer_without_core(const Transformer& model, const LayerShape& shape, bool backward) {
  const LayerTraffic::Pass& traffic = traffic_of(shape, backward);
  LayerWork work;
  if (!backward) work.attention = attention_core_forward(model, shape);
  const bool merges = shape.attention == Attention::flash;
  const int kernels = traffic.kernels * 5 / 9;
  KernelWork& attention = work.attention;
  attention.linear = attention_products(model, shape);
  attention.memory_traffic += token_traffic(model, shape, attention_hidden_share * traffic.hidden,
                                            attention_split_share * traffic.split, 0);
  attention.memory_kernels = kernels + (merges ? attention.memory_kernels : 0);
  add_query_key_work(attention, model, shape, backward);
  KernelWork& feed_forward = work.feed_forward;
  feed_forward.linear = feed_forward_products(model, shape);
  feed_forward.memory_traffic =
      token_traffic(model, shape, (1 - attention_hidden_share) * traffic.hidden, 0,
                    (1 - attention_split_share) * traffic.split / ffn_ratio);
  feed_forward.memory_kernels = traffic.kernels - kernels;
  add_norms(attention, model, shape, model.norms_of_attention() - 1, backward);
  add_norms(feed_forward, model, shape, model.norms_of_feed_forward() - 1, backward);
  constexpr double queries_keys_values = 3;
  add_casts(attention, attention.linear, shape, backward, backward ? queries_keys_values : 1);
  add_casts(feed_forward, feed_forward.linear, shape, backward,
            backward && model.gated_mlp ? 2 : 1);
  return work;
}
}  // namespace

LayerWork layer_forward(const Transformer& model, const LayerShape& shape) {
  LayerWork work = layer_without_core(model, shape, false);
  if (shape.fused_kernels) return work;
  constexpr double half = 0.5;
  work.attention.memory_traffic += token_traffic(model, shape, half * unfused_hidden_forward, 0, 0);
  work.attention.memory_kernels += unfused_kernels_forward - unfused_feed_forward_kernels;
  work.feed_forward.memory_traffic +=
      token_traffic(model, shape, half * unfused_hidden_forward, 0, unfused_ffn_forward);
  work.feed_forward.memory_kernels += unfused_feed_forward_kernels;
  return work;
}

namespace {

/// The products of a layer's halves, one for each matrix.
struct SeparateProducts {
  std::vector<Gemm> attention, feed_forward;
};
SeparateProducts separate_products(const Transformer& model, const LayerShape& shape) {
  const double t = shape.tensor, h = model.hidden, n = tokens(model, shape);
  const Gemm into{n, model.ffn_hidden / t, h}, out{n, h, model.ffn_hidden / t};
  std::vector<Gemm> feed_forward(model.gated_mlp ? 2 : 1, into);
  feed_forward.push_back(out);
  if (model.mla) return {attention_products(model, shape), feed_forward};
  const double heads = model.heads_width() / t,
               keys = model.kv_heads * static_cast<double>(model.head_size()) / t;
  return {{{n, heads, h}, {n, keys, h}, {n, keys, h}, {n, h, heads}}, feed_forward};
}

/// Drops the products that are saved, the first and every second behind it.
void drop_saved(SeparateProducts& products) {
  bool saved = false;
  for (std::vector<Gemm>* half : {&products.attention, &products.feed_forward})
    std::erase_if(*half, [&saved](const Gemm&) { return saved = !saved; });
}

}  // namespace

LayerWork layer_again(const Transformer& model, const LayerShape& shape, Recompute recompute) {
  LayerShape again = shape;
  if (recompute == Recompute::selective) again.reads_for_scale = false;
  LayerWork work = layer_forward(model, again);
  work.feed_forward.linear.pop_back();
  if (recompute != Recompute::selective) return work;
  work.attention.flash = {};
  work.attention.attention.clear();
  const KernelWork core = attention_core_forward(model, again);
  work.attention.memory_traffic = work.attention.memory_traffic - core.memory_traffic;
  if (shape.attention == Attention::flash) work.attention.memory_kernels -= core.memory_kernels;
  SeparateProducts products = separate_products(model, again);
  products.feed_forward.pop_back();
  if (shape.precision != Precision::nvfp4) drop_saved(products);
  work.attention.linear = products.attention;
  work.feed_forward.linear = products.feed_forward;
  return work;
}

LayerWork layer_backward(const Transformer& model, const LayerShape& shape) {
  LayerWork work = layer_without_core(model, shape, true);
  for (KernelWork* half : {&work.attention, &work.feed_forward})
    half->linear = backward_products(half->linear);
  if (shape.attention == Attention::flash) {
    work.attention.flash = flash_forward_flops(model, shape) * flash_backward_ratio;
    work.attention.flash_shape = flash_shape(model, shape, true);
    add_merging(work.attention, model, shape, true);
    return work;
  }
  work.attention.attention = backward_products(attention_core_forward(model, shape).attention);
  work.attention.memory_traffic += score_traffic(
      model, shape,
      shape.traffic.backward.scores + (shape.fused_kernels ? 0 : unfused_scores_backward));
  if (!shape.fused_kernels) work.attention.memory_kernels += unfused_kernels_backward;
  return work;
}

double local_tokens(const Transformer& model, const LayerShape& shape) {
  return tokens(model, shape) / shape.tensor;
}

namespace {

/// Memory traffic of a layer's experts and of the work around them, in bytes per value at two bytes per element. Counted from what each
/// kernel reads and writes [assumed: no measurement of them alone]. A permutation reads each token once and writes it once for each of
/// its experts; merging reads those and writes one. Backward the other way round, and merging also reads its inputs for the weights'
/// gradients. Router values are fp32, read and written by softmax and by the choice.
constexpr double router_value = 4, router_passes = 3;
constexpr int routing_kernels = 6, merging_kernels = 2;

/// Bytes of `copies` tokens that are read or written.
Bytes moved(const Transformer& model, const LayerShape& shape, double copies) {
  return Bytes{two_bytes * copies * local_tokens(model, shape) * model.hidden} *
         element_scale(shape);
}

/// Tokens that the fullest rank's experts take.
double expert_tokens(const Transformer& model, const LayerShape& shape) {
  return local_tokens(model, shape) * shape.expert_tensor * model.moe->top_k * shape.expert_load;
}

int experts_of_rank(const Transformer& model, const LayerShape& shape) {
  return model.moe->experts / shape.expert;
}

bool loops_in_pytorch(const LayerShape& shape) {
  return shape.expert_kernels == ExpertKernels::one_by_one ||
         shape.expert_kernels == ExpertKernels::indexed;
}

std::vector<Gemm> expert_products(const Transformer& model, const LayerShape& shape) {
  const double groups = static_cast<double>(model.moe->experts) / shape.expert;
  const double rows = expert_tokens(model, shape) / groups;
  const std::vector<MatrixShape> matrices =
      mlp_shapes(model, model.moe->ffn_hidden, shape.expert_tensor);
  if (!loops_in_pytorch(shape))
    return products_with(matrices, rows, groups,
                         groups > 1 ? rows : 0);  // one expert alone is a plain product
  std::vector<Gemm> products = products_with(matrices, rows, groups);
  for (Gemm& product : products) product.one_by_one = true;
  return products;
}

/// Kernels that quantise one operand of one expert, where each is quantised on its own, which GroupedLinear of Transformer Engine 2.7
/// to 2.14 does to inputs forward and to gradients backward (split_quantize in transformer_engine/pytorch/csrc/extensions/cast.cpp). With
/// the largest value of the tensor as its scale: clearing it, finding it, the scale, the cast (Float8CurrentScalingQuantizer in
/// csrc/quantizer.cpp, compute_amax in common/recipe/current_scaling.cu). With scales for blocks the cast alone: scales of all experts are
/// rearranged at once (multi_tensor_swizzle_scaling_factors in csrc/extensions/gemm.cpp). With past scales all are cast at once.
constexpr int quantising_by_tensor = 4, quantising_by_block = 1;

/// True if scales belong to blocks of a tensor, in an order that products ask for.
bool scales_blocks(const LayerShape& shape) {
  return shape.precision == Precision::mxfp8 || shape.precision == Precision::nvfp4 ||
         shape.scales_fp8_blocks;
}

/// Kernels that are launched for one expert after another.
void add_loop(KernelWork& work, const Transformer& model, const LayerShape& shape, int kernels) {
  const int launched = experts_of_rank(model, shape) * kernels;
  work.looped_kernels += launched;
  work.memory_kernels += launched;
}

void add_expert_casts(KernelWork& work, const Transformer& model, const LayerShape& shape,
                      bool backward) {
  const std::vector<Gemm> products = expert_products(model, shape);
  add_casts(work, products, shape, backward);
  const bool quantised = is_quantized(shape.precision);
  // Forward a look-up of the quantised weight (get_weight_workspace), backward the gradient's hand-over (handle_custom_ddp_from_mcore), both
  // in Python, in transformer_engine/pytorch/module/grouped_linear.py.
  if (quantised || backward)
    work.looped_calls = experts_of_rank(model, shape) * static_cast<int>(products.size());
  if (!quantised || shape.expert_kernels != ExpertKernels::each_expert) return;
  const int by_tensor = shape.reads_for_scale ? quantising_by_tensor : 0,
            each = scales_blocks(shape) ? quantising_by_block : by_tensor;
  add_loop(work, model, shape, static_cast<int>(products.size()) * each);
}

/// So many bytes for each value of the copies of tokens that a rank's experts take.
Bytes copies_traffic(const Transformer& model, const LayerShape& shape, double bytes) {
  return Bytes{bytes * expert_tokens(model, shape) * model.hidden};
}

/// Copies of the tokens with rows to spare, and of what the experts give without them, each read and written; backward of the gradients
/// likewise: Fp8Padding and Fp8Unpadding in TEGroupedMLP, megatron/core/transformer/moe/experts.py, Megatron-Core 0.15 to 0.17. Hybrid-EP
/// hands over padded copies.
void add_padding(KernelWork& work, const Transformer& model, const LayerShape& shape) {
  if (!shape.pads_experts || !is_quantized(shape.precision)) return;
  constexpr double both = 2, read_and_written = 2;
  work.memory_traffic += copies_traffic(model, shape, both * read_and_written * two_bytes);
  work.memory_kernels += 2;
}

/// Bytes of _apply_bias for each value, and its kernels for each expert: the bias times the token's weight, added to what the product
/// gave, all experts' results put together, and, where weights are fp32, cast back to bf16. Backward the cast, the gradients put together,
/// and two products and sums for the gradients of bias and weight [counted from what each operation of PyTorch reads and writes].
constexpr double bias_forward_bf16 = 2 + 6 + 4, bias_forward_fp32 = 4 + 10 + 8 + 6,
                 bias_backward_bf16 = 4 + 2 * 6, bias_backward_fp32 = 6 + 6 + 4 + 2 * 12;
constexpr int bias_kernels_forward = 2, bias_kernels_backward = 4;

void add_biases(KernelWork& work, const Transformer& model, const LayerShape& shape,
                bool backward) {
  if (!shape.adds_expert_biases || !model.moe->bias) return;
  const double forward_bytes = shape.weighs_in_fp32 ? bias_forward_fp32 : bias_forward_bf16,
               backward_bytes = shape.weighs_in_fp32 ? bias_backward_fp32 : bias_backward_bf16;
  work.memory_traffic +=
      copies_traffic(model, shape, backward ? backward_bytes : forward_bytes) * shape.expert_room;
  add_loop(work, model, shape, backward ? bias_kernels_backward : bias_kernels_forward);
}

/// Tokens from other ranks come rank by rank, and are put in the order of experts, read and written; so are results before they
/// leave: sort_chunks_by_idxs in MoEAlltoAllTokenDispatcher, megatron/core/transformer/moe/token_dispatcher.py.
void add_sorting(ExpertWork& work, const Transformer& model, const LayerShape& shape) {
  if (!shape.sorts_arrived_tokens || shape.expert == 1 || experts_of_rank(model, shape) == 1)
    return;
  constexpr double read_and_written = 2;
  const Bytes sorted = moved(model, shape, read_and_written * model.moe->top_k) * shape.expert_load;
  for (KernelWork* each : {&work.routing, &work.merging}) {
    each->memory_traffic += sorted;
    ++each->memory_kernels;
  }
}

/// Reads and writes of the copies of tokens (`copies`, top_k of each) and of a layer's whole input (`inputs`).
struct CopiesMoved {
  double copies = 0, inputs = 0;
};

/// Copying tokens for the experts: each read once and its copies written, backward the other way round. In a loop of PyTorch each copy is read
/// and written. Backward index_put_ adds each copy's gradient, reading the sum, to zeros as large as the layer's input,
/// and these are added to the gradient so far: once for all experts, or once for each that indexes.
CopiesMoved moved_to_experts(const Transformer& model, const LayerShape& shape, bool backward) {
  if (!loops_in_pytorch(shape)) return {.copies = 1, .inputs = 1};
  if (!backward) return {.copies = 2};
  constexpr double added = 3, zeros = 1, sum = 3;
  const bool each = shape.expert_kernels == ExpertKernels::indexed;
  return {.copies = added, .inputs = (zeros + sum) * (each ? experts_of_rank(model, shape) : 1)};
}

/// Merging results, which are read, and their sum written; backward they are read once more, for the weights' gradients. In a loop of PyTorch
/// results times the router's weights (2), and index_add_ (3). Backward their gradients picked by index (2), times the weights (2), and for
/// the weights' own gradients times the results (3), summed (1).
CopiesMoved moved_from_experts(const LayerShape& shape, bool backward) {
  if (!loops_in_pytorch(shape)) return {.copies = backward ? 2.0 : 1.0, .inputs = 1};
  return {.copies = backward ? 8.0 : 5.0};
}

Bytes bytes_of(const Transformer& model, const LayerShape& shape, const CopiesMoved& each) {
  return moved(model, shape, each.copies * model.moe->top_k + each.inputs);
}

/// Kernels besides products that `indexed` launches for an expert: torch.where (count, its copy to the host, choice, indices: 6), the
/// tokens, the nonlinearity (2), the router's weights, their product with the results, index_add_. Backward a gradient by index, three for
/// the product, two gradients by index_put_ (zeros, four to sort, the sum, an addition: 7 each), three of the nonlinearity, the inputs'
/// gradients of gate and up added. Gate and up are two products: one more forward, two backward [assumed: counted in PyTorch 2.4's operations].
constexpr int indexed_forward = 13, indexed_backward = 24;

/// What a loop of PyTorch over experts launches beside its products, and moves between them.
void add_pytorch_loop(KernelWork& work, const Transformer& model, const LayerShape& shape,
                      bool backward) {
  if (!loops_in_pytorch(shape)) return;
  const std::vector<Gemm> products = expert_products(model, shape);
  if (shape.expert_kernels == ExpertKernels::indexed) {
    work.memory_kernels +=
        experts_of_rank(model, shape) * (backward ? indexed_backward : indexed_forward);
    return;
  }
  // torch.cat of each product's results, backward of its inputs' gradients.
  constexpr double read_and_written = 2;
  for (const Gemm& product : products)
    work.memory_traffic += Bytes{read_and_written * two_bytes * product.m * product.batch *
                                 (backward ? product.k : product.n)} *
                           element_scale(shape);
  work.memory_kernels += static_cast<int>(products.size());
}

/// Gradients of weights that are slices of a tensor: select_backward writes a tensor of zeros as large, copies the slice's gradient into it,
/// and all experts' tensors are added up.
void add_stacked_gradients(KernelWork& work, const Transformer& model, const LayerShape& shape) {
  if (!shape.stacked_experts || shape.frozen) return;
  const double experts = experts_of_rank(model, shape);
  constexpr double zeros = 1, sum = 3, copy = 2;
  constexpr int kernels = 3;
  for (const Gemm& product : expert_products(model, shape)) {
    const double tensor = product.n * product.k * experts;
    work.memory_traffic +=
        Bytes{two_bytes * tensor * (experts * zeros + (experts - 1) * sum + copy)} *
        element_scale(shape);
    work.memory_kernels += kernels * static_cast<int>(experts);
  }
}

std::vector<Gemm> shared_products(const Transformer& model, const LayerShape& shape) {
  const int width = model.moe->shared_ffn_hidden;
  if (width == 0) return {};
  return products_with(mlp_shapes(model, width, shape.tensor), tokens(model, shape));
}

/// Traffic of the nonlinearity between two products, for `rows` tokens and `width` columns, counted as in feed_forward_traffic().
Bytes nonlinear_traffic(const Transformer& model, const LayerShape& shape, double rows,
                        double width, double split) {
  const double gate = model.gated_mlp ? 1.5 : 1.0;
  return Bytes{rows * width * gate * (1 - attention_split_share) * split / ffn_ratio} *
         element_scale(shape);
}

/// Traffic of the experts' nonlinearity per value that it writes, of two that it reads, counted from what each kernel reads and
/// writes. Clamped apart: each half clamped (4 each) and put together (8), backward the mask (6 each) and the halves' gradients put
/// together (8), in addition to the fused kernel. By operation: gate and up values are put side by side (8), multiplied (6) and weighed (4);
/// backward put side by side (8), weighed (4), multiplied once more (6) for the weights' gradients (4), the gradients (10), put back (8).
constexpr double clamp_forward = 16, clamp_backward = 20, by_operation_forward = 18,
                 by_operation_backward = 40;
constexpr int clamp_kernels = 3, by_operation_kernels_forward = 3,
              by_operation_kernels_backward = 6;

void add_expert_activation(KernelWork& work, const Transformer& model, const LayerShape& shape,
                           bool backward) {
  const double rows = expert_tokens(model, shape),
               width = static_cast<double>(model.moe->ffn_hidden) / shape.expert_tensor;
  const auto moved = [&](double bytes) {
    return Bytes{rows * width * bytes} * element_scale(shape);
  };
  if (shape.expert_activation == ExpertActivation::by_operation) {
    work.memory_traffic +=
        moved(backward ? by_operation_backward : by_operation_forward) * shape.expert_room;
    work.memory_kernels += backward ? by_operation_kernels_backward : by_operation_kernels_forward;
    return;
  }
  work.memory_traffic +=
      nonlinear_traffic(model, shape, rows, width, traffic_of(shape, backward).split);
  work.memory_kernels += backward ? 2 : 1;
  if (shape.expert_activation != ExpertActivation::clamped_apart) return;
  work.memory_traffic += moved(backward ? clamp_backward : clamp_forward);
  work.memory_kernels += clamp_kernels;
}

ExpertWork experts_pass(const Transformer& model, const LayerShape& shape, bool backward) {
  constexpr int norm_and_residual = 3;
  const LayerTraffic::Pass& traffic = traffic_of(shape, backward);
  const int kernels = backward ? 2 : 1;
  const auto products = [backward](std::vector<Gemm> forward) {
    return backward ? backward_products(forward) : forward;
  };
  ExpertWork work;
  work.routing.attention =
      products({{local_tokens(model, shape), static_cast<double>(model.moe->experts),
                 static_cast<double>(model.hidden)}});
  work.routing.memory_traffic =
      token_traffic(model, shape, (1 - attention_hidden_share) * traffic.hidden, 0, 0);
  work.routing.memory_traffic +=
      Bytes{router_value * router_passes * local_tokens(model, shape) * model.moe->experts};
  work.routing.memory_traffic += bytes_of(model, shape, moved_to_experts(model, shape, backward));
  work.routing.memory_kernels = norm_and_residual * kernels + routing_kernels;
  add_norms(work.merging, model, shape, model.norms_of_feed_forward() - 1, backward);
  work.merging.memory_traffic += bytes_of(model, shape, moved_from_experts(shape, backward));
  work.merging.memory_kernels += merging_kernels;
  work.experts.linear = products(expert_products(model, shape));
  add_expert_activation(work.experts, model, shape, backward);
  add_expert_casts(work.experts, model, shape, backward);
  add_padding(work.experts, model, shape);
  add_biases(work.experts, model, shape, backward);
  add_sorting(work, model, shape);
  add_pytorch_loop(work.experts, model, shape, backward);
  if (backward) add_stacked_gradients(work.experts, model, shape);
  if (model.moe->shared_ffn_hidden == 0) return work;
  work.shared.linear = products(shared_products(model, shape));
  work.shared.memory_traffic = nonlinear_traffic(
      model, shape, tokens(model, shape),
      model.moe->shared_ffn_hidden / static_cast<double>(shape.tensor), traffic.split);
  work.shared.memory_kernels = kernels;
  add_casts(work.shared, shared_products(model, shape), shape, backward);
  return work;
}

}  // namespace

ExpertWork experts_forward(const Transformer& model, const LayerShape& shape) {
  return experts_pass(model, shape, false);
}
ExpertWork experts_backward(const Transformer& model, const LayerShape& shape) {
  return experts_pass(model, shape, true);
}

KernelWork attention_core_forward(const Transformer& model, const LayerShape& shape) {
  KernelWork work;
  work.memory_kernels = 3;  // scale and mask, softmax, dropout
  if (shape.attention == Attention::flash) {
    work.memory_kernels = 0;
    work.flash = flash_forward_flops(model, shape);
    work.flash_shape = flash_shape(model, shape, false);
    add_merging(work, model, shape, false);
    return work;
  }
  const double s = model.sequence, z = local_heads(model, shape);
  work.attention = {{s, s, static_cast<double>(model.key_width()), z},
                    {s, static_cast<double>(model.value_width()), s, z}};
  work.memory_traffic = score_traffic(
      model, shape,
      shape.traffic.forward.scores + (shape.fused_kernels ? 0 : unfused_scores_forward));
  return work;
}

KernelWork norm_forward(const Transformer& model, const LayerShape& shape) {
  constexpr double read_and_written = 2;
  const double n = tokens(model, shape), own = shape.sequence_parallel ? n / shape.tensor : n;
  KernelWork work;
  work.memory_traffic =
      Bytes{two_bytes * read_and_written * own * model.hidden} * element_scale(shape);
  work.memory_kernels = 1;
  return work;
}

KernelWork up_projection_forward(const Transformer& model, const LayerShape& shape) {
  WT_EXPECT(model.mla);
  const std::vector<Gemm> products = attention_products(model, shape);
  KernelWork work;
  // Into the latent vectors, out of them, and the projection; queries may have no latent vector.
  const std::size_t queries = model.mla->query_rank > 0 ? 1 : 0;
  work.linear = {products.at(queries), products.at(queries + 2)};
  add_casts(work, work.linear, shape, false);
  return work;
}

KernelWork expert_activation_forward(const Transformer& model, const LayerShape& shape) {
  WT_EXPECT(model.moe);
  KernelWork work;
  add_expert_activation(work, model, shape, false);
  return work;
}

KernelWork flash_core_backward(const Transformer& model, const LayerShape& shape) {
  KernelWork work;
  work.flash = flash_forward_flops(model, shape) * flash_backward_ratio;
  work.flash_shape = flash_shape(model, shape, true);
  add_merging(work, model, shape, true);
  return work;
}

Bytes key_value_size(const Transformer& model, const LayerShape& shape) {
  return element_size(shape.precision) *
         (static_cast<double>(shape.microbatch) * model.sequence *
          exchanged_key_heads(model, shape) * (model.key_width() + model.value_width()));
}

Bytes attended_size(const Transformer& model, const LayerShape& shape) {
  const double keys = model.key_width(), values = model.value_width();
  const double widths = model.heads * (keys + values) + model.kv_heads * (keys + values);
  return element_size(shape.precision) * (tokens(model, shape) * widths / shape.tensor);
}

namespace {
constexpr double cross_entropy_forward_share = 0.6;  // fitted with model E, docs/model.md

/// Logits on one rank: T V' / t elements.
double local_logits(const Transformer& model, const LayerShape& shape) {
  return tokens(model, shape) * padded_vocab(model, shape.tensor) / shape.tensor;
}

KernelWork head_pass(const Transformer& model, const LayerShape& shape, double cross_entropy_bytes,
                     bool backward) {
  const double columns = static_cast<double>(padded_vocab(model, shape.tensor)) / shape.tensor,
               share = cross_entropy_forward_share;
  KernelWork work;
  work.linear = {{tokens(model, shape), columns, static_cast<double>(model.hidden)}};
  if (backward) work.linear = backward_products(work.linear);
  work.memory_traffic =
      Bytes{(backward ? 1 - share : share) * cross_entropy_bytes * local_logits(model, shape)};
  return work;
}
}  // namespace

Bytes logits_size(const Transformer& model, const LayerShape& shape) {
  return element_size(shape.precision) * (local_logits(model, shape) * shape.tensor);
}

KernelWork head_forward(const Transformer& model, const LayerShape& shape,
                        double cross_entropy_bytes) {
  return head_pass(model, shape, cross_entropy_bytes, false);
}
KernelWork head_backward(const Transformer& model, const LayerShape& shape,
                         double cross_entropy_bytes) {
  return head_pass(model, shape, cross_entropy_bytes, true);
}

namespace {
std::vector<Gemm> joining_products(const Transformer& model, const LayerShape& shape) {
  constexpr double joined = 2;
  const double h = model.hidden;
  return std::vector<Gemm>(static_cast<std::size_t>(model.mtp_layers),
                           {tokens(model, shape), h / shape.tensor, joined * h});
}

/// Each depth embeds tokens, joins two hidden states, each read and written, and has three norms.
KernelWork prediction_pass(const Transformer& model, const LayerShape& shape, bool backward) {
  constexpr double norms = 3, joined = 4;
  constexpr int kernels = 5;
  if (model.mtp_layers == 0) return {};
  KernelWork work;
  work.memory_traffic =
      (embedding_pass(model, shape).memory_traffic +
       token_traffic(model, shape, (norms * norm_passes(backward) + joined) * two_bytes, 0, 0)) *
      model.mtp_layers;
  work.memory_kernels = kernels * model.mtp_layers;
  const std::vector<Gemm> products = joining_products(model, shape);
  work.linear = backward ? backward_products(products) : products;
  add_casts(work, products, shape, backward);
  return work;
}
}  // namespace

KernelWork prediction_forward(const Transformer& model, const LayerShape& shape) {
  return prediction_pass(model, shape, false);
}
KernelWork prediction_backward(const Transformer& model, const LayerShape& shape) {
  return prediction_pass(model, shape, true);
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

Flops product_flops(const std::vector<Gemm>& products) {
  Flops sum{};
  for (const Gemm& product : products) sum += product.flops();
  return sum;
}

Flops attention_core_flops(const Transformer& model, const LayerShape& shape) {
  const double s = model.sequence;
  const double widths = model.key_width() + model.value_width();
  return Flops{2 * local_heads(model, shape) * s * s * widths * shape.seen_share};
}

Flops head_flops(const Transformer& model, const LayerShape& shape) {
  return Flops{2 * tokens(model, shape) * model.hidden * model.vocab / shape.tensor} *
             (1 + model.mtp_layers) +
         product_flops(joining_products(model, shape));
}

}  // namespace windtunnel
