#pragma once

#include <initializer_list>

#include "cost/adapters.hpp"
#include "operations/held.hpp"
#include "plan/plan.hpp"
#include "platform/software_profile.hpp"
#include "workload/transformer.hpp"

namespace windtunnel {

/// Memory that the operations of a model hold before anything is split.
///
/// Symbols: s the rank's part of a sequence, b microbatch, h hidden, a heads, g = kv_heads/a, f = ffn_hidden/h, e bytes of an element, d bytes of an element of a
/// dropout mask, V' padded vocabulary; | stands between what a tensor group has whole and what it divides.
///   tensors of a layer, forward   sbh (4e + 2d | e (2 + 2g + c f)),   c = 2, gated MLP 3
///     each half: the inputs of its norm and first product, a dropout mask; attention also Q, K, V and the projection's input; the MLP the
///     inputs of the nonlinearity (two when gated) and of the second matrix
///   fp8, mxfp8, nvfp4: the inputs of products have q bytes an operand, and attention's output is kept twice, for its own backward pass and
///     cast for the projection:  sbh (2e + 2q + 2d | e (2 + 2g + (c - 1) f) + q (1 + f))   [own, from what Transformer Engine keeps]
///   attention scores              (| (2e + d) a s^2 b): scores, softmax, dropout; none with flash attention
///   latent attention: the latent vectors with the inputs, and queries, keys and values of their own widths
///   passing, backward             sbh (2e | e m f),   m = 1, gated MLP 2
/// Source: Korthikanti et al. 2022, section 4.1 and eq. 1-4, whose sums 10, 24 and 5 these are for g = d = 1, f = 4, e = 2; our
/// generalisation to grouped queries and gated MLPs counts their stored tensors [assumed]. Models of the llama family, and ZeRO 3, count
/// no dropout masks (d = 0): readings of FSDP rows bound 10 + 24 = 34 to 32 [docs/memory.md, section 7].
class ModelHeld {
 public:
  /// Layers that torch.compile does not fuse keep what stands between their operations, whatever the stack (`keeps_gate`, `keeps_norms`).
  ModelHeld(const Transformer& model, const Plan& plan, KeptCopies copies = {},
            AdapterKernels adapters = AdapterKernels::fused);

  /// With `copies_heads`, where each query has keys and values of its own, 5 for the 3 of Q, K and V.
  Held attention() const;
  Held feed_forward() const;
  /// Held by a layer with experts. Tokens of a rank: the norm's input and the router's, and fp32 probabilities; each token's copies as the
  /// experts' inputs, and the inputs of nonlinearity and second matrix, which are not kept by token but by copy. The output of a
  /// nonlinearity without a gate is kept before and after it is weighted by the router (TEGroupedMLP.forward in
  /// megatron/core/transformer/moe/experts.py, Megatron-Core 0.13; with a gate one kernel does both). Frozen, none keeps inputs of products.
  /// Parameters of experts stand as undivided: the tensor group does not divide them.
  Held routing() const;
  Held experts() const;
  Held shared_experts() const;
  Held embedding() const;
  Held head() const;
  /// A layer's output, e sbh.
  Held message() const;

  Held attention_backward() const;
  Held experts_backward() const;
  Held feed_forward_backward() const;
  /// The first stage sends no gradient on: one tensor less on its way.
  Held embedding_backward() const;
  /// Logits and what the loss makes of them (CrossEntropy), and what the last norm reads and gives.
  Held head_backward() const;

 private:
  Bytes tokens(double bytes) const { return Bytes{bytes * s_ * b_ * h_}; }
  Bytes elements(double count) const { return e_ * (count * s_ * b_ * h_); }
  Bytes operands(double count) const { return q_ * (count * s_ * b_ * h_); }
  /// Weight gradient of a matrix with this many rows and the hidden size as columns. Megatron-LM keeps Q, K and V in one matrix and, when
  /// gated, both halves of the first MLP matrix in one. With adapters, of the largest matrix of theirs.
  Divisible<Bytes> weight_gradient(double rows, LayerHalf half) const;

  bool is_frozen() const { return plan_.training.lora.is_used(); }
  /// Freezes the parameters, where there are adapters; of a half, adds those of its adapters.
  void freeze(Held& held) const;
  void freeze(Held& held, LayerHalf half) const;
  /// kept_by_adapters() of all tokens.
  Bytes between_adapters(LayerHalf half) const;
  /// True if the input of one of these products is kept for a weight gradient; that of a frozen product without an adapter is not.
  bool keeps_input_of(std::initializer_list<LoraTarget> products) const;

  /// Inputs of first products, in shares of the sequence where it is divided: adapters keep them as they were gathered
  /// (ParallelLinearAdapter in megatron/bridge/peft/utils.py without sequence_parallel_input_regather, Megatron-Bridge at 067f987).
  double gathered_inputs() const;

  /// The router's probabilities of each token for each expert, in fp32.
  Bytes probabilities() const;
  Divisible<Bytes> attention_tensors() const;
  /// False of nvfp4, whose products torchao gives to torch._scaled_mm, which is not on the list of what is saved.
  bool saves_products() const { return plan_.training.precision != Precision::nvfp4; }
  /// Kept if operations are recomputed: the layer's input, attention's output, queries and values, and the sum over the tensor group; of
  /// the MLP the first of its products.
  Divisible<Bytes> attention_saved() const;

  const Transformer& model_;
  const Plan& plan_;
  KeptCopies copies_;
  AdapterKernels adapters_;
  double s_, b_, h_, f_;
  double d_;
  Bytes e_, q_;
  /// Of an element of what passes from layer to layer: fp32 next to weights of 4 bits under PEFT, whose norms and embedding
  /// prepare_model_for_kbit_training() in peft/utils/other.py, PEFT 0.13, makes fp32; not under ZeRO 3, where trainers do not call it.
  Bytes r_;
  bool
      keeps_casts_;  ///< inputs of products are kept as operands, for the gradients of weights in a quantised format
  /// Elements that a norm keeps of each that it reads: its input; eager, an fp32 copy of it, or itself where it is fp32, and the normalised
  /// values.
  double n_;
};

}  // namespace windtunnel
