#include "cost/muon.hpp"

#include <doctest/doctest.h>

namespace windtunnel {
namespace {

Transformer gated_model() {
  Transformer model;
  model.layers = 4;
  model.hidden = 8;
  model.heads = 4;
  model.kv_heads = 2;
  model.ffn_hidden = 16;
  model.gated_mlp = true;
  return model;
}

double elements(const std::vector<EqualMatrices>& matrices) {
  double sum = 0;
  for (const EqualMatrices& each : matrices)
    sum += each.shape.rows * each.shape.columns * each.count;
  return sum;
}

Flops flops_of(const MatrixShape& matrix) { return product_flops(newton_schulz_products(matrix)); }

}  // namespace

TEST_CASE("Muon steps all matrices of the layers, whole, shared out among the replicas") {
  const Transformer model = gated_model();
  Plan plan;
  plan.stage_layers = {4};
  plan.parallel.tensor = 2;  // both ranks of the group work on whole matrices
  plan.parallel.data = 2;
  // A layer: Q and projection 64 each, K and V 32 each (2 heads of 2), gate and up 256, down 128: 576.
  CHECK(elements(muon_matrices(model, plan, StageId{0})) == 4 * 576);
  plan.parallel.zero_stage = 1;
  CHECK(elements(muon_matrices(model, plan, StageId{0})) == 4 * 576 / 2);
}

TEST_CASE("a Newton-Schulz step of m by n is 4 m² n + 2 m³, the smaller side first") {
  // 5 (4 · 4 · 8 + 2 · 8) = 5 (128 · 1 + 16): m = 2, n = 8: 4 · 4 · 8 = 128, 2 · 8 = 16
  CHECK(flops_of({2, 8}) == Flops{5 * (128 + 16)});
  CHECK(flops_of({8, 2}) == flops_of({2, 8}));
}

TEST_CASE("the step holds the update of its largest matrix, and what the iteration makes of it") {
  // 2 by 8: fp32 update 64; in bf16 X twice 64, A and B of 2 by 2 16. The other is smaller.
  CHECK(orthogonalisation_memory({{{2, 8}, 3}, {{2, 2}, 1}}) == Bytes{64 + 64 + 16});
}

}  // namespace windtunnel
