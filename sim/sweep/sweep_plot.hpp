#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "report/chart.hpp"
#include "sweep/results.hpp"

namespace windtunnel {

/// One simulated point of a plot. The row must outlive it.
struct PlotPoint {
  const Row* row = nullptr;
  double x = 0;
  double tokens_per_s = 0;
  /// Tokens a second and GPU over those of the series' smallest cluster; only where x counts GPUs.
  std::optional<double> efficiency = {};

  bool fits() const { return windtunnel::fits(row->content); }
};

/// Points with the same values of everything that is swept besides the axis, in the order of x. Only these are joined by a line.
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

/// More could not be distinguished. Of more, those with the fastest points are drawn.
inline constexpr std::size_t most_series = 8;

/// At each x the point that fits with the most tokens a second; one that does not fit where none does. In the order of x.
std::vector<PlotPoint> fastest_points(const PlotData& data);

/// Growth of throughput along a line, between points that fit in memory.
struct Scaling {
  const PlotSeries* series = nullptr;
  const PlotPoint *smallest = nullptr, *largest = nullptr;  ///< clusters
};
/// Scaling of the line with the most tokens per second; nothing if x does not count GPUs, or no line has two sizes that fit.
std::optional<Scaling> scaling_of(const PlotData& data);

/// Chooses the axis: the points' labels where all have one; else GPUs where a swept size of the job changes them while all else stays the same, else the
/// first swept pointer whose values are numbers or amounts of one kind and vary, else the first that varies. Nothing when fewer than two points
/// can be drawn.
std::optional<PlotData> plot_data(const PartRows& rows, const std::vector<std::string>& columns);

/// Throughput, scaling efficiency (iteration time where the cluster stays the same), MFU and memory, and speed-ups where there are any, against the
/// number of GPUs where that varies, else against the first swept pointer whose values are numbers.
std::vector<Chart> sweep_charts(const PlotData& data);

/// The same charts in one file, one above the other, with their key. Empty when fewer than two points can be drawn.
std::string sweep_svg(const std::string& name, const std::vector<std::string>& columns,
                      const PartRows& rows);

/// Legend of their lines and marks.
std::vector<ChartKey> curve_keys(const PlotData& data);

}  // namespace windtunnel
