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

TEST_CASE("parameters of GPT-NeoX 20B and BLOOM 176B are the published counts") {
  Transformer neox = model("neox", 44, 6144, 64, 2048, 50432);
  neox.rotary = true;
  neox.tied_embeddings = false;
  CHECK(total_parameters(neox) == 20554567680.0);
  CHECK(total_parameters(model("bloom", 70, 14336, 112, 2048, 250880)) == 176247271424.0);
}

TEST_CASE("one rank's layer has 12 h^2/t + 7 h/t + 6 h parameters") {
  const Transformer m = model("gpt", 2, 1024, 16, 1024, 50257);
  CHECK(layer_parameters(m, 4) == 12.0 * 1024 * 1024 / 4 + 7.0 * 1024 / 4 + 6 * 1024);
}

TEST_CASE("the vocabulary is padded to a multiple of 128 t") {
  const Transformer m = model("gpt", 2, 1024, 16, 1024, 50257);
  CHECK(padded_vocab(m, 1) == 50304);  // 393 * 128
  CHECK(padded_vocab(m, 4) == 50688);  // 99 * 512
  CHECK(word_embedding_parameters(m, 4) == 50688.0 * 1024 / 4);
}

TEST_CASE(
    "FLOPs follow Narayanan et al. 2021 equation 3 and Korthikanti et al. 2022 equations 7 and 8") {
  const Transformer m = model("gpt", 96, 12288, 96, 2048, 51200);
  const double B = 1536, s = 2048, l = 96, h = 12288, V = 51200;
  CHECK(hardware_flops(m, B, Recompute::full).value() ==
        doctest::Approx(96 * B * s * l * h * h * (1 + s / (6 * h) + V / (16 * l * h)))
            .epsilon(1e-12));
  CHECK(model_flops(m, B).value() ==
        doctest::Approx(72 * B * s * l * h * h * (1 + s / (6 * h) + V / (12 * l * h)))
            .epsilon(1e-12));
  CHECK(hardware_flops(m, B, Recompute::selective).value() ==
        doctest::Approx(72 * B * s * l * h * h * (1 + s / (6 * h) + V / (12 * l * h)) +
                        4 * B * s * s * l * h)
            .epsilon(1e-12));
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
  const auto flops = [](const std::vector<Gemm>& gemms) {
    Flops sum{};
    for (const Gemm& gemm : gemms) sum += gemm.flops();
    return sum;
  };
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

}  // namespace
}  // namespace windtunnel
