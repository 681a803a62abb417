#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/ordering.hpp"
#include "sweep/results.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// "250", "10,000", "1.5 M": a value on an axis.
std::string mark_text(double value);

/// One simulated point of a plot.
struct PlotPoint {
  std::size_t point = 0;  ///< of the sweep
  double x = 0;
  Seconds time{};
  double tokens_per_s = 0, mfu = 0;
  Bytes memory{};
  bool fits = true;
  std::string name;                                   ///< of a point with a label
  std::optional<std::pair<double, double>> interval;  ///< of the time, in seconds
  std::optional<double> speedup;                      ///< over the sweep's baseline
  std::optional<std::pair<double, double>> speedup_interval;
  /// Tokens a second and GPU over those of the series' smallest cluster; only where x counts GPUs.
  std::optional<double> efficiency;
};

/// Points with the same values of everything that is swept beside the axis, in the order of x. Only these are joined by a line.
struct PlotSeries {
  std::string name;  ///< "micro_batch 4, recompute full"; empty where nothing else differs
  std::vector<PlotPoint> points;
};

/// Data of a plot.
struct PlotData {
  std::string x_name;  ///< "GPUs", "microbatch (samples)", "nic_rate (Gbps)"
  bool x_counts_gpus = false;
  bool batch_grows = false;  ///< with the GPUs along every line: weak scaling
  std::vector<std::string>
      categories;  ///< names of x = 0, 1, 2, … where x is no number; else empty
  std::vector<PlotSeries> series;
  /// The points of further series, where there are too many.
  std::vector<PlotPoint> others;

  /// "512", "full": where a point stands on the axis.
  std::string x_text(double x) const;
};

/// More would not be told apart. Of more, those with the fastest points are drawn.
inline constexpr std::size_t most_series = 8;

/// At each x the point that fits with the most tokens a second; one that does not fit where none does. In the order of x.
std::vector<PlotPoint> fastest_points(const PlotData& data);

/// How throughput grows along a line, between points that fit in memory.
struct Scaling {
  const PlotSeries* series = nullptr;
  const PlotPoint *smallest = nullptr, *largest = nullptr;  ///< clusters
};
/// Of the line with the most tokens a second; nothing where x counts no GPUs, or no line has two sizes that fit.
std::optional<Scaling> scaling_of(const PlotData& data);

/// Chooses the axis: the points' labels where all have one; else GPUs where a swept size of the job changes them while all else stays the same, else the
/// first swept pointer whose values are numbers or amounts of one kind and vary, else the first that varies. Nothing when fewer than two points
/// can be drawn.
std::optional<PlotData> plot_data(const PartRows& rows, const std::vector<std::string>& columns);

/// A point of a sweep whose job has a length and a price.
struct FrontPoint {
  std::size_t point = 0;
  PricedPoint priced;  ///< called by its label, or its swept values
};

/// Points that fit and have days and a cost, by number; those on the Pareto front are marked. Empty where no row has both.
std::vector<FrontPoint> front_of(const PartRows& rows, const std::vector<std::string>& columns);

/// The pictures of sweep_pictures() in one file, one above the other, with their key. Empty when fewer than two points can be drawn.
std::string sweep_svg(const std::string& name, const std::vector<std::string>& columns,
                      const PartRows& rows);

/// The curves of a page, each an SVG of its own in the page's style: throughput, scaling efficiency (iteration time where the cluster
/// stays the same), MFU and memory, against the number of GPUs where that varies, else against the first swept pointer whose values are
/// numbers.
std::vector<std::string> sweep_pictures(const PlotData& data);

/// Key to a line or mark of the curves.
struct CurveKey {
  std::string sample;  ///< SVG, 30 wide, around y = 0
  std::string name;
};
std::vector<CurveKey> curve_keys(const PlotData& data);

}  // namespace windtunnel
