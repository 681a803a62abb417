#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/json_value.hpp"
#include "importers/gpu_trace.hpp"
#include "importers/importer.hpp"

namespace windtunnel {

/// The iteration that traces of PyTorch's profiler measured, as a set for `validate` and `calibrate` (windtunnel/measurements-v1): one
/// point, the scenario of --base, which says what no trace does: model, platform and plan. Its time is the median over the marked steps of a rank,
/// the median over ranks. InputError where the traces mark no steps or are simulated, and where the
/// scenario is not right.
struct TracedIteration {
  JsonValue set;
  double seconds = 0;
  std::vector<std::string> warnings;  ///< what speaks against it
};
TracedIteration traced_iteration(const std::vector<const GpuTrace*>& traces,
                                 const ImportRequest& request, const Library& library);

}  // namespace windtunnel
