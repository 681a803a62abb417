#pragma once

#include <string>
#include <vector>

namespace windtunnel {

/// A scale of a plot, from values to 0 … 1, with the places of its marks.
class PlotAxis {
 public:
  /// From 0 to a round number above all values.
  static PlotAxis linear_from_zero(const std::vector<double>& values);
  /// Over the values, with room at both ends; marks at 1, 2 and 5 times powers of ten. Values must be above 0.
  static PlotAxis logarithmic(const std::vector<double>& values);
  /// Over the values themselves, which are the marks unless they are many: logarithmic where they are above 0 and far apart.
  static PlotAxis over(const std::vector<double>& values);
  /// One mark for each of `count` names.
  static PlotAxis of_categories(std::size_t count);

  double position(double value) const;
  const std::vector<double>& marks() const { return marks_; }
  double least() const { return least_; }  ///< of the values
  double most() const { return most_; }
  bool is_logarithmic() const { return is_logarithmic_; }

 private:
  double scaled(double value) const;
  void use_round_marks();

  bool is_logarithmic_ = false;
  double low_ = 0, high_ = 1;  ///< scaled
  double least_ = 0, most_ = 0;
  std::vector<double> marks_;
};

/// "250", "10,000", "1.5 M": a value on an axis.
std::string mark_text(double value);

}  // namespace windtunnel
