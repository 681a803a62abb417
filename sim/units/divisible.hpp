#pragma once

namespace windtunnel {

/// An amount on one rank: what every rank of a tensor group has of its own, and what they divide among them.
template <class Value>
struct Divisible {
  Value whole{}, divided{};
  constexpr Value sum() const { return whole + divided; }
  /// The amount on one rank of a group of `ranks`.
  constexpr Value on_rank(double ranks) const { return whole + divided / ranks; }
  friend constexpr Divisible operator+(const Divisible& a, const Divisible& b) {
    return {a.whole + b.whole, a.divided + b.divided};
  }
  friend constexpr Divisible operator-(const Divisible& a, const Divisible& b) {
    return {a.whole - b.whole, a.divided - b.divided};
  }
  friend constexpr Divisible operator*(const Divisible& a, double times) {
    return {a.whole * times, a.divided * times};
  }
};

}  // namespace windtunnel
