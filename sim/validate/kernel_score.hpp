#pragma once

#include <string>
#include <vector>

#include "platform/device.hpp"
#include "units/quantity.hpp"
#include "validate/validate.hpp"

namespace windtunnel {

/// A kernel that was measured alone, and what the formulas of sim/cost/kernel_cost.hpp say of it on the same GPU.
struct KernelPoint {
  std::string table;  ///< "gemm", "grouped", "attention", "norms", "layers"
  std::string group;  ///< within the table: "bf16", "bf16 forward", "cudnn backward"
  Seconds measured{}, predicted{};
  double error() const { return (predicted - measured) / measured; }
};

/// Every kernel in the library's validation/kernels (gemm.csv, grouped.csv, attention.csv, norms.csv; layers.csv, whole layers of a
/// stack) that was measured on this device and that its file has rates for. Left out: attention of a precision or in a window that the
/// device's file says nothing of, and deterministic backward passes where the same shape was also measured without. Throws Problems
/// where the file of a stack is not sound.
std::vector<KernelPoint> kernel_points(const Library& library, const Device& device);

/// Errors of a group of kernels, as shares of the measured times.
struct KernelError {
  std::string table, group;
  int points = 0;
  double median = 0, mean = 0, worst = 0, bias = 0;
};
/// By table (group empty), then by group.
std::vector<KernelError> kernel_errors(const std::vector<KernelPoint>& points);

/// A table of them for people.
///   kernels     group            points  median  mean    worst   bias
///   gemm        all              267     2.9 %   4.4 %   21.0 %  -0.1 %
std::string kernel_text(const std::vector<KernelError>& errors);

/// The points of a table and device as a set, for scatter_svg().
ValidatedSet kernel_set(const std::string& name, const std::string& table,
                        const std::vector<KernelPoint>& points);

}  // namespace windtunnel
