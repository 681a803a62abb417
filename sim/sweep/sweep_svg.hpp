#pragma once

#include <string>
#include <vector>

#include "sweep/parts.hpp"

namespace windtunnel {

/// The sweep as a picture: throughput, MFU with scaling efficiency, and memory, one above the other, against the number of GPUs where
/// that varies, else against the first swept pointer whose values are numbers. Empty when fewer than two points can be drawn.
std::string sweep_svg(const std::string& name, const std::vector<std::string>& columns,
                      const PartRows& rows);

}  // namespace windtunnel
