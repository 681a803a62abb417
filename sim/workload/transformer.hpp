#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "units/quantity.hpp"

namespace windtunnel {

/// Numeric format of weights and activations during the forward and backward pass.
enum class Precision { fp32, tf32, fp16, bf16 };
const char* name_of(Precision precision);

/// Bytes of one weight or activation element.
Bytes element_size(Precision precision);

/// What of the forward pass is computed again in the backward pass.
enum class Recompute {
  none,       ///< every activation is kept
  selective,  ///< only the attention core (scores, softmax, dropout, context); Korthikanti et al.
              ///< 2022
  full,       ///< only the input of each layer is kept
};
/// "none", "selective", "full"
const char* name_of(Recompute recompute);

enum class Attention {
  standard,  ///< scores are written to memory
  flash,     ///< scores never leave the chip; causal half only
};

/// A decoder-only transformer: what a model file says. All sizes are unpadded.
struct Transformer {
  std::string name;
  std::string family =
      "gpt";  ///< gpt | neox | bloom | llama: which biases, norms and positions it has
  int layers = 0;
  int hidden = 0;               ///< h
  int heads = 0;                ///< a
  int sequence = 0;             ///< s, tokens
  int vocab = 0;                ///< before padding
  int kv_heads = 0;             ///< key/value heads (grouped-query attention); = heads by default
  int ffn_hidden = 0;           ///< inner size of the MLP; 4 h by default
  bool gated_mlp = false;       ///< SwiGLU: three MLP matrices in place of two
  bool tied_embeddings = true;  ///< output head shares the word embedding
  bool rotary = false;          ///< no learned position table
  int vocab_divisor = 128;  ///< vocabulary is padded to a multiple of this times the tensor ways

  int head_size() const { return hidden / heads; }
  /// Biases on every matrix and on both norms; LLaMA has neither (Touvron et al. 2023,
  /// arXiv:2302.13971, 2.2).
  bool has_biases() const { return family != "llama"; }
  /// A learned position table; BLOOM has ALiBi in its place (arXiv:2211.05100, 3.2).
  bool has_learned_positions() const { return !rotary && family != "bloom"; }
  /// A norm behind the word embedding (BLOOM).
  bool has_embedding_norm() const { return family == "bloom"; }
  /// Width of queries, keys and values together: h + 2 kv_heads * head_size.
  double qkv_width() const { return hidden + 2.0 * kv_heads * head_size(); }
  /// Width of the first MLP product: 4h, or gate and up projection side by side.
  double mlp_input_width() const { return (gated_mlp ? 2.0 : 1.0) * ffn_hidden; }
};

/// Vocabulary padded to a multiple of vocab_divisor * tensor_ways (_vocab_size_with_padding in
/// megatron/tokenizer/tokenizer.py, Megatron-LM v2.5).
int padded_vocab(const Transformer& model, int tensor_ways);

/// One layer's parameters on one rank of `tensor_ways`: matrices and column biases sharded, row
/// biases and norms whole.
///   N = 12 h^2/t + 7 h/t + 6 h   for a plain GPT layer (docs/memory.md)
double layer_parameters(const Transformer& model, int tensor_ways);
/// The part of layer_parameters() that is matrix weights (what the gradient accumulation touches).
double layer_matrix_parameters(const Transformer& model, int tensor_ways);
/// Rows and columns of a weight matrix.
struct MatrixShape {
  double rows = 0, columns = 0;
};
/// One layer's weight matrices on one rank: QKV, projection, and the two (gated: wider first) of the MLP. Their elements add up
/// to layer_matrix_parameters().
std::vector<MatrixShape> layer_matrices(const Transformer& model, int tensor_ways);
/// Word embedding (padded) and learned positions on one rank of the first stage.
double embedding_parameters(const Transformer& model, int tensor_ways);
/// Word embedding shard alone: V' h / t.
double word_embedding_parameters(const Transformer& model, int tensor_ways);
/// Where the output head is: beside the word embedding, which it may then share, or on another stage, which needs a copy.
enum class HeadPlace { with_embedding, on_another_stage };
/// Final norm, and the second copy of tied words or the untied head, on one rank of the stage that holds the head.
double head_parameters(const Transformer& model, int tensor_ways, HeadPlace place);
/// All parameters of the model, counted once, vocabulary as given (the published count).
double total_parameters(const Transformer& model);

/// One matrix product C[M,N] += A[M,K] B[K,N], repeated `batch` times, in one kernel.
struct Gemm {
  double m = 0, n = 0, k = 0, batch = 1;
  Flops flops() const { return Flops{2 * m * n * k * batch}; }
};

/// What the GPU does in one part of a layer: the matrix products, the memory-bound traffic, the
/// kernels launched for it.
struct KernelWork {
  std::vector<Gemm>
      linear;  ///< weight products (QKV, projection, MLP), dgrad and wgrad in backward
  std::vector<Gemm> attention;  ///< batched score and context products
  Bytes memory_traffic{};       ///< bytes moved by memory-bound kernels (norms, dropout, softmax,
                                ///< residuals)
  int memory_kernels = 0;       ///< how many memory-bound kernels carry that traffic
  Flops flash{};  ///< flash-attention FLOPs, causal half (zero with standard attention)
};

/// The shape of one execution: how much of the model one rank sees at once.
struct LayerShape {
  int microbatch = 1;  ///< samples
  int tensor = 1;      ///< tensor-parallel ways
  bool sequence_parallel = false;
  Attention attention = Attention::standard;
  Precision precision = Precision::fp16;
  /// Whether mask and softmax are one kernel, as are bias and GeLU, and bias, dropout and residual.
  /// Else each is a kernel of its own.
  bool fused_kernels = true;
};

/// The two halves of a layer, each with its norm, dropout and residual. How the traffic and kernels that docs/model.md (model E) has
/// for the whole layer are divided between them is own; only their sum was fitted.
struct LayerWork {
  KernelWork attention, feed_forward;
};
/// Forward pass of one layer on one rank.
LayerWork layer_forward(const Transformer& model, const LayerShape& shape);
/// Backward pass (input and weight gradients) of one layer on one rank, without recomputation.
LayerWork layer_backward(const Transformer& model, const LayerShape& shape);
/// The attention core that selective recomputation runs again: the batched products, softmax and
/// dropout.
KernelWork attention_core_forward(const Transformer& model, const LayerShape& shape);
/// Output head: logits, and the cross-entropy's memory traffic (`cross_entropy_bytes` a logit, 0.6
/// of it forward).
KernelWork head_forward(const Transformer& model, const LayerShape& shape,
                        double cross_entropy_bytes);
KernelWork head_backward(const Transformer& model, const LayerShape& shape,
                         double cross_entropy_bytes);
/// Word embedding look-up, positions and dropout; forward and backward alike.
KernelWork embedding_pass(const Transformer& model, const LayerShape& shape);
/// One full activation tensor between layers or stages, T h elements.
Bytes activation_size(const Transformer& model, const LayerShape& shape);

/// FLOPs of one iteration that the model needs, counted once without recomputation, and with it.
/// Narayanan et al. 2021 eq. 3 (hardware, full recomputation): 96 B s l h^2 (1 + s/6h + V/16lh);
/// Korthikanti et al. 2022 eq. 7-9.
Flops model_flops(const Transformer& model, double global_batch);
Flops hardware_flops(const Transformer& model, double global_batch, Recompute recompute);

}  // namespace windtunnel
