#pragma once

#include <cstdint>

namespace windtunnel {

/// Purposes of draws. Each kind draws apart from all others, so that leaving one kind of noise out changes no draw of the rest.
enum class NoiseKind : std::uint8_t {
  gpu_speed,
  node_speed,
  step_of_all,
  step_of_gpu,
  step_of_node,
  pass,
  latency,
  link_rate,
  stall_time,
  stall_length,
};

/// Random numbers of a seed by what they are for: no draw depends on what was drawn before, or on which thread.
class NoiseDraws {
 public:
  explicit NoiseDraws(std::uint64_t seed) : seed_(seed) {}

  /// Which draw: the part (a GPU, a device, a link), the step, and the number among those of the part in the step.
  struct Place {
    std::uint32_t part = 0, step = 0, number = 0;
  };
  /// In (0, 1].
  double uniform(NoiseKind kind, Place place) const;
  /// Of the standard normal distribution (Box & Muller 1958).
  double normal(NoiseKind kind, Place place) const;

 private:
  std::uint64_t seed_;
};

}  // namespace windtunnel
