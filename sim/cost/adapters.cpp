#include "cost/adapters.hpp"

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

bool is_of(LoraTarget target, LayerHalf half) {
  const bool in_attention = target <= LoraTarget::o_proj;
  return in_attention == (half == LayerHalf::attention);
}

/// True for row-parallel matrices: their input is divided among the tensor group, their output is not.
bool is_row_parallel(LoraTarget target) {
  return target == LoraTarget::o_proj || target == LoraTarget::down_proj;
}

std::vector<LoraTarget> targets_of(const Lora& lora, LayerHalf half) {
  std::vector<LoraTarget> targets;
  for (const LoraTarget target : Lora::all_targets)
    if (lora.has(target) && is_of(target, half)) targets.push_back(target);
  return targets;
}

/// Forward products of one adapter: into its r values, and out of them.
struct AdapterProducts {
  Gemm into, out_of;
};

AdapterProducts products_of(const Transformer& model, const Lora& lora, LoraTarget target,
                            const LayerShape& shape) {
  const MatrixShape matrix = matrix_shape(model, target);
  const double t = shape.tensor, r = lora.rank,
               n = static_cast<double>(shape.microbatch) * model.sequence / shape.context;
  if (is_row_parallel(target)) return {{n, r, matrix.columns / t}, {n, matrix.rows / t, r}};
  return {{n, r / t, matrix.columns}, {n, matrix.rows / t, r}};
}

KernelWork adapters_pass(const Transformer& model, const Lora& lora, LayerHalf half,
                         const LayerShape& shape, AdapterKernels kernels, bool backward) {
  const AdapterTraffic traffic =
      adapter_traffic(kernels, element_size(shape.precision), lora.dropout > 0);
  const AdapterTraffic::Pass& pass = backward ? traffic.backward : traffic.forward;
  KernelWork work;
  for (const LoraTarget target : targets_of(lora, half)) {
    const auto [into, out_of] = products_of(model, lora, target, shape);
    if (backward)
      for (const Gemm& forward : {out_of, into}) {
        work.linear.push_back({forward.m, forward.k, forward.n});
        work.linear.push_back({forward.k, forward.n, forward.m});
      }
    else
      work.linear.insert(work.linear.end(), {into, out_of});
    work.memory_traffic += Bytes{pass.in * into.m * into.k + pass.out * out_of.m * out_of.n};
    work.memory_kernels += pass.kernels;
  }
  return work;
}

}  // namespace

bool has_single_adapters(AdapterKernels kernels) {
  return kernels == AdapterKernels::autocast_fp32 || kernels == AdapterKernels::fp32;
}

AdapterTraffic adapter_traffic(AdapterKernels kernels, Bytes element, bool has_dropout) {
  const double e = element / Bytes{1}, single = element_size(Precision::fp32) / Bytes{1};
  const bool is_single = has_single_adapters(kernels);
  const bool casts_input = is_single && e < single,
             casts_products = casts_input && kernels == AdapterKernels::autocast_fp32,
             casts_result = casts_input && kernels == AdapterKernels::fp32;
  const double a = is_single ? single : e, o = casts_products ? e : a,
               dropped = has_dropout ? 1 : 0;
  const double in =
      (casts_input ? e + a : 0) + dropped * (2 * a + 1) + (casts_products ? a + e : 0);
  const int kernels_in = int{casts_input} + int{has_dropout} + int{casts_products};
  const double kept = (has_dropout || casts_input ? o : 0) + dropped;
  if (kernels == AdapterKernels::fused)
    return {{in, 3 * e, kernels_in + 1}, {in + 3 * e, 0, kernels_in + 1}, kept};
  const double cast = casts_result ? e + o : 0;
  return {{in, 2 * o + e + 2 * o + cast, kernels_in + 2 + int{casts_result}},
          {in + 3 * e, 2 * o + 2 * cast, kernels_in + 2 + 2 * int{casts_result}},
          kept};
}

MatrixShape matrix_shape(const Transformer& model, LoraTarget target) {
  const double h = model.hidden, ffn = model.ffn_hidden,
               keys = static_cast<double>(model.kv_heads) * model.head_size();
  switch (target) {
    case LoraTarget::q_proj:
      return {model.heads_width(), h};
    case LoraTarget::k_proj:
    case LoraTarget::v_proj:
      return {keys, h};
    case LoraTarget::o_proj:
      return {h, model.heads_width()};
    case LoraTarget::gate_proj:
    case LoraTarget::up_proj:
      return {ffn, h};
    case LoraTarget::down_proj:
      return {h, ffn};
  }
  WT_UNREACHABLE();
}

std::vector<MatrixShape> adapted_matrices(const Transformer& model, const Lora& lora,
                                          LayerHalf half) {
  std::vector<MatrixShape> shapes;
  for (const LoraTarget target : targets_of(lora, half))
    shapes.push_back(matrix_shape(model, target));
  return shapes;
}

double adapter_parameters(const Transformer& model, const Lora& lora, LayerHalf half) {
  double sum = 0;
  for (const MatrixShape& matrix : adapted_matrices(model, lora, half))
    sum += lora.rank * (matrix.rows + matrix.columns);
  return sum;
}

Bytes kept_by_adapters(const Transformer& model, const Lora& lora, LayerHalf half, int tensor,
                       AdapterKernels kernels, Bytes element) {
  const double of_input = adapter_traffic(kernels, element, lora.dropout > 0).kept_in;
  const Bytes between = kernels == AdapterKernels::fp32 ? element_size(Precision::fp32) : element;
  Bytes kept{};
  for (const LoraTarget target : targets_of(lora, half)) {
    const double columns = matrix_shape(model, target).columns;
    kept += between * static_cast<double>(lora.rank) +
            Bytes{of_input * columns / (is_row_parallel(target) ? tensor : 1)};
  }
  return kept;
}

KernelWork adapters_forward(const Transformer& model, const Lora& lora, LayerHalf half,
                            const LayerShape& shape, AdapterKernels kernels) {
  return adapters_pass(model, lora, half, shape, kernels, false);
}
KernelWork adapters_backward(const Transformer& model, const Lora& lora, LayerHalf half,
                             const LayerShape& shape, AdapterKernels kernels) {
  return adapters_pass(model, lora, half, shape, kernels, true);
}

KernelWork without_weight_gradients(KernelWork backward) {
  std::vector<Gemm> kept;
  for (std::size_t i = 0; i < backward.linear.size(); i += 2) kept.push_back(backward.linear[i]);
  backward.linear = kept;
  return backward;
}

}  // namespace windtunnel
