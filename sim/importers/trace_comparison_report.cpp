#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <set>
#include <utility>
#include <vector>

#include "core/contracts.hpp"
#include "core/json_build.hpp"
#include "importers/trace_comparison.hpp"
#include "report/comparison_words.hpp"
#include "report/html_page.hpp"
#include "report/html_text.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/terminal_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
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
    std::string title;
    for (const ComparedTimeline& run : runs_)
      title += (title.empty() ? "" : " against ") + run.label;
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
