#pragma once

#include <compare>
#include <cstdint>

namespace windtunnel {

/// An index that cannot be confused with an index of another kind: `Id<RankTag>` is no
/// `Id<NodeTag>`.
template <class Tag>
class Id {
 public:
  constexpr Id() = default;
  constexpr explicit Id(std::uint32_t index) : index_(index) {}
  constexpr explicit Id(int index) : index_(static_cast<std::uint32_t>(index)) {}
  constexpr explicit Id(std::size_t index) : index_(static_cast<std::uint32_t>(index)) {}

  /// Position in the table of this kind of thing.
  constexpr std::uint32_t index() const { return index_; }
  constexpr auto operator<=>(const Id&) const = default;

 private:
  std::uint32_t index_ = 0;
};

using RankId = Id<struct RankTag>;      ///< one GPU of the job, in the framework's rank order
using NodeId = Id<struct NodeTag>;      ///< one host of the platform
using StageId = Id<struct StageTag>;    ///< one pipeline stage
using DeviceId = Id<struct DeviceTag>;  ///< one simulated device: a tensor group's GPUs in one node
using LinkId = Id<struct LinkTag>;      ///< one one-way shared link of the network
using PathId = Id<struct PathTag>;      ///< an ordered list of links, half of a route
using ChannelId = Id<struct ChannelTag>;  ///< a first-in first-out message path between two devices
using CollectiveId = Id<struct CollectiveTag>;  ///< one process group's collective of one kind

}  // namespace windtunnel
