#pragma once

#include <compare>

namespace windtunnel {

/// An amount of bytes^B * flops^F * seconds^T in SI base amounts (bytes, floating-point operations,
/// seconds). Construction is explicit and different dimensions do not mix: `bytes / bandwidth` is
/// Seconds, `bytes + seconds` does not compile.
template <int B, int F, int T>
class Quantity {
 public:
  constexpr Quantity() = default;
  constexpr explicit Quantity(double value) : value_(value) {}

  /// The bare number in SI. Only for units/, *_json.cpp, the SimGrid adapter, and printed text.
  constexpr double value() const { return value_; }

  // clang-tidy 14 takes the <=> behind == and < for a null pointer.
  constexpr auto operator<=>(const Quantity&) const = default;  // NOLINT(modernize-use-nullptr)
  constexpr Quantity operator-() const { return Quantity{-value_}; }
  constexpr Quantity& operator+=(Quantity other) {
    value_ += other.value_;
    return *this;
  }
  constexpr Quantity& operator-=(Quantity other) {
    value_ -= other.value_;
    return *this;
  }
  constexpr Quantity& operator*=(double factor) {
    value_ *= factor;
    return *this;
  }
  friend constexpr Quantity operator+(Quantity a, Quantity b) {
    return Quantity{a.value_ + b.value_};
  }
  friend constexpr Quantity operator-(Quantity a, Quantity b) {
    return Quantity{a.value_ - b.value_};
  }
  friend constexpr Quantity operator*(Quantity a, double factor) {
    return Quantity{a.value_ * factor};
  }
  friend constexpr Quantity operator*(double factor, Quantity a) {
    return Quantity{a.value_ * factor};
  }
  friend constexpr Quantity operator/(Quantity a, double divisor) {
    return Quantity{a.value_ / divisor};
  }

 private:
  double value_ = 0;
};

namespace detail {
template <int B, int F, int T>
struct QuantityOrNumber {
  using type = Quantity<B, F, T>;
};
template <>
struct QuantityOrNumber<0, 0, 0> {
  using type = double;
};
}  // namespace detail

/// Product and quotient carry the sum and difference of the dimensions; a dimensionless result is a
/// double.
template <int B1, int F1, int T1, int B2, int F2, int T2>
constexpr auto operator*(Quantity<B1, F1, T1> a, Quantity<B2, F2, T2> b) {
  return typename detail::QuantityOrNumber<B1 + B2, F1 + F2, T1 + T2>::type(a.value() * b.value());
}
template <int B1, int F1, int T1, int B2, int F2, int T2>
constexpr auto operator/(Quantity<B1, F1, T1> a, Quantity<B2, F2, T2> b) {
  return typename detail::QuantityOrNumber<B1 - B2, F1 - F2, T1 - T2>::type(a.value() / b.value());
}

using Bytes = Quantity<1, 0, 0>;
using Flops = Quantity<0, 1, 0>;
using Seconds = Quantity<0, 0, 1>;
using BytesPerSecond = Quantity<1, 0, -1>;
using FlopsPerSecond = Quantity<0, 1, -1>;
using FlopsPerByte = Quantity<-1, 1, 0>;

/// `80_GiB` is 80 * 2^30 bytes, `1_GB` 10^9; `900_GBps` counts bytes, `400_Gbps` **bits**.
inline namespace literals {
constexpr Bytes operator""_B(unsigned long long v) { return Bytes{static_cast<double>(v)}; }
constexpr Bytes operator""_kB(unsigned long long v) { return Bytes{static_cast<double>(v) * 1e3}; }
constexpr Bytes operator""_MB(unsigned long long v) { return Bytes{static_cast<double>(v) * 1e6}; }
constexpr Bytes operator""_GB(unsigned long long v) { return Bytes{static_cast<double>(v) * 1e9}; }
constexpr Bytes operator""_MiB(unsigned long long v) {
  return Bytes{static_cast<double>(v) * 1048576.0};
}
constexpr Bytes operator""_GiB(unsigned long long v) {
  return Bytes{static_cast<double>(v) * 1073741824.0};
}
constexpr BytesPerSecond operator""_GBps(unsigned long long v) {
  return BytesPerSecond{static_cast<double>(v) * 1e9};
}
constexpr BytesPerSecond operator""_GBps(long double v) {
  return BytesPerSecond{static_cast<double>(v) * 1e9};
}
constexpr BytesPerSecond operator""_Gbps(unsigned long long v) {
  return BytesPerSecond{static_cast<double>(v) * 1e9 / 8};
}
constexpr FlopsPerSecond operator""_TFLOPS(unsigned long long v) {
  return FlopsPerSecond{static_cast<double>(v) * 1e12};
}
constexpr Seconds operator""_s(unsigned long long v) { return Seconds{static_cast<double>(v)}; }
constexpr Seconds operator""_s(long double v) { return Seconds{static_cast<double>(v)}; }
constexpr Seconds operator""_ms(unsigned long long v) {
  return Seconds{static_cast<double>(v) * 1e-3};
}
constexpr Seconds operator""_ms(long double v) { return Seconds{static_cast<double>(v) * 1e-3}; }
constexpr Seconds operator""_us(unsigned long long v) {
  return Seconds{static_cast<double>(v) * 1e-6};
}
constexpr Seconds operator""_us(long double v) { return Seconds{static_cast<double>(v) * 1e-6}; }
}  // namespace literals

inline constexpr double seconds_per_hour = 3600, seconds_per_day = 86'400;

}  // namespace windtunnel
