#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "core/enum_names.hpp"
#include "evidence/measurement_set.hpp"
#include "validate/point_prediction.hpp"

namespace windtunnel {

/// Source of a memory figure.
enum class MemoryKind {
  allocated,   ///< torch.cuda.max_memory_allocated
  reserved,    ///< torch.cuda.max_memory_reserved
  nvidia_smi,  ///< what nvidia-smi shows of the fullest GPU
};

/// Measured memory beside predicted memory: means over the ranks of a class, or the fullest GPU.
struct MemoryComparison {
  std::string id;
  MemoryKind kind = MemoryKind::allocated;
  std::string ranks;  ///< "first stage", "middle stages", "next-to-last stage", "last stage"
  Bytes measured{}, predicted{};

  double error() const { return (predicted - measured) / measured; }
};

/// The class of a stage of `stages`: ranks of one class hold nearly the same.
const char* rank_class(int stage, int stages);

/// Every memory figure of the point beside its prediction. Ranks are averaged by class, over those
/// ranks that were read. Ranks the plan does not have are left out.
std::vector<MemoryComparison> compare_memory(const MeasurementPoint& point,
                                             const PointPrediction& predicted);

/// Relative errors of one kind, or of all.
std::vector<double> memory_errors(const std::vector<MemoryComparison>& comparisons,
                                  std::optional<MemoryKind> kind = {});

/// Runs that ended out of memory or ran, against the verdict "fits". Ids, in the order of the file.
struct CapacityVerdicts {
  std::vector<std::string> caught;            ///< ended out of memory, and was refused
  std::vector<std::string> missed;            ///< ended out of memory, and would have been let run
  std::vector<std::string> refused_that_ran;  ///< ran, and was refused
  std::vector<std::string> ran;               ///< ran, and was let run

  /// By verdict, in their order: how many ran, and how many ended out of memory.
  struct Ends {
    int ran = 0, out_of_memory = 0;
  };
  std::array<Ends, 4> by_verdict{};

  void add(const MeasurementPoint& point, MemoryVerdict verdict);
};

}  // namespace windtunnel
