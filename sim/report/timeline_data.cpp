#include "report/timeline_data.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "core/contracts.hpp"
#include "core/gzip.hpp"
#include "core/json_value.hpp"
#include "report/html_text.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/trace_slices.hpp"
#include "timeline/breakdown.hpp"

namespace windtunnel {
namespace {

using detail::Nanoseconds;
using detail::to_nanoseconds;

JsonValue text(std::string value) { return JsonValue(std::move(value)); }

/// Columns of integers, packed.
class Columns {
 public:
  /// The columns of a table: "wait_begin" of `table` "wait_" and its column "begin".
  template <std::size_t count>
  void add(const std::string& table, const std::array<const char*, count>& names,
           const std::vector<std::array<std::int64_t, count>>& rows) {
    for (std::size_t i = 0; i < count; ++i) {
      places_.set(table + names[i],
                  JsonValue(JsonValue::Array{json_of(static_cast<std::int64_t>(bytes_.size())),
                                             json_of(static_cast<std::int64_t>(rows.size()))}));
      std::int64_t before = 0;
      for (const auto& row : rows) put(row[i] - std::exchange(before, row[i]));
    }
  }
  JsonValue places() const { return places_; }
  std::string text() const { return html::base64(gzip(bytes_)); }

 private:
  void put(std::int64_t difference) {
    constexpr std::uint64_t group = 128;
    constexpr unsigned group_bits = 7, sign_bit = 63;
    std::uint64_t rest = static_cast<std::uint64_t>(difference) << 1U ^
                         static_cast<std::uint64_t>(difference >> sign_bit);
    for (; rest >= group; rest >>= group_bits) bytes_ += static_cast<char>(rest % group + group);
    bytes_ += static_cast<char>(rest);
  }

  JsonValue places_ = empty_object();
  std::string bytes_;
};

/// Gives equal keys the same number, in order of appearance.
template <class Key>
class Numbering {
 public:
  std::int64_t of(const Key& key) {
    const auto [place, is_new] = numbers_.try_emplace(key, static_cast<std::int64_t>(keys_.size()));
    if (is_new) keys_.push_back(key);
    return place->second;
  }
  const std::vector<Key>& keys() const { return keys_; }

 private:
  std::map<Key, std::int64_t> numbers_;
  std::vector<Key> keys_;
};

/// Number of things to draw for each device.
std::vector<std::size_t> things_of_devices(const SimulatedIteration& iteration) {
  std::vector<std::size_t> things(iteration.programs->devices.size());
  for (const Span& span : iteration.timeline->computes) ++things[span.device.index()];
  for (const WaitSpan& wait : iteration.timeline->waits)
    if (wait.stream == Stream::compute) ++things[wait.device.index()];
  for (const MessageSpan& message : iteration.timeline->messages)
    ++things[iteration.programs->channels[message.channel.index()].from.index()];
  return things;
}

std::size_t count_of(const std::vector<DeviceId>& devices, const std::vector<std::size_t>& things) {
  std::size_t sum = 0;
  for (const DeviceId device : devices) sum += things[device.index()];
  return sum;
}

std::vector<DeviceId> devices_of(const Plan& plan, const std::set<int>& replicas) {
  std::vector<DeviceId> devices;
  for (std::size_t i = 0; i < plan.devices.size(); ++i)
    if (replicas.count(plan.devices[i].replica) > 0) devices.emplace_back(i);
  return devices;
}

std::string of_total(double shown, double total, const char* what) {
  return grouped_text(shown) + " of " + grouped_text(total) + " " + what;
}

std::string share_text(const Plan& plan, const std::vector<DeviceId>& devices) {
  int gpus = 0;
  for (const DeviceId device : devices) gpus += plan.devices[device.index()].num_gpus();
  return of_total(static_cast<double>(devices.size()), static_cast<double>(plan.devices.size()),
                  "simulated devices") +
         " (" + of_total(gpus, plan.num_ranks(), "GPUs") + ")";
}

/// Colour class of a compute op.
const char* kind_of(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::weight_gradient:
      return "weight_gradient";
    case Phase::optimizer:
      return name_of(Line::optimizer);
    case Phase::encode:
    case Phase::decode:
      return name_of(Line::codec);
    default:
      return name_of(Line::other);
  }
}

JsonValue devices_json(const SimulatedIteration& iteration, const ShownDevices& shown) {
  return array_of(shown.devices, [&](const DeviceId id) {
    const PlanDevice& device = iteration.plan->devices[id.index()];
    return object_of({{"name", detail::process_name(*iteration.plan, device)},
                      {"stage", device.stage.index()},
                      {"replica", device.replica},
                      {"part", device.group_node},
                      {"ends_last", id == iteration.last_device}});
  });
}

/// Name and colour of a step: "stage 7" in the colour of its phase.
std::pair<std::string, std::string> name_of_step(const Activity& activity,
                                                 const SimulatedIteration& iteration) {
  const Timeline& timeline = *iteration.timeline;
  const auto stage = [&](DeviceId device) {
    return std::to_string(iteration.plan->devices[device.index()].stage.index());
  };
  if (activity.kind == Activity::Kind::compute) {
    const Span& span = timeline.computes[activity.index];
    return {"stage " + stage(span.device), kind_of(span.op.phase)};
  }
  if (activity.kind == Activity::Kind::message) {
    const MessageSpan& message = timeline.messages[activity.index];
    const Channel& channel = iteration.programs->channels[message.channel.index()];
    return {"stage " + stage(channel.from) + " -> " + stage(channel.to),
            name_of(Line::pipeline_comm)};
  }
  const CollectiveSpan& span = timeline.collectives[activity.index];
  return {name_of(span.op.phase), name_of(line_of(span.op.phase))};
}

class TimelineWriter {
 public:
  TimelineWriter(const SimulatedIteration& iteration, const ShownDevices& shown,
                 const CriticalPath& path)
      : iteration_(iteration),
        shown_(shown),
        path_(path),
        place_(iteration.programs->devices.size(), -1),
        compute_places_(iteration.timeline->computes.size(), -1),
        message_places_(iteration.timeline->messages.size(), -1),
        collective_places_(iteration.timeline->collectives.size(), -1) {
    for (std::size_t i = 0; i < shown.devices.size(); ++i)
      place_[shown.devices[i].index()] = static_cast<std::int64_t>(i);
  }

  std::string write() {
    add_computes();
    add_waits();
    add_messages();
    add_collectives();
    add_path();
    const JsonValue all_ops = ops(), all_phases = phases(), all_channels = channels(),
                    all_sizes = sizes(), all_groups = groups();  // which add to the links
    return canonical_text(object_of({{"end", to_nanoseconds(iteration_.timeline->end)},
                                     {"shown", shown_.text},
                                     {"devices", devices_json(iteration_, shown_)},
                                     {"ops", all_ops},
                                     {"phases", all_phases},
                                     {"channels", all_channels},
                                     {"sizes", all_sizes},
                                     {"groups", all_groups},
                                     {"links", links()},
                                     {"path", path_names()},
                                     {"columns", columns_.places()},
                                     {"bytes", columns_.text()}}));
  }

 private:
  using Column = std::vector<std::int64_t>;
  /// An op as it is drawn: stream, phase, chunk, row of the work table.
  using OpKey = std::tuple<Stream, Phase, Label, std::uint16_t, std::size_t>;

  bool is_shown(DeviceId device) const { return place_[device.index()] >= 0; }

  /// The shown ones of `all`, by device and begin.
  template <class Thing, class Begin>
  std::vector<const Thing*> ordered(const std::vector<Thing>& all, const Begin& begin) const {
    std::vector<const Thing*> things;
    for (const Thing& thing : all)
      if (is_shown(thing.device)) things.push_back(&thing);
    std::ranges::stable_sort(things, [&](const Thing* a, const Thing* b) {
      return std::pair{a->device, begin(*a)} < std::pair{b->device, begin(*b)};
    });
    return things;
  }

  void add_computes() {
    const std::array columns{"device", "begin", "duration", "op", "microbatch", "slack"};
    std::vector<std::array<std::int64_t, columns.size()>> rows;
    for (const Span* span :
         ordered(iteration_.timeline->computes, [](const Span& s) { return s.begin; })) {
      const ProgramDevice& device = iteration_.programs->devices[span->device.index()];
      const auto index = static_cast<std::size_t>(span - iteration_.timeline->computes.data());
      const Nanoseconds from = to_nanoseconds(span->begin);
      compute_places_[index] = std::ssize(rows);
      rows.push_back(
          {place_[span->device.index()], from, to_nanoseconds(span->end) - from,
           ops_.of({span->stream, span->op.phase, label_of(span->op), span->op.chunk,
                    device.work_base + span->op.work}),
           detail::is_of_microbatch(span->op.phase) ? std::int64_t{span->op.microbatch} : -1,
           slack_of(path_.compute_slack[index])});
    }
    columns_.add("compute_", columns, rows);
  }

  void add_waits() {
    const std::array columns{"device", "begin", "own", "others", "duration", "phase"};
    std::vector<std::array<std::int64_t, columns.size()>> rows;
    for (const WaitSpan* wait :
         ordered(iteration_.timeline->waits, [](const WaitSpan& w) { return w.waiting.begin; })) {
      if (wait->stream != Stream::compute) continue;
      const Nanoseconds from = to_nanoseconds(wait->waiting.begin);
      const WaitForOthers awaited = wait_for_others(wait->waiting);
      rows.push_back({place_[wait->device.index()], from, to_nanoseconds(awaited.begin) - from,
                      to_nanoseconds(awaited.end) - from, to_nanoseconds(wait->waiting.end) - from,
                      phases_.of(wait->waiting.cause)});
    }
    columns_.add("wait_", columns, rows);
  }

  void add_messages() {
    std::vector<const MessageSpan*> messages;
    for (const MessageSpan& message : iteration_.timeline->messages) {
      const Channel& channel = iteration_.programs->channels[message.channel.index()];
      if (is_shown(channel.from) || is_shown(channel.to)) messages.push_back(&message);
    }
    std::ranges::stable_sort(messages, {}, [](const MessageSpan* each) {
      return std::pair{each->channel, each->begin};
    });
    const std::array columns{"channel", "begin",      "duration", "queued",
                             "size",    "microbatch", "phase",    "slack"};
    std::vector<std::array<std::int64_t, columns.size()>> rows;
    for (const MessageSpan* message : messages) {
      const auto index = static_cast<std::size_t>(message - iteration_.timeline->messages.data());
      const Nanoseconds from = to_nanoseconds(message->begin);
      message_places_[index] = std::ssize(rows);
      rows.push_back({channels_.of(message->channel), from, to_nanoseconds(message->end) - from,
                      from - to_nanoseconds(message->posted), sizes_.of(message->bytes),
                      message->send.microbatch, phases_.of(message->send.phase),
                      slack_of(path_.message_slack[index])});
    }
    columns_.add("message_", columns, rows);
  }

  void add_collectives() {
    const std::array columns{"group", "begin", "duration", "phase", "slack"};
    std::vector<std::array<std::int64_t, columns.size()>> rows;
    for (const CollectiveSpan& span : iteration_.timeline->collectives) {
      const std::vector<DeviceId>& members =
          iteration_.programs->collectives[span.collective.index()].members;
      if (std::ranges::none_of(members, [&](DeviceId member) { return is_shown(member); }))
        continue;
      const auto index = static_cast<std::size_t>(&span - iteration_.timeline->collectives.data());
      const Nanoseconds from = to_nanoseconds(span.begin);
      collective_places_[index] = std::ssize(rows);
      rows.push_back({groups_.of({span.collective, span.op.traffic}), from,
                      to_nanoseconds(span.end) - from, phases_.of(span.op.phase),
                      slack_of(path_.collective_slack[index])});
    }
    columns_.add("collective_", columns, rows);
  }

  static Nanoseconds slack_of(Seconds slack) { return to_nanoseconds(std::max(Seconds{0}, slack)); }

  /// Row of an activity in the columns of its kind, or -1.
  std::int64_t place_of(const Activity& activity) const {
    switch (activity.kind) {
      case Activity::Kind::compute:
        return compute_places_[activity.index];
      case Activity::Kind::message:
        return message_places_[activity.index];
      case Activity::Kind::collective:
        return collective_places_[activity.index];
      case Activity::Kind::event:
        break;
    }
    return -1;
  }

  void add_path() {
    const std::array columns{"kind", "index", "begin", "duration", "name"};
    std::vector<std::array<std::int64_t, columns.size()>> rows;
    for (const CriticalStep& step : path_.steps) {
      if (step.activity.kind == Activity::Kind::event) continue;
      const Nanoseconds from = to_nanoseconds(step.begin);
      rows.push_back({static_cast<std::int64_t>(step.activity.kind), place_of(step.activity), from,
                      to_nanoseconds(step.end) - from,
                      path_names_.of(name_of_step(step.activity, iteration_))});
    }
    columns_.add("path_", columns, rows);
  }

  /// [name, colour]
  JsonValue path_names() const {
    return array_of(path_names_.keys(), [](const auto& key) {
      return JsonValue::Array{text(key.first), text(key.second)};
    });
  }

  /// [stream, phase, colour, chunk, nanoseconds of each part]
  JsonValue ops() const {
    return array_of(ops_.keys(), [this](const OpKey& key) {
      const auto& [stream, phase, label, chunk, work] = key;
      const std::string name = label == Label::whole_pass
                                   ? name_of(phase)
                                   : name_of(phase) + std::string(": ") + row_of(label).text;
      JsonValue::Array op{text(name_of(stream)), text(name), text(kind_of(phase)), json_of(chunk)};
      for (const Seconds part : iteration_.programs->work[work].parts)
        op.push_back(json_of(to_nanoseconds(part)));
      return op;
    });
  }

  /// [name, line of the breakdown]
  JsonValue phases() const {
    return array_of(phases_.keys(), [](Phase phase) {
      return JsonValue::Array{text(name_of(phase)), text(name_of(line_of(phase)))};
    });
  }

  JsonValue sizes() const {
    return array_of(sizes_.keys(), [](Bytes bytes) { return bytes / Bytes{1}; });
  }

  JsonValue link_or_null(PathId up, PathId down) {
    const auto link = iteration_.network->slowest_link({up, down});
    return link ? json_of(links_.of(link->index())) : JsonValue();
  }

  /// [from, to, slowest link or null inside a node, bytes per second]; devices that are not shown are null.
  JsonValue channels() {
    return array_of(channels_.keys(), [this](ChannelId id) {
      const Channel& channel = iteration_.programs->channels[id.index()];
      return JsonValue::Array{
          device_or_null(channel.from), device_or_null(channel.to),
          channel.in_node ? JsonValue() : link_or_null(channel.up, channel.down),
          JsonValue(channel.in_node ? channel.bandwidth / BytesPerSecond{1} : 0.0)};
    });
  }

  /// [members that are shown, GPUs, bytes all members send, traffic class, slowest link or null]
  JsonValue groups() {
    return array_of(groups_.keys(), [this](const std::pair<CollectiveId, Traffic>& group) {
      const Collective& collective = iteration_.programs->collectives[group.first.index()];
      JsonValue::Array members;
      std::int64_t gpus = 0;
      for (const DeviceId member : collective.members) {
        gpus += iteration_.plan->devices[member.index()].num_gpus();
        if (is_shown(member)) members.push_back(json_of(place_[member.index()]));
      }
      return JsonValue::Array{
          JsonValue(std::move(members)), json_of(gpus),
          JsonValue(collective.traffic_bytes / Bytes{1}), text(name_of(group.second)),
          collective.flows.empty()
              ? JsonValue()
              : link_or_null(collective.flows.front().up, collective.flows.front().down)};
    });
  }

  JsonValue device_or_null(DeviceId device) const {
    return is_shown(device) ? json_of(place_[device.index()]) : JsonValue();
  }

  /// [name, bytes per second]
  JsonValue links() const {
    return array_of(links_.keys(), [this](std::uint32_t link) {
      const Link& known = iteration_.network->links()[link];
      return JsonValue::Array{text(known.name), JsonValue(known.bandwidth / BytesPerSecond{1})};
    });
  }

  const SimulatedIteration& iteration_;
  const ShownDevices& shown_;
  const CriticalPath& path_;
  Column place_;  ///< by device: its place among those shown, or -1
  /// By thing of the timeline: where it stands in its columns, or -1.
  Column compute_places_, message_places_, collective_places_;
  Columns columns_;
  Numbering<std::pair<std::string, std::string>> path_names_;
  Numbering<OpKey> ops_;
  Numbering<Phase> phases_;
  Numbering<ChannelId> channels_;
  Numbering<Bytes> sizes_;
  Numbering<std::pair<CollectiveId, Traffic>> groups_;
  Numbering<std::uint32_t> links_;
};

}  // namespace

ShownDevices devices_of_last_replica(const SimulatedIteration& iteration, std::size_t limit) {
  const Plan& plan = *iteration.plan;
  const std::vector<std::size_t> things = things_of_devices(iteration);
  const int last = plan.devices[iteration.last_device.index()].replica;
  const std::vector<DeviceId> one = devices_of(plan, {last});
  const std::string name = "replica " + std::to_string(last);
  const std::size_t all = count_of(one, things);
  if (all <= limit || one.size() == 1)
    return {one, share_text(plan, one) + ": " + name + ", which ends last"};
  // The ends of its pipeline, and others evenly between them: the most that stay within the limit.
  const std::size_t each = std::max<std::size_t>(1, all / one.size());
  const std::size_t count = std::clamp<std::size_t>(limit / each, 2, one.size());
  std::set<DeviceId> chosen{iteration.last_device};
  for (std::size_t i = 0; i < count; ++i) chosen.insert(one[i * (one.size() - 1) / (count - 1)]);
  const std::vector<DeviceId> some(chosen.begin(), chosen.end());
  return {
      some,
      share_text(plan, some) + ": of " + name +
          ", which ends last, the device that does, the first and last stage, and some between"};
}

ShownDevices shown_devices(const SimulatedIteration& iteration, std::size_t limit) {
  const Plan& plan = *iteration.plan;
  const std::vector<std::size_t> things = things_of_devices(iteration);
  const int last = plan.devices[iteration.last_device.index()].replica;
  std::set<int> every;
  for (const PlanDevice& device : plan.devices) every.insert(device.replica);
  const std::vector<DeviceId> all = devices_of(plan, every);
  const std::string share_of_all = "all " + grouped_text(static_cast<double>(all.size())) +
                                   " simulated devices (" + grouped_text(plan.num_ranks()) +
                                   " GPUs)";
  if (count_of(all, things) <= limit) return {all, share_of_all};
  const std::vector<DeviceId> two = devices_of(plan, {0, last});
  if (count_of(two, things) <= limit && last != 0)
    return {two, share_text(plan, two) + ": replica " + std::to_string(last) +
                     ", which ends last, and replica 0"};
  return devices_of_last_replica(iteration, limit);
}

std::string timeline_json(const SimulatedIteration& iteration, const ShownDevices& shown,
                          const CriticalPath& path) {
  WT_EXPECT(iteration.timeline != nullptr && iteration.programs != nullptr &&
            iteration.network != nullptr && iteration.plan != nullptr);
  return TimelineWriter(iteration, shown, path).write();
}

}  // namespace windtunnel
