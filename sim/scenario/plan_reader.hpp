#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/object_reader.hpp"
#include "plan/plan_check.hpp"
#include "scenario/parallel_json.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

/// Reads `nodes`, `training` and `parallel`, and lays the plan out. Each block is read by itself first; then come the checks
/// that take several values, from all over the scenario. Such a check is made when those values are what was meant
/// (Problems::is_sound), whatever else is wrong, so that independent mistakes are told at once and none twice.
class PlanReader {
 public:
  /// Reads the blocks of `root`. Model, platform and software of `scenario` have been read.
  PlanReader(ObjectReader& root, Scenario& scenario);

  /// The checks, once the whole scenario has been read, and the plan.
  void check();

  /// The split into stages is to be found: the plan has any that adds up.
  bool balances() const { return asks_for_balance_; }

 private:
  /// Findings become problems at the values that they blame.
  class Findings final : public PlanFindings {
   public:
    Findings(Problems& problems, JsonValue& tree) : problems_(&problems), tree_(&tree) {}
    bool is_sound(std::string_view pointer) const override;
    void reject(PlanRejection rejection) override;
    /// `data` is not given, and what it would be derived from is wrong.
    void forget_data() { knows_data_ = false; }

   private:
    Problems* problems_;
    JsonValue* tree_;
    bool knows_data_ = true;
  };

  PlanInputs inputs() const {
    return {scenario_->model, training_, block_.parallel, scenario_->software};
  }
  bool knows_gpus() const;
  bool knows_product() const;
  void check_ranks();
  void check_available();
  void settle_data();
  std::optional<ClusterShape> find_cluster();
  int settle_segment();
  void settle_layers();
  std::vector<int> layers_before_balance();
  void check_samples();
  void settle_places(const ClusterShape& cluster);
  void check_exchanges();
  void lay_out(const ClusterShape& cluster);
  std::vector<const NodeType*> types_in_use(std::string_view part_of_device) const;
  void check_precision();
  void check_codecs();

  ObjectReader* root_;
  Scenario* scenario_;
  Findings findings_;
  std::optional<int> nodes_;  ///< as given
  std::optional<int> used_;   ///< nodes, once they are known
  Training training_;
  ObjectReader reader_;  ///< of the block `parallel`
  ParallelBlock block_;
  bool asks_for_balance_ = false;
};

}  // namespace windtunnel
