#include <algorithm>
#include <cstdlib>
#include <set>

#include "importers/gpu_totals_report.hpp"
#include "importers/trace_comparison.hpp"
#include "report/comparison_words.hpp"
#include "report/number_text.hpp"
#include "report/terminal_text.hpp"

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
    const std::string text = (*this)(difference);
    if (text.find_first_not_of("-0.") == std::string::npos) return "=";
    return (difference > 0_s ? "+" : "") + text;
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
    std::string text = "\n" + header();
    const auto total = [](std::int64_t (GpuTotals::*get)() const) {
      return [get](const GpuTotals& gpu) { return (gpu.*get)(); };
    };
    text += row("time", [](const GpuTotals& gpu) { return gpu.window; });
    text += row("compute", [](const GpuTotals& gpu) { return gpu.compute; });
    if (has_phases()) text += phases();
    text += row("not computing", [](const GpuTotals& gpu) { return gpu.window - gpu.compute; });
    text += row("exposed communication", total(&GpuTotals::exposed_communication)) + exposed();
    text += row("copies alone", [](const GpuTotals& gpu) { return gpu.of(TraceLine::copies); });
    text += row("idle", total(&GpuTotals::idle)) + reasons();
    text += heading("Communication, also behind computing");
    text +=
        row("communication", [](const GpuTotals& gpu) { return gpu.communication; }) + classes();
    text += row("hidden", [](const GpuTotals& gpu) { return gpu.overlap; });
    return text + heading("Kernels, sums of their durations") + kernels();
  }

 private:
  template <typename Get>
  std::string row(const std::string& label, Get get, int depth = 0) const {
    const Seconds a = a_.of_one(get(a_.totals)), b = b_.of_one(get(b_.totals));
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
    const std::string line = left_aligned("ms, of one step", label_width) +
                             right_aligned("A", value_width + share_width) +
                             right_aligned(b, value_width + share_width) +
                             right_aligned(b + " - A", change_width) +
                             right_aligned("", share_width);
    return std::string(indent) +
           paint_(Tone::quiet, line.substr(0, line.find_last_not_of(' ') + 1)) + "\n";
  }
  std::string heading(const char* text) const { return "\n" + paint_(Tone::heading, text) + "\n"; }

  bool has_phases() const {
    constexpr auto unknown = static_cast<std::size_t>(ComputePhase::unknown);
    return a_.totals.phases[unknown] < a_.totals.compute ||
           b_.totals.phases[unknown] < b_.totals.compute;
  }
  std::string phases() const {
    std::string text;
    for (std::size_t i = 0; i < static_cast<std::size_t>(num_compute_phases); ++i)
      text += row(
          name_of(static_cast<ComputePhase>(i)),
          [i](const GpuTotals& gpu) { return gpu.phases[i]; }, 1);
    return text;
  }
  /// Each instant in one line: they add up to the exposed communication.
  std::string exposed() const {
    std::string text;
    for (std::size_t i = 0; i < static_cast<std::size_t>(num_comm_classes); ++i)
      text += row(
          words_for(static_cast<CommClass>(i)),
          [i](const GpuTotals& gpu) {
            return gpu.lines[static_cast<std::size_t>(TraceLine::tensor_comm) + i];
          },
          1);
    return text;
  }
  /// Why nothing ran; only a simulation says it.
  std::string reasons() const {
    const auto line = [](TraceLine which) {
      return [which](const GpuTotals& gpu) { return gpu.of(which); };
    };
    return row("launching", line(TraceLine::launch_gaps), 1) +
           row("waiting for others", line(TraceLine::pipeline_bubble), 1);
  }
  std::string classes() const {
    std::string text;
    for (std::size_t i = 0; i < static_cast<std::size_t>(num_comm_classes); ++i)
      text += row(
          words_for(static_cast<CommClass>(i)),
          [i](const GpuTotals& gpu) { return gpu.communicating[i]; }, 1);
    return text;
  }

  /// Those of both, the longest first.
  std::string kernels() const {
    std::set<std::string> names;
    for (const ComparedTimeline* run : {&a_, &b_})
      for (const auto& [name, total] : run->totals.by_kernel) names.insert(name);
    const auto sum = [](const GpuTotals& gpu, const std::string& name) {
      const auto found = gpu.by_kernel.find(name);
      return found == gpu.by_kernel.end() ? 0 : found->second.nanoseconds;
    };
    std::vector<std::string> sorted(names.begin(), names.end());
    std::stable_sort(sorted.begin(), sorted.end(), [&](const auto& one, const auto& two) {
      const auto longest = [&](const std::string& name) {
        return std::max(a_.of_one(sum(a_.totals, name)), b_.of_one(sum(b_.totals, name)));
      };
      return longest(one) > longest(two);
    });
    std::string text;
    for (const std::string& name : sorted)
      text += row(
          name, [&](const GpuTotals& gpu) { return sum(gpu, name); }, 1);
    return text;
  }

  const ComparedTimeline& a_;
  const ComparedTimeline& b_;
  std::size_t other_;
  const Painter& paint_;
  Milliseconds milliseconds_;
};

JsonValue json_of_run(const ComparedTimeline& run) {
  JsonValue value(JsonValue::Object{});
  value.set("label", JsonValue(run.label));
  value.set("kind", JsonValue(std::string(run.kind == TraceKind::real ? "real" : "simulated")));
  if (!run.fits) value.set("fits", JsonValue(false));
  value.set("who", JsonValue(run.who));
  if (run.rank >= 0) value.set("rank", JsonValue(run.rank));
  if (run.world_size >= 0) value.set("world_size", JsonValue(run.world_size));
  value.set("steps", JsonValue(run.is_marked ? run.steps : 0));
  value.set("time_s", JsonValue(run.time() / 1_s));
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
  JsonValue document(JsonValue::Object{});
  document.set("schema", JsonValue(std::string("windtunnel/timeline-comparison-v1")));
  JsonValue::Array runs, speedups, notes;
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
    runs.push_back(json_of_run(comparison.runs[i]));
    speedups.emplace_back(comparison.speedup(i));
  }
  for (const std::string& note : comparison.notes) notes.emplace_back(note);
  document.set("runs", JsonValue(std::move(runs)));
  document.set("speedup", JsonValue(std::move(speedups)));
  document.set("notes", JsonValue(std::move(notes)));
  return pretty_text(document) + "\n";
}

}  // namespace windtunnel
