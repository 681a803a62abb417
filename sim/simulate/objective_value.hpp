#pragma once

#include <optional>
#include <string>

#include "scenario/job_block.hpp"
#include "scenario/scenario.hpp"
#include "scenario/search_block.hpp"
#include "timeline/breakdown.hpp"

namespace windtunnel {

/// Shares of a step that a GPU computes and communicates. Waiting is the rest.
struct StepShares {
  double computing = 1, communicating = 0;
};
/// Shares of the device that ends last. A device that communicates counts as working: only pipeline bubbles are waiting.
StepShares shares_of(const Breakdown& breakdown);

/// Watts of a GPU over a step.
double gpu_watts(const JobBlock::Power& power, const StepShares& shares);

/// The `job` block of a scenario that has been read; InputError where there is none.
JobBlock job_block_of(const Scenario& scenario);

/// Printed form of an objective in a table: "USD per 10^6 tokens" above "1.27", "J/token" above "0.42".
struct ObjectiveColumn {
  std::string title;
  double scale = 1;  ///< what is printed of a value
};
ObjectiveColumn column_of(Objective objective, const std::string& currency);
std::string number_text(const ObjectiveColumn& column, double value);

/// Value of an objective for iterations that use the GPUs, and train the batch, of one scenario.
class ObjectiveValue {
 public:
  /// InputError where the scenario lacks what the objective needs: a job, its price, its power. `asked_at` is the pointer of the objective.
  ObjectiveValue(const Scenario& scenario, Objective objective, const std::string& asked_at);

  Objective objective() const { return objective_; }
  ObjectiveColumn column() const {
    return column_of(objective_, job_ && job_->price ? job_->price->currency : "");
  }
  /// In unit_of(), of an iteration that takes `time`.
  double value(Seconds time, const StepShares& shares) const;
  /// The value with its sign turned where more is better: the least is the best.
  double penalty(Seconds time, const StepShares& shares) const;
  /// No iteration that takes `time` or longer has a smaller penalty.
  double least_penalty(Seconds time) const;

 private:
  Objective objective_;
  std::optional<JobBlock> job_;
  double tokens_ = 1;                        ///< of an iteration
  double gpus_ = 1, nodes_ = 1, ranks_ = 1;  ///< the plan uses `ranks_` of the GPUs
};

}  // namespace windtunnel
