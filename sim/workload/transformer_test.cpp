#include "workload/transformer.hpp"

#include <doctest/doctest.h>

namespace windtunnel {
namespace {

Transformer model(const char* family, int layers, int hidden, int heads, int sequence, int vocab) {
  Transformer m;
  m.family = family;
  m.layers = layers;
  m.hidden = hidden;
  m.heads = m.kv_heads = heads;
  m.ffn_hidden = 4 * hidden;
  m.sequence = sequence;
  m.vocab = vocab;
  return m;
}

TEST_CASE("parameters of LLaMA-2 7B and 70B are the published counts") {
  Transformer m = model("llama", 32, 4096, 32, 4096, 32000);
  m.ffn_hidden = 11008;
  m.gated_mlp = m.rotary = true;
  m.tied_embeddings = false;
  // 2*32000*4096 + 32*(4*4096^2 + 3*4096*11008 + 2*4096) + 4096
  CHECK(total_parameters(m) == 6738415616.0);
  m.layers = 80;
  m.hidden = 8192;
  m.heads = 64;
  m.kv_heads = 8;
  m.ffn_hidden = 28672;
  CHECK(total_parameters(m) == 68976648192.0);
}

TEST_CASE("a head size of its own, biases on queries, keys and values, and norms of heads count") {
  Transformer m = model("llama", 1, 64, 4, 32, 100);
  m.tied_embeddings = false;
  const double plain = total_parameters(m);
  m.given_head_size = 32;  // twice the width of queries, keys, values and their projection
  CHECK(total_parameters(m) == plain + 4 * 64 * 64);
  m.qkv_bias = true;
  CHECK(total_parameters(m) == plain + 4 * 64 * 64 + 3 * 4 * 32);
  m.qk_norm = QueryKeyNorm::heads;
  CHECK(total_parameters(m) == plain + 4 * 64 * 64 + 3 * 4 * 32 + 2 * 32);
  const LayerWork work = layer_forward(m, {});
  CHECK(work.attention.linear[0].n == 3 * 4 * 32);
  CHECK(work.attention.linear[1].k == 4 * 32);
}

TEST_CASE("experts that are quantised one by one launch kernels of their own") {
  Transformer m = model("llama", 2, 64, 4, 8, 100);
  m.moe = Transformer::Experts{};
  m.moe->experts = 8;
  m.moe->ffn_hidden = 32;
  LayerShape shape, quantised;
  shape.expert = quantised.expert = 2;  // four experts a rank, of two products each
  quantised.precision = Precision::mxfp8;
  const int forward = experts_forward(m, shape).experts.memory_kernels;
  const int backward = experts_backward(m, shape).experts.memory_kernels;
  // One cast for each product, or two where weights are cast too, and one for each product of each expert.
  const int casts = quantised.casts_weights ? 4 : 2;
  CHECK(experts_forward(m, quantised).experts.memory_kernels == forward + casts + 4 * 2);
  CHECK(experts_backward(m, quantised).experts.memory_kernels == backward + casts + 4 * 2);
  // One scale for a tensor: its largest value is cleared and found, then the scale, and the cast.
  quantised.precision = Precision::fp8;
  quantised.reads_for_scale = true;
  CHECK(experts_forward(m, quantised).experts.looped_kernels == 4 * 2 * 4);
  CHECK(experts_backward(m, quantised).experts.looped_kernels == 4 * 2 * 4);
  quantised.reads_for_scale = false;  // with past scales one kernel casts for all
  CHECK(experts_forward(m, quantised).experts.looped_kernels == 0);
  // The weight looked up, and the gradient handed over, which needs no quantisation.
  CHECK(experts_forward(m, quantised).experts.looped_calls == 4 * 2);
  CHECK(experts_forward(m, shape).experts.looped_calls == 0);
  CHECK(experts_backward(m, shape).experts.looped_calls == 4 * 2);
  quantised.expert_kernels = ExpertKernels::all_experts;
  CHECK(experts_forward(m, quantised).experts.memory_kernels == forward + casts);
}

TEST_CASE(
    "a loop of PyTorch over experts copies tokens by index and adds whole inputs and tensors") {
  Transformer m = model("llama", 2, 64, 4, 8, 100);
  m.moe = Transformer::Experts{};
  m.moe->experts = 8;
  m.moe->top_k = 2;
  m.moe->ffn_hidden = 32;
  LayerShape grouped;
  grouped.expert = 2;  // four experts a rank, each of two products with 64 x 32 weights, on 4 rows
  const auto with = [&](ExpertKernels kernels, bool stacked) {
    LayerShape shape = grouped;
    shape.expert_kernels = kernels;
    shape.stacked_experts = stacked;
    return shape;
  };
  const LayerShape sorted = with(ExpertKernels::one_by_one, false),
                   indexed = with(ExpertKernels::indexed, false);
  const double input = 2 * 8 * 64;  // bytes of the layer's input, of which each copy is as large
  const auto more = [&](KernelWork ExpertWork::*part, const LayerShape& shape, bool backward) {
    const auto of = [&](const LayerShape& each) {
      return ((backward ? experts_backward : experts_forward)(m, each).*part).memory_traffic;
    };
    return (of(shape) - of(grouped)).value();
  };
  // Instead of a read and two copies written: both copies read and written; backward both added, to zeros that are added once or for each.
  CHECK(more(&ExpertWork::routing, sorted, false) == (2 * 2 - 3) * input);
  CHECK(more(&ExpertWork::routing, sorted, true) == (3 * 2 + 4 - 3) * input);
  CHECK(more(&ExpertWork::routing, indexed, true) == (3 * 2 + 4 * 4 - 3) * input);
  // Instead of two copies read (backward twice) and one written.
  CHECK(more(&ExpertWork::merging, sorted, false) == (5 * 2 - 3) * input);
  CHECK(more(&ExpertWork::merging, indexed, true) == (8 * 2 - 5) * input);
  // Results of both products put together, 32 and 64 values of 4 rows in 4 experts; backward gradients of 64 and 32.
  CHECK(more(&ExpertWork::experts, sorted, false) == 2 * 2 * 4 * 4 * (32 + 64));
  CHECK(more(&ExpertWork::experts, sorted, true) == 2 * 2 * 4 * 4 * (64 + 32));
  CHECK(more(&ExpertWork::experts, indexed, false) == 0);
  // Zeros for each of four experts, three sums of three tensors, and the slices copied: for two tensors of 4 x 64 x 32.
  const auto stacked = [&](LayerShape shape, bool backward) {
    const double apart = more(&ExpertWork::experts, shape, backward);
    shape.stacked_experts = true;
    return more(&ExpertWork::experts, shape, backward) - apart;
  };
  CHECK(stacked(indexed, false) == 0);
  CHECK(stacked(indexed, true) == 2 * 2 * 4 * 64 * 32 * (4 + 3 * 3 + 2));
  LayerShape frozen = indexed;
  frozen.frozen = true;
  CHECK(stacked(frozen, true) == 0);
  for (const Gemm& product : experts_backward(m, indexed).experts.linear) {
    CHECK(product.one_by_one);
    CHECK(product.batch == 4);
    CHECK(product.group_rows == 0);
  }
  const int launched = experts_forward(m, indexed).experts.memory_kernels -
                       experts_forward(m, grouped).experts.memory_kernels;
  CHECK(launched == 4 * 13);
}

Transformer model_with_biased_experts() {
  Transformer m = model("llama", 2, 64, 4, 8, 100);
  m.moe = Transformer::Experts{};
  m.moe->experts = 8;
  m.moe->top_k = 2;
  m.moe->ffn_hidden = 32;
  m.moe->bias = true;
  return m;
}

TEST_CASE("padding copies tokens and results, and biases are added in kernels of their own") {
  const Transformer m = model_with_biased_experts();
  LayerShape plain;
  plain.expert = 2;
  plain.precision = Precision::mxfp8;
  const double values = 8 * 2 * 64;  // tokens, copies of each, values of each
  const auto more = [&](const LayerShape& shape, bool backward) {
    const auto experts = [&](const LayerShape& each) {
      return (backward ? experts_backward(m, each) : experts_forward(m, each)).experts;
    };
    return (experts(shape).memory_traffic - experts(plain).memory_traffic).value();
  };
  LayerShape padded = plain;
  padded.pads_experts = true;
  // Two copies, each read and written at two bytes.
  CHECK(more(padded, false) == doctest::Approx(8 * values));
  CHECK(more(padded, true) == doctest::Approx(8 * values));
  padded.precision = plain.precision = Precision::bf16;
  CHECK(more(padded, false) == 0);
  LayerShape biased = plain;
  biased.adds_expert_biases = true;
  CHECK(more(biased, false) == doctest::Approx(12 * values));
  CHECK(more(biased, true) == doctest::Approx(16 * values));
  biased.weighs_in_fp32 = true;
  CHECK(more(biased, false) == doctest::Approx(28 * values));
  CHECK(more(biased, true) == doctest::Approx(40 * values));
  CHECK(experts_forward(m, biased).experts.looped_kernels == 4 * 2);  // four experts a rank
}

TEST_CASE("clamps and single operations move more than a fused nonlinearity, on empty room too") {
  Transformer m = model_with_biased_experts();
  m.gated_mlp = true;
  LayerShape shape;
  shape.precision = Precision::bf16;
  shape.adds_expert_biases = true;
  const double values = 8 * 2 * 32, copied = 8 * 2 * 64;  // that are given, and of the copies
  const auto moved = [&](bool backward) {
    return (backward ? experts_backward(m, shape) : experts_forward(m, shape))
        .experts.memory_traffic.value();
  };
  const double forward = moved(false), backward = moved(true);
  shape.expert_activation = ExpertActivation::clamped_apart;
  CHECK(moved(false) - forward == doctest::Approx(16 * values));
  CHECK(moved(true) - backward == doctest::Approx(20 * values));
  CHECK(expert_activation_forward(m, shape).memory_traffic.value() ==
        doctest::Approx((6 + 16) * values));
  // The fused kernel's 6 and 18 bytes go. Biases, 12 and 16 bytes a value copied, see the room as well.
  shape.expert_activation = ExpertActivation::by_operation;
  shape.expert_room = 1.5;
  CHECK(moved(false) - forward == doctest::Approx((1.5 * 18 - 6) * values + 0.5 * 12 * copied));
  CHECK(moved(true) - backward == doctest::Approx((1.5 * 40 - 18) * values + 0.5 * 16 * copied));
}

TEST_CASE("parts of a layer that run again are parts of its forward pass") {
  Transformer m = model("llama", 2, 64, 4, 8, 100);
  m.moe = Transformer::Experts{};
  m.moe->experts = 8;
  m.moe->ffn_hidden = 32;
  m.mla = Transformer::LatentAttention{};
  m.mla->query_rank = 24;
  m.mla->key_value_rank = 16;
  m.mla->key_size = m.mla->value_size = 16;
  m.mla->rope_size = 8;
  LayerShape shape;
  shape.tensor = 2;
  const KernelWork up = up_projection_forward(m, shape);
  const std::vector<Gemm> all = layer_forward(m, shape).attention.linear;
  REQUIRE(up.linear.size() == 2);
  CHECK(up.linear[0].k == 24);
  CHECK(up.linear[0].n == 4 * (16 + 8) / 2);
  CHECK(up.linear[1].k == 16);
  CHECK(up.linear[1].n == 4 * (16 + 16) / 2);
  CHECK(up.linear[0].flops() == all[1].flops());
  CHECK(up.linear[1].flops() == all[3].flops());
  m.mla->query_rank = 0;  // queries are made of the layer's input
  CHECK(up_projection_forward(m, shape).linear[0].k == 64);
  CHECK(norm_forward(m, shape).memory_traffic == Bytes{2 * 2 * 8 * 64});
  shape.sequence_parallel = true;
  CHECK(norm_forward(m, shape).memory_traffic == Bytes{2 * 2 * 8 * 64 / 2});
  CHECK(expert_activation_forward(m, shape).memory_traffic <
        experts_forward(m, shape).experts.memory_traffic + Bytes{1});
}

TEST_CASE("tokens from other ranks are sorted where the dispatcher does so") {
  Transformer m = model("llama", 2, 64, 4, 8, 100);
  m.moe = Transformer::Experts{};
  m.moe->experts = 8;
  m.moe->top_k = 2;
  m.moe->ffn_hidden = 32;
  LayerShape plain;
  plain.expert = 2;
  LayerShape sorts = plain;
  sorts.sorts_arrived_tokens = true;
  // Each copy is read and written before the experts, and again behind them: 8 tokens, 2 copies, 64 values of 2 bytes.
  const Bytes sorted{2.0 * 8 * 2 * 64 * 2};
  for (const auto& pass : {experts_forward, experts_backward}) {
    const ExpertWork before = pass(m, plain), after = pass(m, sorts);
    CHECK(after.routing.memory_traffic - before.routing.memory_traffic == sorted);
    CHECK(after.merging.memory_traffic - before.merging.memory_traffic == sorted);
  }
  sorts.expert = plain.expert = 8;  // one expert a rank: nothing to sort
  CHECK(experts_forward(m, sorts).routing.memory_traffic ==
        experts_forward(m, plain).routing.memory_traffic);
}

TEST_CASE("a window leaves the pairs out that are too far apart") {
  Transformer m = model("llama", 2, 64, 4, 8, 100);
  CHECK(m.seen_share(0, 2) == 1);
  m.window = Transformer::Window{2, 1};
  // Each of 8 tokens sees itself and the one before, as a share of area: 2 * 8 - 2 * 2 / 2 = 14 of 8 * 8 / 2 = 32.
  CHECK(m.seen_share(0, 2) == 14.0 / 32);
  m.window->every = 2;
  CHECK(m.seen_share(0, 2) == (1 + 14.0 / 32) / 2);
  LayerShape shape;
  shape.attention = Attention::flash;
  const Flops whole = layer_forward(model("llama", 2, 64, 4, 8, 100), shape).attention.flash;
  shape.seen_share = m.seen_share(0, 2);
  CHECK(layer_forward(m, shape).attention.flash.value() ==
        doctest::Approx(whole.value() * shape.seen_share));
  m.window->size = 8;
  CHECK(m.seen_share(0, 2) == 1);
}

TEST_CASE("a window begins at a layer, and layers before it see all") {
  Transformer m = model("llama", 28, 64, 4, 8, 100);
  m.window = Transformer::Window{2, 1, 21};
  CHECK(m.seen_share(0, 14) == 1);
  CHECK(m.seen_share(14, 14) == (1 + 14.0 / 32) / 2);  // layers 21 to 27
  CHECK(m.seen_share(0, 28) == doctest::Approx(1 - (1 - 14.0 / 32) / 4));
  m.window->from_layer = 28;  // Qwen 2.5 as published
  CHECK(m.seen_share(0, 28) == 1);
}

TEST_CASE(
    "norms behind the halves of a layer and a norm that they share count, in bytes moved too") {
  Transformer m = model("llama", 1, 64, 4, 8, 100);
  const LayerShape shape;
  const double plain = total_parameters(m);
  const LayerWork two = layer_forward(m, shape), two_back = layer_backward(m, shape);
  m.norms = 4;
  CHECK(total_parameters(m) == plain + 2 * 64);
  // Read and written at two bytes: 8 tokens of 64 values; backward read twice, written once.
  const LayerWork four = layer_forward(m, shape);
  CHECK(four.attention.memory_traffic - two.attention.memory_traffic == Bytes{2.0 * 2 * 8 * 64});
  CHECK(four.feed_forward.memory_traffic - two.feed_forward.memory_traffic ==
        Bytes{2.0 * 2 * 8 * 64});
  CHECK(layer_backward(m, shape).attention.memory_traffic - two_back.attention.memory_traffic ==
        Bytes{3.0 * 2 * 8 * 64});
  m.norms = 1;
  CHECK(total_parameters(m) == plain - 64);
  CHECK(two.feed_forward.memory_traffic - layer_forward(m, shape).feed_forward.memory_traffic ==
        Bytes{2.0 * 2 * 8 * 64});
  m.norm_bias = true;
  CHECK(total_parameters(m) == plain - 64 + 2 * 64);  // the layer's and the final one
}

TEST_CASE("the norm before experts and biases of experts are those of the family") {
  Transformer m = model("gpt", 1, 64, 4, 8, 100);
  m.moe = Transformer::Experts{};
  m.moe->experts = 4;
  m.moe->ffn_hidden = 128;
  CHECK(router_parameters(m) == 64 * 4 + 2 * 64);
  CHECK(expert_parameters(m) == 4 * (2 * 64 * 128));
  m.moe->bias = m.moe->router_bias = m.moe->shared_gate = true;
  CHECK(router_parameters(m) == 64 * 4 + 2 * 64 + 4 + 64);
  CHECK(expert_parameters(m) == 4 * (2 * 64 * 128 + 128 + 64));
  m.gated_mlp = true;
  CHECK(expert_parameters(m) == 4 * (3 * 64 * 128 + 2 * 128 + 64));
  m.family = "llama";
  CHECK(router_parameters(m) == 64 * 4 + 64 + 4 + 64);
}

TEST_CASE("parameters of GPT-NeoX 20B and BLOOM 176B are the published counts") {
  Transformer neox = model("neox", 44, 6144, 64, 2048, 50432);
  neox.rotary = true;
  neox.tied_embeddings = false;
  CHECK(total_parameters(neox) == 20554567680.0);
  CHECK(total_parameters(model("bloom", 70, 14336, 112, 2048, 250880)) == 176247271424.0);
}

TEST_CASE("one rank's layer has 12 h^2/t + 7 h/t + 6 h parameters") {
  const Transformer m = model("gpt", 2, 1024, 16, 1024, 50257);
  CHECK(attention_parameters(m).on_rank(4) + feed_forward_parameters(m).on_rank(4) ==
        12.0 * 1024 * 1024 / 4 + 7.0 * 1024 / 4 + 6 * 1024);
}

TEST_CASE("the vocabulary is padded to a multiple of 128 t") {
  const Transformer m = model("gpt", 2, 1024, 16, 1024, 50257);
  CHECK(padded_vocab(m, 1) == 50304);  // 393 * 128
  CHECK(padded_vocab(m, 4) == 50688);  // 99 * 512
  CHECK(word_embedding_parameters(m, 4) == 50688.0 * 1024 / 4);
}

/// Both halves of a layer as one.
KernelWork whole(const LayerWork& layer) {
  KernelWork work = layer.attention;
  const KernelWork& other = layer.feed_forward;
  work.linear.insert(work.linear.end(), other.linear.begin(), other.linear.end());
  work.memory_traffic += other.memory_traffic;
  work.memory_kernels += other.memory_kernels;
  return work;
}

TEST_CASE("the backward pass has twice the products of the forward pass") {
  const Transformer m = model("gpt", 2, 1024, 16, 1024, 50257);
  const LayerShape shape{.microbatch = 4, .tensor = 2};
  const auto flops = product_flops;
  const KernelWork forward = whole(layer_forward(m, shape)),
                   backward = whole(layer_backward(m, shape));
  CHECK(flops(backward.linear) == 2 * flops(forward.linear));
  CHECK(flops(backward.attention) == 2 * flops(forward.attention));
  // 2 * T * 12 h^2 / t for T = 4096 tokens
  CHECK(flops(forward.linear).value() == 2.0 * 4096 * 12 * 1024 * 1024 / 2);
}

TEST_CASE("memory traffic of a plain layer is 9 z s^2 + 22 T h + 20 T h/t bytes") {
  const Transformer m = model("gpt", 2, 1024, 16, 1024, 50257);
  const LayerShape shape{.microbatch = 4, .tensor = 2};
  const double T = 4096, z = 4 * 16 / 2.0, s = 1024, h = 1024;
  CHECK(whole(layer_forward(m, shape)).memory_traffic.value() ==
        9 * z * s * s + 22 * T * h + 20 * T * h / 2);
  CHECK(whole(layer_backward(m, shape)).memory_traffic.value() ==
        11 * z * s * s + 46 * T * h + 60 * T * h / 2);
}

TEST_CASE("a stack may count the kernels of a layer itself") {
  const Transformer m = model("llama", 2, 1024, 16, 1024, 50257);
  LayerShape eager{.microbatch = 4, .tensor = 2, .attention = Attention::flash};
  CHECK(whole(layer_forward(m, eager)).memory_kernels == 9);
  CHECK(whole(layer_backward(m, eager)).memory_kernels == 18);
  eager.traffic.forward.kernels = 20;
  eager.traffic.backward.kernels = 31;
  CHECK(whole(layer_forward(m, eager)).memory_kernels == 20);
  CHECK(layer_forward(m, eager).attention.memory_kernels == 11);  // five of nine
  CHECK(whole(layer_backward(m, eager)).memory_kernels == 31);
}

TEST_CASE("what turns queries and keys moves bytes for each of their values") {
  Transformer m = model("llama", 2, 1024, 16, 1024, 50257);
  m.kv_heads = 4;
  m.given_head_size = 128;
  LayerShape shape{.microbatch = 4, .tensor = 2, .attention = Attention::flash};
  const auto moved = [&](const LayerShape& of) {
    return whole(layer_forward(m, of)).memory_traffic.value();
  };
  LayerShape turned = shape;
  turned.traffic.forward.heads = 18;
  turned.traffic.forward.latent_heads = 8;
  CHECK(moved(turned) - moved(shape) == 18.0 * 4096 * (16 + 4) * 128 / 2);
  // Latent attention has a key for every head, here of 96 + 32 values.
  m.mla = Transformer::LatentAttention{
      .query_rank = 24, .key_value_rank = 16, .key_size = 96, .rope_size = 32, .value_size = 64};
  CHECK(moved(turned) - moved(shape) == 8.0 * 4096 * (16 + 16) * 128 / 2);
}

TEST_CASE("kernels that are not fused move the mask, the bias and the residual on their own") {
  const Transformer m = model("gpt", 2, 1024, 16, 1024, 50257);
  const LayerShape fused{.microbatch = 4, .tensor = 2};
  LayerShape unfused = fused;
  unfused.fused_kernels = false;
  const double T = 4096, z = 4 * 16 / 2.0, s = 1024, h = 1024;
  // Forward: the mask read and written, 4 bytes a score; bias before GeLU 4 bytes of 4 h / 2; bias
  // and residual around two dropouts, 2 x 8 bytes of h.
  CHECK(whole(layer_forward(m, unfused)).memory_traffic.value() -
            whole(layer_forward(m, fused)).memory_traffic.value() ==
        4 * z * s * s + 4 * T * 4 * h / 2 + 16 * T * h);
  CHECK(whole(layer_forward(m, unfused)).memory_kernels ==
        whole(layer_forward(m, fused)).memory_kernels + 5);
  // Backward: the mask's gradient cloned and masked, 8 bytes a score.
  CHECK(whole(layer_backward(m, unfused)).memory_traffic.value() -
            whole(layer_backward(m, fused)).memory_traffic.value() ==
        8 * z * s * s);
  // Flash attention has no scores in memory.
  unfused.attention = Attention::flash;
  LayerShape flash = fused;
  flash.attention = Attention::flash;
  CHECK(whole(layer_backward(m, unfused)).memory_traffic ==
        whole(layer_backward(m, flash)).memory_traffic);
}

TEST_CASE("operands of quantised products carry their share of the block scales") {
  CHECK(operand_size(Precision::bf16) == Bytes{2});
  CHECK(operand_size(Precision::fp8) == Bytes{1});
  CHECK(operand_size(Precision::mxfp8) == Bytes{1 + 1.0 / 32});
  CHECK(operand_size(Precision::nvfp4) == Bytes{0.5 + 1.0 / 16});
  // Values kept and sent between layers are bf16 all the same.
  CHECK(element_size(Precision::fp8) == Bytes{2});
  CHECK(base_precision(Precision::nvfp4) == Precision::bf16);
  CHECK(base_precision(Precision::fp16) == Precision::fp16);
}

TEST_CASE("casts to fp8 read an element once and write it twice") {
  const Transformer m = model("gpt", 1, 1024, 8, 512, 1024);
  LayerShape bf16, fp8, current, repeated;
  bf16.precision = Precision::bf16;
  fp8.precision = current.precision = repeated.precision = Precision::fp8;
  current.reads_for_scale = repeated.casts_weights = true;
  const auto more = [&](const LayerShape& shape) {
    const LayerWork a = layer_forward(m, shape), b = layer_forward(m, bf16);
    return (a.attention.memory_traffic - b.attention.memory_traffic).value() +
           (a.feed_forward.memory_traffic - b.feed_forward.memory_traffic).value();
  };
  // Inputs of QKV, projection and MLP-in have 1024 columns, of MLP-out 4096: 512 * 7168 elements at 2 + 1 + 1 bytes.
  const double elements = 512.0 * 7168;
  CHECK(more(fp8) == doctest::Approx(4 * elements));
  fp8.operand_copies = 1;  // Blackwell: 2 read + 1 written
  CHECK(more(fp8) == doctest::Approx(3 * elements));
  fp8.operand_copies = 2;
  CHECK(more(current) == doctest::Approx(6 * elements));
  // 12 h^2 weights
  CHECK(more(repeated) == doctest::Approx(4 * (elements + 12 * 1024.0 * 1024)));
  CHECK(layer_forward(m, fp8).attention.memory_kernels ==
        layer_forward(m, bf16).attention.memory_kernels + 2);
  // Backward the output gradients of QKV (3072), projection (1024), MLP (4096 and 1024) are cast.
  const LayerWork back = layer_backward(m, fp8), plain = layer_backward(m, bf16);
  CHECK((back.attention.memory_traffic - plain.attention.memory_traffic).value() ==
        doctest::Approx(4 * 512.0 * 4096));
  CHECK((back.feed_forward.memory_traffic - plain.feed_forward.memory_traffic).value() ==
        doctest::Approx(4 * 512.0 * 5120));
  // Without gradients of weights activations are cast by rows alone, weights in both layouts for either direction.
  fp8.frozen = repeated.frozen = true;
  CHECK(more(fp8) == doctest::Approx(3 * elements));
  CHECK(more(repeated) == doctest::Approx(3 * elements + 4 * 12 * 1024.0 * 1024));
}

TEST_CASE("casts with a scale for each row transpose backward, and rescale what products give") {
  Transformer m = model("gpt", 1, 1024, 8, 512, 1024);
  LayerShape bf16, rows;
  bf16.precision = Precision::bf16;
  rows.precision = Precision::fp8;
  rows.row_cast_efficiency = 0.5;
  const auto more = [&](bool backward) {
    const auto layer = [&](const LayerShape& shape) {
      return backward ? layer_backward(m, shape) : layer_forward(m, shape);
    };
    const LayerWork a = layer(rows), b = layer(bf16);
    return (a.attention.memory_traffic - b.attention.memory_traffic).value() +
           (a.feed_forward.memory_traffic - b.feed_forward.memory_traffic).value();
  };
  // Forward 3 bytes of inputs (1024, 1024, 1024, 4096 columns of 512 tokens) and 12 h^2 weights.
  const double inputs = 512.0 * 7168, weights = 12 * 1024.0 * 1024;
  CHECK(more(false) == doctest::Approx(3 * (inputs + weights) / 0.5));
  // Backward 5 of inputs, 8 of output gradients (3072, 1024, 4096, 1024), 7 + 4 of weights, and 4 of each input's gradient, of which
  // queries, keys and values give three.
  CHECK(more(true) == doctest::Approx((5 * inputs + 8 * 512.0 * 9216 + 11 * weights +
                                       4 * 512.0 * (3 * 1024 + 1024 + 1024 + 4096)) /
                                      0.5));
}

TEST_CASE("a ring of cut sequences merges its steps through memory") {
  Transformer m = model("llama", 1, 1024, 8, 4096, 1024);
  m.kv_heads = 2;
  LayerShape ring;
  ring.precision = Precision::bf16;
  ring.attention = Attention::flash;
  ring.context = 4;
  ring.attends_by_parts = true;
  ring.tensor = 2;
  LayerShape merged = ring;
  const auto more = [&](auto&& traffic) {
    return traffic(merged).memory_traffic.value() - traffic(ring).memory_traffic.value();
  };
  const auto ahead = [&](const LayerShape& shape) { return layer_forward(m, shape).attention; };
  const auto back = [&](const LayerShape& shape) { return layer_backward(m, shape).attention; };
  // 1024 tokens of 512 queries, and of 2 x 128 keys and values, on one rank.
  const double queries = 1024.0 * 512, keys = 1024.0 * 256;
  merged.merging = RingMerging::fused;
  CHECK(more(ahead) == doctest::Approx(queries * (4 + 3 * 6)));
  CHECK(more(back) == doctest::Approx(queries * (4 + 3 * 6) + keys * (5 + 3 * 3)));
  // The core alone has it too, as where it runs again.
  CHECK(attention_core_forward(m, merged).memory_traffic.value() ==
        doctest::Approx(queries * (4 + 3 * 6)));
  CHECK(flash_core_backward(m, merged).memory_traffic.value() == doctest::Approx(more(back)));
  merged.fp8_attention = true;
  CHECK(more(ahead) == doctest::Approx(queries * (22 + 3 * 17)));
  CHECK(more(back) == doctest::Approx((queries + keys) * (21 + 3 * 11)));
  merged.merging = RingMerging::by_operation;  // keys and values repeated for all of 8 / 2 heads
  CHECK(more(ahead) == doctest::Approx(queries * (12 + 3 * 38) + 2 * queries * (4 + 3 * 4)));
  CHECK(more(back) == doctest::Approx(queries * (20 + 3 * 10) + 2 * queries * (28 + 3 * 25)));
  CHECK(key_value_size(m, merged) == key_value_size(m, ring) * 4.0);
  merged.context = ring.context = 1;
  CHECK(more(ahead) == 0);
}

TEST_CASE("operations that are recomputed are every second product, and never the last") {
  Transformer m = model("llama", 1, 4096, 32, 1024, 128256);
  m.kv_heads = 8;
  m.ffn_hidden = 14336;
  m.gated_mlp = true;
  LayerShape shape;
  shape.attention = Attention::flash;
  const auto flops = [](const LayerWork& work) {
    return product_flops(work.attention.linear) + product_flops(work.feed_forward.linear);
  };
  const double all = flops(layer_forward(m, shape)).value(), out = 2.0 * 1024 * 4096 * 14336;
  const LayerWork whole = layer_again(m, shape, Recompute::full);
  CHECK(flops(whole).value() == doctest::Approx(all - out));
  CHECK(whole.attention.flash > Flops{0});
  // Keys (1024 columns), attention's output (4096) and the gate (14336): 37 % of the products.
  const LayerWork some = layer_again(m, shape, Recompute::selective);
  CHECK(flops(some).value() == doctest::Approx(2.0 * 1024 * 4096 * (1024 + 4096 + 14336)));
  CHECK(flops(some).value() / all == doctest::Approx(0.365).epsilon(0.001));
  CHECK(some.attention.flash == Flops{0});
  // Products in eight bits are no exception, and the largest values of their inputs are saved.
  shape.precision = Precision::fp8;
  shape.reads_for_scale = true;
  const LayerWork fp8 = layer_again(m, shape, Recompute::selective);
  CHECK(flops(fp8).value() == doctest::Approx(flops(some).value()));
  CHECK(fp8.feed_forward.memory_traffic < layer_forward(m, shape).feed_forward.memory_traffic);
  // In nvfp4 none is saved.
  shape.precision = Precision::nvfp4;
  CHECK(flops(layer_again(m, shape, Recompute::selective)).value() == doctest::Approx(all - out));
}

}  // namespace
}  // namespace windtunnel
