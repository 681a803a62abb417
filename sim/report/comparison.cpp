#include "report/comparison.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string_view>
#include <utility>

#include "core/contracts.hpp"
#include "core/object_reader.hpp"
#include "core/text_list.hpp"
#include "core/utf8.hpp"
#include "report/chart.hpp"
#include "report/explanation.hpp"
#include "report/figures.hpp"
#include "report/html_text.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/report_json.hpp"
#include "report/report_view.hpp"
#include "report/report_words.hpp"
#include "report/terminal_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

using detail::indent;
using detail::marked;
using detail::Painter;
using detail::time_text;
using detail::Tone;
using detail::with_spaces;
using html::Change;
using html::change_text;
using html::DataView;
using html::DataViews;
using html::FigureRow;
using html::FigureRows;
using html::largest;
using html::NumberText;
using html::shown_rows;
using html::text_of_bytes;
using html::text_of_time;

constexpr const char* report_schema = "windtunnel/report-v1";
constexpr const char* time_pointer = "/iteration_time_s";

// Shared by terminal and page: rows of numbers, and words.

/// Times in the unit that suits the longest run.
NumberText times_of(const DataViews& runs) {
  return [whole = Seconds{largest(runs, time_pointer)}](double time) {
    return time_text(Seconds{time}, whole);
  };
}

FigureRow row_of(const Figure& figure) {
  return {figure.name, "/" + figure.key, figure.text,
          figure.is_share ? Change::difference : Change::relative};
}

/// The lines of the breakdown that stands at `pointer`.
FigureRows line_rows(const std::string& pointer, const NumberText& text) {
  FigureRows rows;
  for (const Line line : all_lines)
    rows.push_back({with_spaces(name_of(line)), pointer + "/" + name_of(line), text,
                    Change::difference, name_of(line)});
  return rows;
}

/// Bytes by class of traffic, and of compressed classes the messages.
FigureRows traffic_rows(const DataViews& runs) {
  FigureRows rows;
  for (const Traffic traffic : published_traffic) {
    const std::string name = name_of(traffic), messages = "/messages/" + name + "/";
    const bool is_compressed = largest(runs, messages + "compressed") > 0;
    if (is_compressed || largest(runs, "/traffic_bytes/" + name) > 0)
      rows.push_back(
          {with_spaces(name), "/traffic_bytes/" + name, text_of_bytes, Change::relative});
    for (const std::string kind : {"compressed", "uncompressed"})
      if (is_compressed)
        rows.push_back({"  " + kind, messages + kind, grouped_text, Change::difference});
  }
  return rows;
}

std::string meaning_of(NetworkPart part) {
  return part == NetworkPart::between_nodes ? "NICs of a node" : "links inside nodes, GPU to GPU";
}

/// "faster below 3.48 GB/s (0.0205 of the 170 GB/s of now), slower above"
std::string verdict_of(const BreakEven& found) {
  if (found.outcome == BreakEven::Outcome::crosses)
    return "faster " + std::string(found.faster_below ? "below " : "above ") +
           to_text(found.bandwidth) + " (" + significant_text(found.factor, 3) + " times the " +
           to_text(found.bandwidth_now) + " of now), slower " +
           (found.faster_below ? "above" : "below");
  return std::string(found.outcome == BreakEven::Outcome::always_faster   ? "faster"
                     : found.outcome == BreakEven::Outcome::always_slower ? "slower"
                                                                          : "as fast") +
         " at every bandwidth tried, " + significant_text(found.lowest, 2) + " to " +
         significant_text(found.highest, 2) + " times the " + to_text(found.bandwidth_now) +
         " of now";
}

/// "saves 3.10 ms an iteration; alone, a transfer gains below 12.5 GB/s a GPU (1.20 ms of codec save 14.3 MiB), now 10.0 GB/s"
std::string effect_of(const CodecBreakEven& codec) {
  const auto effect = [](Seconds saved) {
    return saved == Seconds{}  ? "changes nothing"
           : saved < Seconds{} ? "costs " + to_text(Seconds{} - saved) + " per iteration"
                               : "saves " + to_text(saved) + " per iteration";
  };
  std::string text = effect(codec.saved_by_job);
  if (codec.saved_if_slow != codec.saved_by_job)
    text += " (with all codecs at the slow end of their assumed speeds, " +
            effect(codec.saved_if_slow) + ")";
  text += "; alone, a transfer " + (codec.saved <= Bytes{} ? "never gains"
                                    : codec.bandwidth
                                        ? "gains below " + to_text(*codec.bandwidth) + " per GPU"
                                        : "always gains");
  text += " (" + to_text(codec.codec) + " of codec save " + to_text(codec.saved) + ")";
  if (codec.now > BytesPerSecond{}) text += ", now " + to_text(codec.now);
  return text;
}

/// " (gpt-39b)" where the label does not say what the run is called.
std::string name_suffix(const ComparedRun& run) {
  const std::string name = run.text("/name");
  return run.label.find(name) == std::string::npos ? " (" + name + ")" : "";
}

/// "B is faster by 7.6 %, in 90 of 100 cases by 2.1 to 12.8 %"
std::string order_text(const Ordering& ordering, std::size_t run) {
  return run_letter(run) + (ordering.is_known() ? " is " : ": ") + text_of(ordering);
}

/// The verdict on memory in the words of `run`; reports of older versions know only whether it fits.
std::string fit_text(const DataView& run) {
  const std::string verdict = run.text("/memory/verdict");
  if (verdict == name_of(MemoryVerdict::at_risk)) return "at risk";
  if (verdict == name_of(MemoryVerdict::lower_bound)) return "at least";
  const JsonValue* const fits = run.find("/memory/fits");
  return fits != nullptr && canonical_text(*fits) == "true" ? "yes" : "NO";
}

/// " at risk of not fitting in memory", as HTML; empty where the run surely fits.
std::string doubt_of_fit(const DataView& run) {
  const std::string fits = fit_text(run);
  if (fits == "yes") return "";
  if (fits == "NO") return " <strong class=\"bad\">does not fit in memory</strong>";
  return " <strong class=\"doubtful\">" +
         std::string(fits == "at risk" ? "at risk of not fitting" : "not known to fit") +
         " in memory</strong>";
}

/// The runs' reports within the document of `compare --json`.
DataViews reports_of(const Comparison& comparison) {
  DataViews views;
  for (const ComparedRun& run : comparison.runs)
    views.push_back({&run.report, "/runs/" + std::to_string(views.size()), "report",
                     "<h4>" + html::letter(views.size()) + html::escaped(run.label) + "</h4>"});
  return views;
}

// The text.

constexpr int label_width = 20, value_width = 12, change_width = 10;
/// `text` at the right end of a column, at least a blank behind the one before.
std::string cell(const std::string& text, int width) { return right_aligned(" " + text, width); }

/// Number of runs that have room next to the first: three in 100 characters.
std::size_t others_at_once() {
  const int room = detail::text_width() - utf8_count(indent) - label_width - value_width;
  return static_cast<std::size_t>(std::max(1, room / (value_width + change_width)));
}

bool hold_as_many_tokens(const DataViews& runs) {
  const auto tokens = [](const DataView& run) {
    return run.amount("/tokens_per_s") * run.amount(time_pointer);
  };
  constexpr double rounding = 1e-9;
  return std::ranges::all_of(runs, [&](const DataView& run) {
    return std::abs(tokens(run) / tokens(runs[0]) - 1) < rounding;
  });
}

/// The first run and up to three others from `first` on, in columns.
std::string text_block(const DataViews& runs, std::size_t first, const Painter& paint) {
  using CellOf = std::function<std::string(const DataView&)>;
  const std::size_t end = std::min(first + others_at_once(), runs.size());
  DataViews shown{runs[0]};
  for (std::size_t i = first; i < end; ++i) shown.push_back(runs[i]);
  const auto line = [&](const std::string& label, const CellOf& value, const CellOf& change) {
    std::string text = left_aligned(label, label_width) + cell(value(runs[0]), value_width);
    for (std::size_t i = first; i < end; ++i)
      text += cell(value(runs[i]), value_width) + cell(change(runs[i]), change_width);
    text.erase(text.find_last_not_of(' ') + 1);
    return std::string(indent) + text + "\n";
  };
  const CellOf no_change = [](const DataView&) { return std::string(); };
  // Differences without their unit, which is that of the values next to them.
  const auto row = [&](const FigureRow& each) {
    return line(
        each.label, [&](const DataView& run) { return each.text(run.amount(each.pointer)); },
        [&](const DataView& run) {
          if (!each.change) return std::string();
          const std::string text =
              change_text(each, runs[0].amount(each.pointer), run.amount(each.pointer));
          return *each.change == Change::difference ? text.substr(0, text.find(' ')) : text;
        });
  };
  const auto rows = [&](const char* heading, const FigureRows& list) {
    std::string text;
    for (const FigureRow& each : list) text += row(each);
    return text.empty() ? "" : "\n" + paint(Tone::heading, heading) + "\n" + text;
  };
  const double base = runs[0].amount(time_pointer);
  std::string head = left_aligned("", label_width) + right_aligned(run_letter(0), value_width);
  for (std::size_t i = first; i < end; ++i)
    head += right_aligned(run_letter(i), value_width) +
            right_aligned(run_letter(i) + " - A", change_width);
  std::string text = "\n" + std::string(indent) + paint(Tone::quiet, head) + "\n" +
                     row({"iteration time", time_pointer, text_of_time, Change::relative}) +
                     line(
                         hold_as_many_tokens(runs) ? "speed-up" : "iteration speed-up",
                         [base](const DataView& run) {
                           return fixed_text(base / run.amount(time_pointer), 3) + "x";
                         },
                         no_change);
  for (const Figure& figure : figures())
    for (const std::string_view key : {"tokens_per_s", "model_tflops_per_gpu", "mfu"})
      if (figure.key == key) text += row(row_of(figure));
  const FigureRows lines = shown_rows(line_rows("/breakdown_s", times_of(runs)), shown);
  text += rows("Where the time goes, on the GPUs that finish last", lines) + "\n" +
          paint(Tone::heading, "Share of the iteration, on the same GPUs") + "\n";
  for (const FigureRow& each : lines) {
    const auto share = [&](const DataView& run) {
      return run.amount(each.pointer) / run.amount(time_pointer);
    };
    text += line(
        each.label, [&](const DataView& run) { return percent_text(share(run)); },
        [&](const DataView& run) { return signed_text((share(run) - share(runs[0])) * 100, 1); });
  }
  return text + rows("Bytes on the wire in one iteration, all GPUs together", traffic_rows(shown)) +
         rows("Memory of the fullest GPU",
              {{"in use", "/memory/max_bytes", text_of_bytes, Change::relative},
               {"usable", "/memory/usable_bytes", text_of_bytes}}) +
         line("fits", fit_text, no_change);
}

// The JSON.

JsonValue comparison_value(const Comparison& comparison) {
  const auto break_even = [](const BreakEven& found) {
    const bool crosses = found.outcome == BreakEven::Outcome::crosses;
    return object_of({{"what", found.what},
                      {"network", name_of(found.part)},
                      {"outcome", name_of(found.outcome)},
                      {"bandwidth_now_bytes_per_s", found.bandwidth_now.value()},
                      {"factor", only_if(crosses, found.factor)},
                      {"bandwidth_bytes_per_s", only_if(crosses, found.bandwidth.value())},
                      {"faster", only_if(crosses, found.faster_below ? "below" : "above")}});
  };
  const auto codec_value = [](const CodecBreakEven& codec) {
    return object_of(
        {{"run", codec.run},
         {"traffic", name_of(codec.traffic)},
         {"saved_bytes", codec.saved.value()},
         {"codec_s", codec.codec},
         {"break_even_bytes_per_s",
          only_if(codec.bandwidth.has_value(), codec.bandwidth.value_or(BytesPerSecond{}).value())},
         {"attained_bytes_per_s", only_if(codec.now > BytesPerSecond{}, codec.now.value())},
         {"saved_by_job_s", codec.saved_by_job},
         {"saved_if_slow_s", codec.saved_if_slow},
         {"loses", codec.slows_job()}});
  };
  const std::vector<ComparedRun>& runs = comparison.runs;
  const auto interval_of = [&](const std::optional<Ordering>& ordering) {
    if (!ordering) return JsonValue();
    const auto run = static_cast<std::size_t>(&ordering - comparison.orderings.data());
    const double work = comparison.speedup(run) / ordering->ratio;  // tokens of an iteration
    return array_of(std::array{ordering->interval.first * work, ordering->interval.second * work});
  };
  const auto speedup = [&](const ComparedRun& run) {
    return runs.front().iteration_time() / run.iteration_time();
  };
  const auto ordering = [](const std::optional<Ordering>& each) {
    return each ? ordering_value(*each) : JsonValue();
  };
  const auto failed = [](const FailedRun& run) {
    return object_of({{"label", run.label}, {"error", run.error}});
  };
  const auto difference = [](const InputDifference& each) {
    return object_of({{"pointer", each.pointer}, {"values", array_of(each.values)}});
  };
  const bool is_judged = !comparison.orderings.empty();
  std::vector<std::string> warnings = comparison.warnings;
  if (const std::string misfits = comparison.misfits(); !misfits.empty())
    warnings.insert(warnings.begin(), misfits);
  return object_of(
      {{"runs", array_of(runs, [](const ComparedRun& run) { return run.report; })},
       {"speedup", array_of(runs, speedup)},
       {"speedup_interval", only_if(is_judged, array_of(comparison.orderings, interval_of))},
       {"orderings", only_if(is_judged, array_of(comparison.orderings, ordering))},
       {"labels", array_of(runs, [](const ComparedRun& run) { return run.label; })},
       {"failed", array_of(comparison.failed, failed)},
       {"differences", array_of(comparison.differences, difference)},
       {"codecs", array_of(comparison.codecs, codec_value)},
       {"break_even", array_of(comparison.break_evens, break_even)},
       {"warnings", array_of(warnings)}});
}

/// Fallback for reports of builds that did not write it yet: the usable memory of the stage with the least room, or all that a GPU has.
double usable_memory(const JsonValue& memory) {
  const double worst = number_of(memory.find("worst_stage")).value_or(0);
  if (const JsonValue* stages = memory.find("per_stage"); stages != nullptr && stages->is_array())
    for (const JsonValue& stage : stages->array())
      if (number_of(stage.find("stage")) == worst)
        if (const std::optional<double> usable = number_of(stage.find("usable"))) return *usable;
  return number_of(memory.find("capacity_bytes")).value_or(0);
}

}  // namespace

std::string comparison_text(const Comparison& comparison, Colour colour) {
  const Painter paint(colour);
  const auto heading = [&](const char* text) { return "\n" + paint(Tone::heading, text) + "\n"; };
  std::string text;
  for (const ComparedRun& run : comparison.runs)
    text +=
        paint(Tone::heading, run_letter(static_cast<std::size_t>(&run - comparison.runs.data()))) +
        "  " + run.label + paint(Tone::quiet, name_suffix(run)) + "\n";
  for (const FailedRun& run : comparison.failed)
    text += marked("✗", run.label + " could not be simulated: " + run.error, Tone::bad, paint);
  const std::string misfits = comparison.misfits();
  if (!comparison.orderings.empty() || !misfits.empty()) text += "\n";
  if (!misfits.empty()) text += marked("✗", misfits, Tone::bad, paint);
  for (std::size_t i = 0; i < comparison.orderings.size(); ++i)
    if (const std::optional<Ordering>& ordering = comparison.orderings[i])
      text +=
          marked(mark_of(*ordering).mark, order_text(*ordering, i), mark_of(*ordering).tone, paint);
  const DataViews runs = reports_of(comparison);
  for (std::size_t first = 1; first == 1 || first < runs.size(); first += others_at_once())
    text += text_block(runs, first, paint);
  if (!comparison.differences.empty()) text += heading("Inputs that differ");
  for (const InputDifference& difference : comparison.differences)
    text +=
        std::string(indent) + difference.pointer + ": " + joined(difference.values, " | ") + "\n";
  if (!comparison.codecs.empty())
    text += heading("What compressing does to the job, by simulation");
  for (const CodecBreakEven& codec : comparison.codecs)
    text += marked("·",
                   run_letter(codec.run) + ", " + with_spaces(name_of(codec.traffic)) + ": " +
                       effect_of(codec),
                   codec.slows_job() ? Tone::doubtful : Tone::quiet, paint);
  if (!comparison.break_evens.empty()) text += heading("Break-even bandwidths, by simulation");
  for (const BreakEven& found : comparison.break_evens) {
    // Inside nodes, nothing need be said where no bandwidth makes the runs equal.
    if (found.part != NetworkPart::inside_nodes || found.outcome == BreakEven::Outcome::crosses)
      text += marked("·", found.what + ", " + meaning_of(found.part) + ": " + verdict_of(found),
                     Tone::quiet, paint);
  }
  if (!comparison.warnings.empty()) text += "\n";
  for (const std::string& warning : comparison.warnings)
    text += marked("!", warning, Tone::doubtful, paint);
  return text;
}

std::string comparison_json(const Comparison& comparison) {
  return pretty_text(comparison_value(comparison)) + "\n";
}

bool is_report(const JsonValue& document) {
  const JsonValue* schema = document.find("schema");
  return schema != nullptr && schema->is_string() && schema->string() == report_schema;
}

JsonValue checked_report(const JsonValue& report) {
  constexpr double most = 1e300;                        // larger than any figure
  constexpr double most_messages = 9007199254740992.0;  // 2^53, what a number holds exactly
  Problems problems;
  JsonValue copy = report;
  ObjectReader root(copy, {}, problems);
  const auto part = [](ObjectReader& reader, const char* key) {
    reader.require(key, "an object");
    return reader.child(key);
  };
  for (const char* key : {"name", "scenario_hash"}) root.required_string(key);
  for (const char* key :
       {"iteration_time_s", "samples_per_s", "tokens_per_s", "model_tflops_per_gpu", "mfu"})
    if (root.required_number(key, 0, most) == 0 && std::string_view(key) == "iteration_time_s")
      root.problem(key, "iteration_time_s is not above 0");
  ObjectReader lines = part(root, "breakdown_s");
  for (const Line line : all_lines)
    if (is_always_written(line))
      lines.required_number(name_of(line), -most, most);
    else
      lines.optional_number(name_of(line), 0, -most, most);
  ObjectReader memory = part(root, "memory");
  for (const char* key : {"capacity_bytes", "max_bytes"}) memory.required_number(key, 0, most);
  if (memory.require("fits", "true or false") != nullptr) memory.optional_bool("fits", true);
  ObjectReader bytes = part(root, "traffic_bytes"), counts = part(root, "messages");
  for (const Traffic traffic : published_traffic) {
    if (!is_always_written(traffic)) {
      bytes.optional_number(name_of(traffic), 0, 0, most);
      continue;
    }
    bytes.required_number(name_of(traffic), 0, most);
    ObjectReader count = part(counts, name_of(traffic));
    for (const char* key : {"compressed", "uncompressed"})
      count.required_number(key, 0, most_messages);
  }
  problems.throw_if_any();
  JsonValue whole = report;
  JsonValue& of_memory = *whole.find("memory");
  if (of_memory.find("usable_bytes") == nullptr)
    of_memory.set("usable_bytes", JsonValue(usable_memory(of_memory)));
  return whole;
}

double ComparedRun::number(const std::string& pointer) const {
  return number_of(find_at(report, pointer)).value_or(0);
}

std::string ComparedRun::text(const std::string& pointer) const {
  return DataView{&report}.text(pointer);
}

bool ComparedRun::fits() const {
  const JsonValue* found = find_at(report, "/memory/fits");
  return found == nullptr || canonical_text(*found) == "true";
}

double Comparison::speedup(std::size_t run) const {
  WT_EXPECT(run < runs.size());
  return runs.front().iteration_time() / runs[run].iteration_time();
}

std::string Comparison::misfits() const {
  std::vector<std::string> letters;
  for (std::size_t i = 0; i < runs.size(); ++i)
    if (!runs[i].fits()) letters.push_back(run_letter(i));
  if (letters.empty()) return "";
  if (letters.size() == 1)
    return letters[0] + " does not fit in memory: its time is what it would be with enough of it";
  return (runs.size() == 2 ? "neither A nor B fits" : joined(letters, " and ") + " do not fit") +
         std::string(" in memory: their times are what they would be with enough of it");
}

bool Comparison::all_fit() const {
  return failed.empty() && std::ranges::all_of(runs, &ComparedRun::fits);
}

RunDetails run_details(const std::string& scenario, const SimulatedIteration& iteration,
                       const Report& report) {
  const CriticalPath path = find_critical_path(*iteration.programs, *iteration.timeline);
  const std::vector<PathShare> shares =
      path_shares(*iteration.plan, *iteration.programs, *iteration.timeline, path);
  const auto step = [](const PathShare& share) {
    return object_of({{"what", share.what},
                      {"line", name_of(share.line)},
                      {"time_s", share.time},
                      {"steps", share.steps}});
  };
  // {"path": [{"what": "compute of stage 5", "line": "compute", "time_s": 1.2, "steps": 24}, …],
  //  "path_by_line_s": {"compute": 10.2, …}, "reasons": {"compute": "24 microbatches pass …", …}}
  // The times of `path` add up to the iteration's, the largest first.
  return {scenario, timeline_json(iteration, devices_of_last_replica(iteration), path),
          object_of({{"path", array_of(shares, step)},
                     {"path_by_line_s", breakdown_value(lines_of_path(shares))},
                     {"reasons", reasons_value(report)}})};
}

namespace html {
namespace {

std::vector<std::string> letters(const DataViews& runs) {
  std::vector<std::string> all;
  for (std::size_t i = 0; i < runs.size(); ++i) all.push_back(letter(i));
  return all;
}

/// Two things side by side, unless there are so many runs that the tables need the width of the page.
std::string columns(const DataViews& runs, const std::string& kind, const std::string& left,
                    const std::string& right) {
  constexpr std::size_t side_by_side = 3;
  return "<div class=\"columns " + (runs.size() > side_by_side ? "stacked" : kind) + "\"><div>" +
         left + "</div><div>" + right + "</div></div>\n";
}

/// True if an iteration of every run has the same number of tokens, so that times can be compared.
bool same_work(const DataViews& runs) {
  constexpr double rounding = 1e-9;
  const auto tokens = [](const DataView& run) {
    return run.amount("/tokens_per_s") * run.amount(time_pointer);
  };
  return std::ranges::all_of(runs, [&](const DataView& run) {
    return std::abs(tokens(run) - tokens(runs[0])) <= rounding * tokens(runs[0]);
  });
}

/// Compares the fastest of the other runs with the first.
std::string verdict_line(const DataViews& runs) {
  if (runs.size() == 1) return "<h1><span class=\"big\">1 run</span> is left to show</h1>\n";
  const auto best =
      std::max_element(runs.begin() + 1, runs.end(), [](const DataView& a, const DataView& b) {
        return a.amount("/tokens_per_s") < b.amount("/tokens_per_s");
      });
  const bool by_time = same_work(runs);
  std::string change =
      change_html({"", by_time ? time_pointer : "/tokens_per_s", grouped_text, Change::relative},
                  runs[0], *best);
  if (const std::size_t minus = change.find(">-"); minus != std::string::npos)
    change.replace(minus + 1, 1, "−");
  return "<h1><span class=\"big\">" + change + "</span> " +
         (by_time ? "iteration time" : "tokens per second") + ": " +
         run_letter(static_cast<std::size_t>(best - runs.begin())) + " against A" +
         (runs.size() > 2 ? ", of the others the fastest" : "") + "</h1>\n";
}

/// The first screen: which run is faster by how much, all runs on one axis of time.
std::string headline(const Comparison& comparison, const DataViews& runs) {
  std::string kicker, html;
  for (const FailedRun& run : comparison.failed)
    html += verdict("bad", "✗", run.label + " could not be simulated: " + run.error);
  if (const std::string misfits = comparison.misfits(); !misfits.empty())
    html += verdict("bad", "✗", misfits);
  for (std::size_t i = 0; i < comparison.orderings.size(); ++i)
    if (const std::optional<Ordering>& ordering = comparison.orderings[i])
      html += verdict(mark_of(*ordering).kind, mark_of(*ordering).mark, order_text(*ordering, i));
  html += warnings(comparison.warnings);
  if (!same_work(runs))
    html += verdict("doubtful", "!",
                    "An iteration does not hold the same number of tokens in all runs: compare "
                    "tokens per second, not times.");
  const Seconds whole{largest(runs, time_pointer)};
  std::vector<std::vector<std::string>> bars;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::string& label = comparison.runs[i].label;
    kicker += (i == 0 ? "" : " · ") + run_letter(i) + " " + label;
    bars.push_back({letter(i) + element("span", "class=\"name\"", escaped(label)),
                    stacked_bar(breakdown_pieces(runs[i].find("/breakdown_s"), whole,
                                                 comparison.runs[i].iteration_time()),
                                "where the time of " + run_letter(i) + " goes"),
                    element("b", "", runs[i].cell(time_pointer, text_of_time))});
  }
  return "<header class=\"hero compared\">\n<div>\n<p class=\"kicker\">" + escaped(kicker) +
         "</p>\n" + verdict_line(runs) + html + "<div class=\"runs-chart\">" +
         bar_chart("Iteration time of each run", std::move(bars), axis(whole / 1_s, seconds_mark)) +
         "</div>\n" + breakdown_legend(runs) + "</div>\n</header>\n";
}

std::string headline_table(const Comparison& comparison, const DataViews& runs) {
  FigureRows rows{{"iteration time", time_pointer, text_of_time, Change::relative},
                  {"90 % interval from", "/iteration_time_interval_s/0", text_of_time},
                  {"to", "/iteration_time_interval_s/1", text_of_time}};
  for (const Figure& figure : figures()) rows.push_back(row_of(figure));
  rows.push_back({"GPUs", "/job/gpus", grouped_text, Change::relative});
  rows.push_back(
      {"memory of the fullest GPU", "/memory/max_bytes", text_of_bytes, Change::relative});
  rows.push_back({"usable memory", "/memory/usable_bytes", text_of_bytes});
  std::string html = figure_table("Headline numbers", rows, runs);
  for (std::size_t i = 1; i < runs.size(); ++i)
    html +=
        quiet("Speed-up of " + run_letter(i) + " over A: " +
              number("/speedup/" + std::to_string(i), fixed_text(comparison.speedup(i), 3) + "x") +
              ", the time of A over that of " + run_letter(i) + ".");
  return html;
}

std::string difference_table(const Comparison& comparison, const DataViews& runs) {
  if (comparison.differences.empty())
    return quiet("No input is known to differ between these runs.");
  Table table{"Inputs that differ", {"input"}, {}, "l", "differences"};
  for (const std::string& each : letters(runs)) table.head.push_back(each);
  for (const InputDifference& difference : comparison.differences) {
    std::vector<std::string>& row = table.rows.emplace_back();
    row.push_back(element("code", "", escaped(difference.pointer)));
    for (const std::string& value : difference.values)
      row.push_back(element("code", "", escaped(value)));
  }
  return html::table(table);
}

/// "gpt-39b on 512 GPUs of a100-80gb-4hdr with megatron-lm-2021; tensor 8 × …", as far as the report says.
std::string job_list(const Comparison& comparison, const DataViews& runs) {
  std::string items;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const ComparedRun& run = comparison.runs[i];
    const std::string model = run.text("/job/model"), plan = run.text("/job/plan");
    items += "<li>" + letter(i) + "<b>" + escaped(run.label) + "</b>" + escaped(name_suffix(run)) +
             doubt_of_fit(runs[i]) + "<br>" +
             escaped((model.empty()
                          ? ""
                          : model + " on " + grouped_text(run.number("/job/gpus")) + " GPUs of " +
                                run.text("/job/platform") + " with " + run.text("/job/software")) +
                     (plan.empty() ? "" : "; " + plan)) +
             "</li>\n";
  }
  return subsection("The runs", "", list("jobs", items));
}

/// Why one run takes longer than the first, the largest change first; with what makes the line in either run.
std::string reasons(const DataViews& runs, const DataViews& why, std::size_t run) {
  constexpr std::size_t most_lines = 4;
  constexpr double least_share = 0.03;
  FigureRows rows = line_rows("/breakdown_s", times_of(runs));
  const auto change = [&](const FigureRow& row) {
    return runs[run].amount(row.pointer) - runs[0].amount(row.pointer);
  };
  double sum = 0;
  for (const FigureRow& row : rows) sum += std::abs(change(row));
  std::erase_if(rows,
                [&](const FigureRow& row) { return std::abs(change(row)) <= least_share * sum; });
  std::ranges::stable_sort(rows, [&](const FigureRow& a, const FigureRow& b) {
    return std::abs(change(a)) > std::abs(change(b));
  });
  if (rows.size() > most_lines) rows.resize(most_lines);
  std::string items;
  for (const FigureRow& row : rows) {
    std::string texts;
    for (const std::size_t i : {std::size_t{0}, run})
      if (const std::string text = why[i].text("/reasons/" + row.kind); !text.empty())
        texts += element("p", "", letter(i) + " " + escaped(text));
    items += reason_item(row.kind, escaped(row.label) + ": " + change_html(row, runs[0], runs[run]),
                         texts);
  }
  const bool is_faster = runs[run].amount(time_pointer) < runs[0].amount(time_pointer);
  return subsection("Why is " + run_letter(run) + (is_faster ? " faster" : " slower") + " than A?",
                    "", list("why", items));
}

/// The largest parts of each critical path.
std::string critical_paths(const DataViews& runs, const DataViews& why) {
  constexpr std::size_t most_rows = 8;
  const double whole = largest(runs, time_pointer);
  const NumberText times = times_of(runs);
  std::string lists;
  for (const DataView& run : why) {
    Table table{"The critical path", {"what", "", "time"}, {}, "llr", "bars path"};
    for (const std::string& at : run.items("/path", most_rows)) {
      const double time = run.amount(at + "time_s");
      table.rows.push_back(
          {escaped(run.text(at + "what")),
           stacked_bar({{time / whole, run.text(at + "line"), times(time)}}, times(time)),
           run.cell(at + "time_s", times)});
    }
    if (!table.rows.empty()) lists += "<div>" + run.heading + html::table(table) + "</div>\n";
  }
  if (lists.empty()) return "";
  return subsection(
      "The critical path",
      "The chain of work and messages that the end of the iteration waited for; only what is on it "
      "makes the iteration longer. Its times add up to the iteration's. Below, the largest parts "
      "of each.",
      figure_table("Critical path by kind of work", line_rows("/path_by_line_s", times), why,
                   true) +
          "<div class=\"side\">" + lists + "</div>\n");
}

/// The breakdowns with their differences, why they differ, and the critical paths.
std::string time_section(const DataViews& runs, const DataViews& why) {
  constexpr std::size_t most_runs = 3;  // more would repeat the same reasons
  const std::string breakdown =
      quiet(
          "Each instant of the GPUs that finish last belongs to one line; the lines add up "
          "to the iteration time.") +
      figure_table("Where the time goes", line_rows("/breakdown_s", times_of(runs)), runs, true);
  std::string all_reasons;
  for (std::size_t i = 1; i < runs.size() && i <= most_runs; ++i)
    all_reasons += reasons(runs, why, i);
  return (all_reasons.empty() ? breakdown : columns(runs, "even-columns", breakdown, all_reasons)) +
         critical_paths(runs, why);
}

std::string timelines(const Comparison& comparison) {
  std::string all, missing;
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
    all += (i == 0 ? "" : " ") + run_letter(i);
    if (!comparison.runs[i].details)
      missing += quiet(letter(i) + escaped(comparison.runs[i].label) +
                       " is known by its report alone, which holds no timeline.");
  }
  return quiet(
             "Of each run the replica that ends last, one row per device and stream; all "
             "move together. Rest the pointer on something to read what it is.") +
         missing + "<div id=\"timelines\" data-letters=\"" + all +
         "\"><noscript><p>The timelines are drawn by a script.</p></noscript></div>\n";
}

/// A break-even as a bar, from the least bandwidth tried to the most on a logarithmic axis: where the second run is the faster one.
std::string break_even_bar(const BreakEven& found) {
  constexpr double most = 64;  // the factors that are searched: 1/64 to 64
  double share = 1;            // of the bar, in which the first colour holds
  std::string first = "idle", second = "idle";
  if (found.outcome == BreakEven::Outcome::crosses) {
    share = std::clamp(std::log(found.factor * most) / std::log(most * most), 0.0, 1.0);
    first = found.faster_below ? "faster" : "slower";
    second = found.faster_below ? "slower" : "faster";
  } else if (found.outcome != BreakEven::Outcome::always_equal) {
    first = found.outcome == BreakEven::Outcome::always_faster ? "faster" : "slower";
  }
  return "<div class=\"even\">" +
         stacked_bar({{share, first, first}, {1 - share, second, second}},
                     "faster or slower by bandwidth", 0.5) +
         "</div>" +
         quiet("from " + to_text(found.bandwidth_now * (1 / most)) + " to " +
               to_text(found.bandwidth_now * most) + "; the line: " + to_text(found.bandwidth_now) +
               ", as it is now");
}

std::string break_even_section(const Comparison& comparison) {
  std::string evens, codecs;
  for (std::size_t i = 0; i < comparison.break_evens.size(); ++i) {
    const BreakEven& found = comparison.break_evens[i];
    evens += "<li><b>" + escaped(found.what) + "</b>, " +
             escaped(meaning_of(found.part) + ": " + verdict_of(found)) + "." +
             (found.outcome == BreakEven::Outcome::crosses
                  ? " Equal at " +
                        number("/break_even/" + std::to_string(i) + "/bandwidth_bytes_per_s",
                               to_text(found.bandwidth)) +
                        "."
                  : "") +
             break_even_bar(found) + "</li>\n";
  }
  if (!evens.empty())
    evens = quiet(
                "The bandwidth of the network is multiplied by 1/64 to 64 and both runs "
                "are simulated again, until their times cross. Green: faster than what it "
                "is compared with; red: slower.") +
            list("evens", evens);
  for (const CodecBreakEven& codec : comparison.codecs)
    codecs += element("li", codec.slows_job() ? "class=\"bad\"" : "",
                      letter(codec.run) +
                          escaped(with_spaces(name_of(codec.traffic)) + ": " + effect_of(codec))) +
              "\n";
  return evens + subsection("What compressing does to the job",
                            "Simulated without each codec. A transfer alone gains while its codec "
                            "takes less time than the bytes it saves; in a job it may have been "
                            "hidden.",
                            list("evens", codecs));
}

std::string input_section(const DataViews& runs) {
  const InputTables inputs = input_tables(runs, letters(runs));
  return subsection("Numbers that not all runs share", "", inputs.different) +
         (inputs.common.empty() ? ""
                                : details(std::to_string(inputs.num_common) +
                                              " numbers that all runs rest on, with their sources",
                                          inputs.common));
}

std::string scenarios(const Comparison& comparison) {
  std::string html;
  for (std::size_t i = 0; i < comparison.runs.size(); ++i) {
    const ComparedRun& run = comparison.runs[i];
    const std::string name = letter(i) + escaped(run.label);
    html += run.details
                ? scenario_details(name + ": the whole scenario, with the origin of each value",
                                   run.details->scenario)
                : "<p>" + name +
                      ": a report, which does not hold the scenario; its hash is <code>" +
                      escaped(run.text("/scenario_hash")) + "</code>.</p>\n";
  }
  return html;
}

}  // namespace
}  // namespace html

std::string compare_page(const Comparison& comparison) {
  WT_EXPECT(!comparison.runs.empty());
  const DataViews runs = reports_of(comparison);
  DataViews why = runs;
  JsonValue::Array whys;
  constexpr std::size_t longest_title = 90;
  std::string title = joined(comparison.runs, " against ", std::mem_fn(&ComparedRun::label));
  if (title.size() > longest_title)
    title = std::to_string(runs.size()) + " runs against " + comparison.runs.front().label;
  HtmlPage page{"compare", title, html::headline(comparison, runs)};
  page.data = {{"report", pretty_text(without_wall_time(comparison_value(comparison))) + "\n"},
               {"why", ""}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const std::optional<RunDetails>& details = comparison.runs[i].details;
    why[i] = {details ? &details->why : nullptr, "/" + std::to_string(i), "why", runs[i].heading};
    whys.push_back(details ? details->why : JsonValue());
    if (details) page.data.push_back({"timeline-" + std::to_string(i), details->timeline});
    page.footer += (i == 0 ? "" : " · ") + run_letter(i) + ": windtunnel " +
                   html::escaped(runs[i].text("/version")) + ", scenario " +
                   html::escaped(runs[i].text("/scenario_hash"));
  }
  page.data[1].json = canonical_text(JsonValue(std::move(whys)));
  page.footer += " · <code>windtunnel compare --json</code> prints the same numbers";
  page.add("numbers", "", "In numbers",
           html::columns(
               runs, "numbers", html::headline_table(comparison, runs),
               html::subsection("What was changed", "", html::difference_table(comparison, runs)) +
                   html::job_list(comparison, runs)));
  page.add("time", "Time", "Where the time goes", html::time_section(runs, why));
  page.add("timeline", "Timeline", "Timelines on one axis", html::timelines(comparison));
  page.add("stages", "Stages", "Stages",
           html::stage_times(runs) +
               html::subsection("Memory of a GPU, GiB", "", html::stage_memory(runs)));
  constexpr std::size_t most_links_of_run = 6;
  page.add("network", "Network", "Network",
           html::subsection("Traffic by class",
                            "Bytes that all GPUs send in one iteration, NVLink included; below "
                            "them, the messages of one pipeline.",
                            html::figure_table("Traffic by class", traffic_rows(runs), runs)) +
               html::busiest_links(runs, most_links_of_run));
  page.add("break-even", "Break-even", "Break-even bandwidths",
           html::break_even_section(comparison));
  page.add("inputs", "Inputs", "Inputs and their sources", html::input_section(runs));
  page.add("scenarios", "Scenarios", "Scenarios", html::scenarios(comparison));
  return html_document(page);
}

}  // namespace windtunnel
