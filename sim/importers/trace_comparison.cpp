#include "importers/trace_comparison.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
#include <set>
#include <utility>

#include "core/contracts.hpp"
#include "core/text_input.hpp"
#include "importers/gpu_totals.hpp"
#include "importers/text_list.hpp"
#include "importers/trace_event_reader.hpp"
#include "report/chrome_trace.hpp"
#include "report/comparison_words.hpp"
#include "simulate/simulate.hpp"
#include "simulate/tasks.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace detail {

bool names_rank(const std::string& process, std::int64_t rank) {
  const std::size_t from = process.find(' ');
  if (!process.starts_with("rank") || from == std::string::npos) return false;
  const char* at = process.data() + from + 1;
  const char* const end = process.data() + std::min(process.size(), process.find(" ·", from + 1));
  std::int64_t first = -1;
  while (at < end) {
    std::int64_t number = -1;
    const auto [next, error] = std::from_chars(at, end, number);
    if (error != std::errc()) return false;
    if (number == rank || (first >= 0 && first <= rank && rank <= number)) return true;
    first = next < end && *next == '-' ? number : -1;
    at = next + 1;
  }
  return false;
}

}  // namespace detail

namespace {

using detail::letter_of;
using detail::names_rank;

constexpr std::int64_t any_rank = -1;

/// When each GPU's last work ends.
std::map<std::int64_t, std::int64_t> ends_of(const GpuTrace& trace) {
  std::map<std::int64_t, std::int64_t> ends;
  for (const GpuEvent& event : trace.events) {
    std::int64_t& end = ends[event.device];
    end = std::max(end, event.end);
  }
  return ends;
}

/// The GPU to be shown.
std::int64_t chosen_device(const GpuTrace& trace, std::int64_t rank) {
  const auto ends = ends_of(trace);
  if (rank != any_rank && trace.kind == TraceKind::simulated)
    for (const auto& [device, end] : ends)
      if (const auto name = trace.processes.find(device);
          name != trace.processes.end() && names_rank(name->second, rank))
        return device;
  return std::max_element(ends.begin(), ends.end(),
                          [](const auto& a, const auto& b) { return a.second < b.second; })
      ->first;
}

/// Work outside of the marked steps, and communication of groups that nothing is known of.
void add_notes(const std::string& letter, const ComparedTimeline& run, const GpuTrace& trace,
               std::int64_t whole_busy, std::vector<std::string>& notes) {
  constexpr double worth_saying = 0.01;  // of what the steps hold
  const GpuTotals& totals = run.totals;
  const std::int64_t outside = whole_busy - totals.busy;
  if (!run.is_marked)
    notes.push_back(letter + ": no step is marked; its time is from first work to last");
  else if (static_cast<double>(outside) > worth_saying * static_cast<double>(totals.busy))
    notes.push_back(letter + ": " + to_text(trace_time(outside)) +
                    " of GPU work lie outside of its marked steps, and count nowhere");
  if (totals.phases[static_cast<std::size_t>(ComputePhase::unknown)] > 0)
    notes.push_back(
        letter + ": " +
        to_text(run.of_one(totals.phases[static_cast<std::size_t>(ComputePhase::unknown)])) +
        " of computing have no launch in the trace: neither forward nor backward");
  if (const std::string note = unknown_kernels_note(trace); !note.empty())
    notes.push_back(letter + ": " + note);
  std::set<std::string> unnamed;
  for (const GpuEvent& event : trace.events)
    if (event.work == GpuWork::communication && event.comm == CommClass::other)
      unnamed.insert(trace.names[event.group].empty() ? "without a name"
                                                      : trace.names[event.group]);
  if (!unnamed.empty())
    notes.push_back(letter +
                    ": communication of process groups that say neither tensor, "
                    "pipeline nor data (" +
                    listed(unnamed) + ") is in a line of its own");
}

ComparedTimeline timeline_of(const std::string& letter, GpuTrace trace, std::int64_t rank,
                             std::vector<std::string>& notes) {
  ComparedTimeline run;
  run.kind = trace.kind;
  run.rank = trace.rank;
  run.world_size = trace.world_size;
  run.is_marked = !trace.steps.empty();
  run.steps = std::max<std::int64_t>(1, static_cast<std::int64_t>(trace.steps.size()));
  const std::int64_t device = chosen_device(trace, rank);
  std::erase_if(trace.events, [&](const GpuEvent& event) { return event.device != device; });
  const GpuTotals whole = totals_of(trace).front();
  run.totals = run.is_marked ? totals_in_steps(trace).front() : whole;
  run.who = described(trace) + "; " + gpu_name(trace, device);
  if (run.kind == TraceKind::real)
    run.who += !run.is_marked   ? ", all of the trace"
               : run.steps == 1 ? ", one step"
                                : ", mean of " + std::to_string(run.steps) + " steps";
  if (run.kind == TraceKind::simulated && rank != any_rank &&
      !names_rank(gpu_name(trace, device), rank))
    notes.push_back(letter + ": holds no rank " + std::to_string(rank) +
                    "; shown is the device that ends last");
  add_notes(letter, run, trace, whole.busy, notes);
  return run;
}

/// The trace of one device of a scenario's iteration.
struct SimulatedTrace {
  std::string text;
  bool fits = true;  ///< in memory
};

SimulatedTrace simulated_trace(const Scenario& scenario, const Library& library,
                               std::int64_t rank) {
  SimulateOptions options;
  options.evidence = &library;
  options.keep_timeline = true;
  const Simulation simulation = simulate(scenario, options);
  DeviceId device = simulation.report.last_device;
  for (std::size_t i = 0; rank != any_rank && i < simulation.programs.devices.size(); ++i)
    for (const RankId each : scenario.plan.devices[i].ranks)
      if (static_cast<std::int64_t>(each.index()) == rank) device = DeviceId{i};
  SimulatedTrace trace{{}, simulation.report.memory.fits};
  write_device_traces(simulation.timeline, simulation.programs, scenario.plan, simulation.report,
                      {device}, [&](DeviceId, std::string text) { trace.text = std::move(text); });
  return trace;
}

/// Of what kinds the runs are decides what must be said.
void add_general_notes(TimelineComparison& comparison) {
  const auto is_real = [](const ComparedTimeline& run) { return run.kind == TraceKind::real; };
  const auto num_real = std::count_if(comparison.runs.begin(), comparison.runs.end(), is_real);
  const bool mixed = num_real > 0 && num_real < static_cast<std::int64_t>(comparison.runs.size());
  if (mixed)
    comparison.notes.emplace_back(
        "a real NCCL kernel also runs while it waits for its peers, which a simulation counts as "
        "idle: compare exposed communication and idle time together as well");
  std::set<std::int64_t> worlds;
  for (const ComparedTimeline& run : comparison.runs) worlds.insert(run.world_size);
  if (worlds.size() > 1) comparison.notes.emplace_back("the runs are of different numbers of GPUs");
  comparison.notes.emplace_back(
      "timelines hold no memory, tokens, FLOP or bytes on the wire; compare scenarios or reports "
      "for those");
}

std::vector<SimulatedTrace> simulate_all(const std::vector<TimelineInput>& inputs,
                                         const std::vector<std::size_t>& scenarios,
                                         const Library& library, std::int64_t rank) {
  Tasks<SimulatedTrace> tasks;
  tasks.count = scenarios.size();
  tasks.at_once = default_at_once();
  tasks.work = [&](std::size_t i) {
    return simulated_trace(std::get<Scenario>(inputs[scenarios[i]].content), library, rank);
  };
  std::vector<TaskOutcome<SimulatedTrace>> outcomes = run_tasks(tasks);
  std::vector<SimulatedTrace> traces;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    if (const auto* failure = std::get_if<ChildFailure>(&outcomes[i]))
      throw_failure(*failure, inputs[scenarios[i]].label);
    traces.push_back(std::move(std::get<SimulatedTrace>(outcomes[i])));
  }
  return traces;
}

}  // namespace

bool is_trace_file(const std::filesystem::path& file) {
  if (file.extension() == ".gz") return true;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return false;  // a pipe is read once
  TextInput input(file);
  const std::string_view beginning = input.beginning();
  return looks_like_trace(beginning) || detail::is_tar(beginning);
}

Seconds ComparedTimeline::of_one(std::int64_t nanoseconds) const {
  return trace_time(nanoseconds) * (1.0 / static_cast<double>(steps));
}

double TimelineComparison::speedup(std::size_t run) const {
  return runs.front().time() / runs[run].time();
}

TimelineComparison compare_timelines(const std::vector<TimelineInput>& inputs,
                                     const Library& library) {
  WT_EXPECT(inputs.size() >= 2);
  std::vector<std::optional<GpuTrace>> traces(inputs.size());
  std::vector<std::size_t> scenarios;
  Problems problems;
  std::int64_t rank = any_rank;
  for (std::size_t i = 0; i < inputs.size(); ++i) try {
      const auto* file = std::get_if<std::filesystem::path>(&inputs[i].content);
      if (file == nullptr) {
        scenarios.push_back(i);
        continue;
      }
      TextInput input(*file);
      traces[i] = read_gpu_trace(input);
      if (rank == any_rank && traces[i]->kind == TraceKind::real) rank = traces[i]->rank;
    } catch (const InputError& error) {
      for (const Problem& problem : error.problems()) problems.add(problem);
    }
  problems.throw_if_any();
  const std::vector<SimulatedTrace> simulated = simulate_all(inputs, scenarios, library, rank);
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    TextInput input(inputs[scenarios[i]].label, simulated[i].text);
    traces[scenarios[i]] = read_gpu_trace(input);
  }
  TimelineComparison comparison;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    comparison.runs.push_back(
        timeline_of(letter_of(i), std::move(*traces[i]), rank, comparison.notes));
    comparison.runs.back().label = inputs[i].label;
  }
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    comparison.runs[scenarios[i]].fits = simulated[i].fits;
    if (!comparison.runs[scenarios[i]].fits)
      comparison.notes.push_back(letter_of(scenarios[i]) +
                                 " does not fit in memory: its time is what it would be if it did");
  }
  add_general_notes(comparison);
  return comparison;
}

}  // namespace windtunnel
