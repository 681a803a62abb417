#include "cost/kernel_cost.hpp"

#include <algorithm>
#include <cmath>

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

constexpr double tile_rows = 256,
                 tile_columns = 128;  // of the largest library tile on A100 and V100
constexpr int aligned_head_size = 8;  // elements; tensor cores want multiples of it

double efficiency(const Gemm& gemm, const KernelContext& context, double factor) {
  const GemmEfficiency& fit = context.device->gemm;
  const double waves =
      gemm.m * gemm.n * gemm.batch / (tile_rows * tile_columns * context.device->multiprocessors);
  return fit.peak_fraction * context.compute_efficiency * factor * waves /
         (waves + fit.wave_half_size) * gemm.k / (gemm.k + fit.inner_half_size);
}

FlopsPerSecond peak(const KernelContext& context) {
  const auto found = context.device->peak.find(context.precision);
  WT_EXPECT(found != context.device->peak.end());
  return found->second;
}

BytesPerSecond memory_rate(const Device& device) {
  return device.memory_bandwidth * device.memory_efficiency;
}

}  // namespace

Seconds gemm_time(const Gemm& gemm, const KernelContext& context, double factor) {
  if (gemm.flops() == Flops{0}) return {};
  const Seconds compute = gemm.flops() / (peak(context) * efficiency(gemm, context, factor));
  const Bytes operands = element_size(context.precision) *
                         ((gemm.m * gemm.k + gemm.n * gemm.k + gemm.m * gemm.n) * gemm.batch);
  const Seconds time =
      std::max(compute, operands / memory_rate(*context.device)) + context.device->kernel_overhead;
  WT_ENSURE(time >= Seconds{0});
  return time;
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
  for (const Gemm& gemm : work.attention) time += gemm_time(gemm, context, attention_factor);
  if (work.flash > Flops{0}) {
    WT_EXPECT(flash_efficiency > 0);
    time += work.flash / (peak(context) * flash_efficiency) + context.device->kernel_overhead;
  }
  time += memory_time(work.memory_traffic, *context.device) +
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

}  // namespace windtunnel
