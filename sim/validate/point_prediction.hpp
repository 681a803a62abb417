#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "evidence/evidence.hpp"
#include "evidence/measurement_set.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

/// Allocator maxima of one rank of a stage.
struct StageReading {
  Bytes allocated{}, reserved{};
  Bytes first_step_allocated{}, first_step_reserved{};  ///< before the optimizer's moments exist
};

/// Prediction of one point.
struct PointPrediction {
  Seconds time{};                        ///< of the iteration or collective
  IterationWork work = {};               ///< of an iteration
  Flops ideal_work{};                    ///< see score.hpp
  std::optional<JudgedRun> judged = {};  ///< of an iteration
  std::optional<std::pair<Seconds, Seconds>> interval;
  Seconds last_stage_forward{}, last_stage_backward{};  ///< as Megatron's timers
  Bytes memory_max{};                                   ///< nvidia-smi, of the fullest GPU
  MemoryVerdict verdict = MemoryVerdict::fits;
  std::vector<int> stage_of_rank;
  std::vector<StageReading> stages;
  std::vector<FittedNumber> fitted;
};

/// Reads and simulates the scenario with the models and platforms of `library`; its interval is that of `evidence`, of the library where
/// that is null.
PointPrediction predict_by_simulation(const JsonValue& scenario,
                                      const std::filesystem::path& folder, const Library& library,
                                      const ReadOptions& reading = {},
                                      const MeasuredErrors* evidence = nullptr);

/// Predicts one collective on the platform that `scenario` names.
PointPrediction predict_collective(const CollectiveRun& run, const JsonValue& scenario,
                                   const std::filesystem::path& folder, const Library& library,
                                   const ReadOptions& reading = {});

}  // namespace windtunnel
