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

}  // namespace
}  // namespace windtunnel
