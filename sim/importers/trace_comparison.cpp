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
#include "report/html_page.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/report_view.hpp"
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
  const std::int64_t unknown = totals.phases[static_cast<std::size_t>(ComputePhase::unknown)];
  if (unknown > 0)
    notes.push_back(letter + ": " + to_text(run.of_one(unknown)) +
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
  run.totals = run.is_marked ? totals_of(trace, trace.steps).front() : whole;
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
  std::string change(Seconds difference) const { return signed_text(difference / 1_ms, decimals_); }

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

namespace {

JsonValue comparison_value(const TimelineComparison& comparison) {
  JsonValue::Array speedups;
  for (std::size_t i = 0; i < comparison.runs.size(); ++i)
    speedups.emplace_back(comparison.speedup(i));
  return object_of({{"schema", "windtunnel/timeline-comparison-v1"},
                    {"runs", array_of(comparison.runs, json_of_run)},
                    {"speedup", JsonValue(std::move(speedups))},
                    {"notes", array_of(comparison.notes)}});
}

}  // namespace

std::string timeline_comparison_json(const TimelineComparison& comparison) {
  return pretty_text(comparison_value(comparison)) + "\n";
}

// The page.

namespace {

using html::Change;
using html::DataView;
using html::escaped;
using html::text_of_time;

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
std::string pointer_of(const LineWords& words) {
  return std::string("/breakdown_s/") + name_of(words.line);
}

/// The steps as bars on one axis of time.
std::string step_bars(const TimelineComparison& comparison, const html::DataViews& runs) {
  const double longest = html::largest(runs, "/time_s");
  std::vector<std::vector<std::string>> rows;
  for (const DataView& run : runs) {
    std::vector<html::Piece> pieces;
    for (const LineWords& words : line_words)
      if (const double time = run.amount(pointer_of(words)); time > 0)
        pieces.push_back(
            {time / longest, words.colour, std::string(words.text) + ": " + text_of_time(time)});
    const std::size_t i = rows.size();
    rows.push_back(
        {html::letter(i) + "<span class=\"name\">" + escaped(comparison.runs[i].label) + "</span>",
         html::stacked_bar(pieces, "where the time of " + letter_of(i) + " goes"),
         "<b>" + run.cell("/time_s", text_of_time) + "</b>"});
  }
  std::vector<std::pair<std::string, std::string>> colours;
  for (const LineWords& words : line_words)
    if (html::largest(runs, pointer_of(words)) > 0) colours.emplace_back(words.colour, words.text);
  return "<div class=\"runs-chart\">" +
         html::bar_chart("One step of each run", std::move(rows),
                         html::axis(longest, text_of_time)) +
         "</div>\n" + html::legend(colours);
}

/// What makes most of the difference between A and B.
std::string difference_text(const html::DataViews& runs) {
  const auto change = [&](const LineWords& words) {
    return runs[1].amount(pointer_of(words)) - runs[0].amount(pointer_of(words));
  };
  std::vector<LineWords> lines(line_words.begin(), line_words.end());
  std::stable_sort(lines.begin(), lines.end(), [&](const LineWords& a, const LineWords& b) {
    return std::abs(change(a)) > std::abs(change(b));
  });
  constexpr std::size_t most_named = 3;
  lines.resize(most_named);
  std::erase_if(lines, [&](const LineWords& words) { return change(words) == 0; });
  const std::string list = joined(lines, "; ", [&](const LineWords& words) {
    return std::string(words.text) + (change(words) > 0 ? " +" : " −") +
           text_of_time(std::abs(change(words)));
  });
  return list.empty() ? "" : "<p>Most of the difference: " + escaped(list) + ".</p>\n";
}

std::string lines_section(const html::DataViews& runs) {
  const auto row = [](const std::string& label, const std::string& pointer,
                      const std::string& kind = "") {
    return html::FigureRow{label, pointer, text_of_time, Change::difference, kind};
  };
  html::FigureRows rows{row("a step", "/time_s")};
  for (const LineWords& words : line_words)
    rows.push_back(row(words.text, pointer_of(words), words.colour));
  rows.push_back(row("communication, also behind computing", "/communication_s"));
  rows.push_back(row("of which hidden behind computing", "/overlap_s"));
  return html::quiet(
             "Each instant belongs to the first line that something runs of, so that the "
             "lines add up to the step; the last two count the same time again.") +
         html::figure_table("Lines of one step", rows, runs);
}

std::string kernels_section(const TimelineComparison& comparison, const html::DataViews& runs) {
  std::vector<const ComparedTimeline*> timelines;
  for (const ComparedTimeline& run : comparison.runs) timelines.push_back(&run);
  std::vector<std::string> kernels = kernels_of(timelines);
  constexpr std::size_t most_shown = 40;
  kernels.resize(std::min(most_shown, kernels.size()));
  html::FigureRows rows;
  for (const std::string& name : kernels)
    rows.push_back(
        {name, pointer_join("/kernels", name) + "/time_s", text_of_time, Change::difference});
  return html::quiet(
             "Sums of durations in one step, by kind of kernel; NCCL's with their process "
             "group. A simulation has no kernels below an op.") +
         html::figure_table("Kernels of one step", rows, runs);
}

std::string runs_section(const TimelineComparison& comparison) {
  std::string items, notes;
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
    const ComparedTimeline& run = comparison.runs[i];
    items += "<li>" + html::letter(i) + escaped(run.label + ": " + run.who) +
             (run.fits ? "" : " <strong class=\"bad\">does not fit in memory</strong>") + "</li>\n";
  }
  for (const std::string& note : comparison.notes) notes += "<li>" + escaped(note) + "</li>\n";
  return "<ul class=\"jobs\">\n" + items + "</ul>\n" +
         (notes.empty() ? "" : "<h3>Not like for like</h3>\n<ul>\n" + notes + "</ul>\n");
}

}  // namespace

std::string timeline_comparison_page(const TimelineComparison& comparison) {
  WT_EXPECT(comparison.runs.size() > 1);
  const JsonValue document = comparison_value(comparison);
  html::DataViews runs;
  for (const JsonValue& run : document.find("runs")->array())
    runs.push_back({&run, "/runs/" + std::to_string(runs.size())});
  HtmlPage page{
      "compare", joined(comparison.runs, " against ", std::mem_fn(&ComparedTimeline::label)),
      "<header class=\"hero compared\">\n<div>\n<p class=\"kicker\">one step, as a "
      "profiler sees it</p>\n<h1><span class=\"big\">" +
          html::change_html({"", "/time_s", text_of_time, Change::relative}, runs[0], runs[1]) +
          "</span> time of a step: B against A</h1>\n" + difference_text(runs) +
          step_bars(comparison, runs) + "</div>\n</header>\n"};
  page.add("lines", "Time", "Where the time goes", lines_section(runs));
  page.add("kernels", "Kernels", "Kernels", kernels_section(comparison, runs));
  page.add("runs", "Runs", "What is compared", runs_section(comparison));
  page.data = {{"report", pretty_text(document) + "\n"}};
  page.footer = "Written by windtunnel compare.";
  return html_document(page);
}

}  // namespace windtunnel
