#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/id.hpp"

namespace windtunnel {

/// A way of splitting the work over ranks. The expert axes fold the ranks of a stage anew: expert data x expert x expert tensor is as
/// many ranks as data x context x tensor.
enum class AxisName : std::uint8_t {
  tensor,
  context,
  data,
  pipeline,
  expert,
  expert_tensor,
  expert_data,  ///< behind it, those of axes.def that have no name here
};
/// "tensor", "expert_tensor", …
const char* name_of(AxisName axis);
/// An axis of axes.def.
AxisName axis_named(std::string_view name);
/// The axes on which the replicas of a stage lie, the fastest first.
const std::vector<AxisName>& replica_axes();

struct Axis {
  AxisName name = AxisName::tensor;
  int size = 1;
  bool operator==(const Axis&) const = default;
};

/// Maps each rank to its coordinate on every parallelism axis, and back. A rank is a number in mixed radix whose digits are the
/// coordinates; the first axis counts fastest. Plans are laid out by it (plan/plan.cpp), and the members of every process group are found
/// by it (lower/plan_groups.cpp).
///
///   tensor 8, data 4, pipeline 2 (64 ranks):  rank 13 = 5 + 8 * 1  is tensor 5, data 1, pipeline 0
class Layout {
 public:
  /// No axis stands twice, and each has at least one place.
  explicit Layout(std::vector<Axis> axes);

  int num_ranks() const { return num_ranks_; }
  const std::vector<Axis>& axes() const { return axes_; }
  /// 1 for an axis that the layout does not have.
  int size(AxisName axis) const;
  /// Distance between the ranks of neighbours on the axis; 0 for an axis that the layout does not have.
  int stride(AxisName axis) const;
  /// The place of a rank on an axis; 0 on one that the layout does not have.
  int coordinate(RankId rank, AxisName axis) const;
  /// The rank whose places on some axes are these, and 0 on all others.
  RankId rank(std::span<const Axis> places) const;

  /// The ranks that differ from `rank` on these axes only, itself included; the first of the layout's axes counts fastest.
  std::vector<RankId> group(RankId rank, const std::vector<AxisName>& axes) const;
  /// All such groups, by their lowest rank. Every rank is in one of them.
  std::vector<std::vector<RankId>> groups(const std::vector<AxisName>& axes) const;

 private:
  std::vector<Axis> axes_;
  int num_ranks_ = 1;
};

/// The order of axes, the fastest first: "tensor-data-pipeline".
std::string text_of(std::span<const AxisName> order);

}  // namespace windtunnel
