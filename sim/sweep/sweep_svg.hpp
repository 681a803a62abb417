#pragma once

#include <string>
#include <vector>

#include "sweep/plot_data.hpp"
#include "sweep/results.hpp"

namespace windtunnel {

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
