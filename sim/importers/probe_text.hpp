#pragma once

#include <string>
#include <vector>

#include "importers/probe_file.hpp"
#include "platform/device.hpp"

namespace windtunnel {

/// What was measured and has no number in a platform file, a line each: launches from the host, attention as a share of the peak,
/// norms, optimizer, copies from and to the host, all-to-all, codecs in plain PyTorch.
std::string unplaced_text(const std::vector<ProbeMeasurement>& measurements, const Device& device);

}  // namespace windtunnel
