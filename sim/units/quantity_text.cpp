#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <span>
#include <string>

#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

/// One unit of a scale, with how many significant digits a person wants to see of it.
struct Step {
  const char* name;
  double factor;  ///< in SI base amounts
  int digits;
};

constexpr std::array seconds_scale{Step{"s", 1, 4}, Step{"ms", 1e-3, 3}, Step{"us", 1e-6, 3},
                                   Step{"ns", 1e-9, 3}};
constexpr std::array bytes_scale{Step{"TiB", 0x1p40, 3}, Step{"GiB", 0x1p30, 3},
                                 Step{"MiB", 0x1p20, 3}, Step{"KiB", 0x1p10, 3}, Step{"B", 1, 3}};
constexpr std::array bandwidth_scale{Step{"TB/s", 1e12, 3}, Step{"GB/s", 1e9, 3},
                                     Step{"MB/s", 1e6, 3}, Step{"kB/s", 1e3, 3}, Step{"B/s", 1, 3}};
constexpr std::array flops_scale{Step{"EFLOP/s", 1e18, 3}, Step{"PFLOP/s", 1e15, 3},
                                 Step{"TFLOP/s", 1e12, 3}, Step{"GFLOP/s", 1e9, 3},
                                 Step{"MFLOP/s", 1e6, 3},  Step{"FLOP/s", 1, 3}};

/// Decimals that make `digits` significant digits of `number`; never less than none.
int decimals_for(double number, int digits) {
  if (number == 0) return 0;
  return std::max(0, digits - 1 - static_cast<int>(std::floor(std::log10(std::abs(number)))));
}

/// `number` with `digits` significant digits, never in scientific notation.
std::string fixed_text(double number, int digits) {
  // The rounding may add a digit before the point: 9.996 is 10.0, not 10.00.
  constexpr int most_decimals = 300;
  const int decimals = decimals_for(number, digits);
  const double unit = std::pow(10.0, std::min(decimals, most_decimals));
  const double rounded = std::round(number * unit) / unit;
  const int shown = std::isfinite(rounded) ? decimals_for(rounded, digits) : decimals;
  std::array<char, 800> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                 std::chars_format::fixed, shown)
                       .ptr;
  return {buffer.data(), end};
}

/// True if `amount`, rounded as `finer` would show it, reaches one unit of `step`: 999.96 ms
/// is 1.000 s.
bool reaches(double amount, const Step& step, const Step& finer) {
  constexpr double rounding_slack = 1e-12;
  const double number = std::abs(amount) / finer.factor;
  const double unit = std::pow(10.0, decimals_for(number, finer.digits));
  const double shown =
      number >= step.factor / finer.factor ? number : std::round(number * unit) / unit;
  return shown * finer.factor >= step.factor * (1 - rounding_slack);
}

std::string scaled_text(double amount, std::span<const Step> scale) {
  const std::string unit = std::string(" ") + scale[0].name;
  if (amount == 0) return "0" + unit;
  if (std::isnan(amount)) return "nan" + unit;
  if (std::isinf(amount)) return (amount < 0 ? "-inf" : "inf") + unit;
  std::size_t i = 0;
  while (i + 1 < scale.size() && !reaches(amount, scale[i], scale[i + 1])) ++i;
  return fixed_text(amount / scale[i].factor, scale[i].digits) + " " + scale[i].name;
}

}  // namespace

std::string to_text(Seconds amount) { return scaled_text(amount.value(), seconds_scale); }

std::string to_text(Bytes amount) {
  // Below one KiB there are no fractions of a byte to tell.
  return std::abs(amount.value()) < 1024 ? fixed_text(std::round(amount.value()), 1) + " B"
                                         : scaled_text(amount.value(), bytes_scale);
}

std::string to_text(BytesPerSecond amount) { return scaled_text(amount.value(), bandwidth_scale); }

std::string to_text(FlopsPerSecond amount) { return scaled_text(amount.value(), flops_scale); }

}  // namespace windtunnel
