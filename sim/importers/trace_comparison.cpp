#include "importers/trace_comparison.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "core/contracts.hpp"
#include "core/json_build.hpp"
#include "core/text_input.hpp"
#include "core/text_list.hpp"
#include "importers/trace_event_reader.hpp"
#include "report/chart.hpp"
#include "report/chrome_trace.hpp"
#include "report/html_text.hpp"
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

/// The GPU to be shown: of a simulation the one that holds the rank; else the one that ends last.
std::int64_t chosen_device(const GpuTrace& trace, std::int64_t rank) {
  std::map<std::int64_t, std::int64_t> ends;
  for (const GpuEvent& event : trace.events) {
    std::int64_t& end = ends[event.device];
    end = std::max(end, event.end);
  }
  if (rank != any_rank && trace.kind == TraceKind::simulated)
    for (const auto& [device, end] : ends)
      if (const auto name = trace.processes.find(device);
          name != trace.processes.end() && names_rank(name->second, rank))
        return device;
  return std::ranges::max_element(ends, {}, [](const auto& each) { return each.second; })->first;
}

ComparedTimeline timeline_of(const std::string& letter, GpuTrace trace, std::int64_t rank,
                             std::vector<std::string>& notes) {
  const auto add_note = [&](const std::string& text) { notes.push_back(letter + ": " + text); };
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
    add_note("holds no rank " + std::to_string(rank) + "; shown is the device that ends last");
  constexpr double worth_saying = 0.01;  // of what the steps hold
  const std::int64_t outside = whole.busy - run.totals.busy;
  if (!run.is_marked)
    add_note("no step is marked; its time is from first work to last");
  else if (static_cast<double>(outside) > worth_saying * static_cast<double>(run.totals.busy))
    add_note(to_text(trace_time(outside)) +
             " of GPU work lie outside of its marked steps, and count nowhere");
  if (const std::int64_t unknown = run.totals.phases[ComputePhase::unknown]; unknown > 0)
    add_note(to_text(run.of_one(unknown)) +
             " of computing have no launch in the trace: neither forward nor backward");
  if (const std::string note = unknown_kernels_note(trace); !note.empty()) add_note(note);
  std::set<std::string> unnamed;
  for (const GpuEvent& event : trace.events)
    if (event.work == GpuWork::communication && event.comm == CommClass::other)
      unnamed.insert(trace.names[event.group].empty() ? "without a name"
                                                      : trace.names[event.group]);
  if (!unnamed.empty())
    add_note("communication of process groups that say neither tensor, pipeline nor data (" +
             listed(unnamed) + ") is in a line of its own");
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

JsonValue comparison_value(const TimelineComparison& comparison) {
  const auto run_json = [](const ComparedTimeline& run) {
    JsonValue value = object_of({{"label", run.label},
                                 {"kind", run.kind == TraceKind::real ? "real" : "simulated"},
                                 {"fits", only_if(!run.fits, false)},
                                 {"who", run.who},
                                 {"rank", only_if(run.rank >= 0, run.rank)},
                                 {"world_size", only_if(run.world_size >= 0, run.world_size)},
                                 {"steps", run.is_marked ? run.steps : 0},
                                 {"time_s", run.time()}});
    JsonValue totals = json_of(run.totals, run.steps);
    totals.erase("window_s");
    totals.erase("streams");
    merge_json(value, totals);
    return value;
  };
  const Seconds first = comparison.runs.front().time();
  return object_of(
      {{"schema", "windtunnel/timeline-comparison-v1"},
       {"runs", array_of(comparison.runs, run_json)},
       {"speedup",
        array_of(comparison.runs, [&](const ComparedTimeline& run) { return first / run.time(); })},
       {"notes", array_of(comparison.notes)}});
}

// Shared by terminal and page.

using html::Change;
using html::DataView;
using html::DataViews;
using html::FigureRow;
using html::FigureRows;
using html::text_of_time;

DataViews runs_in(const JsonValue& comparison) {
  DataViews runs;
  for (const JsonValue& run : comparison.find("runs")->array())
    runs.push_back({&run, "/runs/" + std::to_string(runs.size())});
  return runs;
}

FigureRows step_rows() {
  FigureRows rows = time_rows();
  rows.insert(rows.begin(), {"time", "/time_s", text_of_time, Change::difference});
  return rows;
}

/// The kernels of all runs, those that take longest in any of them first.
FigureRows kernel_rows(const DataViews& runs) {
  std::set<std::string> names;
  for (const DataView& run : runs)
    for (const JsonValue::Member& kernel : run.find("/kernels")->object()) names.insert(kernel.key);
  FigureRows rows;
  for (const std::string& name : names)
    rows.push_back(
        {name, pointer_join("/kernels", name) + "/time_s", text_of_time, Change::difference});
  std::ranges::stable_sort(rows, [&](const FigureRow& one, const FigureRow& two) {
    return html::largest(runs, one.pointer) > html::largest(runs, two.pointer);
  });
  return rows;
}

/// The first run next to another, in milliseconds.
std::string pair_text(const DataViews& runs, std::size_t other) {
  const DataView &a = runs[0], &b = runs[other];
  const double longest = html::largest({a, b}, "/time_s");
  const int decimals = longest < 0.01 ? 3 : longest < 0.1 ? 2 : 1;
  const auto table = [&](const std::string& heading, FigureRows rows) {
    const std::string letter = run_letter(other);
    std::vector<TextRow> lines{{heading, "A", "", letter, "", letter + " - A"}};
    for (FigureRow& row : rows) {
      if (html::largest({a, b}, row.pointer) == 0) continue;
      row.text = [&](double seconds) { return fixed_text(seconds * 1000, decimals); };
      TextRow& line = lines.emplace_back(TextRow{row.label});
      for (const DataView& run : {a, b}) {
        const double time = run.amount(row.pointer);
        line.push_back(row.text(time));
        line.push_back(percent_text(time > 0 ? time / run.amount("/time_s") : 0));
      }
      line.push_back(change_text(row, a.amount(row.pointer), b.amount(row.pointer)));
      if (line.back() != "=")
        line.push_back(relative_change(a.amount(row.pointer), b.amount(row.pointer)));
    }
    return "\n" + text_table("wr", lines);
  };
  return table("ms, of one step", step_rows()) +
         table("kernels, sums of durations", kernel_rows(runs));
}

using html::escaped;

std::string pointer_of(const TraceLineWords& words) {
  return std::string("/breakdown_s/") + words.name;
}

/// The steps as bars on one axis of time.
std::string step_bars(const TimelineComparison& comparison, const DataViews& runs) {
  const double longest = html::largest(runs, "/time_s");
  std::vector<std::vector<std::string>> rows;
  for (const DataView& run : runs) {
    std::vector<html::Piece> pieces;
    for (const TraceLineWords& words : trace_lines)
      if (const double time = run.amount(pointer_of(words)); time > 0)
        pieces.push_back(
            {time / longest, words.colour, std::string(words.text) + ": " + text_of_time(time)});
    const std::size_t i = rows.size();
    rows.push_back(
        {html::letter(i) + "<span class=\"name\">" + escaped(comparison.runs[i].label) + "</span>",
         html::stacked_bar(pieces, "where the time of " + run_letter(i) + " goes"),
         "<b>" + run.cell("/time_s", text_of_time) + "</b>"});
  }
  std::vector<std::pair<std::string, std::string>> colours;
  for (const TraceLineWords& words : trace_lines)
    if (html::largest(runs, pointer_of(words)) > 0) colours.emplace_back(words.colour, words.text);
  return "<div class=\"runs-chart\">" +
         html::bar_chart("One step of each run", std::move(rows),
                         html::axis(longest, seconds_mark)) +
         "</div>\n" + html::legend(colours);
}

}  // namespace

bool is_trace_file(const std::filesystem::path& file) {
  if (file.extension() == ".gz") return true;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return false;  // a pipe is read once
  TextInput input(file);
  const std::string_view beginning = input.beginning();
  // The key of the events, or one of those that the profiler writes before it.
  for (const std::string_view key :
       {"\"traceEvents\"", "\"schemaVersion\"", "\"deviceProperties\"", "\"distributedInfo\""})
    if (beginning.find(key) != std::string_view::npos) return true;
  return detail::is_tar(beginning);
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
  const Tasks<SimulatedTrace> tasks{
      scenarios.size(), default_at_once(), [&](std::size_t i) {
        return simulated_trace(std::get<Scenario>(inputs[scenarios[i]].content), library, rank);
      }};
  std::vector<TaskOutcome<SimulatedTrace>> outcomes = run_tasks(tasks);
  std::vector<SimulatedTrace> simulated;
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    if (const auto* failure = std::get_if<ChildFailure>(&outcomes[i]))
      throw_failure(*failure, inputs[scenarios[i]].label);
    simulated.push_back(std::move(std::get<SimulatedTrace>(outcomes[i])));
    TextInput input(inputs[scenarios[i]].label, simulated[i].text);
    traces[scenarios[i]] = read_gpu_trace(input);
  }
  TimelineComparison comparison;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    comparison.runs.push_back(
        timeline_of(run_letter(i), std::move(*traces[i]), rank, comparison.notes));
    comparison.runs.back().label = inputs[i].label;
  }
  for (std::size_t i = 0; i < scenarios.size(); ++i) {
    comparison.runs[scenarios[i]].fits = simulated[i].fits;
    if (!comparison.runs[scenarios[i]].fits)
      comparison.notes.push_back(run_letter(scenarios[i]) +
                                 " does not fit in memory: its time is what it would be if it did");
  }
  // The notes depend on the kinds of the runs.
  const auto num_real =
      std::ranges::count(comparison.runs, TraceKind::real, &ComparedTimeline::kind);
  if (num_real > 0 && num_real < static_cast<std::ptrdiff_t>(comparison.runs.size()))
    comparison.notes.emplace_back(
        "a real NCCL kernel also runs while it waits for its peers, which a simulation counts as "
        "idle: compare exposed communication and idle time together as well");
  std::set<std::int64_t> worlds;
  for (const ComparedTimeline& run : comparison.runs) worlds.insert(run.world_size);
  if (worlds.size() > 1) comparison.notes.emplace_back("the runs are of different numbers of GPUs");
  comparison.notes.emplace_back(
      "timelines hold no memory, tokens, FLOP or bytes on the wire; compare scenarios or reports "
      "for those");
  return comparison;
}

std::string timeline_comparison_text(const TimelineComparison& comparison, Colour colour) {
  const detail::Painter paint(colour);
  const JsonValue document = comparison_value(comparison);
  const DataViews runs = runs_in(document);
  std::string text;
  for (std::size_t i = 0; i < runs.size(); ++i)
    text += run_letter(i) + "  " + paint(detail::Tone::headline, comparison.runs[i].label) +
            "\n   " + comparison.runs[i].who + "\n";
  for (std::size_t i = 1; i < runs.size(); ++i) text += pair_text(runs, i);
  text += "\n";
  for (const std::string& note : comparison.notes)
    text += detail::marked("·", note, detail::Tone::quiet, paint);
  return text;
}

std::string timeline_comparison_json(const TimelineComparison& comparison) {
  return pretty_text(comparison_value(comparison)) + "\n";
}

// The page.

std::string timeline_comparison_page(const TimelineComparison& comparison) {
  WT_EXPECT(comparison.runs.size() > 1);
  const JsonValue document = comparison_value(comparison);
  const DataViews runs = runs_in(document);
  // The largest cause of the difference between A and B.
  const auto change = [&](const TraceLineWords& words) {
    return runs[1].amount(pointer_of(words)) - runs[0].amount(pointer_of(words));
  };
  std::vector<TraceLineWords> lines(trace_lines.begin(), trace_lines.end());
  std::ranges::stable_sort(lines, std::greater{},
                           [&](const TraceLineWords& words) { return std::abs(change(words)); });
  constexpr std::size_t most_named = 3;
  lines.resize(most_named);
  std::erase_if(lines, [&](const TraceLineWords& words) { return change(words) == 0; });
  const std::string differences = joined(lines, "; ", [&](const TraceLineWords& words) {
    return std::string(words.text) + (change(words) > 0 ? " +" : " −") +
           text_of_time(std::abs(change(words)));
  });
  HtmlPage page{
      "compare", joined(comparison.runs, " against ", std::mem_fn(&ComparedTimeline::label)),
      "<header class=\"hero compared\">\n<div>\n<p class=\"kicker\">one step, as a "
      "profiler sees it</p>\n<h1><span class=\"big\">" +
          html::change_html({"", "/time_s", text_of_time, Change::relative}, runs[0], runs[1]) +
          "</span> time of a step: B against A</h1>\n" +
          (differences.empty() ? ""
                               : "<p>Most of the difference: " + escaped(differences) + ".</p>\n") +
          step_bars(comparison, runs) + "</div>\n</header>\n"};
  page.add("lines", "Time", "Where the time goes",
           html::quiet("Exposed communication gives each instant to the first class that runs, so "
                       "that its lines add up; behind computing, classes may overlap.") +
               html::figure_table("Lines of one step", step_rows(), runs));
  constexpr std::size_t most_shown = 40;
  FigureRows kernels = kernel_rows(runs);
  kernels.resize(std::min(most_shown, kernels.size()));
  page.add(
      "kernels", "Kernels", "Kernels",
      html::quiet("Sums of durations in one step, by kind of kernel; NCCL's with their process "
                  "group. A simulation has no kernels below an op.") +
          html::figure_table("Kernels of one step", kernels, runs));
  std::string items;
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
    const ComparedTimeline& run = comparison.runs[i];
    items += "<li>" + html::letter(i) + escaped(run.label + ": " + run.who) +
             (run.fits ? "" : " <strong class=\"bad\">does not fit in memory</strong>") + "</li>\n";
  }
  const std::string notes = joined(comparison.notes, "", [](const std::string& note) {
    return "<li>" + escaped(note) + "</li>\n";
  });
  page.add("runs", "Runs", "What is compared",
           "<ul class=\"jobs\">\n" + items + "</ul>\n" +
               (notes.empty() ? "" : "<h3>Not like for like</h3>\n<ul>\n" + notes + "</ul>\n"));
  page.data = {{"report", pretty_text(document) + "\n"}};
  page.footer = "Written by windtunnel compare.";
  return html_document(page);
}
}  // namespace windtunnel
