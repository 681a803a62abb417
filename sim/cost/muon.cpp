#include "cost/muon.hpp"

#include <algorithm>
#include <utility>

#include "cost/adapters.hpp"
#include "cost/stage_cost.hpp"

namespace windtunnel {
namespace {

constexpr int steps = 5;

/// The matrices of a layer's attention.
std::vector<MatrixShape> split_attention_shapes(const Transformer& model) {
  if (model.mla) return attention_shapes(model, 1);
  using enum LoraTarget;
  return {matrix_shape(model, q_proj), matrix_shape(model, k_proj), matrix_shape(model, v_proj),
          matrix_shape(model, o_proj)};
}

/// The shorter and the longer.
std::pair<double, double> sides(const MatrixShape& matrix) {
  return std::minmax({matrix.rows, matrix.columns});
}

}  // namespace

std::vector<EqualMatrices> muon_matrices(const Transformer& model, const Plan& plan,
                                         StageId stage) {
  const Parallel& parallel = plan.parallel;
  const ChunkRole role = stage_role(model, plan, stage);
  const bool shares = parallel.zero_stage > 0;
  const double owners = shares ? sharding_group_size(parallel) : 1, layers = role.layers,
               with_experts = role.expert_layers;
  std::vector<EqualMatrices> matrices;
  const auto add = [&matrices](const std::vector<MatrixShape>& shapes, double count) {
    if (count == 0) return;
    for (const MatrixShape& shape : shapes) matrices.push_back({shape, count});
  };
  add(split_attention_shapes(model), layers / owners);
  add(mlp_shapes(model, model.ffn_hidden, 1), (layers - with_experts) / owners);
  if (!model.moe) return matrices;
  const Transformer::Experts& moe = *model.moe;
  const double h = model.hidden, experts = moe.experts / static_cast<double>(parallel.expert);
  add({{static_cast<double>(moe.experts), h}}, with_experts / owners);
  if (moe.shared_ffn_hidden > 0)
    add(mlp_shapes(model, moe.shared_ffn_hidden, 1), with_experts / owners);
  add(mlp_shapes(model, moe.ffn_hidden, 1),
      with_experts * experts / (shares ? expert_copies(parallel) : 1));
  return matrices;
}

std::vector<Gemm> newton_schulz_products(const MatrixShape& matrix) {
  const auto [m, n] = sides(matrix);
  std::vector<Gemm> products;
  for (int step = 0; step < steps; ++step)
    for (const Gemm& product : {Gemm{m, m, n}, Gemm{m, m, m}, Gemm{m, n, m}})
      products.push_back(product);
  return products;
}

Seconds orthogonalisation_time(const std::vector<EqualMatrices>& matrices,
                               const KernelContext& context) {
  Seconds time{};
  for (const EqualMatrices& equal : matrices)
    for (const Gemm& product : newton_schulz_products(equal.shape))
      time += gemm_time(product, context) * equal.count;
  return time;
}

Bytes orthogonalisation_memory(const std::vector<EqualMatrices>& matrices) {
  const Bytes single = element_size(Precision::fp32), half = element_size(Precision::bf16);
  Bytes most{};
  for (const EqualMatrices& equal : matrices) {
    const auto [m, n] = sides(equal.shape);
    most = std::max(most, single * (m * n) + half * (2 * m * n + 2 * m * m));
  }
  return most;
}

}  // namespace windtunnel
