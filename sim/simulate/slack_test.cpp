#include <doctest/doctest.h>

#include <algorithm>
#include <memory>

#include "core/testing.hpp"
#include "engine/testing.hpp"
#include "simulate/simulate.hpp"
#include "timeline/critical_path.hpp"

namespace windtunnel {
namespace {

/// A whole iteration that was simulated, and can be simulated again with one thing that takes longer. Every device has a program of its
/// own in it, so that nothing else changes.
class Iteration {
 public:
  Iteration(const std::string& settings, MakeEngine engine) : engine_(engine) {
    Problems problems;
    const Library library{source_dir()};
    const auto source = std::make_shared<const SourceText>(SourceText{"slack.json", R"({
      "model": {"family": "gpt", "layers": 8, "hidden": 1024, "heads": 16, "sequence": 512, "vocab": 5000},
      "platform": "a100-80gb-4hdr", "software": "megatron-lm-2021", )" + settings + "}"});
    scenario_ = read_scenario(parse_json(source, problems), library.root, library);
    SimulateOptions options;
    options.make_engine = make_heap_engine;
    options.keep_timeline = true;
    simulation_ = std::make_unique<Simulation>(simulate(scenario_, options));
    give_own_programs();
    TimelineListener listener;
    end_ = simulate_again(simulation_->programs, &listener);
    timeline_ = std::move(listener.timeline());
    timeline_.end = end_;
    path_ = find_critical_path(simulation_->programs, timeline_);
  }

  Seconds end() const { return end_; }
  const Timeline& timeline() const { return timeline_; }
  const CriticalPath& path() const { return path_; }

  /// When the iteration ends if this compute takes `more` time.
  Seconds end_with_longer_compute(std::size_t index, Seconds more) const {
    const Span& span = timeline_.computes[index];
    ProgramSet set = simulation_->programs;
    ProgramDevice& device = set.devices[span.device.index()];
    std::vector<Op>& ops =
        set.programs[device.program].streams[static_cast<std::size_t>(span.stream)];
    std::size_t before = 0;
    for (std::size_t i = 0; i < index; ++i)
      before += timeline_.computes[i].device == span.device &&
                timeline_.computes[i].stream == span.stream;
    for (Op& op : ops) {
      if (op.kind != OpKind::compute || before-- > 0) continue;
      Work work = set.work[device.work_base + op.work];
      work.duration = span.end - span.begin + more;
      op.work = static_cast<std::uint16_t>(set.work.size() - device.work_base);
      REQUIRE(set.work.size() - device.work_base < 65536);
      set.work.push_back(work);
      break;
    }
    return simulate_again(set);
  }

  Seconds end_with_longer_message(std::size_t index, Seconds more) const {
    const MessageSpan& message = timeline_.messages[index];
    ProgramSet set = simulation_->programs;
    const Channel& channel = set.channels[message.channel.index()];
    const ProgramDevice& device = set.devices[channel.from.index()];
    int found = 0;
    for (std::vector<Op>& stream : set.programs[device.program].streams)
      for (Op& op : stream) {
        if (op.kind != OpKind::send || op.slot != message.send.slot ||
            device.channels[op.peer] != message.channel)
          continue;
        ++found;
        op.work = static_cast<std::uint16_t>(set.message_bytes.size());
      }
    REQUIRE(found == 1);
    const Seconds transfer = message.end - message.begin - channel.latency;
    set.message_bytes.push_back(message.bytes * ((transfer + more) / transfer));
    return simulate_again(set);
  }

  Seconds end_with_longer_collective(std::size_t index, Seconds more) const {
    const CollectiveSpan& span = timeline_.collectives[index];
    ProgramSet set = simulation_->programs;
    set.collectives[span.collective.index()].fixed = span.end - span.begin + more;
    return simulate_again(set);
  }
  /// Collectives that are entered several times share their numbers.
  bool is_entered_once(std::size_t index) const {
    return std::count_if(timeline_.collectives.begin(), timeline_.collectives.end(),
                         [&](const CollectiveSpan& span) {
                           return span.collective == timeline_.collectives[index].collective;
                         }) == 1;
  }

 private:
  void give_own_programs() {
    ProgramSet& set = simulation_->programs;
    std::vector<StageProgram> programs;
    for (ProgramDevice& device : set.devices) {
      programs.push_back(set.programs[device.program]);
      device.program = static_cast<std::uint32_t>(programs.size() - 1);
    }
    set.programs = std::move(programs);
  }

  Seconds simulate_again(const ProgramSet& set, TimelineListener* listener = nullptr) const {
    if (engine_ == make_heap_engine || listener != nullptr) {
      const auto engine = make_heap_engine(simulation_->network);
      return simulate_programs(set, *engine, listener).end;
    }
    return Seconds{testing::in_child_process([&] {
                     const auto engine = make_simgrid_engine(simulation_->network);
                     return std::vector<double>{simulate_programs(set, *engine).end.value()};
                   }).front()};
  }

  MakeEngine engine_;
  Scenario scenario_;
  std::unique_ptr<Simulation> simulation_;
  Timeline timeline_;
  CriticalPath path_;
  Seconds end_{};
};

struct Counts {
  int patient = 0, impatient = 0;
};

/// Definition of slack: an activity that takes longer by less than its slack changes nothing, and one that takes more ends the iteration
/// later by what is beyond.
template <class EndWith>
void check_slack(const Iteration& iteration, Seconds slack, const EndWith& end_with,
                 Counts& counts) {
  constexpr double rounding = 1e-9;
  const Seconds end = iteration.end(), more = 0.05 * end;
  CHECK(slack > -rounding * end);
  if (slack > rounding * end) {
    CHECK(end_with(0.99 * slack) / end == doctest::Approx(1).epsilon(rounding));
    ++counts.patient;
  } else {
    ++counts.impatient;
  }
  CHECK(end_with(slack + more) / (end + more) == doctest::Approx(1).epsilon(rounding));
}

/// About so many of a list, evenly.
template <class List, class Check>
void check_some(const List& slacks, std::size_t count, const Check& check) {
  const std::size_t step = std::max<std::size_t>(1, slacks.size() / count);
  for (std::size_t i = 0; i < slacks.size(); i += step) {
    CAPTURE(i);
    check(i, slacks[i]);
  }
}

Counts check_iteration(const Iteration& iteration, std::size_t count) {
  Counts counts;
  const CriticalPath& path = iteration.path();
  check_some(path.compute_slack, count, [&](std::size_t i, Seconds slack) {
    check_slack(
        iteration, slack, [&](Seconds more) { return iteration.end_with_longer_compute(i, more); },
        counts);
  });
  check_some(path.message_slack, count, [&](std::size_t i, Seconds slack) {
    check_slack(
        iteration, slack, [&](Seconds more) { return iteration.end_with_longer_message(i, more); },
        counts);
  });
  check_some(path.collective_slack, count, [&](std::size_t i, Seconds slack) {
    if (!iteration.is_entered_once(i)) return;
    check_slack(
        iteration, slack,
        [&](Seconds more) { return iteration.end_with_longer_collective(i, more); }, counts);
  });
  return counts;
}

const char* const training = R"("training": {"global_batch": 16, "micro_batch": 1}, )";

TEST_CASE("a thing may end later by its slack and no more, whatever the schedule") {
  Counts all;
  for (
      const char* settings : {
          R"("parallel": {"tensor": 8, "pipeline": 4, "data": 2, "schedule": "1f1b"})",
          R"("parallel": {"tensor": 8, "pipeline": 4, "data": 2, "schedule": "gpipe"})",
          R"("parallel": {"tensor": 8, "pipeline": 4, "pipeline_send": "blocking_pairs"})",
          R"("parallel": {"tensor": 8, "pipeline": 4, "schedule": "interleaved_1f1b", "virtual_pipeline": 2})",
          R"("parallel": {"tensor": 8, "pipeline": 4, "schedule": "zero_bubble_h1"})",
          R"("parallel": {"tensor": 8, "pipeline": 2, "data": 4, "stage_layers": [5, 3], "zero_stage": 2, "overlap_gradient_reduce": true})",
          R"("parallel": {"tensor": 8, "pipeline": 4}, "compression": {"pipeline_backward": {"codec": "int8", "stream": "codec"}})",
      }) {
    CAPTURE(std::string(settings));
    const Counts counts =
        check_iteration(Iteration(std::string(training) + settings, make_heap_engine), 25);
    CHECK(counts.impatient > 3);
    all.patient += counts.patient;
  }
  CHECK(all.patient > 200);
}

TEST_CASE("slack means the same on SimGrid where nothing contends") {
  // One replica, one device a node: no two messages share a link.
  const Counts counts = check_iteration(
      Iteration(std::string(training) + R"("parallel": {"tensor": 8, "pipeline": 4})",
                make_simgrid_engine),
      8);
  CHECK(counts.patient > 3);
  CHECK(counts.impatient > 3);
}

}  // namespace
}  // namespace windtunnel
