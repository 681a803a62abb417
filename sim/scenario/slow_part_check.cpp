#include "scenario/slow_part_check.hpp"

#include <cstddef>
#include <string>

namespace windtunnel {
namespace {

/// The nodes and GPUs of a job, counted from 0 through its nodes, and which of them the plan leaves idle.
class PartsInUse {
 public:
  PartsInUse(const std::vector<NodeType>& nodes, const Plan& plan)
      : is_used_(nodes.size()), knows_plan_(!plan.devices.empty()) {
    std::size_t gpus = 0;
    for (const NodeType& node : nodes) {
      first_gpu_.push_back(gpus);
      gpus += static_cast<std::size_t>(node.gpus);
    }
    uses_gpu_.resize(gpus);
    for (const PlanDevice& device : plan.devices) {
      is_used_[device.node.index()] = true;
      for (const int gpu : device.gpus)
        uses_gpu_[first_gpu_[device.node.index()] + static_cast<std::size_t>(gpu)] = true;
    }
  }

  /// Nothing where the part is one that the plan uses.
  std::string what_is_wrong(const NoiseBlock::SlowPart& part) const {
    const bool is_gpu = part.gpu.has_value();
    const std::vector<bool>& used = is_gpu ? uses_gpu_ : is_used_;
    const auto number = static_cast<std::size_t>(is_gpu ? *part.gpu : part.node.value_or(0));
    const std::string found = (is_gpu ? "gpu is " : "node is ") + std::to_string(number);
    if (number >= used.size())
      return found + ", and the job has " + std::to_string(used.size()) +
             (is_gpu ? " GPUs" : " nodes") + ", counted from 0";
    if (knows_plan_ && !used[number])
      return found + ", which the plan leaves idle (it is counted through all GPUs of its nodes)";
    return {};
  }

 private:
  std::vector<std::size_t> first_gpu_;  ///< of each node
  std::vector<bool> is_used_, uses_gpu_;
  bool knows_plan_;
};

}  // namespace

void check_slow_parts(const NoiseBlock& noise, const std::vector<NodeType>& nodes, const Plan& plan,
                      JsonValue& block, Problems& problems) {
  const PartsInUse in_use(nodes, plan);
  for (std::size_t i = 0; i < noise.slow_parts.size(); ++i) {
    const NoiseBlock::SlowPart& part = noise.slow_parts[i];
    const std::string wrong = in_use.what_is_wrong(part);
    if (wrong.empty()) continue;
    const std::string inner =
        "/slow_parts/" + std::to_string(i) + (part.gpu.has_value() ? "/gpu" : "/node");
    const JsonValue* const value = find_at(block, inner);
    problems.add({value == nullptr ? block.origin : value->origin, "/noise" + inner, wrong, {}});
  }
}

}  // namespace windtunnel
