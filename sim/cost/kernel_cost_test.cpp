#include "cost/kernel_cost.hpp"

#include <doctest/doctest.h>

namespace windtunnel {
namespace {

/// 100 TFLOP/s, 1 TB/s, 10 multiprocessors, no loss but where a test asks for it.
Device simple_device() {
  Device device;
  device.multiprocessors = 10;
  device.peak[Precision::fp16] = 100_TFLOPS;
  device.memory_bandwidth = 2000_GBps;
  device.memory_efficiency = 0.5;
  device.gemm.peak_fraction = 0.8;
  return device;
}

KernelContext context_of(const Device& device) {
  KernelContext context;
  context.device = &device;
  return context;
}

TEST_CASE("a large product runs at the peak fraction") {
  // 2 * 4096^3 = 137.4 GFLOP at 80 TFLOP/s
  const Device device = simple_device();
  CHECK(gemm_time({4096, 4096, 4096}, context_of(device)).value() ==
        doctest::Approx(2.0 * 4096 * 4096 * 4096 / 80e12).epsilon(1e-12));
}

TEST_CASE("at the half size of the inner dimension half the rate is lost") {
  Device device = simple_device();
  device.gemm.inner_half_size = 4096;
  CHECK(gemm_time({4096, 4096, 4096}, context_of(device)).value() ==
        doctest::Approx(2.0 * 4096 * 4096 * 4096 / 40e12).epsilon(1e-12));
}

TEST_CASE("at the half wave count half the rate is lost") {
  // waves = 4096 * 4096 / (256 * 128 * 10) = 51.2
  Device device = simple_device();
  device.gemm.wave_half_size = 51.2;
  CHECK(gemm_time({4096, 4096, 4096}, context_of(device)).value() ==
        doctest::Approx(2.0 * 4096 * 4096 * 4096 / 40e12).epsilon(1e-12));
}

TEST_CASE("a thin product is bound by memory") {
  // K = 1: 2 bytes * (4096 + 4096 + 4096^2) at 1 TB/s = 33.6 us, against 0.42 us of FLOPs
  const Device device = simple_device();
  CHECK(gemm_time({4096, 4096, 1}, context_of(device)).value() ==
        doctest::Approx(2.0 * (4096 * 2 + 4096.0 * 4096) / 1e12).epsilon(1e-12));
}

TEST_CASE("products launched one by one take as long as each, without sharing waves") {
  Device device = simple_device();
  device.kernel_overhead = 4_us;
  device.gemm.wave_half_size = 51.2;
  Gemm experts{.m = 512, .n = 1024, .k = 2048, .batch = 8, .one_by_one = true};
  CHECK(gemm_time(experts, context_of(device)) ==
        gemm_time({512, 1024, 2048}, context_of(device)) * 8);
  const Seconds apart = gemm_time(experts, context_of(device));
  experts.one_by_one = false;
  CHECK(gemm_time(experts, context_of(device)) < apart);
}

TEST_CASE("a grouped product of fewer rows takes no longer") {
  // 4 rows of waves at 1,024 columns and 8 experts: 1,024 * 8 / 327,680 a row, so the least time is at sqrt(51.2 * 100 / 0.025) = 453 rows.
  Device device = simple_device();
  device.gemm.wave_half_size = 51.2;
  device.gemm.inner_half_size = 4096;
  device.gemm.grouped_half_rows = 100;
  const auto forward = [&](double rows) {
    return gemm_time({rows, 1024, 2048, 8, rows}, context_of(device));
  };
  const auto of_weights = [&](double rows) {
    return gemm_time({1024, 2048, rows, 8, rows}, context_of(device));
  };
  for (const double rows : {8.0, 64.0, 256.0, 400.0}) {
    CHECK(forward(rows).value() == doctest::Approx(forward(452.5).value()).epsilon(1e-4));
    CHECK(of_weights(rows / 2) <= of_weights(rows) * (1 + 1e-12));
  }
  CHECK(forward(1024) > forward(512));
}

TEST_CASE("each kernel pays its overhead") {
  Device device = simple_device();
  device.kernel_overhead = 4_us;
  KernelWork work;
  work.memory_traffic = 1_GB;  // 1 ms
  work.memory_kernels = 5;     // 20 us
  CHECK(kernel_time(work, context_of(device)).value() == doctest::Approx(1.02e-3).epsilon(1e-12));
}

TEST_CASE("a head size that is no multiple of 8 slows the attention products") {
  Device device = simple_device();
  device.gemm.misaligned_factor = 0.1;
  KernelWork work;
  work.attention = {{4096, 4096, 4096, 1}};
  KernelContext context = context_of(device);
  const Seconds aligned = kernel_time(work, context);
  context.head_size = 108;
  CHECK(kernel_time(work, context).value() == doctest::Approx(10 * aligned.value()).epsilon(1e-12));
}

TEST_CASE("the launch floor is close to the larger of both") {
  CHECK(with_launch_floor(2_ms, Seconds{0}, 4) == Seconds{2e-3});
  // (1 + 1)^(1/4) = 1.189
  CHECK(with_launch_floor(1_ms, 1_ms, 4).value() ==
        doctest::Approx(1e-3 * 1.1892071150).epsilon(1e-9));
  // (10^4 + 1)^(1/4) = 10.00025
  CHECK(with_launch_floor(10_ms, 1_ms, 4).value() == doctest::Approx(10.00024998e-3).epsilon(1e-9));
}

TEST_CASE("a product in fp8 runs at the rate of fp8 and reads a byte an operand") {
  Device device = simple_device();
  device.peak[Precision::bf16] = 100_TFLOPS;
  device.peak[Precision::fp8] = 200_TFLOPS;
  device.gemm.quantized_peak_fraction[Precision::fp8] = 0.5;
  KernelContext context = context_of(device);
  context.precision = Precision::fp8;
  // 2 * 4096^3 FLOP at 0.5 * 200 TFLOP/s
  CHECK(gemm_time({4096, 4096, 4096}, context).value() ==
        doctest::Approx(2.0 * 4096 * 4096 * 4096 / 100e12).epsilon(1e-12));
  // K = 1: 4096 + 4096 bytes in, 2 * 4096^2 out, at 1 TB/s
  CHECK(gemm_time({4096, 4096, 1}, context).value() ==
        doctest::Approx((2 * 4096 + 2 * 4096.0 * 4096) / 1e12).epsilon(1e-12));
}

TEST_CASE("a tile is a number of the GPU") {
  // Tiles twice as high: half as many waves, so that half the rate is lost at 25.6 of them.
  Device device = simple_device();
  device.gemm.wave_half_size = 25.6;
  device.gemm.tile_rows = 512;
  CHECK(gemm_time({4096, 4096, 4096}, context_of(device)).value() ==
        doctest::Approx(2.0 * 4096 * 4096 * 4096 / 40e12).epsilon(1e-12));
}

/// Attention at 0.8 of 100 TFLOP/s forward with head size 128, at 0.4 with 64.
Device attention_device() {
  Device device = simple_device();
  device.attention = {{Precision::fp16, 64, {0.4, 0, 0}, {0.2, 0, 0}},
                      {Precision::fp16, 128, {0.8, 0, 0}, {0.4, 0, 0}}};
  return device;
}

TEST_CASE("attention runs at the device's rate for its head size and direction") {
  const Device device = attention_device();
  const auto rate = [&](double head_size, bool backward) {
    const AttentionShape shape{
        .heads = 8, .queries = 4096, .head_size = head_size, .backward = backward};
    return Flops{1e12} / attention_time(Flops{1e12}, shape, context_of(device)) / 1_TFLOPS;
  };
  CHECK(rate(128, false) == doctest::Approx(80));
  CHECK(rate(128, true) == doctest::Approx(40));
  CHECK(rate(96, false) == doctest::Approx(60));   // halfway between
  CHECK(rate(256, false) == doctest::Approx(80));  // beyond the largest as the largest
  CHECK(rate(32, false) == doctest::Approx(20));   // below the smallest in proportion
}

TEST_CASE("attention runs at the rates of the library that computes it") {
  Device device = attention_device();
  device.peak[Precision::fp8] = 200_TFLOPS;
  device.attention.push_back(
      {Precision::fp16, 128, {0.5, 0, 0}, {0.3, 0, 0}, {FlashKernel::flash2, FlashKernel::flash3}});
  device.attention.push_back({Precision::fp8, 128, {0.6, 0, 0}, {0.3, 0, 0}, {FlashKernel::fp8}});
  const auto rate = [&](FlashKernel kernel) {
    const AttentionShape shape{.heads = 8, .queries = 4096, .head_size = 128, .backward = false};
    KernelContext context = context_of(device);
    context.flash_kernel = kernel;
    if (kernel == FlashKernel::fp8) context.attention_precision = Precision::fp8;
    return Flops{1e12} / attention_time(Flops{1e12}, shape, context) / 1_TFLOPS;
  };
  CHECK(rate(FlashKernel::cudnn) == doctest::Approx(80));
  CHECK(rate(FlashKernel::flash2) == doctest::Approx(50));
  CHECK(rate(FlashKernel::flash3) == doctest::Approx(50));
  CHECK(rate(FlashKernel::fp8) == doctest::Approx(120));
}

TEST_CASE("short sequences and few heads lose half the rate of attention at their half sizes") {
  Device device = attention_device();
  const AttentionShape causal{.heads = 10, .queries = 1280, .head_size = 128};
  AttentionShape full = causal;
  full.causal = false;
  const auto rate = [&](const AttentionShape& shape) {
    return Flops{1e12} / attention_time(Flops{1e12}, shape, context_of(device)) / 1_TFLOPS;
  };
  device.attention[1].forward.half_sequence = 1280;
  CHECK(rate(causal) == doctest::Approx(40));
  CHECK(rate(full) == doctest::Approx(60));  // counts as 3 * 1280 queries: 80 * 3/4
  device.attention[1].forward = {0.8, 0, 10};
  CHECK(rate(causal) == doctest::Approx(40));  // 10 heads * 1280 / (128 * 10) = 10 waves
}

TEST_CASE("attention of a layer takes the device's rate unless the stack has one") {
  Device device = attention_device();
  KernelWork work;
  work.flash = Flops{1e12};
  work.flash_shape = {.heads = 8, .queries = 4096, .head_size = 128};
  CHECK(kernel_time(work, context_of(device)).value() == doctest::Approx(1 / 80.0));
  CHECK(kernel_time(work, context_of(device), 1, 0.5).value() == doctest::Approx(1 / 50.0));
}

}  // namespace
}  // namespace windtunnel
