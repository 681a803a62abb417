#include "validate/memory_score.hpp"

#include <algorithm>
#include <cstddef>
#include <map>
#include <optional>

namespace windtunnel {
namespace {

struct Sums {
  Bytes measured{}, predicted{};
  int ranks = 0;
};

Bytes predicted_of(const StageReading& stage, MemoryKind kind, MemoryReading reading) {
  const bool first_step = reading == MemoryReading::first_step;
  if (kind == MemoryKind::reserved) return first_step ? stage.first_step_reserved : stage.reserved;
  return first_step ? stage.first_step_allocated : stage.allocated;
}

void compare_ranks(const MeasurementPoint& point, const PointPrediction& predicted, MemoryKind kind,
                   std::vector<MemoryComparison>& comparisons) {
  const std::map<int, Bytes>& by_rank =
      kind == MemoryKind::allocated ? point.memory.allocated : point.memory.reserved;
  const int stages = static_cast<int>(predicted.stages.size());
  std::vector<std::pair<std::string, Sums>> classes;
  for (const auto& [rank, measured] : by_rank) {
    if (rank >= static_cast<int>(predicted.stage_of_rank.size())) continue;
    const int stage = predicted.stage_of_rank[static_cast<std::size_t>(rank)];
    const std::string name = rank_class(stage, stages);
    auto found =
        std::ranges::find_if(classes, [&](const auto& entry) { return entry.first == name; });
    if (found == classes.end()) found = classes.insert(classes.end(), {name, {}});
    found->second.measured += measured;
    found->second.predicted +=
        predicted_of(predicted.stages[static_cast<std::size_t>(stage)], kind, point.memory.reading);
    ++found->second.ranks;
  }
  for (const auto& [name, sums] : classes)
    comparisons.push_back({point.id, kind, name, sums.measured / static_cast<double>(sums.ranks),
                           sums.predicted / static_cast<double>(sums.ranks)});
}

}  // namespace

const char* rank_class(int stage, int stages) {
  if (stage == 0) return "first stage";
  if (stage == stages - 1) return "last stage";
  return stage == stages - 2 ? "next-to-last stage" : "middle stages";
}

std::vector<MemoryComparison> compare_memory(const MeasurementPoint& point,
                                             const PointPrediction& predicted) {
  std::vector<MemoryComparison> comparisons;
  compare_ranks(point, predicted, MemoryKind::allocated, comparisons);
  compare_ranks(point, predicted, MemoryKind::reserved, comparisons);
  if (point.memory.reserved.empty() && point.memory.most_reserved) {
    Bytes most{};
    for (const StageReading& stage : predicted.stages)
      most = std::max(most, predicted_of(stage, MemoryKind::reserved, point.memory.reading));
    comparisons.push_back(
        {point.id, MemoryKind::reserved, "fullest GPU", *point.memory.most_reserved, most});
  }
  if (point.memory.nvidia_smi)
    comparisons.push_back({point.id, MemoryKind::nvidia_smi, "fullest GPU",
                           *point.memory.nvidia_smi, predicted.memory_max});
  return comparisons;
}

std::vector<double> memory_errors(const std::vector<MemoryComparison>& comparisons,
                                  std::optional<MemoryKind> kind) {
  std::vector<double> errors;
  for (const MemoryComparison& each : comparisons)
    if (!kind || each.kind == *kind) errors.push_back(each.error());
  return errors;
}

void CapacityVerdicts::add(const MeasurementPoint& point, MemoryVerdict verdict) {
  const bool fits = verdict != MemoryVerdict::does_not_fit;
  Ends& ends = by_verdict[static_cast<std::size_t>(verdict)];
  ends.out_of_memory += point.out_of_memory ? 1 : 0;
  ends.ran += !point.out_of_memory && point.has_time() ? 1 : 0;
  if (point.out_of_memory)
    (fits ? missed : caught).push_back(point.id);
  else if (point.has_time())
    (fits ? ran : refused_that_ran).push_back(point.id);
}

}  // namespace windtunnel
