#include "report/trace_slices.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <map>
#include <optional>
#include <utility>

#include "report/number_text.hpp"
#include "scenario/scenario.hpp"
#include "timeline/breakdown.hpp"

namespace windtunnel::detail {
namespace {

/// The slices of one device by stream, not yet on lanes.
using StreamSlices = std::array<std::vector<Slice>, num_streams>;

class SliceCollector {
 public:
  SliceCollector(const Timeline& timeline, const ProgramSet& programs)
      : timeline_(timeline), programs_(programs), devices_(programs.devices.size()) {}

  std::vector<StreamSlices> collect() {
    for (std::uint32_t i = 0; i < timeline_.computes.size(); ++i) add_compute(i);
    for (std::uint32_t i = 0; i < timeline_.waits.size(); ++i) add_wait(i);
    for (std::uint32_t i = 0; i < timeline_.messages.size(); ++i) add_message(i);
    for (std::uint32_t i = 0; i < timeline_.collectives.size(); ++i) add_collective(i);
    return std::move(devices_);
  }

 private:
  void add(DeviceId device, Stream stream, const Slice& slice) {
    if (slice.end > slice.begin)
      devices_[device.index()][static_cast<std::size_t>(stream)].push_back(slice);
  }

  void add_compute(std::uint32_t i) {
    const Span& span = timeline_.computes[i];
    const Slice whole{to_nanoseconds(span.begin), to_nanoseconds(span.end), SliceKind::span, {}, i};
    add(span.device, span.stream, whole);
    if (span.stream == Stream::compute) add_parts(span, whole);
  }

  static Stream stream_of_part(Part part) {
    if (part == Part::tensor_comm || part == Part::expert_comm || part == Part::context_comm)
      return Stream::tensor;
    return part == Part::data_comm ? Stream::data : Stream::compute;
  }

  /// The parts lie one after the other inside the op; the collectives' on their own threads.
  void add_parts(const Span& span, const Slice& whole) {
    const ProgramDevice& device = programs_.devices[span.device.index()];
    const PassTimes parts = parts_of(span, programs_.work_of(device, span.op));
    Seconds at = span.begin;
    Slice slice{whole.begin, whole.begin, SliceKind::part, Part::compute, whole.index};
    for (std::size_t i = 0; i < parts.size(); ++i) {
      at += parts[i];
      const bool last = std::all_of(parts.begin() + static_cast<std::ptrdiff_t>(i) + 1, parts.end(),
                                    [](Seconds part) { return part == 0_s; });
      slice.part = static_cast<Part>(i);
      slice.begin = std::exchange(
          slice.end, last ? whole.end : std::clamp(to_nanoseconds(at), slice.end, whole.end));
      add(span.device, stream_of_part(slice.part), slice);
    }
  }

  /// Other streams' waits would only repeat what their collectives show.
  void add_wait(std::uint32_t i) {
    const WaitSpan& wait = timeline_.waits[i];
    if (wait.stream != Stream::compute) return;
    const Nanoseconds begin = to_nanoseconds(wait.waiting.begin);
    const Nanoseconds end = to_nanoseconds(wait.waiting.end);
    const WaitForOthers others = wait_for_others(wait.waiting);
    const Nanoseconds entered = to_nanoseconds(others.begin), sent = to_nanoseconds(others.end);
    add(wait.device, wait.stream, {begin, entered, SliceKind::wait, {}, i});
    add(wait.device, wait.stream, {entered, sent, SliceKind::bubble, {}, i});
    add(wait.device, wait.stream, {sent, end, SliceKind::wait, {}, i});
  }

  void add_message(std::uint32_t i) {
    const MessageSpan& message = timeline_.messages[i];
    const Channel& channel = programs_.channels[message.channel.index()];
    const Stream stream = traffic_names(message.send.traffic).stream;
    const Nanoseconds begin = to_nanoseconds(message.begin);
    const Nanoseconds end = std::max(to_nanoseconds(message.end), begin + shortest_message);
    add(channel.from, stream, {begin, end, SliceKind::send, {}, i});
    add(channel.to, stream, {begin, end, SliceKind::receive, {}, i});
  }

  void add_collective(std::uint32_t i) {
    const CollectiveSpan& span = timeline_.collectives[i];
    const Slice slice{
        to_nanoseconds(span.begin), to_nanoseconds(span.end), SliceKind::collective, {}, i};
    for (const DeviceId member : programs_.collectives[span.collective.index()].members)
      add(member, traffic_names(span.op.traffic).stream, slice);
  }

  const Timeline& timeline_;
  const ProgramSet& programs_;
  std::vector<StreamSlices> devices_;
};

/// Puts each slice on the first lane of its stream that is free; a full set of lanes gets one more.
void spread(std::vector<Slice> slices, std::size_t first_lane, DeviceLanes& lanes) {
  const Stream stream = lanes[first_lane].stream;
  std::vector<std::size_t> own{first_lane};
  for (const Slice& slice : slices) {
    auto lane = std::ranges::find_if(own, [&](std::size_t i) {
      return lanes[i].slices.empty() || lanes[i].slices.back().end <= slice.begin;
    });
    if (lane == own.end()) {
      lane = own.insert(own.end(), lanes.size());
      lanes.push_back({stream, static_cast<int>(own.size()) - 1, {}});
    }
    lanes[*lane].slices.push_back(slice);
  }
}

DeviceLanes lanes_of(StreamSlices& streams) {
  DeviceLanes lanes;
  for (int i = 0; i < num_streams; ++i) lanes.push_back({static_cast<Stream>(i), 0, {}});
  for (std::size_t i = 0; i < num_streams; ++i) {
    std::ranges::stable_sort(streams[i], {}, [](const Slice& each) {
      return std::pair{each.begin, -each.end};
    });
    // A stream runs one op at a time: what is on the compute stream nests by itself.
    if (static_cast<Stream>(i) == Stream::compute)
      lanes[i].slices = std::move(streams[i]);
    else
      spread(std::move(streams[i]), i, lanes);
  }
  return lanes;
}

/// "7" -> "0007", so that the order of names is the order of ranks.
std::string padded(std::size_t number, std::size_t width) {
  std::string text = std::to_string(number);
  return std::string(width - std::min(width, text.size()), '0') + text;
}

/// "8-15" for neighbours, "0,4" otherwise.
std::string list_text(const std::vector<std::size_t>& numbers, std::size_t width) {
  const auto is_no_neighbour = [](std::size_t a, std::size_t b) { return b != a + 1; };
  const bool neighbours = std::ranges::adjacent_find(numbers, is_no_neighbour) == numbers.end();
  if (neighbours && numbers.size() > 1)
    return padded(numbers.front(), width) + "-" + padded(numbers.back(), width);
  std::string text;
  for (const std::size_t number : numbers)
    text += (text.empty() ? "" : ",") + padded(number, width);
  return text;
}

/// Sharded training reduces each gradient to its owner. Factors of gradients go to everybody.
bool scatters_gradients(const Plan& plan, StageId stage) {
  constexpr int shards_parameters = 3;  // ZeRO stage that compresses no gradients
  if (!plan.scatters_gradients()) return false;
  const auto& compressor = plan.compression.data_gradients;
  const bool in_factors = compressor && compressor->codec->sends_factors() &&
                          compresses_gradients(plan.compression, static_cast<int>(stage.index()));
  return !in_factors || plan.parallel.zero_stage == shards_parameters;
}

struct Interval {
  Nanoseconds begin = 0, end = 0;
};

/// Content of a device's memory over time.
struct Held {
  std::map<std::pair<std::uint32_t, std::uint16_t>, Interval> pairs;  ///< microbatch, chunk
  std::optional<Interval> step;
};

/// A change of the number of pairs in flight, or of the step.
struct Change {
  Nanoseconds at = 0;
  int pairs = 0;
  int steps = 0;
};

std::vector<Held> held_by_device(const Timeline& timeline, std::size_t num_devices) {
  std::vector<Held> devices(num_devices);
  for (const Span& span : timeline.computes) {
    Held& held = devices[span.device.index()];
    const Interval interval{to_nanoseconds(span.begin), to_nanoseconds(span.end)};
    const std::pair pair{span.op.microbatch, span.op.chunk};
    if (span.op.phase == Phase::forward) {
      held.pairs.try_emplace(pair, interval);
    } else if (span.op.phase == Phase::backward || span.op.phase == Phase::weight_gradient) {
      const auto found = held.pairs.find(pair);
      if (found != held.pairs.end()) found->second.end = interval.end;
    } else if (span.op.phase == Phase::optimizer) {
      if (!held.step) held.step = interval;
      held.step->end = interval.end;
    }
  }
  return devices;
}

std::vector<MemorySample> samples_of(const Held& held, const StageMemory& stage, Bytes activation) {
  std::vector<Change> changes;  // in order of time; what ends goes before what begins
  for (const auto& [pair, interval] : held.pairs) {
    changes.push_back({interval.begin, +1, 0});
    changes.push_back({interval.end, -1, 0});
  }
  if (held.step) {
    changes.push_back({held.step->begin, 0, +1});
    changes.push_back({held.step->end, 0, -1});
  }
  std::ranges::stable_sort(changes, {}, [](const Change& each) {
    return std::pair{each.at, each.pairs + each.steps};
  });
  int in_flight = 0, most = 0;
  for (const Change& change : changes) most = std::max(most, in_flight += change.pairs);
  const bool step_is_maximum = stage.peak == Moment::step && held.step;
  // Distance to the maximum while the most pairs are in flight.
  const Bytes below = step_is_maximum ? stage.at_peak(HeldKind::step_temporary) : Bytes{};
  const auto bytes = [&](int pairs, int steps) {
    if (step_is_maximum && steps > 0) return std::llround(stage.allocated / Bytes{1});
    const Bytes now =
        std::min(stage.allocated, step_is_maximum ? stage.allocated - below + activation * pairs
                                                  : stage.allocated - activation * (most - pairs));
    return std::max(0LL, std::llround(now / Bytes{1}));
  };
  std::vector<MemorySample> samples{{0, bytes(0, 0)}};
  int pairs = 0, steps = 0;
  for (const Change& change : changes) {
    const long long now = bytes(pairs += change.pairs, steps += change.steps);
    if (samples.back().at == change.at)
      samples.back().bytes = now;
    else
      samples.push_back({change.at, now});
  }
  return samples;
}

}  // namespace

Nanoseconds to_nanoseconds(Seconds time) {
  constexpr double limit = 9e18;  // of 64 bits
  const double nanoseconds = time / Seconds{1e-9};
  if (!(std::abs(nanoseconds) < limit))
    throw UnsupportedError({{{},
                             {},
                             "a time of " + significant_text(time / Seconds{1}, 3) +
                                 " s is beyond the 285 years that a timeline can hold",
                             "run it without --trace, --report and --out"}});
  return std::llround(nanoseconds);
}

PassTimes parts_of(const Span& span, const Work& work) {
  PassTimes parts = work.parts;
  const Seconds longer = span.end - span.begin - work.duration;
  Seconds& compute = parts[Part::compute];
  if (compute > 0_s && to_nanoseconds(longer) != 0) compute = std::max(0_s, compute + longer);
  return parts;
}

std::vector<DeviceLanes> lay_out_slices(const Timeline& timeline, const ProgramSet& programs) {
  std::vector<DeviceLanes> lanes;
  for (StreamSlices& streams : SliceCollector(timeline, programs).collect())
    lanes.push_back(lanes_of(streams));
  return lanes;
}

/// "ranks 0008-0015 · dp0 pp1 tp0-7 · node1"; one GPU alone: "rank 0003 · dp0 pp1 tp3 · node0
/// gpu3".
std::string process_name(const Plan& plan, const PlanDevice& device) {
  constexpr std::size_t fewest_digits = 4;
  const std::size_t digits =
      std::max(fewest_digits, std::to_string(std::max(1, plan.num_ranks()) - 1).size());
  std::vector<std::size_t> ranks;
  for (const RankId rank : device.ranks) ranks.push_back(rank.index());
  const std::vector<std::size_t> shards(device.tensor_indices.begin(), device.tensor_indices.end());
  const bool alone = ranks.size() == 1;
  return (alone ? "rank " : "ranks ") + list_text(ranks, digits) + " · dp" +
         std::to_string(device.replica) + " pp" + std::to_string(device.stage.index()) + " tp" +
         list_text(shards, 1) + " · node" + std::to_string(device.node.index()) +
         (alone ? " gpu" + std::to_string(device.gpus.front()) : "");
}

std::string kernel_name(Phase phase, const Plan& plan, StageId stage) {
  switch (phase) {
    case Phase::activation:
    case Phase::gradient:
      return std::string("ncclDevKernel_SendRecv(") + name_of(phase) + ")";
    case Phase::gradient_reduce:
      return scatters_gradients(plan, stage) ? "ncclDevKernel_ReduceScatter(data gradients)"
                                             : "ncclDevKernel_AllReduce(data gradients)";
    case Phase::embedding_sync:
      return "ncclDevKernel_AllReduce(embedding gradients)";
    case Phase::parameter_gather:
      return plan.broadcasts_parameters() ? "ncclDevKernel_Broadcast(parameters)"
                                          : "ncclDevKernel_AllGather(parameters)";
    case Phase::context_exchange:
      return "ncclDevKernel_SendRecv(keys and values)";
    case Phase::tensor_reduce:
      // Drawn as one: with sequence parallelism as many gathers as scatters.
      return plan.parallel.sequence_parallel
                 ? "ncclDevKernel_AllGather_ReduceScatter(tensor activations)"
                 : "ncclDevKernel_AllReduce(tensor activations)";
    case Phase::expert_exchange:
      return "ncclDevKernel_SendRecv(tokens of experts)";
    default:
      return name_of(phase);
  }
}

std::string kernel_name(Label label) {
  const LabelRow& row = row_of(label);
  const char* const of = row.part == Part::tensor_comm         ? "tensor activations"
                         : row.part == Part::expert_comm       ? "tokens of experts"
                         : label == Label::exchange_heads      ? "heads"
                         : row.part == Part::context_comm      ? "keys and values"
                         : row.traffic == Traffic::zero_gather ? "parameters"
                                                               : "data gradients";
  const char* const name = row.kind == OperationKind::all_reduce       ? "AllReduce"
                           : row.kind == OperationKind::all_gather     ? "AllGather"
                           : row.kind == OperationKind::broadcast      ? "Broadcast"
                           : row.kind == OperationKind::reduce_scatter ? "ReduceScatter"
                           : row.kind == OperationKind::all_to_all     ? "SendRecv"
                                                                       : nullptr;
  return name == nullptr ? row.text : std::string("ncclDevKernel_") + name + "(" + of + ")";
}

std::string part_name(Phase phase, Part part, const Plan& plan) {
  switch (part) {
    case Part::tensor_comm:
      return kernel_name(Phase::tensor_reduce, plan, StageId{0});
    case Part::data_comm:
      return kernel_name(Phase::parameter_gather, plan, StageId{0});
    case Part::expert_comm:
      return kernel_name(Phase::expert_exchange, plan, StageId{0});
    case Part::context_comm:
      return kernel_name(Phase::context_exchange, plan, StageId{0});
    case Part::codec:
      return "codec";
    case Part::other:
      return phase == Phase::overhead ? name_of(phase) : "launch floor";
    case Part::compute:
    case Part::optimizer:
      break;
  }
  return name_of(phase);
}

bool is_of_microbatch(Phase phase) {
  return phase != Phase::optimizer && phase != Phase::gradient_reduce &&
         phase != Phase::embedding_sync && phase != Phase::parameter_gather &&
         phase != Phase::overhead;
}

const TrafficNames& traffic_names(Traffic traffic) {
  static constexpr std::array<TrafficNames, num_traffic_classes> table{{
      {"activations", Stream::pipeline, "PIPELINE_PARALLEL"},
      {"gradients", Stream::pipeline, "PIPELINE_PARALLEL"},
      {"gradient reduction", Stream::data, "DATA_PARALLEL"},
      {"embedding synchronisation", Stream::data, "EMBEDDING"},
      {"tensor collectives across nodes", Stream::tensor, "TENSOR_PARALLEL"},
      {"parameter gather", Stream::data, "DATA_PARALLEL"},
      {"gradient reduction", Stream::data, "DATA_PARALLEL"},
      {"exchanges of tokens across nodes", Stream::tensor, "EXPERT_PARALLEL"},
      {"exchanges of tokens across nodes", Stream::tensor, "EXPERT_PARALLEL"},
      {"context exchange", Stream::tensor, "CONTEXT_PARALLEL"},
  }};
  return table.at(static_cast<std::size_t>(traffic));
}

std::vector<std::vector<MemorySample>> memory_counters(const Timeline& timeline, const Plan& plan,
                                                       const MemoryAccount& memory) {
  std::vector<std::vector<MemorySample>> counters;
  const std::vector<Held> devices = held_by_device(timeline, plan.devices.size());
  for (std::size_t i = 0; i < devices.size(); ++i) {
    const StageId id = plan.devices[i].stage;
    const auto stage = std::ranges::find(memory.stages, id, &StageMemory::stage);
    counters.emplace_back();
    if (stage == memory.stages.end()) continue;
    const Bytes activation = stage->activation_per_microbatch / plan.parallel.virtual_pipeline;
    counters.back() = samples_of(devices[i], *stage, activation);
  }
  return counters;
}

}  // namespace windtunnel::detail
