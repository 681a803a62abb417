#include "search/least_times.hpp"

#include <algorithm>
#include <cstddef>

#include "core/contracts.hpp"
#include "cost/kernel_cost.hpp"

namespace windtunnel {
namespace {

Seconds fixed_part(const Collective& collective, double fullness) {
  return collective.fixed + collective.varying * (fullness - 1);
}

/// Least time of collectives whose flows share links. Flows of others do not.
class CollectiveTimes {
 public:
  explicit CollectiveTimes(const Network& network)
      : network_(network), load_(network.links().size()) {}

  Seconds least(const Collective& collective, double fullness) {
    Seconds longest{};
    for (const CollectiveFlow& flow : collective.flows)
      for (const PathId path : {flow.up, flow.down})
        for (const LinkId link : network_.path(path)) {
          Bytes& load = load_[link.index()];
          load += flow.bytes * fullness;
          longest = std::max(longest, load / network_.links()[link.index()].bandwidth);
        }
    for (const CollectiveFlow& flow : collective.flows)
      for (const PathId path : {flow.up, flow.down})
        for (const LinkId link : network_.path(path)) load_[link.index()] = Bytes{};
    return std::max(fixed_part(collective, fullness), collective.latency + longest);
  }

 private:
  const Network& network_;
  std::vector<Bytes> load_;  ///< by link; all zero between calls
};

}  // namespace

LeastTimes::LeastTimes(const Plan& plan, const BuiltPrograms& built)
    : plan_(plan),
      built_(built),
      splits_(plan.parallel.schedule->splits_backward),
      hides_exchanges_(overlaps_passes(plan)),
      reduction_(gradient_reduction(plan)) {
  CollectiveTimes times(built.network);
  for (const Collective& collective : built.programs.collectives) {
    const double fullness = built.programs.fullness_of(collective, Op{});  // the same in every pass
    collective_times_.push_back(times.least(collective, fullness));
  }
}

Seconds LeastTimes::collective_in(DeviceId device, std::uint32_t slot) const {
  const std::optional<CollectiveId> id = built_.programs.devices[device.index()].collectives[slot];
  return id ? collective(*id) : Seconds{0};
}

Seconds LeastTimes::operations(DeviceId device, int chunk, Direction direction) const {
  const StageOperations chunks = operations_of(built_.cost_of_device[device.index()]);
  const OperationPlaces places(chunks, directions_of(splits_));
  const PassOperations& pass = chunks[static_cast<std::size_t>(chunk)]->at(direction);
  const Seconds time = time_alone(place_operations(pass), [&](const PlacedOperation& placed) {
    const Label label = pass[placed.number].label;
    const bool hides = label == Label::batch_read || group_of(label) == GroupKind::experts;
    if (label == Label::launch_floor || (hides_exchanges_ && hides)) return Seconds{0};
    return is_played_on_network(label, plan_.nodes_per_tensor_group > 1)
               ? collective_in(device, places.slot(chunk, direction, placed.number))
               : row(device, places.row(chunk, direction, placed));
  });
  if (hides_exchanges_) return time;
  const Seconds read = pass.before.front().time;
  return read + with_launch_floor(time - read, pass.floor.launch, pass.floor.sharpness);
}

Seconds LeastTimes::pass_row(DeviceId device, ChunkRow alone, ChunkRow overlapped,
                             int chunk) const {
  const Seconds time = row(device, row_of(alone, chunk));
  return hides_exchanges_ ? std::min(time, row(device, row_of(overlapped, chunk))) : time;
}

Seconds LeastTimes::forward(DeviceId device, int chunk) const {
  if (built_.plays_operations) return operations(device, chunk, Direction::forward);
  return pass_row(device, ChunkRow::forward, ChunkRow::overlapped_forward, chunk);
}

Seconds LeastTimes::backward(DeviceId device, int chunk) const {
  if (built_.plays_operations && splits_)
    return operations(device, chunk, Direction::input_gradient);
  if (built_.plays_operations)
    return with_reduction(device, chunk, operations(device, chunk, Direction::backward));
  if (splits_)
    return pass_row(device, ChunkRow::input_gradient, ChunkRow::overlapped_input_gradient, chunk);
  return with_reduction(device, chunk, row(device, row_of(ChunkRow::backward, chunk)));
}

Seconds LeastTimes::weight_gradient(DeviceId device, int chunk) const {
  if (!splits_) return Seconds{0};
  if (built_.plays_operations)
    return with_reduction(device, chunk, operations(device, chunk, Direction::weight_gradient));
  return with_reduction(
      device, chunk,
      pass_row(device, ChunkRow::weight_gradient, ChunkRow::overlapped_weight_gradient, chunk));
}

double LeastTimes::buckets(DeviceId device) const {
  return gradient_buckets(plan_, plan_.devices[device.index()].stage);
}

Seconds LeastTimes::saved_in_pieces(DeviceId device, int chunk) const {
  if (reduction_ != GradientReduction::per_iteration || !plan_.parallel.overlap_gradient_reduce ||
      plan_.nodes_per_tensor_group > 1)
    return Seconds{0};
  const Seconds whole = splits_ ? weight_gradient(device, chunk) : backward(device, chunk);
  return std::max(Seconds{0}, whole - before_buckets(device, chunk) * buckets(device));
}

Seconds LeastTimes::before_buckets(DeviceId device, int chunk) const {
  if (plan_.nodes_per_tensor_group > 1) return Seconds{0};  // buckets follow layers
  return row(device, row_of(ChunkRow::last_piece, chunk));
}

Seconds LeastTimes::with_reduction(DeviceId device, int chunk, Seconds pass) const {
  if (reduction_ != GradientReduction::per_microbatch) return pass;
  const Seconds bucket = collective_in(device, slot_of(ChunkCollective::bucket, chunk));
  if (!plan_.parallel.overlap_gradient_reduce) return pass + bucket;
  const double k = buckets(device);
  const Seconds piece = before_buckets(device, chunk);
  const Seconds all = piece == Seconds{0} ? pass : piece * k;
  return std::max(all + bucket, piece + bucket * k);
}

const Channel& LeastTimes::channel(const StageMessage& message) const {
  for (const ChannelId id : built_.programs.devices[message.from.index()].channels) {
    const Channel& channel = built_.programs.channels[id.index()];
    if (channel.to == message.to) return channel;
  }
  WT_UNREACHABLE();
}

Seconds LeastTimes::message(const StageMessage& message) const {
  const Channel& way = channel(message);
  if (bytes(message) == Bytes{0}) return way.latency;
  const BytesPerSecond rate =
      way.in_node ? way.bandwidth : built_.network.rate_alone({way.up, way.down});
  return way.latency + bytes(message) / rate;
}

/// Both pass each link that they share, the first no earlier than after its latency.
Seconds LeastTimes::both(const StageMessage& one, const StageMessage& other) const {
  Seconds least = std::max(message(one), message(other));
  const Channel &way = channel(one), &other_way = channel(other);
  if (way.in_node || other_way.in_node) return least;
  const Network& network = built_.network;
  const Seconds latency = std::min(way.latency, other_way.latency);
  for (const PathId path : {way.up, way.down})
    for (const LinkId link : network.path(path))
      for (const PathId other_path : {other_way.up, other_way.down}) {
        const std::vector<LinkId>& links = network.path(other_path);
        if (std::find(links.begin(), links.end(), link) == links.end()) continue;
        const BytesPerSecond rate = network.links()[link.index()].bandwidth;
        least = std::max(least, latency + (bytes(one) + bytes(other)) / rate);
      }
  return least;
}

}  // namespace windtunnel
