#pragma once

#include <utility>
#include <variant>
#include <vector>

#include "plan/plan.hpp"

namespace windtunnel {

/// Makes one plan after another on one cluster, as make_plan() does, and lays devices out again only where ranks move.
class PlanMaker {
 public:
  /// The referred objects must outlive it.
  PlanMaker(const Transformer& model, const ClusterShape& cluster, const SoftwareProfile& software,
            Compression compression = {})
      : model_(&model), cluster_(&cluster), software_(&software) {
    plan_.compression = std::move(compression);
  }

  /// The plan, until the next call, or why there is none.
  std::variant<const Plan*, std::vector<PlanRejection>> make(const Training& training,
                                                             const Parallel& parallel);
  /// The last plan that was made.
  Plan take() { return std::move(plan_); }

 private:
  /// Whether the devices of the last plan are those of this one.
  bool has_devices_of(const Parallel& parallel) const;

  const Transformer* model_;
  const ClusterShape* cluster_;
  const SoftwareProfile* software_;
  Plan plan_;
};

}  // namespace windtunnel
