#pragma once

#include <cstddef>
#include <functional>

#include "engine/player.hpp"
#include "lower/program_builder.hpp"
#include "noise/step_noise.hpp"
#include "noise/step_series.hpp"

namespace windtunnel {

/// Plays the steps of a scenario with noise; its programs are built once. Refers to the scenario.
class StepPlayer {
 public:
  StepPlayer(const Scenario& scenario, const NoiseBlock& noise, const StepOptions& options);

  const BuiltPrograms& built() const { return built_; }
  Seconds without_noise() const { return without_noise_; }

  /// Calls `play` for every step, on the threads that the options allow.
  void for_each_step(const std::function<void(std::size_t, const StepFactors&)>& play) const;
  /// How long the step takes: with one replica for all, where it is the same for all.
  Seconds play_step(const StepFactors& factors, std::size_t step) const;
  Seconds play_each_device(const StepFactors& factors, std::size_t step,
                           PlayListener* listener) const;

 private:
  StepOptions options_;
  BuiltPrograms built_;
  Seconds without_noise_{};
  StepNoise noise_;  ///< before its first step
};

}  // namespace windtunnel
