#pragma once

#include <vector>

#include "cost/kernel_cost.hpp"
#include "plan/plan.hpp"
#include "workload/transformer.hpp"

namespace windtunnel {

/// Matrices of one shape.
struct EqualMatrices {
  MatrixShape shape;
  double count = 0;
};

/// The weight matrices that Muon steps on one rank: all matrices of the stage's layers, whole, shared out among the ranks that share
/// optimizer states. A tensor group gathers each of its matrices, and every rank of it orthogonalises the whole ("duplicated", the
/// default of --muon-tp-mode); queries, keys and values apart (muon_split_qkv). Embedding, head, norms and biases are Adam's.
/// Source: is_managed_by_layer_wise_optimizer in megatron/core/optimizer/layer_wise_optimizer.py and TensorParallelMuon in
/// emerging_optimizers.py, Megatron-LM at d98e8a6. Limits: matrices are shared out evenly, though each has one owner; the gathers of
/// tensor groups are not counted.
std::vector<EqualMatrices> muon_matrices(const Transformer& model, const Plan& plan, StageId stage);

/// Newton-Schulz iteration of one matrix of m rows and n columns, m the smaller, five times, in bf16:
///   A = X X^T (2 m² n),   B = b A + c A A (2 m³),   X = a X + B X (2 m² n)
/// newton_schulz_step in emerging_optimizers/orthogonalized_optimizers/muon_utils.py, Emerging-Optimizers at fd77292; muon_num_ns_steps 5
/// and muon_fp32_matmul_prec "medium", the defaults of Megatron-LM. Jordan et al. 2024 (kellerjordan.github.io/posts/muon).
std::vector<Gemm> newton_schulz_products(const MatrixShape& matrix);

/// Time for all matrices of the rank. `context`: that of the stack's products in bf16.
Seconds orthogonalisation_time(const std::vector<EqualMatrices>& matrices,
                               const KernelContext& context);

/// Memory of the step while it works on the largest matrix: the update in fp32, X twice and A and B in bf16.
Bytes orthogonalisation_memory(const std::vector<EqualMatrices>& matrices);

}  // namespace windtunnel
