#include "report/compare_sections.hpp"

#include <algorithm>
#include <cmath>

#include "report/compare_bars.hpp"
#include "report/comparison_words.hpp"
#include "report/figures.hpp"
#include "report/number_text.hpp"
#include "report/terminal_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel::html {
namespace {

using detail::letter_of;
using detail::time_text;
using detail::with_spaces;

/// All runs on one axis of time.
std::string runs_chart(const ComparedFigures& figures) {
  const Seconds whole = longest_time(figures);
  std::vector<std::vector<std::string>> rows;
  for (std::size_t i = 0; i < figures.size(); ++i)
    rows.push_back(
        {letter(i) + "<span class=\"name\">" + escaped(figures.run(i).label) + "</span>",
         stacked_bar(pieces_of(figures.value(i, "/breakdown_s"), whole),
                     "where the time of " + letter_of(i) + " goes"),
         "<b>" +
             figures.cell(i, {"", time_pointer, [](double t) { return to_text(Seconds{t}); }, {}}) +
             "</b>"});
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
  const auto time = [](double t) { return to_text(Seconds{t}); };
  const auto bytes = [](double b) { return to_text(Bytes{b}); };
  std::vector<FigureRow> rows{{"iteration time", time_pointer, time, Change::relative},
                              {"90 % interval from", "/iteration_time_interval_s/0", time, {}},
                              {"to", "/iteration_time_interval_s/1", time, {}}};
  for (const Figure& figure : windtunnel::figures())
    rows.push_back({figure.name, "/" + figure.key, figure.text,
                    figure.is_share ? Change::difference : Change::relative});
  rows.push_back({"GPUs", "/job/gpus", grouped_text, Change::relative});
  rows.push_back({"memory of the fullest GPU", "/memory/max_bytes", bytes, Change::relative});
  rows.push_back({"its capacity", "/memory/capacity_bytes", bytes, {}});
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
    return string_at(figures, run, "/job/" + std::string(key));
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
  for (int i = 0; i < num_lines; ++i) {
    const auto line = static_cast<Line>(i);
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
  const std::string text =
      string_at(figures, run, "/reasons/" + std::string(name_of(line)), FigureSource::why);
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
             ": " + figures.change(run, {"", at, times_of(figures), Change::difference}) + "</b>" +
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
  for (int i = 0; i < num_lines; ++i) {
    const std::string name = name_of(static_cast<Line>(i));
    rows.push_back({swatch(name) + escaped(with_spaces(name)), pointer + "/" + name, text,
                    Change::difference});
  }
  return rows;
}

/// The largest parts of a run's critical path.
std::string path_list(const ComparedFigures& figures, std::size_t run) {
  constexpr std::size_t most_rows = 8;
  const JsonValue* const path = figures.value(run, "/path", FigureSource::why);
  if (path == nullptr || !path->is_array()) return "";
  const Seconds whole = longest_time(figures);
  Table table{
      "The critical path of " + letter_of(run), {"what", "", "time"}, {}, "llr", "bars path"};
  for (std::size_t i = 0; i < std::min(most_rows, path->array().size()); ++i) {
    const std::string at = "/path/" + std::to_string(i);
    const Seconds time{figures.number(run, at + "/time_s", FigureSource::why).value_or(0)};
    const std::string line = string_at(figures, run, at + "/line", FigureSource::why);
    table.rows.push_back(
        {escaped(string_at(figures, run, at + "/what", FigureSource::why)),
         stacked_bar({{time / whole, line, time_text(time, whole)}}, time_text(time, whole)),
         figures.cell(run, {"", at + "/time_s", times_of(figures), {}}, FigureSource::why)});
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
                       line_rows("/path_by_line_s", times_of(figures)), true, FigureSource::why) +
         "<div class=\"side\">" + lists + "</div>\n";
}

/// The table of more runs needs the width of the page.
constexpr std::size_t side_by_side = 3;

}  // namespace

std::string compared_headline(const ComparedFigures& figures) {
  std::string kicker;
  for (std::size_t i = 0; i < figures.size(); ++i)
    kicker += (i == 0 ? "" : " · ") + letter_of(i) + " " + figures.run(i).label;
  const std::string columns = figures.size() > side_by_side ? "columns stacked" : "columns numbers";
  return "<header class=\"hero compared\">\n<div>\n<p class=\"kicker\">" + escaped(kicker) +
         "</p>\n" + verdict_line(figures) + notes(figures) + runs_chart(figures) +
         "</div>\n</header>\n" +
         section({"numbers", "In numbers",
                  "<div class=\"" + columns + "\"><div>\n" + headline_table(figures) +
                      "</div><div>\n<h3>What was changed</h3>\n" + difference_table(figures) +
                      job_list(figures) + "</div></div>\n"});
}

std::string compared_time(const ComparedFigures& figures) {
  const std::string breakdown =
      "<p class=\"quiet\">Each instant of the GPUs that finish last belongs to one line; the lines "
      "add up to the iteration time.</p>\n" +
      figures.table("Where the time goes", line_rows("/breakdown_s", times_of(figures)), true);
  const std::string why = all_reasons(figures);
  return section(
      {"time", "Where the time goes",
       (why.empty() ? breakdown
                    : "<div class=\"columns " +
                          std::string(figures.size() > side_by_side ? "stacked" : "even-columns") +
                          "\"><div>" + breakdown + "</div><div>" + why + "</div></div>\n") +
           critical_paths(figures)});
}

std::string compared_timelines(const ComparedFigures& figures) {
  std::string letters, shown;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    letters += (i == 0 ? "" : " ") + letter_of(i);
    if (!figures.run(i).details)
      shown += "<p class=\"quiet\">" + letter(i) + escaped(figures.run(i).label) +
               " is known by its report alone, which holds no timeline.</p>\n";
  }
  return section(
      {"timeline", "Timelines on one axis",
       "<p class=\"quiet\">Of each run the replica that ends last, one row a device and stream; "
       "all move together. Rest the pointer on something to read what it is.</p>\n" +
           shown + "<div id=\"timelines\" data-letters=\"" + letters +
           "\"><noscript><p>The timelines are drawn by a script.</p></noscript></div>\n"});
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
  return section({"scenarios", "Scenarios", html});
}

std::string compared_provenance(const ComparedFigures& figures) {
  std::string text;
  for (std::size_t i = 0; i < figures.size(); ++i)
    text += (i == 0 ? "" : " · ") + letter_of(i) + ": windtunnel " +
            escaped(string_at(figures, i, "/version")) + ", scenario " +
            escaped(figures.run(i).figures.scenario_hash);
  return text + " · <code>windtunnel compare --json</code> prints the same numbers";
}

}  // namespace windtunnel::html
