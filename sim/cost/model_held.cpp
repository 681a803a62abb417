#include "cost/model_held.hpp"

#include <algorithm>

#include "core/contracts.hpp"
#include "cost/expert_exchange.hpp"

namespace windtunnel {
namespace {

constexpr Bytes single{4};  // of an fp32 value

/// Models of this family are trained without dropout [Touvron et al. 2023, arXiv:2302.13971, whose table 2 and section 2.3 have none; the
/// recipes of Megatron-LM, NeMo and torchtitan].
bool has_dropout(const Transformer& model) { return model.family != "llama"; }

/// Bytes per logit of the output head, `element` wide, on one of `ranks` ranks that share out the vocabulary.
Bytes logit_bytes(CrossEntropy kind, Bytes element, int ranks) {
  const bool is_half = element < single;
  switch (kind) {
    case CrossEntropy::in_place:
      return element;
    case CrossEntropy::fused:
      return element * 2.0;
    case CrossEntropy::vocab_parallel:
      return is_half ? element + single : element;
    case CrossEntropy::vocab_parallel_compiled:
      return (is_half ? element + single : element) + single;
    case CrossEntropy::vocab_parallel_copied:
      return single * 2.0;
    case CrossEntropy::plain:
      return single * (ranks > 1 ? 4.0 : 3.0);
    case CrossEntropy::plain_returned:
      return element + logit_bytes(CrossEntropy::plain, element, ranks);
    case CrossEntropy::plain_half:
      return element * (ranks > 1 ? 5.0 : 4.0);
    case CrossEntropy::chunked:
      break;
  }
  WT_UNREACHABLE();
}

/// The same of a plan.
Bytes logit_bytes(const Training& training, Bytes element, int tensor) {
  constexpr double chunks = 8;
  const int ranks = training.loss_parallel ? tensor : 1;
  if (training.cross_entropy != CrossEntropy::chunked)
    return logit_bytes(training.cross_entropy, element, ranks);
  return logit_bytes(training.compile ? CrossEntropy::fused : CrossEntropy::plain, element, ranks) /
         chunks;
}

/// ModelHeld::r_
Bytes passing_element(const Plan& plan, AdapterKernels adapters) {
  const bool is_prepared = has_single_adapters(adapters) && plan.parallel.zero_stage < 3 &&
                           plan.training.lora.frozen_type == FrozenType::nf4;
  return is_prepared ? single : element_size(plan.training.precision);
}

}  // namespace

ModelHeld::ModelHeld(const Transformer& model, const Plan& plan, KeptCopies copies,
                     AdapterKernels adapters)
    : model_(model),
      plan_(plan),
      copies_(copies),
      adapters_(adapters),
      s_(static_cast<double>(model.sequence) / plan.parallel.context),
      b_(plan.training.micro_batch),
      h_(model.hidden),
      f_(model.ffn_hidden / h_),
      d_(has_dropout(model) && plan.parallel.zero_stage != 3 ? 1 : 0),
      e_(element_size(plan.training.precision)),
      q_(operand_size(plan.training.precision)),
      r_(passing_element(plan, adapters)),
      keeps_casts_(is_quantized(plan.training.precision) && !plan.training.lora.is_used()),
      n_(r_ / e_) {
  if (!plan.training.compile) copies_.keeps_gate = copies_.keeps_norms = true;
  if (copies_.keeps_norms && model.has_rms_norms()) n_ = (single + r_) / e_;
}

void ModelHeld::freeze(Held& held) const {
  if (is_frozen()) held.frozen = held.parameters;
}

void ModelHeld::freeze(Held& held, LayerHalf half) const {
  freeze(held);
  if (is_frozen()) held.parameters.divided += adapter_parameters(model_, plan_.training.lora, half);
}

Bytes ModelHeld::between_adapters(LayerHalf half) const {
  const Lora& lora = plan_.training.lora;
  return kept_by_adapters(model_, lora, half, plan_.parallel.tensor, adapters_, e_) * (s_ * b_);
}

Divisible<Bytes> ModelHeld::weight_gradient(double rows, LayerHalf half) const {
  const Lora& lora = plan_.training.lora;
  if (!lora.is_used()) return {{}, e_ * (rows * h_)};
  double most = 0;
  for (const MatrixShape& matrix : adapted_matrices(model_, lora, half))
    most = std::max({most, matrix.rows, matrix.columns});
  return {{}, e_ * (most * lora.rank)};
}

double ModelHeld::gathered_inputs() const {
  return is_frozen() && plan_.parallel.sequence_parallel ? plan_.parallel.tensor : 1;
}

bool ModelHeld::keeps_input_of(std::initializer_list<LoraTarget> products) const {
  const Lora& lora = plan_.training.lora;
  return !lora.is_used() || std::any_of(products.begin(), products.end(),
                                        [&lora](LoraTarget each) { return lora.has(each); });
}

Divisible<Bytes> ModelHeld::attention_tensors() const {
  const bool is_flash = plan_.training.attention == Attention::flash;
  // Flash attention's own backward pass reads its output; the projection reads it, or the copy in the other order.
  const bool is_projected = keeps_input_of({LoraTarget::o_proj});
  const double outputs =
      is_flash ? (copies_.transposes_attention && is_projected ? 2 : 1) : (is_projected ? 1 : 0);
  // The layer's input, and what a norm of the output reads.
  const double inputs = n_ * model_.norms_of_attention();
  if (model_.mla) {
    const Transformer::LatentAttention& latent = *model_.mla;
    const double into = (latent.query_rank + latent.key_value_rank + latent.rope_size) / h_;
    const double keys = 2.0 * model_.heads * model_.key_width() / h_,
                 values = model_.heads_width() / h_;
    if (keeps_casts_)
      return {elements(inputs + into) + operands(1 + into) + tokens(d_),
              elements(keys + 2 * values) + operands(values)};
    return {elements(inputs + 1 + into) + tokens(d_), elements(keys + (1 + outputs) * values)};
  }
  const double groups = model_.kv_heads / static_cast<double>(model_.heads);
  // Width of all heads together, in hidden sizes.
  const double width = model_.given_head_size > 0 ? model_.heads_width() / h_ : 1;
  // Norms of queries and keys read what the projection gave.
  const double normed = model_.qk_norm == QueryKeyNorm::none ? 0 : n_ * (1 + groups);
  if (keeps_casts_)
    return {elements(inputs) + operands(1) + tokens(d_),
            elements((2 + 2 * groups + normed) * width) + operands(width)};
  const bool is_read =
      keeps_input_of({LoraTarget::q_proj, LoraTarget::k_proj, LoraTarget::v_proj}) ||
      (model_.norms == 1 && keeps_input_of({LoraTarget::gate_proj, LoraTarget::up_proj}));
  // A second copy of keys and values, or the repeated ones.
  const double copies = copies_.copies_heads && groups == 1 ? 2
                        : copies_.repeats_heads             ? 2 - 2 * groups
                                                            : 0;
  return {elements(inputs + (is_read ? gathered_inputs() : 0)) + tokens(d_) +
              between_adapters(LayerHalf::attention),
          elements((1 + 2 * groups + copies + normed + outputs) * width)};
}

Divisible<Bytes> ModelHeld::attention_saved() const {
  const double width = model_.heads_width() / h_;
  const double keys = model_.kv_heads / static_cast<double>(model_.heads) * width;
  const double sums = plan_.parallel.tensor > 1 ? 1 : 0;
  if (!saves_products()) return {elements(1 + sums), elements(width)};
  return {elements(1 + sums), elements(2 * width + keys)};
}

Held ModelHeld::attention() const {
  const double a = model_.heads;
  Held held;
  held.parameters = attention_parameters(model_);
  held.matrices = attention_matrices(model_);
  freeze(held, LayerHalf::attention);
  held.at(Kept::input).whole = r_ * (s_ * b_ * h_);
  held.at(Kept::saved) = attention_saved();
  held.at(Kept::tensors) = attention_tensors();
  if (model_.mla) {
    held.at(Kept::norm).whole = is_quantized(plan_.training.precision) ? operands(1) : elements(1);
    held.at(Kept::up_projected).divided =
        elements((2.0 * a * model_.key_width() + model_.heads_width()) / h_);
  }
  if (plan_.training.attention == Attention::flash) return held;
  const double scores = a * s_ * model_.sequence * b_;
  held.at(Kept::scores).divided = e_ * (2 * scores) + Bytes{d_ * scores};
  return held;
}

Held ModelHeld::feed_forward() const {
  // Inputs and outputs of norms. Attention has kept the layer's input if both halves read it, and the norm's output if they share it.
  const double normed = model_.norms == 1 ? 0 : 1;
  const double inputs = n_ * ((model_.parallel_residual ? 0 : 1) + (model_.norms > 2 ? 1 : 0));
  Held held;
  held.parameters = feed_forward_parameters(model_);
  held.matrices = feed_forward_matrices(model_);
  freeze(held, LayerHalf::feed_forward);
  if (saves_products()) held.at(Kept::saved).divided = elements(f_);
  held.at(Kept::module_input).whole = elements(normed);
  // Tensors of the inner width: the input of the nonlinearity, its output for the product with the gate, and the last matrix's input.
  const double nonlinear = model_.gated_mlp ? (copies_.keeps_gate ? 3 : 2) : 1;
  const double last = keeps_input_of({LoraTarget::down_proj}) ? 1 : 0;
  const double first =
      keeps_input_of({LoraTarget::gate_proj, LoraTarget::up_proj}) ? normed * gathered_inputs() : 0;
  held.at(Kept::tensors) = {
      elements(inputs + first) + tokens(d_) + between_adapters(LayerHalf::feed_forward),
      elements((nonlinear + last) * f_)};
  if (keeps_casts_)
    held.at(Kept::tensors) = {elements(inputs) + operands(normed) + tokens(d_),
                              elements((model_.gated_mlp ? 2 : 1) * f_) + operands(f_)};
  return held;
}

Bytes ModelHeld::probabilities() const { return single * (s_ * b_ * model_.moe->experts); }

Held ModelHeld::routing() const {
  Held held;
  held.parameters.whole = router_parameters(model_);
  held.matrices.whole = router_matrix(model_);
  freeze(held);
  const double routed = is_frozen() ? 0 : 1;
  held.at(Kept::tensors).whole =
      elements(routed + n_ * model_.norms_of_feed_forward()) + probabilities() + tokens(d_);
  held.at(Kept::norm).whole = elements(routed);
  held.at(Kept::module_input).whole = elements(2);
  return held;
}

Held ModelHeld::experts() const {
  const double f = model_.moe->ffn_hidden / h_;
  const double copies = model_.moe->top_k * expert_load(*model_.moe, plan_.parallel.expert).fullest;
  Held held;
  held.parameters.whole = expert_parameters(model_);
  held.matrices.whole = expert_matrices(model_);
  freeze(held);
  if (plan_.parallel.expert > 1) held.at(Kept::saved).whole = elements(2 * copies);
  if (is_frozen()) {
    held.at(Kept::tensors).divided = elements(copies * 2 * f);
    return held;
  }
  held.at(Kept::tensors) = {elements(copies), elements(copies * 3 * f)};
  held.at(Kept::activated).divided = keeps_casts_ ? operands(copies * f) : elements(copies * f);
  if (keeps_casts_)
    held.at(Kept::tensors) = {operands(copies), elements(copies * 2 * f) + operands(copies * f)};
  return held;
}

Held ModelHeld::shared_experts() const {
  const double f = model_.moe->shared_ffn_hidden / h_;
  Held held;
  held.parameters.divided = shared_expert_parameters(model_);
  held.matrices.divided = shared_expert_matrices(model_);
  freeze(held);
  const double nonlinear = model_.gated_mlp ? 2 : 1, last = is_frozen() ? 0 : 1;
  held.at(Kept::tensors).divided = elements((nonlinear + last) * f);
  if (keeps_casts_) held.at(Kept::tensors).divided = elements(nonlinear * f) + operands(f);
  return held;
}

Held ModelHeld::experts_backward() const {
  const double copies = model_.moe->top_k, f = model_.moe->ffn_hidden / h_;
  Held held;
  held.at(Kept::passing) = {elements(1 + copies),
                            elements(copies * (model_.gated_mlp ? 2 : 1) * f)};
  return held;
}

Held ModelHeld::embedding() const {
  Held held;
  held.parameters = embedding_parameters(model_, plan_.parallel.tensor);
  freeze(held);
  held.at(Kept::tensors).whole = tokens(d_);
  return held;
}

Held ModelHeld::head() const {
  Held held;
  held.parameters = head_parameters(model_, plan_.parallel.tensor, plan_.head_place());
  freeze(held);
  // For each depth of multi-token prediction: the inputs of its norms, and both hidden states concatenated.
  const bool casts = is_quantized(plan_.training.precision);
  const Bytes joined = casts ? operands(2) : elements(2);
  held.at(Kept::tensors).whole = (elements(3) + joined) * model_.mtp_layers;
  return held;
}

Held ModelHeld::message() const {
  Held held;
  held.at(Kept::tensors).whole = elements(1);
  return held;
}

Held ModelHeld::attention_backward() const {
  Held held;
  held.at(Kept::passing).whole = elements(1);
  held.at(Kept::weight_gradient) =
      weight_gradient(model_.mla ? model_.heads_width() : model_.qkv_width(), LayerHalf::attention);
  return held;
}

Held ModelHeld::feed_forward_backward() const {
  Held held;
  held.at(Kept::passing) = {elements(1), elements((model_.gated_mlp ? 2 : 1) * f_)};
  held.at(Kept::weight_gradient) =
      weight_gradient(model_.mlp_input_width(), LayerHalf::feed_forward);
  return held;
}

Held ModelHeld::embedding_backward() const {
  Held held;
  held.at(Kept::passing).whole = -elements(1);
  return held;
}

Held ModelHeld::head_backward() const {
  const Training& training = plan_.training;
  const int tensor = plan_.parallel.tensor;
  const double logits =
      s_ * b_ * padded_vocab(model_, tensor) * (training.loss_parallel ? 1 : tensor);
  Held held;
  held.at(Kept::logits).divided =
      logit_bytes(training, e_, tensor) * logits * (1 + model_.mtp_layers);
  held.at(Kept::head_input).whole = elements(n_ + 1);
  // The gradients of all chunks, of the head's input on every rank.
  if (training.cross_entropy == CrossEntropy::chunked)
    held.at(Kept::head_input).divided = single * (elements(1) / e_ * tensor);
  return held;
}

}  // namespace windtunnel
