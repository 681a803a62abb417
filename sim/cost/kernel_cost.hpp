#pragma once

#include <optional>

#include "operations/operation.hpp"
#include "platform/device.hpp"
#include "platform/software_profile.hpp"
#include "workload/transformer.hpp"

namespace windtunnel {

/// The GPU and how well this stack and cluster drive it.
struct KernelContext {
  const Device* device = nullptr;
  Precision precision = Precision::fp16;            ///< of the linear layers' products
  FlashKernel flash_kernel = FlashKernel::cudnn;    ///< what computes fused attention
  Precision attention_precision = Precision::fp16;  ///< what it computes in
  double compute_efficiency = 1;  ///< factor on the device's peak fraction (stack, throttled nodes)
  int head_size = 128;            ///< of the attention products
  /// The most that kernels attain which move memory alone; nothing: what the device does.
  std::optional<BytesPerSecond> memory_rate;
  double flash_forward_efficiency = 0,
         flash_backward_efficiency = 0;  ///< of the peak; 0: the device's own
};

/// One matrix product:
///   t = max( 2 M N K batch / (P eff), element (M K + N K + M N) batch / BW ) + kl
///   eff = emax * x/(x + wv) * K/(K + K0) * factor,   x = M N batch / (tile * SMs)  (waves of tiles)
/// P peak rate, BW attained memory rate, kl kernel overhead; `element` is the operand's for M K and N K, and that of the base
/// precision for the result. Roofline: Williams et al., CACM 52(4), 2009. The smooth wave and inner-size terms are this project's
/// fit to GEMM tables of V100, A100, H100 and B200 (docs/model.md; validation/kernels); valid for products above about 2 GFLOP,
/// 30-45 % off below (small skewed shapes). A grouped product, `batch` experts of r rows each, has the further factor
///   g r / (r + r0)
/// fitted to the grouped rows of B200 and A100 tables (docs/moe.md); r is the tokens of an expert, backward as well.
Seconds gemm_time(const Gemm& gemm, const KernelContext& context, double factor = 1);

/// One fused attention kernel of `flops` at the device's own rate:
///   t = F / (P r(d) * L/(L + L0) * w/(w + w0)) + kl
///   L = queries (causal) or 3 queries (no mask),   w = heads queries / (128 SMs)
/// r(d) is interpolated between measured head sizes d, and falls with d below the smallest. The factor 3 of an unmasked
/// sequence is fitted on cuDNN 9.19-9.22 on H200, GB200 and GB300 (validation/kernels): its inner loop is twice as long, and no
/// block is cut by the diagonal.
Seconds attention_time(Flops flops, const AttentionShape& shape, const KernelContext& context);

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
/// Duration of `work` whose launches take the CPU that long; never less than `work`.
Seconds with_launch_floor(Seconds work, const LaunchFloor& floor);

}  // namespace windtunnel
