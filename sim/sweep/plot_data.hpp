#pragma once

#include <optional>
#include <string>
#include <vector>

#include "sweep/parts.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// One simulated point of a plot.
struct PlotPoint {
  std::size_t point = 0;  ///< of the sweep
  double x = 0;
  Seconds time{};
  double tokens_per_s = 0, mfu = 0;
  Bytes memory{};
  bool fits = true;
  /// Tokens a second and GPU over those of the series' smallest cluster; only where x counts GPUs.
  std::optional<double> efficiency;
};

/// Points with the same values of everything that is swept beside x, in the order of x.
struct PlotSeries {
  std::string name;  ///< "micro_batch 4, recompute full"; empty for the only one
  std::vector<PlotPoint> points;
};

/// What is drawn.
struct PlotData {
  std::string x_name;  ///< "GPUs", or a JSON pointer
  bool x_counts_gpus = false;
  std::vector<std::string>
      categories;  ///< names of x = 0, 1, 2, … where x is no number; else empty
  std::vector<PlotSeries> series;
  std::vector<PlotPoint>
      others;  ///< the points that no series has, where there are too many series

  /// "512", "full": where a point stands on the axis.
  std::string x_text(double x) const;
};

/// More would not be told apart; of further ones only the fastest at each x are drawn, as one.
inline constexpr std::size_t most_series = 8;

/// At each x the point that fits with the most tokens a second; one that does not fit where none does.
PlotSeries fastest_points(const PlotData& data);

/// Chooses the axis: GPUs where they vary, else the first swept pointer whose values are numbers and vary, else the first that varies. Other
/// swept values that differ at the same x tell the series apart. Nothing when fewer than two points can be drawn.
std::optional<PlotData> plot_data(const PartRows& rows, const std::vector<std::string>& columns);

}  // namespace windtunnel
