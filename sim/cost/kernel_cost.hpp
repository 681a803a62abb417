#pragma once

#include "platform/device.hpp"
#include "platform/software_profile.hpp"
#include "workload/transformer.hpp"

namespace windtunnel {

/// The GPU and how well this stack and cluster drive it.
struct KernelContext {
  const Device* device = nullptr;
  Precision precision = Precision::fp16;
  double compute_efficiency = 1;  ///< factor on the device's peak fraction (stack, throttled nodes)
  int head_size = 128;            ///< of the attention products
  double flash_forward_efficiency = 0, flash_backward_efficiency = 0;  ///< of the peak
};

/// One matrix product:
///   t = max( 2 M N K batch / (P eff), element (M K + N K + M N) batch / BW ) + kl
///   eff = emax * x/(x + wv) * K/(K + K0) * factor,   x = M N batch / (256 * 128 * SMs)  (waves of
///   256 x 128 tiles)
/// P peak rate, BW attained memory rate, kl kernel overhead. Roofline: Williams et al., CACM 52(4),
/// 2009. The smooth wave and inner-size terms are this project's fit to A100 and V100 GEMM tables
/// (docs/model.md); valid for products above about 2 GFLOP, 30-45 % off below (small skewed
/// shapes).
Seconds gemm_time(const Gemm& gemm, const KernelContext& context, double factor = 1);

/// All kernels of `work`, one after another: matrix products, flash attention, and memory-bound
/// traffic at BW plus kl a kernel. Attention products whose head size is no multiple of 8 run at
/// the device's misaligned factor (a 40 % effect on whole iterations: measured on BigScience A100,
/// docs/model.md). Each flash-attention part is one kernel.
Seconds kernel_time(const KernelWork& work, const KernelContext& context, double linear_factor = 1,
                    double flash_efficiency = 0);

/// Sum of the weight products alone (what a backward collective can hide behind).
Seconds linear_time(const KernelWork& work, const KernelContext& context);

/// `traffic` at the attained memory rate.
Seconds memory_time(Bytes traffic, const Device& device);

/// GPU work that may run out of launched kernels:  t = (gpu^q + cpu^q)^(1/q). With q = 4 this is
/// close to max(gpu, cpu); the CPU runs ahead, so the floor holds for a whole pass of a stage, not
/// kernel by kernel (docs/model.md).
Seconds with_launch_floor(Seconds gpu, Seconds cpu, double sharpness);

}  // namespace windtunnel
