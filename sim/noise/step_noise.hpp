#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/program_simulator.hpp"
#include "plan/plan.hpp"
#include "platform/network.hpp"
#include "platform/platform.hpp"
#include "scenario/noise_block.hpp"

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

  /// Identity of a draw: the part (a GPU, a device, a link), the step, and the number among those of the part in the step.
  struct Place {
    std::uint32_t part = 0, step = 0, number = 0;
  };
  /// In (0, 1].
  double uniform(NoiseKind kind, Place place) const;
  /// A draw from the standard normal distribution (Box & Muller 1958).
  double normal(NoiseKind kind, Place place) const;

 private:
  std::uint64_t seed_;
};

/// Factors on the speed of one step.
struct StepFactors {
  double all = 1;                 ///< on every pass
  std::vector<double> of_device;  ///< on the time of its kernels
};

/// The noise of a plan on a cluster, step by step. A device is as slow as the slowest of its GPUs, which wait for each other in every layer.
class StepNoise {
 public:
  /// `step`: how long one takes without noise.
  StepNoise(const NoiseBlock& block, std::uint64_t seed, const Plan& plan,
            const std::vector<NodeType>& nodes, Seconds step);

  const NoiseBlock& block() const { return block_; }
  const NoiseDraws& draws() const { return draws_; }
  /// Factors of the next step; the first call returns step 0. Correlated steps depend on the step before.
  StepFactors next_step();
  /// Number of GPUs of a device: each has stalls of its own.
  double gpus_of(DeviceId device) const { return gpus_of_device_[device.index()]; }

 private:
  /// ln of a factor that changes from step to step.
  void advance(std::vector<double>& state, NoiseKind kind);
  std::size_t number_of(const PlanDevice& device, int gpu) const;

  NoiseBlock block_;
  NoiseDraws draws_;
  const Plan* plan_;
  std::vector<std::size_t> first_gpu_;  ///< of each node
  std::vector<double> fixed_;           ///< by GPU
  std::vector<double> gpus_of_device_;
  double sigma_of_all_;
  std::uint32_t step_ = 0;  ///< that comes next
  std::vector<double> all_, gpu_, node_;
};

/// One step's noise, as simulate_programs() asks for it.
class StepDisturbance final : public Disturbance {
 public:
  StepDisturbance(const StepNoise& noise, const StepFactors& factors, std::uint32_t step);
  Seconds duration(DeviceId device, Stream stream, const Work& usual, Seconds now) override;
  Seconds launches(DeviceId, Seconds usual) override { return usual * factors_->all; }
  Seconds latency(DeviceId from, Seconds usual) override;

  /// When the first stall of any device begins; infinity where there is none.
  Seconds first_stall() const;

 private:
  struct Stall {
    Seconds at{}, length{};
    std::uint32_t number = 0;
  };
  /// The first one after the time; a host that stands still meets no other.
  Stall stall(DeviceId device, std::uint32_t number, Seconds after) const;
  /// Stall time of an op of this duration.
  Seconds stalled(DeviceId device, Seconds now, Seconds duration);

  const StepNoise* noise_;
  const StepFactors* factors_;
  std::uint32_t step_;
  std::vector<std::uint32_t> passes_;    ///< drawn so far, by stream
  std::vector<std::uint32_t> messages_;  ///< drawn so far, by device
  std::vector<Stall> next_stall_;        ///< by device
};

/// A step that is the same for every device, as long as no host stands still.
class UniformDisturbance final : public Disturbance {
 public:
  UniformDisturbance(double all, double kernels) : all_(all), kernels_(kernels) {}
  Seconds duration(DeviceId, Stream, const Work& usual, Seconds) override;
  Seconds launches(DeviceId, Seconds usual) override { return usual * all_; }
  Seconds latency(DeviceId, Seconds usual) override { return usual; }

 private:
  double all_, kernels_;
};

/// The disturbance that all devices have in this step; none where they differ, whatever their stalls.
std::optional<UniformDisturbance> uniform_disturbance(const NoiseBlock& block,
                                                      const StepFactors& factors);

/// Duration of an op whose kernels run `factor` times as long: the GPUs' computation is longer, transfers and launches of the CPU are
/// not. If nothing overlaps with the kernels, a device file with all times of kernels scaled gives the same.
Seconds with_slower_kernels(const Work& usual, double factor);

/// The network with the rates that its links have in this step.
Network disturbed(const Network& network, const StepNoise& noise, std::uint32_t step);

}  // namespace windtunnel
