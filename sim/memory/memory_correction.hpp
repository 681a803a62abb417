#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "core/json_value.hpp"
#include "core/problem.hpp"
#include "memory/memory_account.hpp"

namespace windtunnel {

/// Errors of predicted memory on runs that were held out of what they are predicted by, as fractions.
struct HeldOutMemory {
  std::size_t rows = 0, groups = 0;
  double analytic = 0;   ///< mean absolute error of the account alone
  double corrected = 0;  ///< of the account times the network's factor
};

/// A small network that was trained on what the account leaves unexplained:
///   factor = exp( c tanh(y / c) ),   y = v . tanh(W z + b) + a,   z = (x - mean) / scale
/// x memory_features(); c the largest logarithm of measured over accounted that it was shown, so that it never leaves what was seen.
/// Made by `windtunnel calibrate --memory`. It speaks only where it was better on runs it had not seen.
struct MemoryCorrection {
  std::string software;           ///< profile of the runs it was trained on
  std::string quantity;           ///< what was measured: "allocated", "reserved" or "nvidia-smi"
  std::vector<std::string> sets;  ///< measurement sets
  std::vector<double> mean, scale;
  std::vector<std::vector<double>> hidden;  ///< W by unit, its b last
  std::vector<double> output;               ///< v, and a last
  double most = 0;                          ///< c
  HeldOutMemory held_out;

  bool is_better() const { return held_out.corrected < held_out.analytic; }
};

/// Features of a stage and its account, the inputs of the neural network, in the order of memory_feature_names().
std::vector<double> memory_features(const MemoryInputs& inputs, const StageMemory& stage);
const std::vector<std::string>& memory_feature_names();

/// Factor that the account is multiplied by.
double correction_factor(const MemoryCorrection& correction, const std::vector<double>& features);

/// The file's text: `{"schema": "windtunnel/memory-correction-v1", "software": …, "quantity": …, "sets": […], "held_out": {…},
/// "features": […], "mean": […], "scale": […], "hidden": [[…]], "output": […], "most": …}`.
std::string memory_correction_json(const MemoryCorrection& correction);

/// Reads what memory_correction_json() wrote. Adds every problem found.
MemoryCorrection read_memory_correction(JsonValue& value, const std::string& pointer,
                                        Problems& problems);

}  // namespace windtunnel
