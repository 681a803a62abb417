#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/enum_names.hpp"
#include "units/divisible.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// Numeric format of weights and activations during the forward and backward pass. The last three are those of the linear layers'
/// products alone, whose operands are cast to them; all else is bf16 (docs/model.md, "Eight and four bits").
enum class Precision {
  fp32,
  tf32,
  fp16,
  bf16,
  fp8,    ///< E4M3 and E5M2 with one scale a tensor
  mxfp8,  ///< E4M3 with a scale byte for 32 values (OCP MX)
  nvfp4,  ///< E2M1 with an E4M3 scale for 16 values, and one scale a tensor
};
/// True if linear layers cast the operands of their products: fp8, mxfp8, nvfp4.
bool is_quantized(Precision precision);
/// The format of all work other than those products: bf16 for a quantised format, else the format itself.
Precision base_precision(Precision precision);

/// Bytes of one weight or activation element, as it is kept and sent: that of the base precision.
Bytes element_size(Precision precision);
/// Bytes of one element as the linear layers' products read it, with its share of the block's scale.
Bytes operand_size(Precision precision);

/// Part of the forward pass that is computed again in the backward pass.
enum class Recompute {
  none,       ///< every activation is kept
  selective,  ///< some modules of a layer, of themselves its attention core (RecomputedModule)
  full,       ///< only the input of each layer is kept
};

/// Part of a layer that selective recomputation computes again: --recompute-modules of Megatron-Core 0.15.
enum class RecomputedModule : std::uint8_t {
  attention_core,  ///< scores, softmax, dropout, context ("core_attn")
  norms,  ///< those in front of experts, and of latent attention, whose kernels stand alone ("layernorm")
  up_projection,  ///< of latent attention: queries, keys and values from their latent vectors ("mla_up_proj")
  mlp,            ///< all of the MLP of layers without experts ("mlp")
  shared_experts,     ///< all of what every token takes ("shared_experts")
  expert_activation,  ///< nonlinearity of the experts ("moe_act")
  experts,            ///< router, exchanges and experts ("moe")
};

/// Modules of one plan.
class RecomputedModules {
 public:
  bool has(RecomputedModule module) const { return (bits_ & bit(module)) != 0; }
  void add(RecomputedModule module) { bits_ |= bit(module); }
  bool operator==(const RecomputedModules&) const = default;

  static constexpr auto all = enumerators<RecomputedModule>();
  /// The core of attention alone, as of Korthikanti et al. 2022, section 5.
  static RecomputedModules of_selective();
  static RecomputedModules none() { return {}; }

 private:
  static unsigned bit(RecomputedModule module) { return 1U << static_cast<unsigned>(module); }
  unsigned bits_ = 0;
};

enum class Attention {
  standard,  ///< scores are written to memory
  flash,     ///< scores never leave the chip; causal half only
};

/// Norms of queries and keys.
enum class QueryKeyNorm : std::uint8_t {
  none,
  heads,  ///< head by head, all with the same weights (Qwen 3)
  width,  ///< all heads at once (OLMo 2)
};

/// A decoder-only transformer: a file of models/, with everything that decides its matrix shapes, parameters and FLOPs and
/// nothing about how it is trained or split. All sizes are unpadded and counted in elements, layers or tokens. read_transformer() makes it.
/// The functions below count its parameters and the work of its layers, of which cost/ makes times and memory/ bytes:
///
///   GPT-3 175B: layers 96, hidden 12288, heads 96, sequence 2048, vocab 50257;  total_parameters() = 175e9
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
  int vocab_divisor = 128;  ///< vocabulary is padded to a multiple of this times the tensor degree
  int given_head_size = 0;  ///< where it is not h / a
  bool qkv_bias = false;  ///< on queries, keys and values, where the family has no biases (Qwen 2)
  std::optional<bool> projection_bias =
      std::nullopt;              ///< on attention's output; has_biases() by default
  bool attention_sinks = false;  ///< a learned score a head that no token belongs to (GPT-OSS)
  std::optional<bool> norm_bias =
      std::nullopt;  ///< norms add a vector (LayerNorm); has_biases() by default
  QueryKeyNorm qk_norm = QueryKeyNorm::none;
  int norms = 2;  ///< of a layer: norms_of_attention(), norms_of_feed_forward()
  /// Attention and feed-forward network both read the layer's input, x + attention(norm(x)) + ffn(norm(x)), so that a tensor group sums
  /// both outputs up at once (GPT-J, GPT-NeoX, PaLM, Falcon, Command R).
  bool parallel_residual = false;

  /// Layers whose tokens see no more than `size` tokens before them.
  struct Window {
    int size = 0;
    double every = 1;    ///< one layer in so many has it, of those from `from_layer` on
    int from_layer = 0;  ///< counted from 0
  };
  std::optional<Window> window = std::nullopt;

  /// Distribution of a layer's tokens over its experts, in one microbatch.
  struct ExpertBalance {
    double zipf = 0;  ///< the i-th busiest expert gets a share in proportion to 1 / i^zipf
    std::vector<double> shares;  ///< measured, of the experts of a layer; empty: by `zipf`
    /// Token i takes experts i k, i k + 1, … of E, counted on from the first after the last: NeMo AutoModel's FakeBalancedGate.
    bool consecutive = false;
    bool is_even() const { return zipf == 0 && shares.empty(); }
  };

  /// Feed-forward networks of which each token takes a few (mixture of experts: Shazeer et al. 2017, arXiv:1701.06538).
  struct Experts {
    int experts = 0;  ///< E, in a layer
    int top_k = 1;    ///< that a token goes to
    int ffn_hidden = 0;
    int shared_ffn_hidden = 0;  ///< of all shared experts together, which every token takes
    int dense_layers = 0;       ///< the first so many layers have the one network of `ffn_hidden`
    int every = 1;              ///< of the others, one in so many has experts
    int node_limit = 0;         ///< nodes that a token's experts may be on; 0: any number
    double capacity = 0;  ///< times its even share of tokens that an expert takes; 0: all that come
    bool bias = false;    ///< on the products of experts, shared ones included
    bool router_bias = false;  ///< on the router's product
    bool shared_gate = false;  ///< a token weighs what its shared experts give (Qwen 2)
    ExpertBalance balance;
  };
  std::optional<Experts> moe = std::nullopt;

  /// Queries, keys and values by way of narrow latent vectors (DeepSeek-V2, arXiv:2405.04434, section 2.1).
  struct LatentAttention {
    int query_rank = 0;  ///< 0: queries are made from the hidden state
    int key_value_rank = 0;
    int key_size = 0;   ///< of a head, without positions
    int rope_size = 0;  ///< of a head, with rotary positions; keys share it among all heads
    int value_size = 0;
  };
  std::optional<LatentAttention> mla = std::nullopt;

  /// Depths of multi-token prediction: each embeds the tokens once more, projects norms of that and of the depth before to one hidden
  /// state, and has a layer like the model's last, a norm, and the shared head with a loss of its own (DeepSeek-V3, arXiv:2412.19437,
  /// section 2.2; megatron/core/transformer/multi_token_prediction.py). All are counted with the head, in addition to `layers`.
  int mtp_layers = 0;

  /// True if layer `layer`, counted from 0, has experts.
  bool has_experts(int layer) const {
    return moe && layer >= moe->dense_layers && (layer - moe->dense_layers) % moe->every == 0;
  }
  /// The same of a layer of multi-token prediction.
  bool predicts_with_experts() const { return has_experts(layers - 1); }
  /// Layers with experts among `count` layers from `first` on.
  int expert_layers(int first, int count) const;

  /// Width of one head: of its queries and keys, and of its values.
  int key_width() const { return mla ? mla->key_size + mla->rope_size : head_size(); }
  int value_width() const { return mla ? mla->value_size : head_size(); }
  int head_size() const { return given_head_size > 0 ? given_head_size : hidden / heads; }
  /// Width of all heads together: h, unless the model gives another head size.
  double heads_width() const { return static_cast<double>(heads) * value_width(); }
  /// Pairs of a token and one that it sees, over those of whole causal attention, on average over `count` layers from `first` on.
  double seen_share(int first, int count) const;
  /// Biases on every matrix; LLaMA has none (Touvron et al. 2023, arXiv:2302.13971, 2.2).
  bool has_biases() const { return family != "llama"; }
  /// Norms of each half of a layer, attention's and the feed-forward network's: of its input, and of its output (Gemma 2). Halves that
  /// run in parallel may share the first.
  int norms_of_attention() const { return norms > 2 ? 2 : 1; }
  int norms_of_feed_forward() const { return norms - norms_of_attention(); }
  /// Norms without a bias are RMSNorm, with one LayerNorm.
  bool has_rms_norms() const { return !norm_bias.value_or(has_biases()); }
  /// Parameters of one norm.
  double norm_parameters() const { return (has_rms_norms() ? 1.0 : 2.0) * hidden; }
  /// A learned position table; BLOOM has ALiBi in its place (arXiv:2211.05100, 3.2).
  bool has_learned_positions() const { return !rotary && family != "bloom"; }
  /// A norm behind the word embedding (BLOOM).
  bool has_embedding_norm() const { return family == "bloom"; }
  /// Width of queries, keys and values together: (heads + 2 kv_heads) * head_size.
  double qkv_width() const { return heads_width() + 2.0 * kv_heads * head_size(); }
  /// Width of the first MLP product: 4h, or gate and up projection side by side.
  double mlp_input_width() const { return (gated_mlp ? 2.0 : 1.0) * ffn_hidden; }
};

/// Vocabulary padded to a multiple of vocab_divisor * tensor_parallel (_vocab_size_with_padding in
/// megatron/tokenizer/tokenizer.py, Megatron-LM v2.5).
int padded_vocab(const Transformer& model, int tensor_parallel);

/// Parameters of a layer's halves: matrices and column biases divided among a tensor group, row biases and norms whole.
///   together  N = 12 h^2 + 7 h divided, 6 h whole  for a plain GPT layer (docs/memory.md)
Divisible<double> attention_parameters(const Transformer& model);
Divisible<double> feed_forward_parameters(const Transformer& model);
/// The weight matrices among them, without norms and biases.
Divisible<double> attention_matrices(const Transformer& model);
Divisible<double> feed_forward_matrices(const Transformer& model);
/// Parameters of a layer with experts: norm and router; all its experts, undivided; the shared expert that every token takes, divided.
double router_parameters(const Transformer& model);
double expert_parameters(const Transformer& model);
double shared_expert_parameters(const Transformer& model);
/// The weight matrices of a layer's router, of all its experts, and of what every token takes.
double router_matrix(const Transformer& model);
double expert_matrices(const Transformer& model);
double shared_expert_matrices(const Transformer& model);
/// The matrix weights of one layer on one rank of `tensor_parallel` (what the gradient accumulation touches), on average over the layers;
/// without experts and routers.
double layer_matrix_parameters(const Transformer& model, int tensor_parallel);
/// The same on average over layers of which this share has experts.
double layer_matrix_parameters(const Transformer& model, int tensor_parallel, double with_experts);
/// A weight matrix on one rank: rows give the output, columns the input.
struct MatrixShape {
  double rows = 0, columns = 0;
  bool is_divided = true;  ///< among a tensor group
};
/// The weight matrices of a layer's attention on one rank: QKV and projection; of latent attention those into the latent vectors, out of
/// them, and the projection.
std::vector<MatrixShape> attention_shapes(const Transformer& model, int tensor_parallel);
/// The two matrices (gated: wider first) of an MLP of `width` columns on one of `tensor_parallel` ranks: a layer's own MLP, its shared
/// expert, or one of its experts.
std::vector<MatrixShape> mlp_shapes(const Transformer& model, int width, int tensor_parallel);
/// Word embedding, padded for a tensor group of `tensor_parallel` and divided among it, and learned positions: of the first stage.
Divisible<double> embedding_parameters(const Transformer& model, int tensor_parallel);
/// Word embedding shard alone: V' h / t.
double word_embedding_parameters(const Transformer& model, int tensor_parallel);
/// Place of the output head: on the stage of the word embedding, which it may then share, or on another stage, which needs a copy.
enum class HeadPlace { with_embedding, on_another_stage };
/// Final norm, and the second copy of tied words or the untied head, divided: of the stage that holds the head. With multi-token
/// prediction also its projections and norms and, on another stage, a copy of the words; its layers are counted as layers.
Divisible<double> head_parameters(const Transformer& model, int tensor_parallel, HeadPlace place);
/// All parameters of the model, counted once, vocabulary as given (the published count, without multi-token prediction).
double total_parameters(const Transformer& model);
/// Parameters that work on one token: all but the experts that it does not take.
double active_parameters(const Transformer& model);

/// One matrix product C[M,N] += A[M,K] B[K,N], repeated `batch` times, in one kernel.
struct Gemm {
  double m = 0, n = 0, k = 0, batch = 1;
  double group_rows = 0;  ///< tokens of each of the `batch` experts, where it is a grouped product
  bool one_by_one = false;  ///< the `batch` products are kernels of their own, one after another
  Flops flops() const { return Flops{2 * m * n * k * batch}; }
};

/// Shape that a flash-attention kernel works on, as far as its rate depends on it.
struct AttentionShape {
  double heads = 0;  ///< of the microbatch on one rank
  double queries = 0;
  double head_size = 0;
  bool causal = true;
  bool backward = false;
};

/// Work of the GPU in one part of a layer: the matrix products, the memory-bound traffic, the
/// kernels launched for it.
struct KernelWork {
  std::vector<Gemm>
      linear;  ///< weight products (QKV, projection, MLP), dgrad and wgrad in backward
  std::vector<Gemm> attention;  ///< batched score and context products
  Bytes memory_traffic{};       ///< bytes moved by memory-bound kernels (norms, dropout, softmax,
                                ///< residuals)
  int memory_kernels = 0;       ///< how many memory-bound kernels carry that traffic
  int looped_kernels = 0;       ///< of them, those that are launched for one expert after another
  int looped_calls =
      0;  ///< what the host does besides for one expert after another, each as long as a launch
  Flops flash{};  ///< flash-attention FLOPs, causal half (zero with standard attention)
  AttentionShape flash_shape;  ///< where `flash` is not zero
};

/// Bytes that a layer's memory-bound kernels move, at two bytes an element: so many for each element of the hidden state, of the
/// parts that tensor parallelism splits (for a feed-forward width of four hidden sizes), and of the attention scores. Their values
/// belong to the stack's kernels; those here are Megatron-LM's of 2021 (model E of docs/model.md).
struct LayerTraffic {
  struct Pass {
    double hidden = 0, split = 0, scores = 0;
    int kernels = 0;   ///< that carry it; more where few are fused
    double heads = 0,  ///< of each value of queries and keys, between their products and attention
        latent_heads = 0;  ///< the same of latent attention
  };
  Pass forward{22, 20, 9, 9}, backward{46, 60, 11, 18};
};

/// Launch method for the matrix products of a rank's experts and the casts in front of them.
enum class ExpertKernels {
  each_expert,  ///< one expert after another: GroupedLinear of Transformer Engine, split_quantize and multi-stream cuBLAS
  /// One kernel for all experts: Transformer Engine's grouped MLP of mid 2026. Its fusion with the nonlinearity is not modelled.
  all_experts,
  /// A loop of PyTorch over experts, whose tokens are sorted before it and put together after each product:
  /// JetMoeParallelExperts.forward in transformers/models/jetmoe/modeling_jetmoe.py, which Granite's experts are too (Transformers 4.48).
  one_by_one,
  /// A loop in which each expert waits for the indices of its tokens, copies these out of the layer's input and adds its results to the
  /// layer's output: MixtralSparseMoeBlock.forward in transformers/models/mixtral/modeling_mixtral.py, Transformers 4.48; likewise
  /// Qwen's, OLMoE's and others.
  indexed,
};

/// Kernels that compute the nonlinearity between the two products of an expert.
enum class ExpertActivation {
  fused,  ///< one kernel each way
  /// GPT-OSS clamps the values: each half is clamped and both are concatenated before that kernel: weighted_bias_quick_geglu_impl in
  /// megatron/core/fusions/fused_bias_geglu.py, Megatron-Core 0.14 to 0.18.
  clamped_apart,
  /// For models that Transformer Engine's fused grouped MLP of mid 2026 does not accept, such as those with sizes that 256 does not divide:
  /// _ScaledGLU in transformer_engine/pytorch/ops/basic/swiglu.py.
  by_operation,
};

/// The way a context-parallel ring merges the results of its steps: attention's output and, in the backward pass, the
/// gradients of queries, keys and values.
enum class RingMerging {
  uncounted,
  /// One kernel adds the output of a step, weighed by its softmax sum, to that of the steps before; after attention in fp8 all sums are
  /// fp32: AttnFuncWithCPAndKVP2P in transformer_engine/pytorch/attention.py, Transformer Engine 2.2.
  fused,
  /// Each operation is a kernel of its own, in fp32, and keys and values have been repeated for each query head: _SDPAMerger and
  /// _templated_ring_attention_backward in torch/distributed/tensor/experimental/_attention.py, PyTorch 2.9; repeat_kv in
  /// torchtitan/models/llama3/model/model.py, June 2025.
  by_operation,
};

/// The shape of one execution: how much of the model one rank sees at once.
struct LayerShape {
  int microbatch = 1;  ///< samples
  int tensor = 1;      ///< tensor-parallel degree
  int context = 1;     ///< parts of each sequence, of which the rank has one
  /// True for a ring, in which each rank attends to the keys of one part of the sequence after another; false if each rank attends with
  /// some of the heads to the whole sequence at once.
  bool attends_by_parts = false;
  RingMerging merging = RingMerging::uncounted;
  bool fp8_attention = false;
  double seen_share = 1;  ///< Transformer::seen_share() of the layers at hand
  bool sequence_parallel = false;
  Attention attention = Attention::standard;
  Precision precision = Precision::fp16;
  /// True if mask and softmax are one kernel, bias and GeLU another, and bias, dropout and residual a third.
  /// Else each is a kernel of its own.
  bool fused_kernels = true;
  LayerTraffic traffic{};
  /// For quantised precisions: true if a tensor is read once more to find its largest value before it is cast (current scaling), and
  /// true if weights are cast in every pass (their casts are not kept).
  bool reads_for_scale = false, casts_weights = false;
  double operand_copies = 2;  ///< that a cast writes
  bool frozen =
      false;  ///< weights have no gradients, for which activations would be cast by columns
  bool scales_fp8_blocks = false;  ///< precision fp8 has a scale for each block (Fp8Recipe::block)
  /// Share of the memory rate that casts with one scale per row attain. 0: operands have one scale.
  double row_cast_efficiency = 0;
  int expert = 1, expert_tensor = 1;  ///< degrees of expert and expert tensor parallelism
  double expert_load = 1;             ///< tokens of the rank that has most of them, over the mean
  ExpertKernels expert_kernels = ExpertKernels::each_expert;
  /// True if an expert's weights are a slice of the tensor of all experts, whose gradient PyTorch adds expert by expert.
  bool stacked_experts = false;
  ExpertActivation expert_activation = ExpertActivation::fused;
  double expert_room = 1;  ///< rows of the buffers of experts, over the tokens that come
  /// True if tokens that arrive from other ranks are put in the order of experts, and back before they leave.
  bool sorts_arrived_tokens = false;
  /// True if copies of tokens are padded, expert by expert, to the rows that products in eight bits ask for.
  bool pads_experts = false;
  /// True if biases of experts are added in kernels of their own; true if those compute in fp32, as the routers' weights are.
  bool adds_expert_biases = false, weighs_in_fp32 = false;
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
/// The part of a layer's forward pass that runs again when recomputation is per operation (RecomputedUnit::operations in
/// platform/software_profile.hpp): nothing reads what the last product gives. Selective recomputation has saved attention's core, every
/// second of the products, counted matrix by matrix, and the largest values of what is cast.
LayerWork layer_again(const Transformer& model, const LayerShape& shape, Recompute recompute);
/// A layer's experts on one rank, in the order of the forward pass. Tokens are cut among the tensor group, as sequence parallelism
/// does.
struct ExpertWork {
  /// Norm, router, choice of experts, and tokens put in the order of their experts.
  KernelWork routing;
  KernelWork shared;   ///< what every token takes
  KernelWork experts;  ///< grouped products, and the nonlinearity between them
  KernelWork merging;  ///< tokens put back, weighed and added to the residual
};
ExpertWork experts_forward(const Transformer& model, const LayerShape& shape);
ExpertWork experts_backward(const Transformer& model, const LayerShape& shape);
/// Tokens of one rank before they go to their experts, T / t.
double local_tokens(const Transformer& model, const LayerShape& shape);

/// The attention core that selective recomputation runs again: the batched products, softmax and
/// dropout.
KernelWork attention_core_forward(const Transformer& model, const LayerShape& shape);
/// A norm in a kernel of its own, which reads and writes each value of the rank's tokens once.
KernelWork norm_forward(const Transformer& model, const LayerShape& shape);
/// Latent attention's products that make queries, keys and values of the latent vectors, with the casts of their inputs.
KernelWork up_projection_forward(const Transformer& model, const LayerShape& shape);
/// The nonlinearity between the products of a rank's experts.
KernelWork expert_activation_forward(const Transformer& model, const LayerShape& shape);
/// The same backward, of flash attention alone.
KernelWork flash_core_backward(const Transformer& model, const LayerShape& shape);
/// Keys and values of whole sequences, as many heads of them as one rank has of a tensor group.
Bytes key_value_size(const Transformer& model, const LayerShape& shape);
/// Queries, keys, values and attention's output of the tokens of one rank.
Bytes attended_size(const Transformer& model, const LayerShape& shape);
/// The logits of a rank's tokens for the whole vocabulary.
Bytes logits_size(const Transformer& model, const LayerShape& shape);
/// Output head: logits, and the cross-entropy's memory traffic (`cross_entropy_bytes` for each of the rank's share of the logits, 0.6 of it
/// forward).
KernelWork head_forward(const Transformer& model, const LayerShape& shape,
                        double cross_entropy_bytes);
KernelWork head_backward(const Transformer& model, const LayerShape& shape,
                         double cross_entropy_bytes);
/// Kernels that make the inputs of the layers of multi-token prediction, and the norms behind them.
KernelWork prediction_forward(const Transformer& model, const LayerShape& shape);
KernelWork prediction_backward(const Transformer& model, const LayerShape& shape);
/// Word embedding look-up, positions and dropout; forward and backward alike.
KernelWork embedding_pass(const Transformer& model, const LayerShape& shape);
/// One full activation tensor between layers or stages, T h elements.
Bytes activation_size(const Transformer& model, const LayerShape& shape);

/// FLOPs of one microbatch's forward pass on one rank as publications count them (Narayanan et al. 2021 eq. 3; Korthikanti et al. 2022
/// eq. 7-9): 2 per weight and token, two s x s products counted whole, without the causal half (of windows the share that is seen), logits of the unpadded vocabulary. The
/// backward pass costs twice as much.
Flops product_flops(const std::vector<Gemm>& products);
Flops attention_core_flops(const Transformer& model, const LayerShape& shape);
/// FLOPs of all output heads and of the projections of multi-token prediction.
Flops head_flops(const Transformer& model, const LayerShape& shape);

}  // namespace windtunnel
