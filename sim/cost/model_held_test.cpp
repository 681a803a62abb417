#include "cost/model_held.hpp"

#include <doctest/doctest.h>

namespace windtunnel {
namespace {

Transformer small_model() {
  Transformer model;
  model.hidden = 256;
  model.heads = model.kv_heads = 8;
  model.sequence = 128;
  return model;
}

Plan flash_plan() {
  Plan plan;
  plan.training.micro_batch = 2;
  plan.training.precision = Precision::bf16;
  plan.training.attention = Attention::flash;
  return plan;
}

TEST_CASE("eight bits halve what is kept of the inputs of products") {
  Transformer model = small_model();
  model.ffn_hidden = 1024;
  Plan plan;
  plan.training.micro_batch = 2;
  plan.training.attention = Attention::flash;
  const double sbh = 128 * 2 * 256;
  const auto attention = [&] { return ModelHeld(model, plan).attention().at(Kept::tensors); };
  const auto mlp = [&] { return ModelHeld(model, plan).feed_forward().at(Kept::tensors); };
  plan.training.precision = Precision::bf16;
  // Norm's input, QKV's input and a mask: 2 + 2 + 1; Q, K, V and attention's output: 4 * 2
  CHECK(attention().whole == Bytes{5 * sbh});
  CHECK(attention().divided == Bytes{8 * sbh});
  CHECK(mlp().divided == Bytes{16 * sbh});  // inputs of nonlinearity and of MLP-out, 4 h each
  plan.training.precision = Precision::fp8;
  CHECK(attention().whole == Bytes{4 * sbh});    // QKV's input at 1
  CHECK(attention().divided == Bytes{9 * sbh});  // and attention's output once more, at 1
  CHECK(mlp().whole == Bytes{4 * sbh});
  CHECK(mlp().divided == Bytes{12 * sbh});  // 4 h at 2, 4 h at 1
}

TEST_CASE("each depth of multi-token prediction keeps its inputs and logits of its own") {
  Transformer model = small_model();
  model.vocab = 1024;
  Plan plan;
  plan.training.micro_batch = 1;
  plan.training.precision = Precision::bf16;
  const Bytes logits = ModelHeld(model, plan).head_backward().at(Kept::logits).divided;
  model.mtp_layers = 2;
  const ModelHeld held(model, plan);
  CHECK(held.head_backward().at(Kept::logits).divided == logits * 3);
  // Three norms' inputs and two hidden states side by side, at two bytes.
  CHECK(held.head().at(Kept::tensors).whole == Bytes{2.0 * 5 * 2 * 128 * 256});
}

TEST_CASE("what a recomputed module gives is a part of what is kept") {
  Transformer model;
  model.hidden = 256;
  model.heads = model.kv_heads = 8;
  model.sequence = 128;
  model.ffn_hidden = 1024;
  model.family = "llama";
  model.mla = Transformer::LatentAttention{};
  model.mla->query_rank = 64;
  model.mla->key_value_rank = 32;
  model.mla->key_size = model.mla->value_size = 32;
  model.mla->rope_size = 16;
  model.moe = Transformer::Experts{};
  model.moe->experts = 4;
  model.moe->top_k = 2;
  model.moe->ffn_hidden = 128;
  Plan plan;
  plan.training.micro_batch = 2;
  plan.training.attention = Attention::flash;
  plan.training.precision = Precision::bf16;
  const double tokens = 128 * 2;
  const ModelHeld held(model, plan);
  // Eight heads of 48 queries and keys, and 32 values, at two bytes.
  CHECK(held.attention().at(Kept::up_projected).divided == Bytes{2 * tokens * 8 * (48 + 48 + 32)});
  CHECK(held.attention().at(Kept::norm).whole == Bytes{2 * tokens * 256});
  CHECK(held.experts().at(Kept::activated).divided == Bytes{2 * tokens * 2 * 128});
  // The router's module stays with the input of the norm and what the norm gave.
  const Held routing = held.routing();
  CHECK(routing.at(Kept::tensors).whole - routing.at(Kept::module_input).whole ==
        Bytes{4 * tokens * 4});
  CHECK(held.feed_forward().at(Kept::module_input).whole == Bytes{2 * tokens * 256});
  // Without latent vectors nothing is projected up.
  model.mla.reset();
  CHECK(ModelHeld(model, plan).attention().at(Kept::up_projected).sum() == Bytes{});
  // In eight bits the inputs of products are kept at one.
  plan.training.precision = Precision::fp8;
  CHECK(ModelHeld(model, plan).experts().at(Kept::activated).divided == Bytes{tokens * 2 * 128});
}

TEST_CASE("a stack that copies heads keeps keys and values twice, but for grouped queries") {
  Transformer model = small_model();
  const Plan plan = flash_plan();
  const auto more = [&] {
    return ModelHeld(model, plan, {.copies_heads = true}).attention().at(Kept::tensors).divided -
           ModelHeld(model, plan).attention().at(Kept::tensors).divided;
  };
  CHECK(more() == Bytes{2.0 * 2 * 128 * 2 * 256});  // at two bytes
  model.kv_heads = model.heads / 2;
  CHECK(more() == Bytes{});
}

TEST_CASE("a stack that repeats grouped keys and values keeps those of all heads") {
  Transformer model = small_model();
  const Plan plan = flash_plan();
  const auto kept = [&](KeptCopies copies) {
    return ModelHeld(model, plan, copies).attention().at(Kept::tensors).divided;
  };
  const Bytes of_equal_heads = kept({});
  CHECK(kept({.repeats_heads = true}) == of_equal_heads);
  model.kv_heads = model.heads / 2;
  CHECK(kept({}) == of_equal_heads - Bytes{2.0 * 2 * 128 * 256});  // half of keys and values
  CHECK(kept({.repeats_heads = true}) == of_equal_heads);
}

TEST_CASE("flash attention with the batch first keeps its output in two orders") {
  const Transformer model = small_model();
  Plan plan;
  plan.training.micro_batch = 2;
  plan.training.precision = Precision::bf16;
  const auto more = [&] {
    return ModelHeld(model, plan, {.transposes_attention = true})
               .attention()
               .at(Kept::tensors)
               .divided -
           ModelHeld(model, plan).attention().at(Kept::tensors).divided;
  };
  plan.training.attention = Attention::flash;
  CHECK(more() == Bytes{2.0 * 128 * 2 * 256});
  plan.training.attention = Attention::standard;
  CHECK(more() == Bytes{});
}

TEST_CASE("what is saved where operations are recomputed: attention's output and some products") {
  Transformer model;
  model.family = "llama";
  model.hidden = model.ffn_hidden = 64;
  model.heads = model.kv_heads = 4;
  model.sequence = 16;
  model.moe = Transformer::Experts{};
  model.moe->experts = 8;
  model.moe->top_k = 2;
  model.moe->ffn_hidden = 64;
  Plan plan;
  plan.training.micro_batch = 1;
  plan.training.precision = Precision::bf16;
  const double sbh = 16 * 64;
  const auto saved = [&](auto part) {
    return ((ModelHeld(model, plan).*part)().at(Kept::saved).sum()) / Bytes{2 * sbh};
  };
  // Layer's input, attention's output, queries and values; the first product of the MLP; nothing of experts that are not exchanged.
  CHECK(saved(&ModelHeld::attention) == 1 + 1 + 1 + 1);
  CHECK(saved(&ModelHeld::feed_forward) == 1);
  CHECK(saved(&ModelHeld::experts) == 0);
  plan.parallel.expert = 4;
  CHECK(saved(&ModelHeld::experts) ==
        2 * 2);  // two copies of each token, on the way there and back
  plan.training.precision = Precision::nvfp4;
  CHECK(saved(&ModelHeld::attention) == 1 + 1);
  CHECK(saved(&ModelHeld::feed_forward) == 0);
}

TEST_CASE("each kind of loss holds its own copies of the logits") {
  Transformer model;
  model.vocab = 1024;
  model.sequence = 16;
  Plan plan;
  plan.training.micro_batch = 2;
  const auto of_one = [&](CrossEntropy loss, Precision precision = Precision::bf16) {
    plan.training.cross_entropy = loss;
    plan.training.precision = precision;
    return ModelHeld(model, plan).head_backward().at(Kept::logits).sum() /
           Bytes{16.0 * 2 * 1024 / plan.parallel.tensor};
  };
  CHECK(of_one(CrossEntropy::in_place) == 2);
  CHECK(of_one(CrossEntropy::fused) == 2 + 2);           // logits, gradients
  CHECK(of_one(CrossEntropy::vocab_parallel) == 2 + 4);  // logits, exponentials in fp32
  CHECK(of_one(CrossEntropy::vocab_parallel_compiled) == 2 + 4 + 4);
  CHECK(of_one(CrossEntropy::vocab_parallel_copied) == 4 + 4);
  CHECK(of_one(CrossEntropy::plain) == 4 + 4 + 4);  // log-softmax and two gradients
  CHECK(of_one(CrossEntropy::plain_returned) == 2 + 4 + 4 + 4);
  CHECK(of_one(CrossEntropy::plain_half) == 2 + 2 + 2 + 2);  // the logits too
  CHECK(of_one(CrossEntropy::chunked) == (2 + 2) / 8.0);     // of an eighth of the tokens
  plan.training.compile = false;
  CHECK(of_one(CrossEntropy::chunked) == (4 + 4 + 4) / 8.0);
  CHECK(of_one(CrossEntropy::vocab_parallel, Precision::fp32) == 4);
  CHECK(of_one(CrossEntropy::vocab_parallel_compiled, Precision::fp32) == 4 + 4);
  plan.parallel.tensor = 2;  // 1,024 words are a multiple of 2 * 128
  model.hidden = 64;
  CHECK(ModelHeld(model, plan).head_backward().at(Kept::head_input).whole ==
        Bytes{4.0 * 2 * 16 * 2 * 64});
  CHECK(ModelHeld(model, plan).head_backward().at(Kept::logits).divided ==
        Bytes{8.0 * 16 * 2 * 1024});
  plan.training.cross_entropy = CrossEntropy::plain;
  CHECK(ModelHeld(model, plan).head_backward().at(Kept::logits).divided ==
        Bytes{16.0 * 16 * 2 * 1024});
  // All logits on each of the two ranks, without the sum over them.
  plan.training.loss_parallel = false;
  CHECK(ModelHeld(model, plan).head_backward().at(Kept::logits).divided ==
        Bytes{12.0 * 16 * 2 * 1024 * 2});
  // The gradients of the head's input in fp32.
  plan.training.cross_entropy = CrossEntropy::chunked;
  CHECK(ModelHeld(model, plan).head_backward().at(Kept::head_input).divided ==
        Bytes{4.0 * 16 * 2 * 64 * 2});
}

TEST_CASE("a gated MLP of single kernels keeps the nonlinearity's output too") {
  Transformer model;
  model.sequence = 16;
  model.hidden = 64;
  model.ffn_hidden = 256;
  model.gated_mlp = true;
  Plan plan;
  plan.training.micro_batch = 1;
  const Bytes values{2 * 16.0 * 256};
  const auto kept = [&](KeptCopies copies) {
    return ModelHeld(model, plan, copies).feed_forward().at(Kept::tensors).divided;
  };
  CHECK(kept({.keeps_gate = true}) - kept({}) == values);
  plan.training.compile = false;  // in eager mode each stack does
  CHECK(kept({}) == kept({.keeps_gate = true}));
}

TEST_CASE(
    "RMSNorm of single kernels keeps its input in fp32, and what it multiplies by the weight") {
  Transformer model;
  model.family = "llama";
  model.sequence = 16;
  model.hidden = 64;
  model.heads = model.kv_heads = 4;
  Plan plan;
  plan.training.micro_batch = 1;
  const auto more = [&](const auto& held_by) {
    return held_by(ModelHeld(model, plan, {.keeps_norms = true})) - held_by(ModelHeld(model, plan));
  };
  const auto attention = [](const ModelHeld& held) {
    return held.attention().at(Kept::tensors).whole;
  };
  const auto feed_forward = [](const ModelHeld& held) {
    return held.feed_forward().at(Kept::tensors).whole;
  };
  const auto head = [](const ModelHeld& held) {
    return held.head_backward().at(Kept::head_input).whole;
  };
  // 4 + 2 bytes a value in place of 2.
  const Bytes of_norm{4 * 16.0 * 64};
  CHECK(more(attention) == of_norm);
  CHECK(more(feed_forward) == of_norm);
  CHECK(more(head) == of_norm);
  model.norm_bias = true;  // LayerNorm is one kernel
  CHECK(more(attention) == Bytes{});
  CHECK(more(head) == Bytes{});
}

}  // namespace
}  // namespace windtunnel
