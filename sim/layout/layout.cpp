#include "layout/layout.hpp"

#include <algorithm>
#include <array>
#include <utility>

#include "core/contracts.hpp"

namespace windtunnel {

namespace {

constexpr std::array<const char*, 7> fixed{"tensor", "context",       "data",       "pipeline",
                                           "expert", "expert_tensor", "expert_data"};
constexpr std::array of_replicas{
#define WT_REPLICA_AXIS(name) #name,
#include "layout/axes.def"
#undef WT_REPLICA_AXIS
};

/// By AxisName.
const std::vector<const char*>& axis_names() {
  static const std::vector<const char*> names = [] {
    std::vector<const char*> all(fixed.begin(), fixed.end());
    for (const std::string_view name : of_replicas)
      if (std::find(fixed.begin(), fixed.end(), name) == fixed.end()) all.push_back(name.data());
    return all;
  }();
  return names;
}

}  // namespace

const char* name_of(AxisName axis) { return axis_names()[static_cast<std::size_t>(axis)]; }

AxisName axis_named(std::string_view name) {
  const auto found = std::find(axis_names().begin(), axis_names().end(), name);
  WT_EXPECT(found != axis_names().end());
  return static_cast<AxisName>(found - axis_names().begin());
}

const std::vector<AxisName>& replica_axes() {
  static const std::vector<AxisName> axes = [] {
    std::vector<AxisName> all;
    for (const char* name : of_replicas) all.push_back(axis_named(name));
    return all;
  }();
  return axes;
}

Layout::Layout(std::vector<Axis> axes) : axes_(std::move(axes)) {
  for (std::size_t i = 0; i < axes_.size(); ++i) {
    WT_EXPECT(axes_[i].size > 0);
    for (std::size_t j = 0; j < i; ++j) WT_EXPECT(axes_[i].name != axes_[j].name);
    num_ranks_ *= axes_[i].size;
  }
}

int Layout::size(AxisName axis) const {
  for (const Axis& known : axes_)
    if (known.name == axis) return known.size;
  return 1;
}

int Layout::stride(AxisName axis) const {
  int stride = 1;
  for (const Axis& known : axes_) {
    if (known.name == axis) return stride;
    stride *= known.size;
  }
  return 0;
}

int Layout::coordinate(RankId rank, AxisName axis) const {
  const int apart = stride(axis);
  return apart == 0 ? 0 : static_cast<int>(rank.index()) / apart % size(axis);
}

RankId Layout::rank(std::span<const Axis> places) const {
  int number = 0;
  for (const Axis& place : places) {
    WT_EXPECT(place.size >= 0 && place.size < size(place.name));
    number += place.size * stride(place.name);
  }
  return RankId{number};
}

std::vector<RankId> Layout::group(RankId rank, const std::vector<AxisName>& axes) const {
  int lowest = static_cast<int>(rank.index());
  for (const AxisName axis : axes) lowest -= coordinate(rank, axis) * stride(axis);
  std::vector<RankId> members{RankId{lowest}};
  for (const Axis& axis : axes_) {
    if (std::find(axes.begin(), axes.end(), axis.name) == axes.end()) continue;
    const std::vector<RankId> before = members;
    for (int place = 1; place < axis.size; ++place)
      for (const RankId member : before)
        members.push_back(RankId{static_cast<int>(member.index()) + place * stride(axis.name)});
  }
  return members;
}

std::vector<std::vector<RankId>> Layout::groups(const std::vector<AxisName>& axes) const {
  std::vector<std::vector<RankId>> groups;
  for (int rank = 0; rank < num_ranks_; ++rank) {
    std::vector<RankId> members = group(RankId{rank}, axes);
    if (members.front() == RankId{rank}) groups.push_back(std::move(members));
  }
  return groups;
}

std::string text_of(std::span<const AxisName> order) {
  std::string text;
  for (const AxisName axis : order) {
    if (!text.empty()) text += "-";
    text += name_of(axis);
  }
  return text;
}

}  // namespace windtunnel
