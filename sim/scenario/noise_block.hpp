#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "core/object_reader.hpp"
#include "platform/platform.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// The `noise` block, or a file of platforms/noise/: how one iteration differs from the next, and one GPU from another. A sigma is that of
/// the natural logarithm: 0.01 is about 1 %.
struct NoiseBlock {
  std::string name;
  /// Sigma of a pass's duration, drawn anew for every pass and shared by the GPUs that run it together (a tensor group).
  double pass_jitter = 0;

  /// Spread of kernel speed among parts, constant for as long as the job runs.
  struct Spread {
    double gpu = 0, node = 0;
  } spread;

  /// Change of speed from one step to the next: of all passes at once, and of the kernels of one GPU or node.
  struct StepJitter {
    double all = 0, gpu = 0, node = 0;
    double correlation = 0;  ///< between one step and the next
    /// Duration of a disturbance of all passes at once: longer steps have several of them, which average out. None: a whole step.
    std::optional<Seconds> all_lasts;
    /// The jitter `all`, averaged over a step of this length.
    double all_in(Seconds step) const;
  } step_jitter;

  /// A GPU or a node, counted from 0 over the cluster, whose kernels take `slowdown` times as long.
  struct SlowPart {
    std::optional<int> gpu, node;  ///< one of them
    double slowdown = 1;
    bool slows(int of_node, int of_gpu) const { return node == of_node || gpu == of_gpu; }
  };
  std::vector<SlowPart> slow_parts;

  struct Links {
    double rate = 0;     ///< of the rate of each link of the network, drawn for each step
    double latency = 0;  ///< of the latency of each message and collective
  } links;

  /// A host that stands still: the pass under way on its GPU, or the next, takes so much longer.
  struct Stalls {
    double per_gpu_hour = 0;  ///< at random times
    Seconds median = 100_ms;  ///< of their duration, which is log-normal
    double spread = 0;        ///< its sigma
  } stalls;

  std::map<std::string, Source> sources;

  /// True if it leaves every time as it is.
  bool is_none() const;
};

/// Reads and checks the block.
NoiseBlock read_noise(ObjectReader reader);

}  // namespace windtunnel
