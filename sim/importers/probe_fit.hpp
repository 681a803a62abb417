#pragma once

#include <map>
#include <string>
#include <vector>

#include "importers/probe_file.hpp"
#include "platform/platform.hpp"

namespace windtunnel {

/// How far a kind of measurement is from what the fitted numbers say of it.
struct ProbeError {
  int count = 0;
  double mean = 0, worst = 0;  ///< without signs
};

/// The numbers of a GPU found from measurements, by key of a device file: "gemm/peak_fraction", "kernel_overhead".
struct ProbeFit {
  Device device;                      ///< the base's with them
  std::vector<std::string> fitted;    ///< keys
  std::vector<std::string> kept;      ///< keys that the measurements do not determine
  std::vector<std::string> at_bound;  ///< keys that ended where they may not go beyond
  ProbeError gemm, copy;
};

/// Fits the form of matrix products and the memory's efficiency and the kernel overhead (kernel_cost.hpp) together, by robust least
/// squares on the logarithms of the times. The overhead is held by the time of a kernel in a CUDA graph; without one it is the
/// base's. The form of products needs eight of them. `node` is the base's; its compute_efficiency stays, and is divided out.
ProbeFit fit_device(const NodeType& node, const std::vector<ProbeMeasurement>& measurements);

/// A rate and what each call costs beside it:  t = overhead + bytes / rate.
struct StreamFit {
  BytesPerSecond rate{};
  Seconds overhead{};
  int count = 0;
  double error = 0;      ///< mean, without signs
  bool is_held = false;  ///< whether the times depend on the rate at all
};
/// Of the calls of one codec in one direction, at two sizes or more.
StreamFit fit_stream(const std::vector<ProbeMeasurement>& calls);

/// The middle one; of an even number, the upper of both.
Seconds median_of(std::vector<Seconds> times);

}  // namespace windtunnel
