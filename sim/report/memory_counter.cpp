#include "report/memory_counter.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>

namespace windtunnel::detail {
namespace {

struct Interval {
  Nanoseconds begin = 0, end = 0;
};

/// What a device held, and when.
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

/// In order of time; what ends goes before what begins.
std::vector<Change> changes_of(const Held& held) {
  std::vector<Change> changes;
  for (const auto& [pair, interval] : held.pairs) {
    changes.push_back({interval.begin, +1, 0});
    changes.push_back({interval.end, -1, 0});
  }
  if (held.step) {
    changes.push_back({held.step->begin, 0, +1});
    changes.push_back({held.step->end, 0, -1});
  }
  std::ranges::stable_sort(changes, [](const Change& a, const Change& b) {
    return std::pair{a.at, a.pairs + a.steps} < std::pair{b.at, b.pairs + b.steps};
  });
  return changes;
}

int most_pairs(const std::vector<Change>& changes) {
  int now = 0, most = 0;
  for (const Change& change : changes) most = std::max(most, now += change.pairs);
  return most;
}

std::vector<MemorySample> samples_of(const Held& held, const StageMemory& stage, Bytes activation) {
  const std::vector<Change> changes = changes_of(held);
  const int most = most_pairs(changes);
  const bool step_is_maximum = stage.peak == Moment::step && held.step;
  // What is missing to the maximum while the most pairs are in flight.
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
