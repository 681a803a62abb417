#include "cost/model_held.hpp"

#include <doctest/doctest.h>

namespace windtunnel {
namespace {

TEST_CASE("eight bits halve what is kept of the inputs of products") {
  Transformer model;
  model.hidden = 256;
  model.heads = model.kv_heads = 8;
  model.sequence = 128;
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

}  // namespace
}  // namespace windtunnel
