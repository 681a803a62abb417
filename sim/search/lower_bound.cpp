#include "search/lower_bound.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "core/contracts.hpp"
#include "schedule/pipeline_program.hpp"

namespace windtunnel {
namespace {

/// The engine takes events closer than this for one (SimGrid's surf/precision, set in simgrid_engine.cpp), so each on the
/// way to the end may come so much earlier.
constexpr Seconds event_resolution{1e-9};

/// The plan with as few microbatches as its schedule allows: devices, channels, collectives and durations do not depend on
/// their number.
Plan with_fewest_microbatches(Plan plan) {
  if (plan.parallel.schedule->written) return plan;  // written for so many
  plan.microbatches = plan.parallel.schedule->fewest_microbatches(plan.parallel.pipeline,
                                                                  plan.parallel.virtual_pipeline);
  return plan;
}

/// The rate of a flow that is alone on its way.
BytesPerSecond rate_alone(const Network& network, PathId up, PathId down) {
  BytesPerSecond slowest{std::numeric_limits<double>::infinity()};
  for (const PathId path : {up, down})
    for (const LinkId link : network.path(path))
      slowest = std::min(slowest, network.links()[link.index()].bandwidth);
  return slowest;
}

/// Least time of collectives: all flows of one of them share links, nothing else does.
class CollectiveTimes {
 public:
  explicit CollectiveTimes(const Network& network)
      : network_(network), load_(network.links().size()) {}

  Seconds least(const Collective& collective) {
    Seconds longest{};
    for (const CollectiveFlow& flow : collective.flows)
      for (const PathId path : {flow.up, flow.down})
        for (const LinkId link : network_.path(path)) {
          Bytes& load = load_[link.index()];
          load += flow.bytes;
          longest = std::max(longest, load / network_.links()[link.index()].bandwidth);
        }
    for (const CollectiveFlow& flow : collective.flows)
      for (const PathId path : {flow.up, flow.down})
        for (const LinkId link : network_.path(path)) load_[link.index()] = Bytes{};
    return std::max(collective.fixed, collective.latency + longest);
  }

 private:
  const Network& network_;
  std::vector<Bytes> load_;  ///< by link; all zero between calls
};

/// The formulas of lower_bound.hpp over all devices of a plan.
class Bound {
 public:
  Bound(const Plan& plan, const BuiltPrograms& built)
      : plan_(plan),
        built_(built),
        set_(built.programs),
        network_(built.network),
        splits_(plan.parallel.schedule->splits_backward),
        hides_exchanges_(overlaps_passes(plan)),
        plays_operations_(built.plays_operations),
        reduction_(gradient_reduction(plan)),
        end_(set_.devices.size()) {
    find_ends_of_stages();
    CollectiveTimes times(network_);
    for (const Collective& collective : set_.collectives)
      collective_times_.push_back(times.least(collective));
  }

  Seconds seconds() {
    for (int replica = 0; replica < plan_.parallel.replicas(); ++replica)
      for (int part = 0; part < plan_.nodes_per_tensor_group; ++part) end_passes(replica, part);
    const Seconds overhead = least_row(DeviceRow::overhead);
    const Seconds step = least_row(DeviceRow::optimizer) + overhead;
    reduce_buckets(step);
    enter(slot_of(CollectiveSlot::gradient_reduce), step);
    enter(slot_of(CollectiveSlot::embedding_sync), step);
    add_row(DeviceRow::optimizer);
    enter(slot_of(CollectiveSlot::parameter_gather), overhead);
    add_row(DeviceRow::overhead);
    const Seconds last = std::max(floor_, *std::max_element(end_.begin(), end_.end()));
    const Seconds bound = last - event_resolution * events_on_the_way();
    return std::max(bound, Seconds{0});
  }

 private:
  int chunks() const { return plan_.parallel.virtual_pipeline; }

  /// How the orders of the stages end. Not looked up where nothing else can be, and a schedule that the user wrote is taken for
  /// one that ends anyhow.
  void find_ends_of_stages() {
    weight_gradients_at_the_end_.assign(static_cast<std::size_t>(plan_.parallel.pipeline),
                                        std::vector<int>(static_cast<std::size_t>(chunks()), 0));
    ends_in_first_chunk_ = !plan_.parallel.schedule->written;
    if (!ends_in_first_chunk_ || (!splits_ && chunks() == 1)) return;
    for (int s = 0; s < plan_.parallel.pipeline; ++s) {
      const std::vector<Step> order = schedule_order(plan_, StageId{s});
      const auto last_backward = std::find_if(order.rbegin(), order.rend(), [](const Step& step) {
        return step.phase == Phase::backward;
      });
      for (auto step = order.rbegin(); step != last_backward; ++step)
        ++weight_gradients_at_the_end_[static_cast<std::size_t>(s)][step->chunk];
      ends_in_first_chunk_ =
          ends_in_first_chunk_ && last_backward->chunk == 0 && order.back().chunk == 0;
    }
  }

  /// Passes, messages and collectives of a device, and a fill and a drain.
  double events_on_the_way() const {
    constexpr double events_of_the_end = 8, events_a_bucket = 2;
    double events_a_pass = 4;
    if (reduction_ == GradientReduction::per_microbatch)
      events_a_pass += events_a_bucket * most_layers();
    if (plays_operations_) events_a_pass += operations_of_pass();
    return events_a_pass * (2.0 * plan_.microbatches * chunks() + 2.0 * plan_.parallel.pipeline) +
           events_of_the_end;
  }
  double operations_of_pass() const {
    const ChunkCost& chunk = built_.cost_of_device.front().chunks.front();
    return static_cast<double>(chunk.operations->at(Direction::backward).size()) * most_layers();
  }
  int most_layers() const {
    return std::max(1, *std::max_element(plan_.stage_layers.begin(), plan_.stage_layers.end()));
  }

  Seconds row(DeviceId device, std::uint16_t row) const {
    return set_.work[set_.devices[device.index()].work_base + row].duration;
  }
  Seconds collective(DeviceId device, std::uint32_t slot) const {
    const CollectiveId id = set_.devices[device.index()].collectives[slot];
    return id == no_collective ? Seconds{0} : collective_times_[id.index()];
  }
  /// A pass that is played operation by operation, alone on the network, with each collective at its least.
  Seconds operations(DeviceId device, int chunk, Direction direction) const {
    const StageOperations chunks = operations_of(built_.cost_of_device[device.index()]);
    const OperationPlaces places(chunks, directions_of(splits_));
    const PassOperations& pass = chunks[static_cast<std::size_t>(chunk)]->at(direction);
    return time_alone(place_operations(pass), [&](const PlacedOperation& placed) {
      const Label label = pass[placed.number].label;
      const bool hides = label == Label::launch_floor || group_of(label) == GroupKind::experts;
      if (hides_exchanges_ && hides) return Seconds{0};
      return is_played_on_network(label, plan_.nodes_per_tensor_group > 1)
                 ? collective(device, places.slot(chunk, direction, placed.number))
                 : row(device, places.row(chunk, direction, placed));
    });
  }
  /// A pass takes what it takes alone, or what it takes beside another, whichever is less.
  Seconds pass_row(DeviceId device, ChunkRow alone, ChunkRow overlapped, int chunk) const {
    const Seconds time = row(device, row_of(alone, chunk));
    return hides_exchanges_ ? std::min(time, row(device, row_of(overlapped, chunk))) : time;
  }
  Seconds forward(DeviceId device, int chunk) const {
    if (plays_operations_) return operations(device, chunk, Direction::forward);
    return pass_row(device, ChunkRow::forward, ChunkRow::overlapped_forward, chunk) +
           collective(device, slot_of(ChunkCollective::forward, chunk));
  }
  /// A backward pass, or its input gradients where it is split.
  Seconds backward(DeviceId device, int chunk) const {
    if (plays_operations_)
      return operations(device, chunk, splits_ ? Direction::input_gradient : Direction::backward);
    const Seconds exposed = collective(device, slot_of(ChunkCollective::exposed, chunk));
    const Seconds hidden = collective(device, slot_of(ChunkCollective::backward, chunk));
    if (splits_)
      return pass_row(device, ChunkRow::input_gradient, ChunkRow::overlapped_input_gradient,
                      chunk) +
             exposed + hidden;
    return with_reduction(
        device, chunk,
        row(device, row_of(ChunkRow::backward, chunk)) + exposed +
            std::max(row(device, row_of(ChunkRow::backward_overlapped, chunk)), hidden));
  }
  Seconds weight_gradient(DeviceId device, int chunk) const {
    if (!splits_) return Seconds{0};
    if (plays_operations_) return operations(device, chunk, Direction::weight_gradient);
    return with_reduction(
        device, chunk,
        pass_row(device, ChunkRow::weight_gradient, ChunkRow::overlapped_weight_gradient, chunk));
  }

  double buckets(DeviceId device) const {
    return std::max(1, plan_.most_chunk_layers(plan_.devices[device.index()].stage));
  }

  /// The longest of a pass that reduces its gradients beside it: the pass, all its pieces and the last bucket, the first piece
  /// and all buckets.
  Seconds in_pieces(DeviceId device, int chunk, Seconds pass) const {
    const Seconds bucket = collective(device, slot_of(ChunkCollective::bucket, chunk));
    const Seconds piece = row(device, row_of(ChunkRow::last_piece, chunk));
    const double k = buckets(device);
    return std::max({pass, piece * k + bucket, piece + bucket * k});
  }

  /// A pass that makes gradients, with their reduction where every microbatch has its own.
  Seconds with_reduction(DeviceId device, int chunk, Seconds pass) const {
    if (reduction_ != GradientReduction::per_microbatch) return pass;
    if (plan_.parallel.overlap_gradient_reduce) return in_pieces(device, chunk, pass);
    return pass + collective(device, slot_of(ChunkCollective::bucket, chunk));
  }

  Seconds message(DeviceId from, DeviceId to, MessageRow size) const {
    const Bytes bytes = set_.message_bytes[static_cast<std::size_t>(size)];
    for (const ChannelId id : set_.devices[from.index()].channels) {
      const Channel& channel = set_.channels[id.index()];
      if (channel.to != to) continue;
      if (bytes == Bytes{0}) return channel.latency;
      const BytesPerSecond rate =
          channel.in_node ? channel.bandwidth : rate_alone(network_, channel.up, channel.down);
      return channel.latency + bytes / rate;
    }
    WT_UNREACHABLE();
  }

  double weight_gradients_at_the_end(int stage, int chunk) const {
    return weight_gradients_at_the_end_[static_cast<std::size_t>(stage)]
                                       [static_cast<std::size_t>(chunk)];
  }
  Seconds time_at_the_end(DeviceId device, int stage) const {
    Seconds all{};
    for (int chunk = 0; chunk < chunks(); ++chunk)
      all += weight_gradient(device, chunk) * weight_gradients_at_the_end(stage, chunk);
    return all;
  }

  /// All passes of a stage, without the weight gradients at its end.
  Seconds passes(DeviceId device, int stage) const {
    Seconds all{};
    for (int chunk = 0; chunk < chunks(); ++chunk) {
      const double m = plan_.microbatches_of_chunk();
      all += (forward(device, chunk) + backward(device, chunk)) * m +
             weight_gradient(device, chunk) * (m - weight_gradients_at_the_end(stage, chunk));
    }
    return all;
  }

  /// Of the devices of one part of one replica: the end of their passes.
  void end_passes(int replica, int part) {
    const int p = plan_.parallel.pipeline;
    const auto device = [&](int stage) { return plan_.device(replica, StageId{stage}, part); };
    std::vector<Seconds> fill(static_cast<std::size_t>(p));
    const bool from_both_ends = plan_.parallel.schedule->is_both_ways();  // then no end is empty
    for (int s = 0; !from_both_ends && s + 1 < p; ++s)
      fill[static_cast<std::size_t>(s) + 1] =
          fill[static_cast<std::size_t>(s)] + forward(device(s), 0) +
          message(device(s), device(s + 1), MessageRow::activation);
    Seconds drained{};  // the end of the last backward pass of the stage behind, and its message
    for (int s = p - 1; s >= 0; --s) {
      const DeviceId id = device(s);
      Seconds backwards = fill[static_cast<std::size_t>(s)] + passes(id, s);
      if (ends_in_first_chunk_) backwards = std::max(backwards, drained + backward(id, 0));
      end_[id.index()] = backwards + time_at_the_end(id, s);
      if (s > 0) drained = backwards + message(id, device(s - 1), MessageRow::gradient);
    }
  }

  /// When a collective begins at the earliest, and how often it runs.
  struct Use {
    Seconds begin{};
    double repeats = 1;
  };
  using Uses = std::map<CollectiveId, Use>;

  /// Every device that has a collective in `slot` waits for the last of its members, then for the collective. `rest` comes
  /// behind it on every device.
  void enter(std::uint32_t slot, Seconds rest) {
    Uses uses;
    for (std::size_t d = 0; d < set_.devices.size(); ++d) {
      const CollectiveId id = set_.devices[d].collectives[slot];
      if (id != no_collective) uses[id].begin = std::max(uses[id].begin, end_[d]);
    }
    for (std::size_t d = 0; d < set_.devices.size(); ++d) {
      const CollectiveId id = set_.devices[d].collectives[slot];
      if (id != no_collective) end_[d] = uses[id].begin + collective_times_[id.index()];
    }
    share_links(uses, rest);
  }

  /// All flows of these collectives pass a link that several of them use, the first of them no earlier than the first
  /// collective: whichever ends last ends behind all of them.
  void share_links(const Uses& uses, Seconds rest) {
    struct Load {
      Seconds first{std::numeric_limits<double>::infinity()};
      Bytes bytes{};
    };
    std::vector<Load> loads(network_.links().size());
    for (const auto& [id, use] : uses) {
      const Collective& collective = set_.collectives[id.index()];
      for (const CollectiveFlow& flow : collective.flows)
        for (const PathId path : {flow.up, flow.down})
          for (const LinkId link : network_.path(path)) {
            Load& load = loads[link.index()];
            load.first = std::min(load.first, use.begin + collective.latency);
            load.bytes += flow.bytes * use.repeats;
          }
    }
    for (std::size_t i = 0; i < loads.size(); ++i)
      if (loads[i].bytes > Bytes{0})
        floor_ = std::max(floor_,
                          loads[i].first + loads[i].bytes / network_.links()[i].bandwidth + rest);
  }

  /// Gradients that are reduced beside the backward passes: those of chunk 0, whose last pass is the device's last. Its k
  /// buckets go one after the other, the first when a k-th of the pass is done, the last behind all of it.
  void reduce_buckets(Seconds rest) {
    if (reduction_ != GradientReduction::per_iteration || !plan_.parallel.overlap_gradient_reduce ||
        !ends_in_first_chunk_)
      return;
    const std::uint32_t slot = slot_of(ChunkCollective::bucket, 0);
    Uses uses;
    std::map<CollectiveId, Seconds> ends;
    for (std::size_t d = 0; d < set_.devices.size(); ++d) {
      const CollectiveId id = set_.devices[d].collectives[slot];
      if (id == no_collective) continue;
      const Seconds bucket = collective_times_[id.index()];
      const double k = buckets(DeviceId{d});
      const Seconds piece = row(DeviceId{d}, row_of(ChunkRow::last_piece, 0));
      const Seconds begin =
          end_[d] - (splits_ ? weight_gradient(DeviceId{d}, 0) : backward(DeviceId{d}, 0));
      Seconds& end = ends[id];
      end = std::max({end, begin + piece + bucket * k, begin + piece * k + bucket});
      Use& use = uses[id];
      use = {std::max(use.begin, begin + piece), k};
    }
    for (std::size_t d = 0; d < set_.devices.size(); ++d) {
      const CollectiveId id = set_.devices[d].collectives[slot];
      if (id != no_collective) end_[d] = std::max(end_[d], ends[id]);
    }
    share_links(uses, rest);
  }

  /// The least that a row takes on any device.
  Seconds least_row(DeviceRow which) const {
    Seconds least{std::numeric_limits<double>::infinity()};
    for (std::size_t d = 0; d < set_.devices.size(); ++d)
      least = std::min(least, row(DeviceId{d}, row_of(which, chunks())));
    return least;
  }

  void add_row(DeviceRow which) {
    for (std::size_t d = 0; d < set_.devices.size(); ++d)
      end_[d] += row(DeviceId{d}, row_of(which, chunks()));
  }

  const Plan& plan_;
  const BuiltPrograms& built_;
  const ProgramSet& set_;
  const Network& network_;
  bool splits_;
  bool hides_exchanges_;  ///< behind kernels of another pass
  bool plays_operations_;
  GradientReduction reduction_;
  /// By stage and chunk: after the stage's last backward pass.
  std::vector<std::vector<int>> weight_gradients_at_the_end_;
  /// The last pass of every stage, and its last backward pass, are of chunk 0.
  bool ends_in_first_chunk_ = true;
  std::vector<Seconds> collective_times_;
  std::vector<Seconds> end_;  ///< by device: it has come so far at the earliest
  Seconds floor_{};           ///< of the iteration, by links that collectives share
};

}  // namespace

Seconds lower_bound(const BuildInputs& inputs) {
  const Plan skeleton = with_fewest_microbatches(*inputs.plan);
  BuildInputs small = inputs;
  small.plan = &skeleton;
  const BuiltPrograms built = build_programs(small);
  return Bound(*inputs.plan, built).seconds();
}

}  // namespace windtunnel
