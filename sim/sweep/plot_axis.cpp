#include "sweep/plot_axis.hpp"

#include <algorithm>
#include <cmath>

#include "core/contracts.hpp"
#include "report/number_text.hpp"

namespace windtunnel {
namespace {

/// Values whose largest is so many times their smallest are told apart by a logarithmic axis only.
constexpr double far_apart = 6;
/// Free part of an axis at each end.
constexpr double margin = 0.04;
constexpr double marks_wanted = 5;
/// More values than these are too many to have a mark each.
constexpr std::size_t most_value_marks = 24;

/// The smallest of 1, 2, 2.5, 5 and 10 times a power of ten that is at least `value`.
double round_up(double value) {
  const double power = std::pow(10.0, std::floor(std::log10(value)));
  for (const double factor : {1.0, 2.0, 2.5, 5.0})
    if (factor * power >= value * (1 - 1e-12)) return factor * power;
  return 10 * power;
}

/// 1, 2 and 5 times the powers of ten between two logarithms.
std::vector<double> logarithmic_marks(double low, double high) {
  constexpr double rounding = 1e-9;
  std::vector<double> marks;
  for (int exponent = static_cast<int>(std::floor(low)); exponent <= high; ++exponent)
    for (const double factor : {1.0, 2.0, 5.0}) {
      const double mark = factor * std::pow(10.0, exponent);
      if (std::log10(mark) >= low - rounding && std::log10(mark) <= high + rounding)
        marks.push_back(mark);
    }
  return marks;
}

}  // namespace

PlotAxis PlotAxis::linear_from_zero(const std::vector<double>& values) {
  PlotAxis axis;
  const double most = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  WT_EXPECT(std::isfinite(most));
  const double step = most > 0 ? round_up(most / marks_wanted) : 1;
  const double steps = std::max(1.0, std::ceil(most / step - 1e-9));  // 1e-9: for rounding
  for (int i = 0; i <= steps; ++i) axis.marks_.push_back(i * step);
  axis.high_ = steps * step;
  return axis;
}

PlotAxis PlotAxis::logarithmic(const std::vector<double>& values) {
  WT_EXPECT(!values.empty());
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  WT_EXPECT(*least > 0 && std::isfinite(*most));
  PlotAxis axis;
  axis.is_logarithmic_ = true;
  const double low = std::log10(*least), high = std::log10(*most);
  const double room = std::max(margin * (high - low), std::log10(1.1));
  axis.low_ = low - room;
  axis.high_ = high + room;
  axis.marks_ = logarithmic_marks(axis.low_, axis.high_);
  return axis;
}

PlotAxis PlotAxis::over(const std::vector<double>& values) {
  PlotAxis axis;
  axis.marks_ = values;
  std::sort(axis.marks_.begin(), axis.marks_.end());
  axis.marks_.erase(std::unique(axis.marks_.begin(), axis.marks_.end()), axis.marks_.end());
  const double least = axis.marks_.front(), most = axis.marks_.back();
  axis.is_logarithmic_ = least > 0 && most / least >= far_apart;
  const double low = axis.scaled(least), high = axis.scaled(most);
  const double room = high > low ? margin * (high - low) : 1;
  axis.low_ = low - room;
  axis.high_ = high + room;
  axis.least_ = least;
  axis.most_ = most;
  if (axis.marks_.size() > most_value_marks) axis.use_round_marks();
  return axis;
}

void PlotAxis::use_round_marks() {
  marks_.clear();
  if (is_logarithmic_) {
    marks_ = logarithmic_marks(std::log10(least_), std::log10(most_));
    return;
  }
  const double step = round_up((most_ - least_) / marks_wanted);
  const double first = std::ceil(least_ / step) * step;
  for (int i = 0; first + i * step <= most_ && i <= 2 * marks_wanted; ++i)
    marks_.push_back(first + i * step);
}

PlotAxis PlotAxis::of_categories(std::size_t count) {
  PlotAxis axis;
  for (std::size_t i = 0; i < count; ++i) axis.marks_.push_back(static_cast<double>(i));
  axis.low_ = -0.5;
  axis.high_ = static_cast<double>(count) - 0.5;
  axis.most_ = static_cast<double>(count) - 1;
  return axis;
}

double PlotAxis::scaled(double value) const { return is_logarithmic_ ? std::log10(value) : value; }

double PlotAxis::position(double value) const { return (scaled(value) - low_) / (high_ - low_); }

std::string mark_text(double value) {
  constexpr double million = 1e6, thousand = 1e3;
  if (value >= million) return significant_text(value / million, 3) + " M";
  return value >= thousand ? grouped_text(value) : significant_text(value, 3);
}

}  // namespace windtunnel
