#include "cost/kernel_cost.hpp"

#include <algorithm>
#include <cmath>

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

constexpr double query_block = 128;    // queries that one thread block of fused attention takes
constexpr double unmasked_length = 3;  // causal queries that one query without a mask is worth
constexpr int aligned_head_size = 8;   // elements; tensor cores want multiples of it

double efficiency(const Gemm& gemm, const KernelContext& context, double factor) {
  const GemmEfficiency& fit = context.device->gemm;
  double waves = gemm.m * gemm.n * gemm.batch /
                 (fit.tile_rows * fit.tile_columns * context.device->multiprocessors);
  double inner = gemm.k, rows = gemm.group_rows, held = 1;
  const double inner_half = fit.inner_half_size_of(context.precision);
  if (rows > 0) {
    // Time as rows go to 0: each factor alone leaves a constant, two of them would make it grow. Fewer rows than take the least time
    // take that time.
    const bool are_inner = inner == rows && gemm.m != rows;  // of weight gradients
    const double other = are_inner ? inner_half / inner : fit.wave_half_size / waves;
    held = std::max(1.0, std::sqrt(other * fit.grouped_half_rows / rows));
    (are_inner ? inner : waves) *= held;
    rows *= held;
  }
  const double whole = fit.peak_fraction_of(context.precision) * context.compute_efficiency *
                       factor * waves / (waves + fit.wave_half_size) * inner / (inner + inner_half);
  if (rows == 0) return whole;
  return whole * fit.grouped_factor * rows / (rows + fit.grouped_half_rows) / held;
}

FlopsPerSecond peak(const Device& device, Precision precision) {
  const auto found = device.peak.find(precision);
  WT_EXPECT(found != device.peak.end());
  return found->second;
}

double between(double low, double high, double share) { return low + (high - low) * share; }

AttentionRate between(const AttentionRate& low, const AttentionRate& high, double share) {
  return {.rate = between(low.rate, high.rate, share),
          .half_sequence = between(low.half_sequence, high.half_sequence, share),
          .half_waves = between(low.half_waves, high.half_waves, share)};
}

/// The device's rate at this head size.
AttentionRate attention_rate(const KernelContext& context, double head_size, bool backward) {
  const AttentionKernel* below = nullptr;
  const auto rate_of = [backward](const AttentionKernel& kernel) {
    return backward ? kernel.backward : kernel.forward;
  };
  for (const AttentionKernel& kernel : context.device->attention) {
    if (!kernel.is(context.flash_kernel, context.attention_precision)) continue;
    if (kernel.head_size < head_size) {
      below = &kernel;
      continue;
    }
    AttentionRate above = rate_of(kernel);
    if (below != nullptr)
      return between(rate_of(*below), above,
                     (head_size - below->head_size) / (kernel.head_size - below->head_size));
    above.rate *= head_size / kernel.head_size;
    return above;
  }
  WT_EXPECT(below != nullptr);
  return rate_of(*below);
}

BytesPerSecond memory_rate(const Device& device) {
  return device.memory_bandwidth * device.memory_efficiency;
}

}  // namespace

Seconds gemm_time(const Gemm& gemm, const KernelContext& context, double factor) {
  if (gemm.flops() == Flops{0}) return {};
  if (gemm.one_by_one)
    return gemm_time({.m = gemm.m, .n = gemm.n, .k = gemm.k}, context, factor) * gemm.batch;
  const Seconds compute =
      gemm.flops() / (peak(*context.device, context.precision) * efficiency(gemm, context, factor));
  const double inputs = (gemm.m * gemm.k + gemm.n * gemm.k) * gemm.batch,
               results = gemm.m * gemm.n * gemm.batch;
  const Bytes operands =
      operand_size(context.precision) * inputs + element_size(context.precision) * results;
  const Seconds time =
      std::max(compute, operands / memory_rate(*context.device)) + context.device->kernel_overhead;
  WT_ENSURE(time >= Seconds{0});
  return time;
}

Seconds attention_time(Flops flops, const AttentionShape& shape, const KernelContext& context) {
  const Device& device = *context.device;
  const AttentionRate fit = attention_rate(context, shape.head_size, shape.backward);
  const double length = shape.queries * (shape.causal ? 1 : unmasked_length),
               waves = shape.heads * shape.queries / (query_block * device.multiprocessors);
  const double rate = fit.rate * length / (length + fit.half_sequence) * waves /
                      (waves + fit.half_waves) * context.compute_efficiency;
  return flops / (peak(device, context.attention_precision) * rate) + device.kernel_overhead;
}

Seconds linear_time(const KernelWork& work, const KernelContext& context) {
  Seconds time{};
  for (const Gemm& gemm : work.linear) time += gemm_time(gemm, context);
  return time;
}

Seconds kernel_time(const KernelWork& work, const KernelContext& context, double linear_factor,
                    double flash_efficiency) {
  Seconds time{};
  for (const Gemm& gemm : work.linear) time += gemm_time(gemm, context, linear_factor);
  const double attention_factor =
      context.head_size % aligned_head_size == 0 ? 1.0 : context.device->gemm.misaligned_factor;
  KernelContext base = context;
  base.precision = base_precision(context.precision);
  for (const Gemm& gemm : work.attention) time += gemm_time(gemm, base, attention_factor);
  if (work.flash > Flops{0})
    time += flash_efficiency > 0
                ? work.flash / (peak(*context.device, base.precision) * flash_efficiency) +
                      context.device->kernel_overhead
                : attention_time(work.flash, work.flash_shape, context);
  const BytesPerSecond rate = memory_rate(*context.device);
  time += work.memory_traffic / std::min(rate, context.memory_rate.value_or(rate)) +
          context.device->kernel_overhead * work.memory_kernels;
  return time;
}

Seconds memory_time(Bytes traffic, const Device& device) { return traffic / memory_rate(device); }

Seconds with_launch_floor(Seconds gpu, Seconds cpu, double sharpness) {
  if (cpu == Seconds{0}) return gpu;
  // Scaled by the larger, so that neither power overflows or vanishes.
  const Seconds larger = std::max(gpu, cpu);
  const double ratio = std::min(gpu, cpu) / larger;
  return larger * std::pow(1 + std::pow(ratio, sharpness), 1 / sharpness);
}

Seconds with_launch_floor(Seconds work, const LaunchFloor& floor) {
  const Seconds all = with_launch_floor(work + floor.elsewhere, floor.launch, floor.sharpness);
  return std::max(work, all - floor.elsewhere);
}

}  // namespace windtunnel
