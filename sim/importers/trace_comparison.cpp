#include "importers/trace_comparison.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "core/contracts.hpp"
#include "core/json_build.hpp"
#include "core/text_input.hpp"
#include "core/text_list.hpp"
#include "importers/gpu_totals.hpp"
#include "importers/trace_event_reader.hpp"
#include "report/chrome_trace.hpp"
#include "report/comparison_words.hpp"
#include "report/html_page.hpp"
#include "report/html_text.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/terminal_text.hpp"
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

namespace {

using detail::indent;
using detail::letter_of;
using detail::marked;
using detail::Painter;
using detail::Tone;

constexpr int label_width = 36, value_width = 10, share_width = 9, change_width = 10;

/// Milliseconds, with decimals that suit a whole of `time`.
class Milliseconds {
 public:
  explicit Milliseconds(Seconds time) {
    constexpr double few = 10, some = 100;
    const double whole = time / 1_ms;
    decimals_ = whole < few ? 3 : whole < some ? 2 : 1;
  }
  std::string operator()(Seconds time) const { return fixed_text(time / 1_ms, decimals_); }
  std::string change(Seconds difference) const {
    return detail::signed_text(difference / 1_ms, decimals_);
  }

 private:
  int decimals_ = 1;
};

std::string relative(Seconds from, Seconds to) {
  constexpr double many = 10, very_many = 1000;
  if (from == 0_s) return "new";
  if (to == 0_s) return "gone";
  if (to / from >= very_many) return "x " + grouped_text(to / from);
  if (to / from >= many) return "x " + significant_text(to / from, 3);
  return signed_percent_text(to / from - 1);
}

std::int64_t kernel_sum(const GpuTotals& gpu, const std::string& kernel) {
  const auto found = gpu.by_kernel.find(kernel);
  return found == gpu.by_kernel.end() ? 0 : found->second.nanoseconds;
}

/// The kernels of all runs, those that take longest in any of them first.
std::vector<std::string> kernels_of(const std::vector<const ComparedTimeline*>& runs) {
  std::set<std::string> names;
  for (const ComparedTimeline* run : runs)
    for (const auto& [name, total] : run->totals.by_kernel) names.insert(name);
  std::vector<std::string> sorted(names.begin(), names.end());
  const auto longest = [&](const std::string& name) {
    Seconds time{};
    for (const ComparedTimeline* run : runs)
      time = std::max(time, run->of_one(kernel_sum(run->totals, name)));
    return time;
  };
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](const auto& one, const auto& two) { return longest(one) > longest(two); });
  return sorted;
}

/// The first run beside another.
class Pair {
 public:
  Pair(const TimelineComparison& comparison, std::size_t other, const Painter& paint)
      : a_(comparison.runs[0]),
        b_(comparison.runs[other]),
        other_(other),
        paint_(paint),
        milliseconds_(std::max(a_.time(), b_.time())) {}

  std::string text() const {
    const GpuTotals &a = a_.totals, &b = b_.totals;
    std::string text =
        "\n" + header() + row("time", a.window, b.window) + row("compute", a.compute, b.compute);
    for (std::size_t i = 0; (a.has_phases() || b.has_phases()) && i < a.phases.size(); ++i)
      text += row(name_of(static_cast<ComputePhase>(i)), a.phases[i], b.phases[i], 1);
    text += row("not computing", a.window - a.compute, b.window - b.compute) +
            row("exposed communication", a.exposed_communication(), b.exposed_communication());
    // Each instant in one line: they add up to the exposed communication.
    for (std::size_t i = 0; i < a.communicating.size(); ++i) {
      const auto line =
          static_cast<TraceLine>(static_cast<std::size_t>(TraceLine::tensor_comm) + i);
      text += row(words_for(static_cast<CommClass>(i)), a.of(line), b.of(line), 1);
    }
    text += row("copies alone", a.of(TraceLine::copies), b.of(TraceLine::copies)) +
            row("idle", a.idle(), b.idle());
    // Why nothing ran; only a simulation says it.
    text += row("launching", a.of(TraceLine::launch_gaps), b.of(TraceLine::launch_gaps), 1) +
            row("waiting for others", a.of(TraceLine::pipeline_bubble),
                b.of(TraceLine::pipeline_bubble), 1);
    text += heading("Communication, also behind computing") +
            row("communication", a.communication, b.communication);
    for (std::size_t i = 0; i < a.communicating.size(); ++i)
      text += row(words_for(static_cast<CommClass>(i)), a.communicating[i], b.communicating[i], 1);
    text += row("hidden", a.overlap, b.overlap) + heading("Kernels, sums of their durations");
    for (const std::string& name : kernels_of({&a_, &b_}))
      text += row(name, kernel_sum(a, name), kernel_sum(b, name), 1);
    return text;
  }

 private:
  std::string row(const std::string& label, std::int64_t of_a, std::int64_t of_b,
                  int depth = 0) const {
    const Seconds a = a_.of_one(of_a), b = b_.of_one(of_b);
    if (depth > 0 && a == 0_s && b == 0_s) return {};
    const auto cell = [&](const ComparedTimeline& run, Seconds time) {
      const double share = run.time() > 0_s ? time / run.time() : 0;
      return right_aligned(milliseconds_(time), value_width) +
             right_aligned(percent_text(share), share_width);
    };
    std::string line =
        left_aligned(std::string(static_cast<std::size_t>(2 * depth), ' ') + label, label_width) +
        cell(a_, a) + cell(b_, b) + right_aligned(milliseconds_.change(b - a), change_width) +
        right_aligned(milliseconds_.change(b - a) == "=" ? "" : " " + relative(a, b), share_width);
    line.erase(line.find_last_not_of(' ') + 1);
    return std::string(indent) + line + "\n";
  }

  std::string header() const {
    const std::string b = letter_of(other_);
    return std::string(indent) +
           paint_(Tone::quiet, left_aligned("ms, of one step", label_width) +
                                   right_aligned("A", value_width + share_width) +
                                   right_aligned(b, value_width + share_width) +
                                   right_aligned(b + " - A", change_width)) +
           "\n";
  }
  std::string heading(const char* text) const { return "\n" + paint_(Tone::heading, text) + "\n"; }

  const ComparedTimeline& a_;
  const ComparedTimeline& b_;
  std::size_t other_;
  const Painter& paint_;
  Milliseconds milliseconds_;
};

JsonValue json_of_run(const ComparedTimeline& run) {
  JsonValue value = object_of(
      {{"label", run.label}, {"kind", run.kind == TraceKind::real ? "real" : "simulated"}});
  if (!run.fits) value.set("fits", JsonValue(false));
  value.set("who", JsonValue(run.who));
  if (run.rank >= 0) value.set("rank", JsonValue(run.rank));
  if (run.world_size >= 0) value.set("world_size", JsonValue(run.world_size));
  add_members(value, {{"steps", run.is_marked ? run.steps : 0}, {"time_s", run.time()}});
  JsonValue totals = json_of(run.totals, run.steps);
  for (JsonValue::Member& member : totals.object())
    if (member.key != "window_s" && member.key != "streams")
      value.set(member.key, std::move(member.value));
  return value;
}

}  // namespace

std::string timeline_comparison_text(const TimelineComparison& comparison, Colour colour) {
  const Painter paint(colour);
  std::string text;
  for (std::size_t i = 0; i < comparison.runs.size(); ++i)
    text += letter_of(i) + "  " + paint(Tone::headline, comparison.runs[i].label) + "\n" + "   " +
            comparison.runs[i].who + "\n";
  for (std::size_t i = 1; i < comparison.runs.size(); ++i)
    text += Pair(comparison, i, paint).text();
  text += "\n";
  for (const std::string& note : comparison.notes) text += marked("·", note, Tone::quiet, paint);
  return text;
}

std::string timeline_comparison_json(const TimelineComparison& comparison) {
  JsonValue::Array speedups;
  for (std::size_t i = 0; i < comparison.runs.size(); ++i)
    speedups.emplace_back(comparison.speedup(i));
  return pretty_text(object_of({{"schema", "windtunnel/timeline-comparison-v1"},
                                {"runs", array_of(comparison.runs, json_of_run)},
                                {"speedup", JsonValue(std::move(speedups))},
                                {"notes", array_of(comparison.notes)}})) +
         "\n";
}

// The page.

namespace {

using html::Change;
using html::escaped;

/// A line of the breakdown on the page.
struct LineWords {
  TraceLine line;
  const char* text;
  const char* colour;
};
constexpr std::array<LineWords, num_trace_lines> line_words{{
    {TraceLine::compute, "compute", "compute"},
    {TraceLine::optimizer, "optimizer", "optimizer"},
    {TraceLine::codec, "codec", "codec"},
    {TraceLine::tensor_comm, "tensor parallel, exposed", "tensor_comm"},
    {TraceLine::pipeline_comm, "pipeline parallel, exposed", "pipeline_comm"},
    {TraceLine::data_comm, "data parallel, exposed", "data_comm"},
    {TraceLine::embedding_sync, "embedding, exposed", "embedding_sync"},
    {TraceLine::other_comm, "other or unnamed groups, exposed", "other"},
    {TraceLine::copies, "copies alone", "m-gradients"},
    {TraceLine::launch_gaps, "launching", "m-cache"},
    {TraceLine::pipeline_bubble, "waiting for others", "pipeline_bubble"},
    {TraceLine::idle, "idle, the trace does not say why", "pipeline_bubble"},
}};

class TimelinePage {
 public:
  explicit TimelinePage(const TimelineComparison& comparison)
      : runs_(comparison.runs), notes_(comparison.notes) {
    for (const ComparedTimeline& run : runs_) longest_ = std::max(longest_, run.time());
  }

  std::string body() const {
    return headline() + html::section({"lines", "Where the time goes", lines_table()}) +
           html::section({"kernels", "Kernels", kernels_table()}) +
           html::section({"runs", "What is compared", runs_list()});
  }

  std::string title() const {
    const std::string title = joined(runs_, " against ", std::mem_fn(&ComparedTimeline::label));
    return title;
  }

 private:
  static std::string pointer(std::size_t run, const std::string& key) {
    return "/runs/" + std::to_string(run) + "/" + key;
  }

  Seconds of(std::size_t run, TraceLine line) const {
    return runs_[run].of_one(runs_[run].totals.of(line));
  }
  bool is_present(TraceLine line) const {
    for (std::size_t run = 0; run < runs_.size(); ++run)
      if (of(run, line) > 0_s) return true;
    return false;
  }

  std::string headline() const {
    std::string html =
        "<header class=\"hero compared\">\n<div>\n<p class=\"kicker\">one step, as a profiler sees "
        "it</p>\n<h1>";
    const std::size_t other = runs_.size() > 1 ? 1 : 0;
    const double change = runs_[0].time() > 0_s ? runs_[other].time() / runs_[0].time() - 1 : 0;
    html += "<span class=\"big\">" +
            html::changed_number(pointer(other, "time_s"), pointer(0, "time_s"), Change::relative,
                                 signed_percent_text(change)) +
            "</span> time of a step: " + letter_of(other) + " against A</h1>\n" + why() + bars();
    return html + "</div>\n</header>\n";
  }

  /// What makes most of the difference between A and B.
  std::string why() const {
    if (runs_.size() < 2) return {};
    std::vector<std::pair<double, const char*>> changes;
    for (const LineWords& words : line_words)
      changes.emplace_back((of(1, words.line) - of(0, words.line)) / 1_s, words.text);
    std::stable_sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) {
      return std::abs(a.first) > std::abs(b.first);
    });
    std::string list;
    constexpr std::size_t most_named = 3;
    for (std::size_t i = 0; i < most_named; ++i)
      if (changes[i].first != 0)
        list += (list.empty() ? "" : "; ") + std::string(changes[i].second) +
                (changes[i].first > 0 ? " +" : " −") + to_text(Seconds{std::abs(changes[i].first)});
    return list.empty() ? "" : "<p>Most of the difference: " + escaped(list) + ".</p>\n";
  }

  std::string bars() const {
    std::vector<std::vector<std::string>> rows;
    for (std::size_t run = 0; run < runs_.size(); ++run) {
      std::vector<html::Piece> pieces;
      for (const LineWords& words : line_words)
        if (of(run, words.line) > 0_s)
          pieces.push_back({of(run, words.line) / longest_, words.colour,
                            std::string(words.text) + ": " + to_text(of(run, words.line))});
      rows.push_back(
          {escaped(letter_of(run) + " ") + "<span class=\"name\">" + escaped(runs_[run].label) +
               "</span>",
           html::stacked_bar(pieces, "where the time of " + letter_of(run) + " goes"),
           "<b>" + html::number(pointer(run, "time_s"), to_text(runs_[run].time())) + "</b>"});
    }
    rows.push_back(
        {"", html::axis(longest_ / 1_s, [](double time) { return to_text(Seconds{time}); }), ""});
    std::string legend;
    for (const LineWords& words : line_words)
      if (is_present(words.line))
        legend += "<span>" + html::swatch(words.colour) + escaped(words.text) + "</span> ";
    return "<div class=\"runs-chart\">" +
           html::table({"One step of each run", {"", "", ""}, std::move(rows), "llr", "chart"}) +
           "</div>\n<p class=\"legend\">" + legend + "</p>\n";
  }

  std::vector<std::string> head(const std::string& first) const {
    std::vector<std::string> head{first, "A"};
    for (std::size_t run = 1; run < runs_.size(); ++run) {
      head.push_back(letter_of(run));
      head.push_back(letter_of(run) + " − A");
    }
    return head;
  }

  /// A number of each run and its difference to the first.
  std::vector<std::string> row(const std::string& name, const std::string& key,
                               const std::vector<Seconds>& times) const {
    std::vector<std::string> cells{name, html::number(pointer(0, key), to_text(times[0]))};
    for (std::size_t run = 1; run < times.size(); ++run) {
      cells.push_back(html::number(pointer(run, key), to_text(times[run])));
      cells.push_back(difference(times[run] - times[0]));
    }
    return cells;
  }

  static std::string difference(Seconds change) {
    if (change == 0_s) return "=";
    return (change > 0_s ? "+" : "−") + to_text(change > 0_s ? change : 0_s - change);
  }

  template <typename Get>
  std::vector<Seconds> times(const Get& get) const {
    std::vector<Seconds> times;
    for (const ComparedTimeline& run : runs_)
      times.push_back(run.of_one(std::invoke(get, run.totals)));
    return times;
  }

  std::string lines_table() const {
    std::vector<std::vector<std::string>> rows;
    rows.push_back(row("<b>a step</b>", "time_s", times(&GpuTotals::window)));
    for (const LineWords& words : line_words)
      if (is_present(words.line))
        rows.push_back(row(html::swatch(words.colour) + escaped(words.text),
                           std::string("breakdown_s/") + name_of(words.line),
                           times([&](const GpuTotals& gpu) { return gpu.of(words.line); })));
    rows.push_back(row("communication, also behind computing", "communication_s",
                       times(&GpuTotals::communication)));
    rows.push_back(
        row("of which hidden behind computing", "overlap_s", times(&GpuTotals::overlap)));
    return "<p class=\"quiet\">Each instant belongs to the first line that something runs of, so "
           "that the lines add up to the step; the last two count the same time again.</p>\n" +
           html::table({"Lines of one step", head(""), std::move(rows)});
  }

  std::string kernels_table() const {
    std::vector<const ComparedTimeline*> runs;
    for (const ComparedTimeline& run : runs_) runs.push_back(&run);
    std::vector<std::string> kernels = kernels_of(runs);
    constexpr std::size_t most_shown = 40;
    kernels.resize(std::min(most_shown, kernels.size()));
    std::vector<std::vector<std::string>> shown;
    for (const std::string& name : kernels) {
      const Seconds first = runs_[0].of_one(kernel_sum(runs_[0].totals, name));
      std::vector<std::string>& cells = shown.emplace_back();
      cells = {escaped(name), to_text(first)};
      for (std::size_t run = 1; run < runs_.size(); ++run) {
        const Seconds time = runs_[run].of_one(kernel_sum(runs_[run].totals, name));
        cells.insert(cells.end(), {to_text(time), difference(time - first)});
      }
    }
    return "<p class=\"quiet\">Sums of durations in one step, by kind of kernel; NCCL's with their "
           "process group. A simulation has no kernels below an op.</p>\n" +
           html::table({"Kernels of one step", head("kernel"), std::move(shown)});
  }

  std::string runs_list() const {
    std::string items;
    for (std::size_t run = 0; run < runs_.size(); ++run)
      items += "<li><b>" + escaped(letter_of(run)) + "</b> " + escaped(runs_[run].label) + ": " +
               escaped(runs_[run].who) +
               (runs_[run].fits ? "" : " <strong class=\"bad\">does not fit in memory</strong>") +
               "</li>\n";
    std::string notes;
    for (const std::string& note : notes_) notes += "<li>" + escaped(note) + "</li>\n";
    return "<ul class=\"jobs\">\n" + items + "</ul>\n" +
           (notes.empty() ? "" : "<h3>Not like for like</h3>\n<ul>\n" + notes + "</ul>\n");
  }

  const std::vector<ComparedTimeline>& runs_;
  const std::vector<std::string>& notes_;
  Seconds longest_{};
};

}  // namespace

std::string timeline_comparison_page(const TimelineComparison& comparison) {
  WT_EXPECT(!comparison.runs.empty());
  const TimelinePage timelines(comparison);
  HtmlPage page;
  page.kind = "compare";
  page.title = timelines.title();
  page.places = {{"lines", "Time"}, {"kernels", "Kernels"}, {"runs", "Runs"}};
  page.body = timelines.body();
  page.data = {{"report", timeline_comparison_json(comparison)}};
  page.footer = "Written by windtunnel compare.";
  return html_document(page);
}

}  // namespace windtunnel
