#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <vector>

#include "calibrate/calibration_points.hpp"
#include "simulate/tasks.hpp"

namespace windtunnel {

/// Predicts points at values of the constants, several at a time, and remembers
/// them: a refit without some points starts from what the fit to all of them has computed.
class PointPredictor {
 public:
  /// The iteration time of a point with values laid over it. Called on several threads at a time.
  using Predict = std::function<Seconds(const CalibrationPoint&, const Overrides&)>;
  /// Called with the number of predictions made so far.
  using OnProgress = std::function<void(std::size_t)>;

  PointPredictor(const std::vector<CalibrationPoint>& points,
                 const std::vector<FitConstant>& constants, Predict predict,
                 OnProgress on_progress = {});

  /// Of the points at `indices`, in their order; without values, as their files have them. A point
  /// that fails throws what its prediction threw.
  std::vector<Seconds> predict(const std::vector<double>& values,
                               const std::vector<std::size_t>& indices);
  std::size_t num_predictions() const { return num_predictions_; }

 private:
  Overrides overrides_for(const CalibrationPoint& point, const std::vector<double>& values) const;

  const std::vector<CalibrationPoint>* points_;
  const std::vector<FitConstant>* constants_;
  Predict predict_;
  OnProgress on_progress_;
  std::map<std::vector<double>, std::map<std::size_t, Seconds>> known_;
  std::size_t num_predictions_ = 0;
};

/// Predicts by simulation. `overrides` (--set) come before those of the constants.
PointPredictor::Predict predict_by_simulation(const Library& library, Overrides overrides);

}  // namespace windtunnel
