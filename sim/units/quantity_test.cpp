#include "units/quantity.hpp"

#include <doctest/doctest.h>

#include <concepts>
#include <type_traits>

namespace windtunnel {
namespace {

template <class A, class B>
concept Addable = requires(A a, B b) {
  a + b;
};
template <class A, class B>
concept Subtractable = requires(A a, B b) {
  a - b;
};
template <class A, class B>
concept Comparable = requires(A a, B b) {
  a < b;
};
template <class A, class B>
concept Assignable = requires(A a, B b) {
  a += b;
};

static_assert(Addable<Bytes, Bytes>);
static_assert(!Addable<Bytes, Seconds>);
static_assert(!Addable<Bytes, double>);
static_assert(!Addable<double, Seconds>);
static_assert(!Subtractable<BytesPerSecond, FlopsPerSecond>);
static_assert(Comparable<Seconds, Seconds>);
static_assert(!Comparable<Seconds, double>);
static_assert(!Comparable<Bytes, Flops>);
static_assert(!Assignable<Bytes&, Seconds>);
static_assert(!std::is_convertible_v<double, Bytes>);
static_assert(!std::is_convertible_v<Bytes, double>);
static_assert(!std::is_constructible_v<Bytes, Seconds>);

static_assert(std::same_as<decltype(Bytes{} / BytesPerSecond{1}), Seconds>);
static_assert(std::same_as<decltype(Bytes{} / Seconds{1}), BytesPerSecond>);
static_assert(std::same_as<decltype(BytesPerSecond{} * Seconds{}), Bytes>);
static_assert(std::same_as<decltype(Flops{} / FlopsPerSecond{1}), Seconds>);
static_assert(std::same_as<decltype(Flops{} / Bytes{1}), FlopsPerByte>);
static_assert(std::same_as<decltype(FlopsPerByte{} * BytesPerSecond{}), FlopsPerSecond>);
static_assert(std::same_as<decltype(Bytes{} / Bytes{1}), double>);
static_assert(std::same_as<decltype(Seconds{} * 2.0), Seconds>);

// A quantity costs nothing: it is its double.
static_assert(sizeof(Bytes) == sizeof(double));
static_assert(std::is_trivially_copyable_v<Bytes>);

TEST_CASE("a 400 Gb/s link moves 1 GB in 20 ms") {
  // 10^9 B / (400 * 10^9 / 8 B/s) = 0.02 s
  CHECK(1_GB / 400_Gbps == 20_ms);
}

TEST_CASE("binary and decimal sizes differ") {
  CHECK(80_GiB == Bytes{85899345920.0});  // 80 * 2^30
  CHECK(80_GB == Bytes{80e9});
  CHECK(80_GiB / 80_GB == doctest::Approx(1.073741824));
  CHECK(1_MiB / 1_kB == doctest::Approx(1048.576));
}

TEST_CASE("Gbps counts bits and GBps bytes") { CHECK(8.0 * 100_Gbps == 100_GBps); }

TEST_CASE("amounts of one kind add and compare") {
  Seconds time = 1_s + 500_ms;
  time += 0.5_s;
  time -= 1_s;
  time *= 3.0;
  CHECK(time == 3_s);
  CHECK(-time < Seconds{0});
  CHECK(time / 2.0 == 1.5_s);
  CHECK(time > 2999_ms);
}

TEST_CASE("312 TFLOPS do 624 TFLOP in 2 s") { CHECK(Flops{624e12} / 312_TFLOPS == 2_s); }

}  // namespace
}  // namespace windtunnel
