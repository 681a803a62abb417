#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.hpp"

namespace windtunnel {

/// JSON pointers of what a plan is made from, as its problems name them.
namespace plan_keys {
inline constexpr const char* nodes = "/nodes";
inline constexpr const char* tensor = "/parallel/tensor";
inline constexpr const char* pipeline = "/parallel/pipeline";
inline constexpr const char* data = "/parallel/data";
inline constexpr const char* context = "/parallel/context";
inline constexpr const char* edge_layers = "/parallel/edge_layers";
inline constexpr const char* stage_layers = "/parallel/stage_layers";
inline constexpr const char* chunks = "/parallel/virtual_pipeline";
inline constexpr const char* schedule = "/parallel/schedule";
inline constexpr const char* zero_stage = "/parallel/zero_stage";
inline constexpr const char* compile = "/training/compile";
inline constexpr const char* fp8_recipe = "/training/fp8_recipe";
inline constexpr const char* async_tensor_parallel = "/parallel/async_tensor_parallel";
inline constexpr const char* reshard_after_forward = "/parallel/reshard_after_forward";
inline constexpr const char* zero_group = "/parallel/zero_group";
inline constexpr const char* expert = "/parallel/expert";
inline constexpr const char* expert_tensor = "/parallel/expert_tensor";
inline constexpr const char* overlap_gradient_reduce = "/parallel/overlap_gradient_reduce";
inline constexpr const char* sequence_parallel = "/parallel/sequence_parallel";
inline constexpr const char* recompute_modules = "/training/recompute_modules";
inline constexpr const char* recompute_layers = "/training/recompute_layers";
inline constexpr const char* precision = "/training/precision";
inline constexpr const char* optimizer = "/training/optimizer";
inline constexpr const char* main_parameters = "/training/main_params_dtype";
inline constexpr const char* first_moment = "/training/exp_avg_dtype";
inline constexpr const char* second_moment = "/training/exp_avg_sq_dtype";
inline constexpr const char* optimizer_offload = "/training/optimizer_offload_fraction";
inline constexpr const char* overlap_offload = "/training/overlap_optimizer_offload";
inline constexpr const char* activation_offload = "/training/activation_offload_fraction";
inline constexpr const char* lora_rank = "/training/lora_rank";
inline constexpr const char* lora_targets = "/training/lora_target_modules";
inline constexpr const char* lora_dropout = "/training/lora_dropout";
inline constexpr const char* frozen_type = "/training/frozen_dtype";
inline constexpr const char* global_batch = "/training/global_batch";
inline constexpr const char* micro_batch = "/training/micro_batch";
inline constexpr const char* layers = "/model/layers";
inline constexpr const char* layers_at_the_ends = "/software/embedding_and_head_as_layers";
}  // namespace plan_keys

/// Whom the checks of a plan tell what is wrong, and ask what can be relied on. One mistake is told once: what has been
/// rejected is relied on no more, so the checks go from what blames one value to what blames several.
class PlanFindings {
 public:
  virtual ~PlanFindings() = default;
  /// True if no problem has been found with the value at this JSON pointer of the scenario.
  virtual bool is_sound(std::string_view pointer) const = 0;
  virtual void reject(PlanRejection rejection) = 0;

  bool are_sound(std::initializer_list<std::string_view> pointers) const;
};

/// Everything is what was meant until it is rejected.
class RejectionList final : public PlanFindings {
 public:
  bool is_sound(std::string_view pointer) const override;
  void reject(PlanRejection rejection) override;
  const std::vector<PlanRejection>& all() const { return rejections_; }

 private:
  std::vector<PlanRejection> rejections_;
};

/// Inputs of make_plan().
struct PlanInputs {
  const Transformer& model;
  const Training& training;
  const Parallel& parallel;
  const SoftwareProfile& software;
};

/// One factor of the number of ranks.
struct Factor {
  const char* name;
  int size;
};
/// "tensor * pipeline = 8 * 2 = 16"; a context of 1 is left out, and the result where it is not asked for.
std::string product_text(const std::vector<Factor>& factors, bool with_result = true);
/// That of all factors of a plan.
std::string product_text(const Parallel& parallel, bool with_result = true);
/// The degrees of Parallel::ranks_of_replica().
std::vector<Factor> factors_of_replica(const Parallel& parallel);

/// The layers of stages and chunks: those given, else the default. Empty where they cannot be divided.
LayerSplit layer_split(const PlanInputs& plan);

/// The checks of make_plan(), in this order:
/// `tensor` divides what it cuts,
void check_tensor(const PlanInputs& plan, PlanFindings& findings);
/// `pipeline` divides the layers, where the scenario does not say stage_layers,
void check_even_stages(const PlanInputs& plan, PlanFindings& findings);
/// values of two keys go together (schedule and chunks, chunks and stages, shards and stages), which is judged before all of the next,
/// as neither its mistakes nor theirs follow from the other's,
void check_pairs(const PlanInputs& plan, PlanFindings& findings);
/// sequences, heads and attention can be cut as `context` says,
void check_context(const PlanInputs& plan, PlanFindings& findings);
/// experts are shared out and cut evenly, and fold whole tensor groups,
void check_experts(const PlanInputs& plan, PlanFindings& findings);
/// the model has the modules that are recomputed, and the stack recomputes modules,
void check_recompute(const PlanInputs& plan, PlanFindings& findings);
/// the optimizer and the stack have states of such types, and can leave them to the host,
void check_states(const PlanInputs& plan, PlanFindings& findings);
/// the model has the matrices that are to have adapters, and nothing else trains what is frozen,
void check_adapters(const PlanInputs& plan, PlanFindings& findings);
/// the ranks are the GPUs of the cluster,
void check_product(const PlanInputs& plan, const ClusterShape& cluster, PlanFindings& findings);
/// stages, chunks, schedule and batch fit each other, and the stack says what the plan's gathers cost,
void check_work(const PlanInputs& plan, PlanFindings& findings);
/// Codecs that send factors need whole gradients on every replica; and stages that the pipeline does not have.
void check_compression(const Compression& compression, const Parallel& parallel,
                       PlanFindings& findings);
/// and no tensor group is cut unevenly by the borders of nodes. This one lays the plan out, so its values must be sound.
void check_borders(const Parallel& parallel, const ClusterShape& cluster, PlanFindings& findings);

/// The pointers whose product is the number of ranks, and what it must equal.
const std::vector<std::string>& product_pointers();

}  // namespace windtunnel
