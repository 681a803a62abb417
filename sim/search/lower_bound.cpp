#include "search/lower_bound.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "core/contracts.hpp"
#include "cost/kernel_cost.hpp"
#include "lower/codec_plan.hpp"
#include "lower/stage_cost_table.hpp"
#include "lower/token_draws.hpp"
#include "plan/plan.hpp"
#include "schedule/pass_groups.hpp"
#include "schedule/pipeline_program.hpp"

namespace windtunnel {
namespace {

/// The engine takes events closer than this for one (SimGrid's surf/precision, set in simgrid_engine.cpp), so each on the
/// path to the end may come so much earlier.
constexpr Seconds event_resolution{1e-9};

/// The plan with as few microbatches as its schedule allows: devices, channels, collectives and durations do not depend on
/// their number.
Plan with_fewest_microbatches(Plan plan) {
  if (plan.parallel.schedule->written) return plan;  // written for so many
  plan.microbatches = plan.parallel.schedule->fewest_microbatches(plan.parallel.pipeline,
                                                                  plan.parallel.virtual_pipeline);
  return plan;
}

/// The inputs of that plan with the fewest tokens of each draw.
BuildInputs least_of(BuildInputs inputs, const Plan& skeleton) {
  inputs.plan = &skeleton;
  inputs.tokens.draws = Tokens::Draws::least;
  return inputs;
}

/// Passes, what the host does around them, messages and collectives of a device, and a fill and a drain.
double events_on_the_way(const Plan& plan, const StageCost& cost, bool by_operation) {
  constexpr double events_of_the_end = 8, events_a_bucket = 2;
  const int most_layers =
      std::max(1, *std::ranges::max_element(plan.stage_layers)) + plan.mtp_layers;
  double events_a_pass = 6;
  if (gradient_reduction(plan) == GradientReduction::per_microbatch)
    events_a_pass += events_a_bucket * most_layers;
  if (by_operation)
    events_a_pass +=
        static_cast<double>(cost.chunks.front().operations->at(Direction::backward).size()) *
        most_layers;
  const double passes =
      2.0 * plan.microbatches * plan.parallel.virtual_pipeline + 2.0 * plan.parallel.pipeline;
  return events_a_pass * passes + events_of_the_end;
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
    return std::max(collective.fixed + collective.varying * (fullness - 1),
                    collective.latency + longest);
  }

 private:
  const Network& network_;
  std::vector<Bytes> load_;  ///< by link; all zero between calls
};

/// A message between two devices that have a channel.
struct StageMessage {
  DeviceId from, to;
  MessageRow size = MessageRow::activation;
};

/// The least that each part of a plan's programs takes on an engine: passes, messages and collectives that have their links to themselves.
class LeastTimes {
 public:
  /// Plan and programs must outlive it.
  LeastTimes(const Plan& plan, const BuiltPrograms& built)
      : plan_(plan),
        built_(built),
        splits_(plan.parallel.schedule->splits_backward),
        hides_exchanges_(overlaps_passes(plan)),
        reduction_(gradient_reduction(plan)) {
    CollectiveTimes times(built.network);
    for (const Collective& collective : built.programs.collectives) {
      const double fullness =
          built.programs.fullness_of(collective, Op{});  // the same in every pass
      collective_times_.push_back(times.least(collective, fullness));
    }
  }

  /// A row of the device's work table.
  const Work& work(DeviceId device, std::uint16_t row) const {
    Op op;
    op.work = row;
    return built_.programs.work_of(built_.programs.devices[device.index()], op);
  }
  Seconds row(DeviceId device, std::uint16_t row) const { return work(device, row).duration; }
  Seconds collective(CollectiveId id) const { return collective_times_[id.index()]; }
  /// With its collectives across nodes. A pass takes its time alone, or its time overlapped with another, whichever is less.
  Seconds pass(DeviceId device, int chunk, Direction direction) const {
    Seconds time = built_.by_operation ? operations(device, chunk, direction)
                                       : row(device, row_of(row_of_pass(direction), chunk));
    if (!built_.by_operation && hides_exchanges_)
      time = std::min(time, row(device, row_of(overlapped_row(direction), chunk)));
    const bool makes_gradients =
        direction == (splits_ ? Direction::weight_gradient : Direction::backward);
    return makes_gradients ? with_reduction(device, chunk, time) : time;
  }

  Seconds forward(DeviceId device, int chunk) const {
    return pass(device, chunk, Direction::forward);
  }
  /// A backward pass, or its input gradients where it is split.
  Seconds backward(DeviceId device, int chunk) const {
    return pass(device, chunk, splits_ ? Direction::input_gradient : Direction::backward);
  }
  /// Nothing where the backward pass is not split.
  Seconds weight_gradient(DeviceId device, int chunk) const {
    return splits_ ? pass(device, chunk, Direction::weight_gradient) : Seconds{0};
  }
  Seconds message(const StageMessage& message) const {
    const Channel& route = channel(message);
    if (bytes(message) == Bytes{0}) return route.latency;
    const BytesPerSecond rate =
        route.in_node ? route.bandwidth : built_.network.rate_alone({route.up, route.down});
    return route.latency + bytes(message) / rate;
  }

  /// Bound of two messages that are posted at the same time, until both have arrived. Both cross each link that they share, the first no
  /// earlier than after its latency.
  Seconds both(const StageMessage& one, const StageMessage& other) const {
    Seconds least = std::max(message(one), message(other));
    const Channel &route = channel(one), &other_route = channel(other);
    if (route.in_node || other_route.in_node) return least;
    const Network& network = built_.network;
    const Seconds latency = std::min(route.latency, other_route.latency);
    for (const PathId path : {route.up, route.down})
      for (const LinkId link : network.path(path))
        for (const PathId other_path : {other_route.up, other_route.down}) {
          const std::vector<LinkId>& links = network.path(other_path);
          if (std::ranges::find(links, link) == links.end()) continue;
          const BytesPerSecond rate = network.links()[link.index()].bandwidth;
          least = std::max(least, latency + (bytes(one) + bytes(other)) / rate);
        }
    return least;
  }

  /// By how much the one pass of a chunk that overlaps with the iteration's gradient reduction may be shorter than the others.
  Seconds saved_in_pieces(DeviceId device, int chunk) const {
    if (reduction_ != GradientReduction::per_iteration || !plan_.parallel.overlap_gradient_reduce ||
        plan_.nodes_per_tensor_group > 1)
      return Seconds{0};
    const Seconds whole = splits_ ? weight_gradient(device, chunk) : backward(device, chunk);
    return std::max(Seconds{0}, whole - before_buckets(device, chunk) * buckets(device));
  }

  /// Time of the reducing pass that must have run before its first bucket: a piece, if it is cut into pieces.
  Seconds before_buckets(DeviceId device, int chunk) const {
    if (plan_.nodes_per_tensor_group > 1) return Seconds{0};  // buckets follow layers
    return row(device, row_of(ChunkRow::last_piece, chunk));
  }

  /// Into how many a chunk's gradients are cut.
  double buckets(DeviceId device) const {
    return gradient_buckets(plan_, plan_.devices[device.index()].stage);
  }

 private:
  const Channel& channel(const StageMessage& message) const {
    for (const ChannelId id : built_.programs.devices[message.from.index()].channels) {
      const Channel& channel = built_.programs.channels[id.index()];
      if (channel.to == message.to) return channel;
    }
    WT_UNREACHABLE();
  }

  /// Fewest bytes of a message, if some of these messages are compressed.
  Bytes bytes(const StageMessage& message) const {
    const auto size = [this](MessageRow row) {
      return built_.programs.message_bytes[static_cast<std::size_t>(row)];
    };
    const Compression& codecs = plan_.compression;
    if (message.size == MessageRow::activation && codecs.pipeline_forward)
      return std::min(
          size(MessageRow::activation),
          size(MessageRow::encoded_activation) + size(MessageRow::encoded_activation_second));
    if (message.size == MessageRow::gradient && codecs.pipeline_backward)
      return std::min(size(MessageRow::gradient), size(MessageRow::encoded_gradient) +
                                                      size(MessageRow::encoded_gradient_second));
    return size(message.size);
  }

  Seconds collective_in(DeviceId device, std::uint32_t slot) const {
    const std::optional<CollectiveId> id =
        built_.programs.devices[device.index()].collectives[slot];
    return id ? collective(*id) : Seconds{0};
  }

  /// A pass that is simulated operation by operation, alone on the network, with each collective at its least.
  Seconds operations(DeviceId device, int chunk, Direction direction) const {
    const StageOperations chunks = operations_of(built_.cost_of_device[device.index()]);
    const OperationPlaces places(chunks, directions_of(splits_));
    const PassOperations& pass = chunks[static_cast<std::size_t>(chunk)]->at(direction);
    const Seconds time = time_alone(place_operations(pass), [&](const PlacedOperation& placed) {
      const Label label = pass[placed.number].label;
      const bool hides = label == Label::batch_read || group_of(label) == GroupKind::experts;
      if (label == Label::launch_floor || (hides_exchanges_ && hides)) return Seconds{0};
      return is_simulated_on_network(label, plan_.nodes_per_tensor_group > 1)
                 ? collective_in(device, places.slot(chunk, direction, placed.number))
                 : row(device, places.row(chunk, direction, placed));
    });
    if (hides_exchanges_) return time;
    const Seconds read = pass.before.front().time;
    return read + with_launch_floor(time - read, pass.floor.launch, pass.floor.sharpness);
  }

  /// A pass that makes gradients, with their reduction where every microbatch has its own: the longer of the pass, or its pieces, and the last
  /// bucket, and of what comes before the first bucket and all of them.
  Seconds with_reduction(DeviceId device, int chunk, Seconds pass) const {
    if (reduction_ != GradientReduction::per_microbatch) return pass;
    const Seconds bucket = collective_in(device, slot_of(ReductionSlot::first, {chunk}));
    if (!plan_.parallel.overlap_gradient_reduce) return pass + bucket;
    const double k = buckets(device);
    const Seconds piece = before_buckets(device, chunk);
    const Seconds all = piece == Seconds{0} ? pass : piece * k;
    return std::max(all + bucket, piece + bucket * k);
  }

  const Plan& plan_;
  const BuiltPrograms& built_;
  bool splits_;
  bool hides_exchanges_;  ///< behind kernels of another pass
  GradientReduction reduction_;
  std::vector<Seconds> collective_times_;
};

/// The exchanges between the passes of a stage whose messages wait for both ends (PipelineSend::blocking_pairs): no pass runs during one, and
/// none of its messages is under way before the device enters it.
class StageExchanges {
 public:
  /// Exchanges up to the last backward pass in the stage's `order`. None if messages are eager, or if the chunk path is not a loop.
  StageExchanges(const Plan& plan, const std::vector<Step>& order, StageId stage)
      : plan_(plan), stage_(static_cast<int>(stage.index())) {
    if (plan.parallel.pipeline_send == PipelineSend::blocking_pairs &&
        plan.parallel.schedule->chunk_path == ChunkPath::loop)
      count(order);
  }

  /// The least that all of them take, for the stage's device of one part of one replica: what the passes before have to send, or what those
  /// behind wait for, whichever takes longer.
  Seconds least(const LeastTimes& times, int replica, int part) const {
    const int stages = plan_.parallel.pipeline;
    const auto device = [&](int stage) {
      return plan_.device(replica, StageId{stage % stages}, part);
    };
    const DeviceId here = device(stage_), next = device(stage_ + 1),
                   previous = device(stage_ + stages - 1);
    const auto time = [&](std::size_t messages, const StageMessage& activation,
                          const StageMessage& gradient) {
      if (messages == 0) return Seconds{0};
      if (messages == Messages{true, true}.index()) return times.both(activation, gradient);
      return times.message(messages == Messages{true, false}.index() ? activation : gradient);
    };
    std::array<Seconds, kinds> to_send{}, to_receive{};
    for (std::size_t kind = 0; kind < kinds; ++kind) {
      if (is_sent_[kind])
        to_send[kind] = time(kind, {here, next, MessageRow::activation},
                             {here, previous, MessageRow::gradient});
      if (is_received_[kind])
        to_receive[kind] = time(kind, {previous, here, MessageRow::activation},
                                {next, here, MessageRow::gradient});
    }
    Seconds all{};
    for (std::size_t sent = 0; sent < kinds; ++sent)
      for (std::size_t received = 0; received < kinds; ++received)
        all += std::max(to_send[sent], to_receive[received]) *
               static_cast<double>(exchanges_[sent][received]);
    return all;
  }

 private:
  /// Messages between stages: activations, gradients or both.
  struct Messages {
    bool activation = false, gradient = false;
    std::size_t index() const { return (activation ? 1U : 0U) + (gradient ? 2U : 0U); }
  };
  static constexpr std::size_t kinds = 4;  ///< of Messages

  void count(const std::vector<Step>& order) {
    const auto last_backward = std::find_if(order.rbegin(), order.rend(), [](const Step& step) {
      return step.phase == Phase::backward;
    });
    const Step* const last = &*last_backward;
    const std::vector<PassGroup> groups = pass_groups(order, plan_.parallel.virtual_pipeline);
    for (std::size_t next = 1; next < groups.size() && groups[next].data() <= last; ++next) {
      const std::size_t before = messages_of(groups[next - 1], true).index();
      const std::size_t behind = messages_of(groups[next], false).index();
      is_sent_[before] = is_received_[behind] = true;
      ++exchanges_[before][behind];
    }
  }

  /// Messages that the passes of a group send, or else the ones they wait for; none at the ends of the model.
  Messages messages_of(PassGroup group, bool are_sent) const {
    Messages messages;
    for (const Step& step : group) {
      const bool is_first = stage_ == 0 && step.chunk == 0;
      const bool is_last = stage_ == plan_.parallel.pipeline - 1 &&
                           step.chunk == plan_.parallel.virtual_pipeline - 1;
      if (step.phase == Phase::forward) messages.activation = !(are_sent ? is_last : is_first);
      if (step.phase == Phase::backward) messages.gradient = !(are_sent ? is_first : is_last);
    }
    return messages;
  }

  const Plan& plan_;
  int stage_;
  /// By what is sent, then what is received.
  std::array<std::array<int, kinds>, kinds> exchanges_{};
  std::array<bool, kinds> is_sent_{}, is_received_{};  ///< in any of them
};

/// The formulas of lower_bound.hpp over all devices of a plan.
class Bound {
 public:
  Bound(const Plan& plan, const BuiltPrograms& built)
      : plan_(plan),
        built_(built),
        set_(built.programs),
        network_(built.network),
        least_(plan, built),
        splits_(plan.parallel.schedule->splits_backward),
        reduction_(gradient_reduction(plan)),
        end_(set_.devices.size()) {
    read_orders();
  }

  Seconds seconds() {
    for (int replica = 0; replica < plan_.parallel.replicas(); ++replica)
      for (int part = 0; part < plan_.nodes_per_tensor_group; ++part) end_passes(replica, part);
    const Seconds overhead = least_row(DeviceRow::overhead);
    const Seconds step = least_row(DeviceRow::optimizer) + overhead;
    reduce_buckets(step);
    enter(slot_of(ReductionSlot::first, {}), step);
    enter(slot_of(CollectiveSlot::embedding_sync), step);
    add_row(DeviceRow::optimizer);
    enter(slot_of(CollectiveSlot::parameter_gather), overhead);
    add_row(DeviceRow::overhead);
    const Seconds last = std::max(floor_, *std::ranges::max_element(end_));
    const Seconds bound =
        last - event_resolution *
                   events_on_the_way(plan_, built_.cost_of_device.front(), built_.by_operation);
    return std::max(bound, Seconds{0});
  }

 private:
  int chunks() const { return plan_.parallel.virtual_pipeline; }

  /// Reads the ends of the stages' orders, and their exchanges. Skipped if only one end is possible; a schedule that the
  /// user wrote is assumed to end in any route.
  void read_orders() {
    weight_gradients_at_the_end_.assign(static_cast<std::size_t>(plan_.parallel.pipeline),
                                        std::vector<int>(static_cast<std::size_t>(chunks()), 0));
    ends_in_first_chunk_ = !plan_.parallel.schedule->written;
    const bool blocks = plan_.parallel.pipeline_send == PipelineSend::blocking_pairs;
    if (!ends_in_first_chunk_ || (!splits_ && chunks() == 1 && !blocks)) return;
    for (int s = 0; s < plan_.parallel.pipeline; ++s) {
      const std::vector<Step> order = schedule_order(plan_, StageId{s});
      exchanges_.emplace_back(plan_, order, StageId{s});
      const auto last_backward = std::find_if(order.rbegin(), order.rend(), [](const Step& step) {
        return step.phase == Phase::backward;
      });
      for (auto step = order.rbegin(); step != last_backward; ++step)
        ++weight_gradients_at_the_end_[static_cast<std::size_t>(s)][step->chunk];
      ends_in_first_chunk_ =
          ends_in_first_chunk_ && last_backward->chunk == 0 && order.back().chunk == 0;
    }
  }

  double weight_gradients_at_the_end(int stage, int chunk) const {
    return weight_gradients_at_the_end_[static_cast<std::size_t>(stage)]
                                       [static_cast<std::size_t>(chunk)];
  }
  /// All passes of a stage, without the weight gradients at its end.
  Seconds passes(DeviceId device, int stage) const {
    Seconds all{};
    for (int chunk = 0; chunk < chunks(); ++chunk) {
      const double m = plan_.microbatches_of_chunk();
      all +=
          (least_.forward(device, chunk) + least_.backward(device, chunk)) * m +
          least_.weight_gradient(device, chunk) * (m - weight_gradients_at_the_end(stage, chunk));
      if (weight_gradients_at_the_end(stage, chunk) == 0)
        all -= least_.saved_in_pieces(device, chunk);
    }
    return all;
  }

  /// Bounds the end of the passes of the devices of one part of one replica.
  void end_passes(int replica, int part) {
    const int p = plan_.parallel.pipeline;
    const auto device = [&](int stage) { return plan_.device(replica, StageId{stage}, part); };
    std::vector<Seconds> fill(static_cast<std::size_t>(p));
    const bool from_both_ends =
        plan_.parallel.schedule->is_bidirectional();  // then no end is empty
    for (int s = 0; !from_both_ends && s + 1 < p; ++s)
      fill[static_cast<std::size_t>(s) + 1] =
          fill[static_cast<std::size_t>(s)] + least_.forward(device(s), 0) +
          least_.message({device(s), device(s + 1), MessageRow::activation});
    Seconds drained{};  // the end of the last backward pass of the stage behind, and its message
    for (int s = p - 1; s >= 0; --s) {
      const DeviceId id = device(s);
      const auto stage = static_cast<std::size_t>(s);
      Seconds backwards = fill[stage] + passes(id, s);
      if (!exchanges_.empty()) backwards += exchanges_[stage].least(least_, replica, part);
      if (ends_in_first_chunk_)
        backwards = std::max(backwards, drained + least_.backward(id, 0) -
                                            (splits_ ? Seconds{0} : least_.saved_in_pieces(id, 0)));
      Seconds at_the_end{};
      for (int chunk = 0; chunk < chunks(); ++chunk) {
        const double passes = weight_gradients_at_the_end(s, chunk);
        at_the_end += least_.weight_gradient(id, chunk) * passes;
        if (passes > 0) at_the_end -= least_.saved_in_pieces(id, chunk);
      }
      end_[id.index()] = backwards + at_the_end;
      if (s > 0) drained = backwards + least_.message({id, device(s - 1), MessageRow::gradient});
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
      const std::optional<CollectiveId> id = set_.devices[d].collectives[slot];
      if (id) uses[*id].begin = std::max(uses[*id].begin, end_[d]);
    }
    for (std::size_t d = 0; d < set_.devices.size(); ++d) {
      const std::optional<CollectiveId> id = set_.devices[d].collectives[slot];
      if (id) end_[d] = uses[*id].begin + least_.collective(*id);
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

  /// Gradients that are reduced during the backward passes: those of chunk 0, whose last pass is the device's last. Its k
  /// buckets go one after the other, the first behind a piece of the pass, the last behind all of it.
  void reduce_buckets(Seconds rest) {
    if (reduction_ != GradientReduction::per_iteration || !plan_.parallel.overlap_gradient_reduce ||
        !ends_in_first_chunk_)
      return;
    const std::uint32_t slot = slot_of(ReductionSlot::first, {0});
    Uses uses;
    std::map<CollectiveId, Seconds> ends;
    for (std::size_t d = 0; d < set_.devices.size(); ++d) {
      const std::optional<CollectiveId> id = set_.devices[d].collectives[slot];
      if (!id) continue;
      const Seconds bucket = least_.collective(*id);
      const double k = least_.buckets(DeviceId{d});
      const Seconds piece = least_.before_buckets(DeviceId{d}, 0);
      const Seconds pass =
          splits_ ? least_.weight_gradient(DeviceId{d}, 0) : least_.backward(DeviceId{d}, 0);
      const Seconds begin = end_[d] - (pass - least_.saved_in_pieces(DeviceId{d}, 0));
      Seconds& end = ends[*id];
      end = std::max(
          {end, begin + piece + bucket * k, std::max(end_[d], begin + piece * k) + bucket});
      Use& use = uses[*id];
      use = {std::max(use.begin, begin + piece), k};
    }
    for (std::size_t d = 0; d < set_.devices.size(); ++d) {
      const std::optional<CollectiveId> id = set_.devices[d].collectives[slot];
      if (id) end_[d] = std::max(end_[d], ends[*id]);
    }
    share_links(uses, rest);
  }

  /// The least that a row takes on any device.
  Seconds least_row(DeviceRow which) const {
    Seconds least{std::numeric_limits<double>::infinity()};
    for (std::size_t d = 0; d < set_.devices.size(); ++d)
      least = std::min(least, least_.row(DeviceId{d}, row_of(which, chunks())));
    return least;
  }

  void add_row(DeviceRow which) {
    for (std::size_t d = 0; d < set_.devices.size(); ++d)
      end_[d] += least_.row(DeviceId{d}, row_of(which, chunks()));
  }

  const Plan& plan_;
  const BuiltPrograms& built_;
  const ProgramSet& set_;
  const Network& network_;
  const LeastTimes least_;
  bool splits_;
  GradientReduction reduction_;
  /// By stage and chunk: after the stage's last backward pass.
  std::vector<std::vector<int>> weight_gradients_at_the_end_;
  std::vector<StageExchanges> exchanges_;  ///< by stage; empty: they are not counted
  /// The last pass of every stage, and its last backward pass, are of chunk 0.
  bool ends_in_first_chunk_ = true;
  std::vector<Seconds> end_;  ///< by device: it has come so far at the earliest
  Seconds floor_{};           ///< of the iteration, by links that collectives share
};

/// The kernels of one replica's stages, from the work tables that its devices would have.
class KernelBound {
 public:
  /// `small` is the plan with the fewest microbatches of its schedule.
  KernelBound(const BuildInputs& small, const Plan& plan)
      : plan_(plan),
        by_operation_(simulates_operations(small)),
        splits_(plan.parallel.schedule->splits_backward),
        joins_(overlaps_passes(plan)) {
    const CodecPlan codecs(*small.model, *small.plan, *small.software);
    Network network(*small.platform, plan.num_nodes);
    const TokenDraws draws(small);
    StageCostTable table(small, by_operation_, codecs, draws, network, set_);
    for (int s = 0; s < plan.parallel.pipeline; ++s) {
      const PlanDevice& device = plan.devices[plan.device(0, StageId{s}, 0).index()];
      const StageCostTable::Entry& entry = table.of(device);
      stages_.emplace_back().work_base = entry.work_base;
      if (s == 0) events_ = events_on_the_way(plan, *entry.cost, by_operation_);
    }
  }

  Seconds seconds() const {
    const auto p = stages_.size();
    std::vector<Seconds> fill(p);
    for (std::size_t s = 0; !plan_.parallel.schedule->is_bidirectional() && s + 1 < p; ++s)
      fill[s + 1] = fill[s] + forward(s, 0);
    Seconds last{}, drained{};
    for (std::size_t s = p; s-- > 0;) {
      Seconds end = fill[s] + passes(s);
      // On a loop through the model the last pass of a stage is a backward pass of its first chunk, and one on each stage before it follows,
      // since a pass of any other chunk would be followed by one of the first.
      if (!splits_ && !plan_.parallel.schedule->written &&
          plan_.parallel.schedule->chunk_path == ChunkPath::loop)
        end = std::max(end, drained + backward(s, 0));
      drained = end;
      last = std::max(last, end + row(s, DeviceRow::optimizer) + row(s, DeviceRow::overhead));
    }
    return std::max(last - event_resolution * events_, Seconds{0});
  }

 private:
  int chunks() const { return plan_.parallel.virtual_pipeline; }

  const Work& work(std::size_t stage, std::uint16_t row) const {
    Op op;
    op.work = row;
    return set_.work_of(stages_[stage], op);
  }
  /// If passes are simulated operation by operation, exchanges may hide behind anything; kernels and the collectives of a tensor group
  /// in the node exclude each other.
  Seconds pass(std::size_t stage, ChunkRow which, int chunk) const {
    const Work& done = work(stage, row_of(which, chunk));
    if (!by_operation_) return done.duration;
    return done.parts[static_cast<std::size_t>(Part::compute)] +
           done.parts[static_cast<std::size_t>(Part::tensor_comm)];
  }
  Seconds pass(std::size_t stage, Direction direction, int chunk) const {
    const Seconds time = pass(stage, row_of_pass(direction), chunk);
    return joins_ ? std::min(time, pass(stage, overlapped_row(direction), chunk)) : time;
  }
  Seconds row(std::size_t stage, DeviceRow which) const {
    return work(stage, row_of(which, chunks())).duration;
  }
  Seconds forward(std::size_t stage, int chunk) const {
    return pass(stage, Direction::forward, chunk);
  }
  Seconds backward(std::size_t stage, int chunk) const {
    return pass(stage, splits_ ? Direction::input_gradient : Direction::backward, chunk);
  }
  Seconds weight_gradient(std::size_t stage, int chunk) const {
    return splits_ ? pass(stage, Direction::weight_gradient, chunk) : Seconds{0};
  }
  Seconds passes(std::size_t stage) const {
    Seconds all{};
    for (int chunk = 0; chunk < chunks(); ++chunk)
      all += (forward(stage, chunk) + backward(stage, chunk) + weight_gradient(stage, chunk)) *
             plan_.microbatches_of_chunk();
    return all;
  }

  const Plan& plan_;
  bool by_operation_, splits_, joins_;
  ProgramSet set_;
  std::vector<ProgramDevice> stages_;  ///< of which only the work table counts
  double events_ = 0;
};

}  // namespace

Seconds kernel_bound(const BuildInputs& inputs) {
  const Plan skeleton = with_fewest_microbatches(*inputs.plan);
  return KernelBound(least_of(inputs, skeleton), *inputs.plan).seconds();
}

Seconds lower_bound(const BuildInputs& inputs) {
  const Plan skeleton = with_fewest_microbatches(*inputs.plan);
  const BuiltPrograms built = build_programs(least_of(inputs, skeleton));
  return Bound(*inputs.plan, built).seconds();
}

}  // namespace windtunnel
