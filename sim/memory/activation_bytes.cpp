#include "memory/activation_bytes.hpp"

#include <algorithm>

namespace windtunnel {
namespace {

constexpr double single_bytes = 4;  ///< of an fp32 value

/// The sizes of the formulas, as numbers.
struct Shape {
  double s, b, h, a, g, f, t;
  double replicated;  ///< ways by which tensors outside the tensor-parallel products are divided
  double d;           ///< bytes of one dropout mask's element
  bool sharded;       ///< ZeRO 3
  Bytes e;            ///< bytes of an element
  Bytes sbh(double bytes) const { return Bytes{bytes * s * b * h}; }
  Bytes elements(double count) const { return e * (count * s * b * h); }
};

Shape shape_of(const Transformer& model, const Plan& plan) {
  const auto h = static_cast<double>(model.hidden), a = static_cast<double>(model.heads);
  const auto t = static_cast<double>(plan.parallel.tensor);
  return {.s = static_cast<double>(model.sequence),
          .b = static_cast<double>(plan.training.micro_batch),
          .h = h,
          .a = a,
          .g = static_cast<double>(model.kv_heads) / a,
          .f = static_cast<double>(model.ffn_hidden) / h,
          .t = t,
          .replicated = plan.parallel.sequence_parallel ? t : 1,
          .d = plan.parallel.zero_stage == 3 ? 0.0 : 1.0,
          .sharded = plan.parallel.zero_stage == 3,
          .e = element_size(plan.training.precision)};
}

/// Replicated: two norm inputs, the inputs of QKV and of the MLP, two dropout masks. Divided: Q, K,
/// V, the projection's input, and of the MLP the inputs of the nonlinearity (two when gated) and of
/// the second matrix.
Bytes layer_bytes(const Shape& x, bool gated) {
  const double mlp = (gated ? 3 : 2) * x.f;
  return x.elements(4 / x.replicated) + x.sbh(2 * x.d / x.replicated) +
         x.elements((2 + 2 * x.g + mlp) / x.t);
}

Bytes score_bytes(const Shape& x, Attention attention) {
  if (attention == Attention::flash) return Bytes{};
  const double scores = x.a * x.s * x.s * x.b / x.t;
  return x.e * (2 * scores) + Bytes{x.d * scores};
}

Bytes passing_bytes(const Shape& x, bool gated) {
  return x.elements(2 / x.replicated + (gated ? 2 : 1) * x.f / x.t);
}

/// Megatron-LM keeps Q, K and V in one matrix and, when gated, both halves of the first MLP matrix
/// in one.
Bytes weight_gradient_bytes(const Shape& x, const Transformer& model) {
  return x.e * (std::max(model.qkv_width(), model.mlp_input_width()) * x.h / x.t);
}

/// Logits, their fp32 copy unless they are fp32 already, and fp32 exponentials. Fully sharded:
/// lambda = 4, the bound of the FSDP rows.
Bytes logit_bytes(const Shape& x, double vocab) {
  const double copies = x.e < Bytes{single_bytes} ? 2 : 1;
  const Bytes each = x.sharded ? Bytes{single_bytes} : x.e + Bytes{copies * single_bytes};
  return each * (x.s * x.b * vocab / x.t);
}

}  // namespace

ActivationBytes activation_bytes(const Transformer& model, const Plan& plan) {
  const Shape x = shape_of(model, plan);
  const auto vocab = static_cast<double>(padded_vocab(model, plan.parallel.tensor));
  return {.boundary = x.elements(1 / x.replicated),
          .layer = layer_bytes(x, model.gated_mlp),
          .attention_scores = score_bytes(x, plan.training.attention),
          .passing = passing_bytes(x, model.gated_mlp),
          .weight_gradient = weight_gradient_bytes(x, model),
          .embedding_mask = x.sbh(x.d / x.replicated),
          .logits = logit_bytes(x, vocab)};
}

}  // namespace windtunnel
