#include "report/compare_page.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <map>

#include "core/contracts.hpp"
#include "core/json_number.hpp"
#include "core/text_list.hpp"
#include "report/comparison_words.hpp"
#include "report/figures.hpp"
#include "report/html_page.hpp"
#include "report/html_text.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/path_shares.hpp"
#include "report/report_json.hpp"
#include "report/terminal_text.hpp"
#include "report/why_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace html {
namespace {

using detail::letter_of;
using detail::time_text;
using detail::with_spaces;

using NumberText = std::function<std::string(double)>;
constexpr const char* time_pointer = "/iteration_time_s";

std::string text_of_time(double time) { return to_text(Seconds{time}); }
std::string text_of_bytes(double bytes) { return to_text(Bytes{bytes}); }

bool reads_as_nothing(const std::string& text) {
  return text.find_first_of("123456789") == std::string::npos;
}

/// A change that is text only, such as "=", has no number to point at.
bool is_number(const std::string& text) {
  return !text.empty() && (text.front() == '+' || text.front() == '-');
}

/// A row of a table that has a column a run, and after each but the first one for the change against the first.
struct FigureRow {
  std::string label;    ///< HTML
  std::string pointer;  ///< within a report; one that begins with "why/" within RunDetails::why
  NumberText text;
  std::optional<Change> change;  ///< none: no change is shown
};

std::string difference_text(double difference, const NumberText& number_text) {
  std::string text = number_text(std::abs(difference));
  if (reads_as_nothing(text)) return "=";
  if (text.ends_with('%')) text.replace(text.size() - 1, 1, "pp");  // percentage points
  return (difference < 0 ? "-" : "+") + text;
}

/// The letter of a run, in a box: A, B, …
std::string letter(std::size_t run) {
  return element("b", "class=\"letter\"", detail::letter_of(run));
}

/// The numbers of a comparison, each with its place in the page's data: of the runs' reports, which stand in the comparison's document, and of
/// their details, which are the page's data "why".
class ComparedFigures {
 public:
  explicit ComparedFigures(const Comparison& comparison) : comparison_(&comparison) {}

  std::size_t size() const { return comparison_->runs.size(); }
  const ComparedRun& run(std::size_t i) const { return comparison_->runs[i]; }
  const Comparison& comparison() const { return *comparison_; }

  /// The value at `pointer` of a run; null where it has none, as in reports of other versions.
  const JsonValue* value(std::size_t run, const std::string& pointer) const {
    const ComparedRun& compared = comparison_->runs[run];
    if (!is_why(pointer)) return find_at(compared.report, pointer);
    return compared.details ? find_at(compared.details->why, pointer.substr(3)) : nullptr;
  }
  std::optional<double> number(std::size_t run, const std::string& pointer) const {
    return number_of(value(run, pointer));
  }
  /// The text at `pointer` of a run; empty where there is none.
  std::string string(std::size_t run, const std::string& pointer) const {
    const JsonValue* found = value(run, pointer);
    return found != nullptr && found->is_string() ? found->string() : "";
  }
  /// The largest of all runs; 0 where none has the number.
  double largest(const std::string& pointer) const {
    double most = 0;
    for (std::size_t i = 0; i < size(); ++i) most = std::max(most, number(i, pointer).value_or(0));
    return most;
  }
  Seconds longest_time() const { return Seconds{largest(time_pointer)}; }
  /// Times in the unit that suits the longest run.
  NumberText times() const {
    return [whole = longest_time()](double time) { return time_text(Seconds{time}, whole); };
  }

  /// The number as the page prints it, or a dash.
  std::string cell(std::size_t run, const std::string& pointer, const NumberText& text) const {
    const std::optional<double> exact = number(run, pointer);
    return exact ? in_data(pointer, html::number(place(run, pointer), text(*exact))) : "–";
  }
  /// Its change against the first run; empty where there is none to tell.
  std::string change(std::size_t run, const FigureRow& row) const {
    const std::optional<double> base = number(0, row.pointer), exact = number(run, row.pointer);
    if (!row.change || !base || !exact) return "";
    const std::string text = *row.change == Change::relative
                                 ? detail::relative_change(*base, *exact)
                                 : difference_text(*exact - *base, row.text);
    if (!is_number(text)) return element("span", "class=\"same\"", escaped(text));
    return in_data(row.pointer, changed_number(place(run, row.pointer), place(0, row.pointer),
                                               *row.change, text));
  }

  /// A table of such rows; those that no run has, or that read as nothing in all of them, are left out. Between two runs a bar shows each
  /// difference where `bars` says so.
  std::string table(const std::string& caption, const std::vector<FigureRow>& rows,
                    bool bars = false) const;

 private:
  static bool is_why(const std::string& pointer) { return pointer.starts_with("why/"); }
  static std::string place(std::size_t run, const std::string& pointer) {
    return is_why(pointer) ? "/" + std::to_string(run) + pointer.substr(3)
                           : "/runs/" + std::to_string(run) + pointer;
  }
  static std::string in_data(const std::string& pointer, const std::string& number) {
    return is_why(pointer) ? of_data("why", number) : number;
  }

  const Comparison* comparison_;
};

std::string ComparedFigures::table(const std::string& caption, const std::vector<FigureRow>& rows,
                                   bool bars) const {
  bars = bars && size() == 2;
  Table table{caption, {""}, {}, "lr", bars ? "figures changes" : "figures"};
  table.head.push_back(letter(0));
  for (std::size_t i = 1; i < size(); ++i) {
    table.head.push_back(letter(i));
    table.head.push_back(detail::letter_of(i) + " − A");
  }
  if (bars) table.head.emplace_back("less | more");
  double widest = 0;
  for (const FigureRow& row : rows)
    if (bars)
      widest = std::max(widest, std::abs(number(1, row.pointer).value_or(0) -
                                         number(0, row.pointer).value_or(0)));
  for (const FigureRow& row : rows) {
    bool is_shown = false;
    for (std::size_t i = 0; i < size(); ++i)
      if (const auto exact = number(i, row.pointer))
        is_shown = is_shown || !reads_as_nothing(row.text(*exact));
    if (!is_shown) continue;
    std::vector<std::string> cells{row.label, cell(0, row.pointer, row.text)};
    for (std::size_t i = 1; i < size(); ++i) {
      cells.push_back(cell(i, row.pointer, row.text));
      cells.push_back(change(i, row));
    }
    if (bars) {
      const double difference =
          number(1, row.pointer).value_or(0) - number(0, row.pointer).value_or(0);
      cells.push_back(
          signed_bar(difference, widest, "short", "long", difference_text(difference, row.text)));
    }
    table.rows.push_back(std::move(cells));
  }
  return table.rows.empty() ? "" : html::table(table);
}

/// The marks of an axis of time.
std::string time_mark(double time, Seconds whole) {
  constexpr int digits = 4;
  if (whole >= 1_s) return significant_text(time, digits) + " s";
  if (whole >= 1_ms) return significant_text(Seconds{time} / 1_ms, digits) + " ms";
  return significant_text(Seconds{time} / 1_us, digits) + " us";
}

/// The axis of bars of which one as long as their place is `whole`.
std::string time_axis(Seconds whole) {
  return axis(whole / Seconds{1}, [whole](double time) { return time_mark(time, whole); });
}

/// The lines of the breakdown that `object` holds, as pieces of a bar that is `whole` long.
std::vector<Piece> pieces_of(const JsonValue* object, Seconds whole) {
  std::vector<Piece> pieces;
  if (object == nullptr) return pieces;
  for (const Line each : all_lines) {
    const std::string name = name_of(each);
    const Seconds time{number_of(object->find(name)).value_or(0)};
    if (time > 0_s)
      pieces.push_back({time / whole, name, with_spaces(name) + ": " + time_text(time, whole)});
  }
  return pieces;
}

/// What the pieces' colours mean: the lines that some run has.
std::string line_legend(const ComparedFigures& figures) {
  std::string legend;
  for (const Line each : all_lines) {
    const std::string name = name_of(each);
    if (figures.largest("/breakdown_s/" + name) > 0)
      legend += "<span>" + swatch(name) + escaped(with_spaces(name)) + "</span> ";
  }
  return "<p class=\"legend\">" + legend + "</p>\n";
}

/// Bars under each other with their axis below: rows of label, bar and number, as HTML.
std::string chart(const std::string& caption, std::vector<std::vector<std::string>> rows,
                  const std::string& scale) {
  rows.push_back({"", scale, ""});
  return table({caption, {"", "", ""}, std::move(rows), "llr", "chart"});
}

/// All runs on one axis of time.
std::string runs_chart(const ComparedFigures& figures) {
  const Seconds whole = figures.longest_time();
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < figures.size(); ++i)
    rows.push_back({letter(i) + "<span class=\"name\">" + escaped(figures.run(i).label) + "</span>",
                    stacked_bar(pieces_of(figures.value(i, "/breakdown_s"), whole),
                                "where the time of " + letter_of(i) + " goes"),
                    "<b>" + figures.cell(i, time_pointer, text_of_time) + "</b>"});
  return "<div class=\"runs-chart\">" +
         chart("Iteration time of each run", std::move(rows), time_axis(whole)) + "</div>\n" +
         line_legend(figures);
}

/// Whether an iteration of every run holds the same number of tokens, so that times can be compared.
bool same_work(const ComparedFigures& figures) {
  constexpr double rounding = 1e-9;
  const auto tokens = [&](std::size_t i) {
    return figures.run(i).figures.tokens_per_s * (figures.run(i).figures.iteration_time / 1_s);
  };
  for (std::size_t i = 1; i < figures.size(); ++i)
    if (std::abs(tokens(i) - tokens(0)) > rounding * tokens(0)) return false;
  return true;
}

/// The run to speak of in the headline: of the others the one that trains fastest.
std::size_t best_other(const ComparedFigures& figures) {
  std::size_t best = 1;
  for (std::size_t i = 2; i < figures.size(); ++i)
    if (figures.run(i).figures.tokens_per_s > figures.run(best).figures.tokens_per_s) best = i;
  return best;
}

std::string verdict_line(const ComparedFigures& figures) {
  if (figures.size() == 1) return "<h1><span class=\"big\">1 run</span> is left to show</h1>\n";
  const std::size_t run = best_other(figures);
  const bool by_time = same_work(figures);
  const FigureRow row{"", by_time ? time_pointer : "/tokens_per_s", grouped_text, Change::relative};
  std::string change = figures.change(run, row);
  if (const std::size_t minus = change.find(">-"); minus != std::string::npos)
    change.replace(minus + 1, 1, "−");
  return "<h1><span class=\"big\">" + change + "</span> " +
         (by_time ? "iteration time" : "tokens per second") + ": " + letter_of(run) + " against A" +
         (figures.size() > 2 ? ", of the others the fastest" : "") + "</h1>\n";
}

std::string notes(const ComparedFigures& figures) {
  std::string html;
  for (const FailedRun& run : figures.comparison().failed)
    html += "<p class=\"verdict bad\"><b>✗</b> " + escaped(run.label) +
            " could not be simulated: " + escaped(run.error) + "</p>\n";
  for (const std::string& warning : figures.comparison().warnings)
    html += "<p class=\"verdict doubtful\"><b>!</b> " + escaped(warning) + "</p>\n";
  if (!same_work(figures))
    html +=
        "<p class=\"verdict doubtful\"><b>!</b> An iteration does not hold the same number of "
        "tokens in all runs: compare tokens per second, not times.</p>\n";
  return html;
}

std::string difference_table(const ComparedFigures& figures) {
  const std::vector<InputDifference>& differences = figures.comparison().differences;
  if (differences.empty())
    return "<p class=\"quiet\">No input is known to differ between these runs.</p>\n";
  Table table{"Inputs that differ",
              {"input"},
              {},
              std::string(1 + figures.size(), 'l') + "r",
              "differences"};
  for (std::size_t i = 0; i < figures.size(); ++i) table.head.push_back(letter(i));
  for (const InputDifference& difference : differences) {
    std::vector<std::string> row{element("code", "", escaped(difference.pointer))};
    for (const std::string& value : difference.values)
      row.push_back(element("code", "", escaped(value)));
    table.rows.push_back(std::move(row));
  }
  return html::table(table);
}

std::string headline_table(const ComparedFigures& figures) {
  std::vector<FigureRow> rows{
      {"iteration time", time_pointer, text_of_time, Change::relative},
      {"90 % interval from", "/iteration_time_interval_s/0", text_of_time, {}},
      {"to", "/iteration_time_interval_s/1", text_of_time, {}}};
  for (const Figure& figure : windtunnel::figures())
    rows.push_back({figure.name, "/" + figure.key, figure.text,
                    figure.is_share ? Change::difference : Change::relative});
  rows.push_back({"GPUs", "/job/gpus", grouped_text, Change::relative});
  rows.push_back(
      {"memory of the fullest GPU", "/memory/max_bytes", text_of_bytes, Change::relative});
  rows.push_back({"its capacity", "/memory/capacity_bytes", text_of_bytes, {}});
  std::string html = figures.table("Headline numbers", rows);
  for (std::size_t i = 1; i < figures.size(); ++i)
    html += "<p class=\"quiet\">Speed-up of " + letter_of(i) + " over A: " +
            number("/speedup/" + std::to_string(i),
                   fixed_text(figures.comparison().speedup(i), 3) + "x") +
            ", the time of A over that of " + letter_of(i) + ".</p>\n";
  return html;
}

/// "gpt-39b on 512 GPUs of a100-80gb-4hdr with megatron-lm-2021; tensor 8 × …", as far as the report says.
std::string job_of(const ComparedFigures& figures, std::size_t run) {
  const auto text = [&](const char* key) {
    return figures.string(run, "/job/" + std::string(key));
  };
  if (figures.value(run, "/job/model") == nullptr) return "";
  return text("model") + " on " + grouped_text(figures.number(run, "/job/gpus").value_or(0)) +
         " GPUs of " + text("platform") + " with " + text("software") + "; " + text("plan");
}

std::string job_list(const ComparedFigures& figures) {
  std::string items;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const ComparedRun& run = figures.run(i);
    items += "<li>" + letter(i) + "<b>" + escaped(run.label) + "</b>";
    if (run.label.find(run.figures.name) == std::string::npos)
      items += " (" + escaped(run.figures.name) + ")";
    if (!run.figures.fits) items += " <strong class=\"bad\">does not fit in memory</strong>";
    items += "<br>" + escaped(job_of(figures, i)) + "</li>\n";
  }
  return "<h3>The runs</h3>\n<ul class=\"jobs\">\n" + items + "</ul>\n";
}

/// A line of the breakdown and by how much it differs.
struct LineChange {
  Line line = Line::compute;
  double difference = 0;
};

std::vector<LineChange> changes_of(const ComparedFigures& figures, std::size_t run) {
  std::vector<LineChange> changes;
  double sum = 0;
  for (const Line line : all_lines) {
    const std::string at = "/breakdown_s/" + std::string(name_of(line));
    changes.push_back(
        {line, figures.number(run, at).value_or(0) - figures.number(0, at).value_or(0)});
    sum += std::abs(changes.back().difference);
  }
  constexpr double least_share = 0.03;
  std::erase_if(changes, [&](const LineChange& change) {
    return std::abs(change.difference) <= least_share * sum;
  });
  std::stable_sort(changes.begin(), changes.end(), [](const LineChange& a, const LineChange& b) {
    return std::abs(a.difference) > std::abs(b.difference);
  });
  return changes;
}

std::string reason(const ComparedFigures& figures, std::size_t run, Line line) {
  const std::string text = figures.string(run, "why/reasons/" + std::string(name_of(line)));
  if (text.empty()) return "";
  return "<p>" + letter(run) + " " + escaped(text) + "</p>";
}

/// Why one run takes longer than the first, the largest change first; with what makes the line in either run.
std::string reasons(const ComparedFigures& figures, std::size_t run) {
  constexpr std::size_t most_lines = 4;
  std::vector<LineChange> changes = changes_of(figures, run);
  if (changes.size() > most_lines) changes.resize(most_lines);
  if (changes.empty()) return "";
  const double whole =
      figures.number(run, time_pointer).value_or(0) - figures.number(0, time_pointer).value_or(0);
  std::string items;
  for (const LineChange& change : changes) {
    const std::string at = "/breakdown_s/" + std::string(name_of(change.line));
    items += "<li><b>" + swatch(name_of(change.line)) + escaped(with_spaces(name_of(change.line))) +
             ": " + figures.change(run, {"", at, figures.times(), Change::difference}) + "</b>" +
             reason(figures, 0, change.line) + reason(figures, run, change.line) + "</li>\n";
  }
  return "<h3>Why is " + letter_of(run) + (whole < 0 ? " faster" : " slower") +
         " than A?</h3>\n<ol class=\"why\">\n" + items + "</ol>\n";
}

std::string all_reasons(const ComparedFigures& figures) {
  constexpr std::size_t most_runs = 3;  // more would repeat the same reasons
  std::string html;
  for (std::size_t i = 1; i < figures.size() && i <= most_runs; ++i) html += reasons(figures, i);
  return html;
}

std::vector<FigureRow> line_rows(const std::string& pointer,
                                 const std::function<std::string(double)>& text) {
  std::vector<FigureRow> rows;
  for (const Line each : all_lines) {
    const std::string name = name_of(each);
    rows.push_back({swatch(name) + escaped(with_spaces(name)), pointer + "/" + name, text,
                    Change::difference});
  }
  return rows;
}

/// The largest parts of a run's critical path.
std::string path_list(const ComparedFigures& figures, std::size_t run) {
  constexpr std::size_t most_rows = 8;
  const JsonValue* const path = figures.value(run, "why/path");
  if (path == nullptr || !path->is_array()) return "";
  const Seconds whole = figures.longest_time();
  Table table{
      "The critical path of " + letter_of(run), {"what", "", "time"}, {}, "llr", "bars path"};
  for (std::size_t i = 0; i < std::min(most_rows, path->array().size()); ++i) {
    const std::string at = "why/path/" + std::to_string(i);
    const Seconds time{figures.number(run, at + "/time_s").value_or(0)};
    const std::string line = figures.string(run, at + "/line");
    table.rows.push_back(
        {escaped(figures.string(run, at + "/what")),
         stacked_bar({{time / whole, line, time_text(time, whole)}}, time_text(time, whole)),
         figures.cell(run, at + "/time_s", figures.times())});
  }
  return "<div><h4>" + letter(run) + escaped(figures.run(run).label) + "</h4>" +
         html::table(table) + "</div>\n";
}

std::string critical_paths(const ComparedFigures& figures) {
  std::string lists;
  for (std::size_t i = 0; i < figures.size(); ++i) lists += path_list(figures, i);
  if (lists.empty()) return "";
  return "<h3>The critical path</h3>\n<p class=\"quiet\">The chain of work and messages that the "
         "end of the iteration waited for; only what is on it makes the iteration longer. Its "
         "times add up to the iteration's. Below, the largest parts of each.</p>\n" +
         figures.table("Critical path by kind of work",
                       line_rows("why/path_by_line_s", figures.times()), true) +
         "<div class=\"side\">" + lists + "</div>\n";
}

/// The first screen: which run is faster by how much, all runs on one axis of time.
std::string compared_headline(const ComparedFigures& figures) {
  std::string kicker;
  for (std::size_t i = 0; i < figures.size(); ++i)
    kicker += (i == 0 ? "" : " · ") + letter_of(i) + " " + figures.run(i).label;
  return "<header class=\"hero compared\">\n<div>\n<p class=\"kicker\">" + escaped(kicker) +
         "</p>\n" + verdict_line(figures) + notes(figures) + runs_chart(figures) +
         "</div>\n</header>\n";
}

/// Two things side by side, unless there are so many runs that the tables need the width of the page.
std::string columns(const ComparedFigures& figures, const std::string& kind,
                    const std::string& left, const std::string& right) {
  constexpr std::size_t side_by_side = 3;
  return "<div class=\"columns " + (figures.size() > side_by_side ? "stacked" : kind) + "\"><div>" +
         left + "</div><div>" + right + "</div></div>\n";
}

/// The breakdowns with their differences, why they differ, and the critical paths.
std::string compared_time(const ComparedFigures& figures) {
  const std::string breakdown =
      "<p class=\"quiet\">Each instant of the GPUs that finish last belongs to one line; the lines "
      "add up to the iteration time.</p>\n" +
      figures.table("Where the time goes", line_rows("/breakdown_s", figures.times()), true);
  const std::string why = all_reasons(figures);
  return (why.empty() ? breakdown : columns(figures, "even-columns", breakdown, why)) +
         critical_paths(figures);
}

std::string compared_timelines(const ComparedFigures& figures) {
  std::string letters, shown;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    letters += (i == 0 ? "" : " ") + letter_of(i);
    if (!figures.run(i).details)
      shown += "<p class=\"quiet\">" + letter(i) + escaped(figures.run(i).label) +
               " is known by its report alone, which holds no timeline.</p>\n";
  }
  return "<p class=\"quiet\">Of each run the replica that ends last, one row a device and stream; "
         "all move together. Rest the pointer on something to read what it is.</p>\n" +
         shown + "<div id=\"timelines\" data-letters=\"" + letters +
         "\"><noscript><p>The timelines are drawn by a script.</p></noscript></div>\n";
}

std::string compared_scenarios(const ComparedFigures& figures) {
  std::string html;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const ComparedRun& run = figures.run(i);
    html += run.details ? "<details><summary>" + letter(i) + escaped(run.label) +
                              ": the whole scenario, with the origin of each value</summary>\n<pre "
                              "tabindex=\"0\">" +
                              escaped(run.details->scenario) + "</pre></details>\n"
                        : "<p>" + letter(i) + escaped(run.label) +
                              ": a report, which does not hold the scenario; its hash is <code>" +
                              escaped(run.figures.scenario_hash) + "</code>.</p>\n";
  }
  return html;
}

std::string compared_provenance(const ComparedFigures& figures) {
  std::string text;
  for (std::size_t i = 0; i < figures.size(); ++i)
    text += (i == 0 ? "" : " · ") + letter_of(i) + ": windtunnel " +
            escaped(figures.string(i, "/version")) + ", scenario " +
            escaped(figures.run(i).figures.scenario_hash);
  return text + " · <code>windtunnel compare --json</code> prints the same numbers";
}

constexpr std::array memory_parts{"weights", "gradients", "optimizer", "activations",
                                  "buffers", "cache",     "context"};

/// One stage's memory as pieces of a bar that is `whole` long, with what is free.
std::vector<Piece> memory_pieces(const JsonValue& stage, Bytes capacity, Bytes whole) {
  const auto bytes = [&](const char* key) { return Bytes{number_of(stage.find(key)).value_or(0)}; };
  std::vector<Piece> pieces;
  for (const std::string part : memory_parts) {
    const Bytes amount =
        part == "cache" ? bytes("reserved") - bytes("allocated") : bytes(part.c_str());
    if (amount > Bytes{0})
      pieces.push_back({amount / whole, "m-" + part, part + ": " + to_text(amount)});
  }
  if (const Bytes free = capacity - bytes("total"); free > Bytes{0})
    pieces.push_back({free / whole, "m-free", "free: " + to_text(free)});
  return pieces;
}

std::string memory_chart(const ComparedFigures& figures, std::size_t run, Bytes whole) {
  const JsonValue* const stages = figures.value(run, "/memory/per_stage");
  if (stages == nullptr || !stages->is_array()) return "";
  const Bytes capacity = figures.run(run).figures.memory_capacity;
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < stages->array().size(); ++i) {
    const std::string at = "/memory/per_stage/" + std::to_string(i) + "/total";
    const bool fits = Bytes{figures.number(run, at).value_or(0)} <= capacity;
    const std::string total = figures.cell(run, at, text_of_bytes);
    rows.push_back({"stage " + std::to_string(i),
                    stacked_bar(memory_pieces(stages->array()[i], capacity, whole),
                                "memory of stage " + std::to_string(i), capacity / whole),
                    fits ? total : element("strong", "class=\"bad\"", total)});
  }
  return "<div><h4>" + letter(run) + escaped(figures.run(run).label) + "</h4>" +
         chart("Memory of a GPU of each stage of " + letter_of(run), std::move(rows),
               axis(whole / 1_GiB, [](double gib) { return significant_text(gib, 4) + " GiB"; })) +
         "</div>\n";
}

std::string memory_charts(const ComparedFigures& figures) {
  const Bytes whole{
      std::max(figures.largest("/memory/capacity_bytes"), figures.largest("/memory/max_bytes"))};
  std::string charts, legend;
  for (std::size_t i = 0; i < figures.size(); ++i) charts += memory_chart(figures, i, whole);
  for (const std::string part : memory_parts)
    legend += "<span>" + swatch("m-" + part) + part + "</span> ";
  return "<h3>Memory of a GPU</h3>\n<p class=\"quiet\">What each GPU of a stage holds; the line is "
         "its capacity.</p>\n<p class=\"legend\">" +
         legend + "<span><i class=\"sw limit\"></i>capacity</span></p>\n<div class=\"side\">" +
         charts + "</div>\n";
}

std::string stage_chart(const ComparedFigures& figures, std::size_t run, Seconds whole) {
  const JsonValue* const stages = figures.value(run, "/stage_times_s");
  if (stages == nullptr || !stages->is_array()) return "";
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < stages->array().size(); ++i)
    rows.push_back(
        {"stage " + std::to_string(i),
         stacked_bar(pieces_of(&stages->array()[i], whole), "time of stage " + std::to_string(i)),
         figures.cell(run, "/stage_times_s/" + std::to_string(i) + "/end", figures.times())});
  return "<div><h4>" + letter(run) + escaped(figures.run(run).label) + "</h4>" +
         chart("Time of each stage of " + letter_of(run), std::move(rows), time_axis(whole)) +
         "</div>\n";
}

std::string stage_charts(const ComparedFigures& figures) {
  std::string charts;
  for (std::size_t i = 0; i < figures.size(); ++i)
    charts += stage_chart(figures, i, figures.longest_time());
  if (charts.empty()) return "";
  return "<h3>Time</h3>\n<p class=\"quiet\">The stages of the replica that ends last, all runs on "
         "one scale; behind each, when it ends.</p>\n" +
         line_legend(figures) + "<div class=\"side\">" + charts + "</div>\n";
}

std::string traffic_table(const ComparedFigures& figures) {
  std::vector<FigureRow> rows;
  for (const Traffic traffic : published_traffic) {
    const std::string name = name_of(traffic);
    rows.push_back(
        {escaped(with_spaces(name)), "/traffic_bytes/" + name, text_of_bytes, Change::relative});
    if (figures.largest("/messages/" + name + "/compressed") > 0) {
      rows.push_back({"<span class=\"part\">messages compressed</span>",
                      "/messages/" + name + "/compressed", grouped_text, Change::difference});
      rows.push_back({"<span class=\"part\">messages not compressed</span>",
                      "/messages/" + name + "/uncompressed", grouped_text, Change::difference});
    }
  }
  const std::string table = figures.table("Traffic by class", rows);
  if (table.empty()) return "";
  return "<h3>Traffic by class</h3>\n<p class=\"quiet\">Bytes that all GPUs send in one iteration, "
         "NVLink included; messages of one pipeline.</p>\n" +
         table;
}

std::string link_list(const ComparedFigures& figures, std::size_t run) {
  constexpr std::size_t most_rows = 6;
  const JsonValue* const links = figures.value(run, "/links/hottest");
  const std::string head = "<div><h4>" + letter(run) + escaped(figures.run(run).label) + "</h4>";
  if (links == nullptr || !links->is_array()) return "";
  if (links->array().empty())
    return head + "<p class=\"quiet\">Nothing crosses a shared link.</p></div>\n";
  Table table{"Hottest links of " + letter_of(run),
              {"link", "utilisation", "", "carried", "rate"},
              {},
              "llr",
              "bars"};
  for (std::size_t i = 0; i < std::min(most_rows, links->array().size()); ++i) {
    const std::string at = "/links/hottest/" + std::to_string(i) + "/";
    const double use = figures.number(run, at + "utilisation").value_or(0);
    table.rows.push_back(
        {escaped(figures.string(run, at + "name")),
         stacked_bar({{std::min(1.0, use), "link", percent_text(use)}}, percent_text(use)),
         figures.cell(run, at + "utilisation", percent_text),
         figures.cell(run, at + "bytes", text_of_bytes),
         figures.cell(run, at + "bandwidth_bytes_per_s",
                      [](double r) { return to_text(BytesPerSecond{r}); })});
  }
  return head + html::table(table) + "<p class=\"quiet\">Links that carried anything: " +
         figures.cell(run, "/links/in_use", grouped_text) + ", used " +
         figures.cell(run, "/links/mean_utilisation", percent_text) + " on average.</p></div>\n";
}

std::string link_lists(const ComparedFigures& figures) {
  std::string lists;
  for (std::size_t i = 0; i < figures.size(); ++i) lists += link_list(figures, i);
  if (lists.empty()) return "";
  return "<h3>Hottest links</h3>\n<p class=\"quiet\">Utilisation is what a link carried over what "
         "it could have carried in the iteration.</p>\n<div class=\"side\">" +
         lists + "</div>\n";
}

/// A break-even on a logarithmic axis of bandwidth: where the second run is the faster one, and where the network is now.
std::string break_even_picture(const BreakEven& found) {
  constexpr double lowest = 1.0 / 64, span = 4096;  // the factors that are searched: 1/64 to 64
  constexpr double percent = 100;
  const auto place = [&](double factor) {
    return std::clamp(std::log(factor / lowest) / std::log(span), 0.0, 1.0) * percent;
  };
  const auto text = [](double share) { return fixed_text(share, 2) + "%"; };
  const auto rect = [&](const char* kind, double from, double to) {
    return "<rect class=\"" + std::string(kind) + "\" x=\"" + text(from) + "\" width=\"" +
           text(to - from) + "\" y=\"0\" height=\"14\"/>";
  };
  std::string svg = "<svg class=\"axis even\" height=\"40\" aria-hidden=\"true\">";
  switch (found.outcome) {
    case BreakEven::Outcome::crosses:
      svg += rect(found.faster_below ? "faster" : "slower", 0, place(found.factor)) +
             rect(found.faster_below ? "slower" : "faster", place(found.factor), percent);
      break;
    case BreakEven::Outcome::always_faster:
      svg += rect("faster", 0, percent);
      break;
    case BreakEven::Outcome::always_slower:
      svg += rect("slower", 0, percent);
      break;
    case BreakEven::Outcome::always_equal:
      svg += rect("f-idle", 0, percent);
      break;
  }
  svg += "<line class=\"now\" x1=\"50%\" x2=\"50%\" y1=\"0\" y2=\"18\"/>";
  for (const double factor : {1.0 / 64, 1.0 / 8, 1.0, 8.0, 64.0})
    svg += "<text x=\"" + text(place(factor)) + "\" y=\"32\" text-anchor=\"" +
           (factor == 1.0 / 64 ? "start"
            : factor == 64.0   ? "end"
                               : "middle") +
           "\">" + escaped(to_text(found.bandwidth_now * factor)) + (factor == 1.0 ? " now" : "") +
           "</text>";
  return svg + "</svg>";
}

std::string break_even_list(const Comparison& comparison) {
  std::string html;
  for (std::size_t i = 0; i < comparison.break_evens.size(); ++i) {
    const BreakEven& found = comparison.break_evens[i];
    const std::string exact =
        found.outcome == BreakEven::Outcome::crosses
            ? " Equal at " +
                  number("/break_even/" + std::to_string(i) + "/bandwidth_bytes_per_s",
                         to_text(found.bandwidth)) +
                  "."
            : "";
    html += "<li><b>" + escaped(found.what) + "</b>, " + escaped(detail::meaning_of(found.part)) +
            ": " + escaped(detail::verdict_of(found)) + "." + exact + break_even_picture(found) +
            "</li>\n";
  }
  if (html.empty()) return "";
  return "<p class=\"quiet\">The bandwidth of the network is multiplied by 1/64 to 64 and both "
         "runs "
         "are simulated again, until their times cross. Green: faster than what it is compared "
         "with; red: slower.</p>\n<ul class=\"evens\">\n" +
         html + "</ul>\n";
}

std::string codec_list(const Comparison& comparison) {
  std::string html;
  for (const CodecBreakEven& codec : comparison.codecs)
    html +=
        "<li class=\"" + std::string(codec.slows_job() ? "bad" : "") + "\">" + letter(codec.run) +
        escaped(with_spaces(name_of(codec.traffic)) + ": " + detail::effect_of(codec)) + "</li>\n";
  if (html.empty()) return "";
  return "<h3>What compressing does to the job</h3>\n<p class=\"quiet\">Simulated without each "
         "codec. A transfer alone gains while its codec takes less time than the bytes it saves; "
         "in "
         "a job it may have been hidden.</p>\n<ul class=\"evens\">\n" +
         html + "</ul>\n";
}

/// An input of a prediction in every run that has it.
struct SharedInput {
  std::string what, source, note;
  std::vector<std::string> values;  ///< by run; empty where a run does not have it
};

std::vector<SharedInput> inputs_of(const ComparedFigures& figures) {
  std::vector<SharedInput> inputs;
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const JsonValue* const list = figures.value(i, "/assumptions");
    for (std::size_t k = 0; list != nullptr && list->is_array() && k < list->array().size(); ++k) {
      const std::string at = "/assumptions/" + std::to_string(k) + "/";
      const std::string what = figures.string(i, at + "what"),
                        source = figures.string(i, at + "source"),
                        note = figures.string(i, at + "note");
      const auto [place, is_new] =
          places.try_emplace(what + '\n' + source + '\n' + note, inputs.size());
      if (is_new) inputs.push_back({what, source, note, std::vector<std::string>(figures.size())});
      inputs[place->second].values[i] = figures.string(i, at + "value");
    }
  }
  return inputs;
}

bool is_common(const SharedInput& input) {
  return std::all_of(input.values.begin(), input.values.end(),
                     [&](const std::string& value) { return value == input.values.front(); });
}

std::string badge(const std::string& source) {
  return element("span", "class=\"badge e-" + escaped(source) + "\"", escaped(source));
}

std::string input_table(const ComparedFigures& figures, const std::vector<SharedInput>& inputs,
                        bool common) {
  Table table{common ? "Inputs of all runs" : "Inputs of some runs, or with other values",
              {"input"},
              {},
              "l",
              common ? "inputs" : "inputs wide"};
  if (common)
    table.head.emplace_back("value");
  else
    for (std::size_t i = 0; i < figures.size(); ++i) table.head.push_back(letter(i));
  table.head.insert(table.head.end(), {"source", "note"});
  for (const SharedInput& input : inputs) {
    if (is_common(input) != common) continue;
    std::vector<std::string> row{escaped(input.what)};
    for (std::size_t i = 0; i < (common ? 1 : figures.size()); ++i)
      row.push_back(input.values[i].empty() ? "–" : element("code", "", escaped(input.values[i])));
    row.insert(row.end(), {badge(input.source), escaped(input.note)});
    table.rows.push_back(std::move(row));
  }
  return table.rows.empty() ? "" : html::table(table);
}

std::string compared_inputs(const ComparedFigures& figures) {
  const std::vector<SharedInput> inputs = inputs_of(figures);
  const std::string different = input_table(figures, inputs, false),
                    common = input_table(figures, inputs, true);
  const auto num_common = std::count_if(inputs.begin(), inputs.end(), is_common);
  std::string html;
  if (!different.empty()) html += "<h3>Numbers that not all runs share</h3>\n" + different;
  if (!common.empty())
    html += "<details><summary>" + std::to_string(num_common) +
            " numbers that all runs rest on, with their sources</summary>\n" + common +
            "</details>\n";
  return html;
}

}  // namespace
}  // namespace html

namespace {

std::string title_of(const Comparison& comparison) {
  const std::string title = joined(comparison.runs, " against ", std::mem_fn(&ComparedRun::label));
  constexpr std::size_t longest = 90;
  return title.size() <= longest ? title
                                 : std::to_string(comparison.runs.size()) + " runs against " +
                                       comparison.runs.front().label;
}

/// A list with a null for each run that has no details.
std::string why_json(const Comparison& comparison) {
  return canonical_text(array_of(comparison.runs, [](const ComparedRun& run) {
    return run.details ? run.details->why : JsonValue();
  }));
}

/// Why a played iteration takes as long as it does:
///   {"path": [{"what": "compute of stage 5", "line": "compute", "time_s": 1.2, "steps": 24}, …],
///    "path_by_line_s": {"compute": 10.2, …}, "reasons": {"compute": "24 microbatches pass …", …}}
/// The times of `path` add up to the iteration's, the largest first.
JsonValue why_value(const PlayedIteration& played, const CriticalPath& path, const Report& report) {
  const std::vector<PathShare> shares =
      path_shares(*played.plan, *played.programs, *played.timeline, path);
  const auto step = [](const PathShare& share) {
    return object_of({{"what", share.what},
                      {"line", name_of(share.line)},
                      {"time_s", share.time},
                      {"steps", share.steps}});
  };
  return object_of({{"path", array_of(shares, step)},
                    {"path_by_line_s", breakdown_value(lines_of_path(shares))},
                    {"reasons", reasons_value(report)}});
}

}  // namespace

RunDetails run_details(const std::string& scenario, const PlayedIteration& played,
                       const Report& report) {
  const CriticalPath path = find_critical_path(*played.programs, *played.timeline);
  return {scenario, timeline_json(played, devices_of_last_replica(played), path),
          why_value(played, path, report)};
}

std::string compare_page(const Comparison& comparison) {
  WT_EXPECT(!comparison.runs.empty());
  const html::ComparedFigures figures(comparison);
  HtmlPage page{"compare", title_of(comparison), html::compared_headline(figures)};
  page.add("numbers", "", "In numbers",
           html::columns(figures, "numbers", "\n" + html::headline_table(figures),
                         "\n<h3>What was changed</h3>\n" + html::difference_table(figures) +
                             html::job_list(figures)));
  page.add("time", "Time", "Where the time goes", html::compared_time(figures));
  page.add("timeline", "Timeline", "Timelines on one axis", html::compared_timelines(figures));
  page.add("stages", "Stages", "Stages",
           html::stage_charts(figures) + html::memory_charts(figures));
  page.add("network", "Network", "Network",
           html::traffic_table(figures) + html::link_lists(figures));
  page.add("break-even", "Break-even", "Break-even bandwidths",
           html::break_even_list(comparison) + html::codec_list(comparison));
  page.add("inputs", "Inputs", "Inputs and their sources", html::compared_inputs(figures));
  page.add("scenarios", "Scenarios", "Scenarios", html::compared_scenarios(figures));
  page.data = {{"report", without_wall_time(comparison_json(comparison))},
               {"why", why_json(comparison)}};
  for (std::size_t i = 0; i < comparison.runs.size(); ++i)
    if (comparison.runs[i].details)
      page.data.push_back({"timeline-" + std::to_string(i), comparison.runs[i].details->timeline});
  page.footer = html::compared_provenance(figures);
  return html_document(page);
}

}  // namespace windtunnel
