#include <algorithm>

#include "questions/what_if_parts.hpp"

namespace windtunnel {
namespace {

class TrainingWhatIfs {
 public:
  explicit TrainingWhatIfs(const Scenario& scenario) : scenario_(scenario), plan_(scenario.plan) {}

  std::vector<WhatIf> collect() {
    add_software();
    add_experts();
    add_training();
    add_schedule();
    return list_.take();
  }

 private:
  bool knows_flash() const {
    const Training& training = plan_.training;
    return std::all_of(scenario_.nodes.begin(), scenario_.nodes.end(), [&](const NodeType& node) {
      return scenario_.software.knows_attention(node.device, training.attention_kernel,
                                                training.precision);
    });
  }

  void add_software() {
    const auto& launch = scenario_.software.launch;
    if (launch.kernel + launch.collective > Seconds{0})
      list_.add(WhatIfKind::software, "no launch floor (CUDA graphs)",
                {{"/software/launch/kernel", "0 us"}, {"/software/launch/collective", "0 us"}});
  }

  /// What tokens that are not spread evenly cost, and what their way to experts costs.
  void add_experts() {
    if (!scenario_.model.moe || expert_ways(plan_.parallel) == 1) return;
    if (!scenario_.model.moe->balance.is_even())
      list_.add(WhatIfKind::training, "tokens spread evenly over experts",
                {{"/model/moe/balance", "balanced"}});
    const SoftwareProfile& stack = scenario_.software;
    if (stack.experts_elsewhere.empty() && stack.experts.dispatch == ExpertDispatch::all_to_all &&
        scenario_.nodes.size() > 1)
      list_.add(WhatIfKind::software, "one copy of a token a node",
                {{"/software/experts/dispatch", "one_copy_per_node"}});
  }

  void add_training() {
    const Training& training = plan_.training;
    const int size = training.micro_batch;
    const auto sized = [this](const char* what, int samples) {
      list_.add(WhatIfKind::training, std::string(what) + " (" + std::to_string(samples) + ")",
                {{"/training/micro_batch", std::to_string(samples)}});
    };
    const bool any_number = !plan_.parallel.schedule->written;  // its file says how many
    if (any_number && plan_.microbatches % 2 == 0) sized("microbatches twice as large", 2 * size);
    if (any_number && size % 2 == 0) sized("microbatches half as large", size / 2);
    if (training.recompute != Recompute::none)
      list_.add(WhatIfKind::training, "no recomputation", {{"/training/recompute", "none"}});
    if (training.recompute == Recompute::full)
      list_.add(WhatIfKind::training, "selective recomputation",
                {{"/training/recompute", "selective"}});
    if (training.attention == Attention::standard && knows_flash())
      list_.add(WhatIfKind::training, "FlashAttention", {{"/training/attention", "flash"}});
  }

  void add_schedule() {
    const Parallel& parallel = plan_.parallel;
    if (parallel.pipeline > 1) {
      const bool eager = parallel.pipeline_send == PipelineSend::eager;
      if (!eager || parallel.schedule->sends == ScheduleSends::as_stack)
        list_.add(WhatIfKind::schedule,
                  eager ? "exchanges in blocking pairs" : "messages that leave by themselves",
                  {{"/parallel/pipeline_send", eager ? "blocking_pairs" : "eager"}});
      if (!parallel.schedule->written) add_orders();
    }
    if (parallel.replicas() > 1 && !parallel.overlap_gradient_reduce && parallel.zero_stage < 3)
      list_.add(WhatIfKind::schedule, "gradient reduction beside the backward pass",
                {{"/parallel/overlap_gradient_reduce", "true"}});
  }

  /// The other orders of passes. Two chunks a device need layers and microbatches that divide.
  void add_orders() {
    std::vector<SchedulePtr> others = named_schedules();
    std::erase_if(others, [this](const SchedulePtr& each) {
      const bool is_idle = each->overlaps_passes && plan_.parallel.expert == 1;  // hides nothing
      return !each->is_what_if || is_idle || each == plan_.parallel.schedule;
    });
    for (const SchedulePtr& each : others)
      if (!each->takes(2)) add_order(*each, "schedule " + each->name, 1);
    for (const SchedulePtr& each : others)
      if (each->takes(2) && fits_two_chunks(*each))
        add_order(*each, "schedule " + each->name + ", two chunks per device", 2);
  }
  bool fits_two_chunks(const Schedule& schedule) const {
    const Parallel& parallel = plan_.parallel;
    const int cuts = schedule.is_both_ways() ? 1 : 2;  // of what a stage has
    const int held = parallel.schedule->is_both_ways() ? 2 : 1;
    const bool even =
        std::all_of(plan_.stage_layers.begin(), plan_.stage_layers.end(), [&](int layers) {
          return layers % (cuts * held) == 0 && layers == plan_.stage_layers.front();
        });
    const bool sums =
        schedule.is_both_ways() && (parallel.zero_stage == 2 || parallel.overlap_gradient_reduce);
    return even && !sums &&
           schedule.misfit({parallel.pipeline, plan_.microbatches, 2, schedule.chunk_path}).empty();
  }
  void add_order(const Schedule& schedule, std::string title, int chunks) {
    Overrides overrides{{"/parallel/schedule", schedule.name},
                        {"/parallel/virtual_pipeline", std::to_string(chunks)}};
    const PipelineSend now = plan_.parallel.pipeline_send;
    const PipelineSend then = send_with(schedule, plan_.parallel, scenario_.software);
    if (then != now) {
      const bool eager = then == PipelineSend::eager;
      title += eager ? ", messages that leave by themselves" : ", exchanges in blocking pairs";
      overrides.emplace_back("/parallel/pipeline_send", eager ? "eager" : "blocking_pairs");
    }
    list_.add(WhatIfKind::schedule, std::move(title), std::move(overrides));
  }

  const Scenario& scenario_;
  const Plan& plan_;
  WhatIfList list_;
};

}  // namespace

std::vector<WhatIf> training_what_ifs(const Scenario& scenario) {
  return TrainingWhatIfs(scenario).collect();
}

}  // namespace windtunnel
