#include "sweep/sweep_page.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "core/json_number.hpp"
#include "report/html_page.hpp"
#include "report/html_text.hpp"
#include "report/number_text.hpp"
#include "report/terminal_text.hpp"
#include "scenario/resolved_text.hpp"
#include "sweep/explained_points.hpp"
#include "sweep/plot_data.hpp"
#include "sweep/sweep_svg.hpp"
#include "sweep/sweep_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

using detail::spoken;
using detail::time_text;
using html::card;
using html::element;
using html::escaped;
using html::number;
using html::of_data;
using html::section;

double figure(const JsonValue& row, const char* key) {
  return number_of(row.find(key)).value_or(0);
}

std::string text_at(const JsonValue& object, const std::string& key) {
  const JsonValue* value = object.find(key);
  if (value == nullptr) return "";
  return value->is_string() ? value->string() : canonical_text(*value);
}

bool fits(const Row& row) {
  const JsonValue* value = row.content.find("fits");
  return value != nullptr && value->is_bool() && std::get<bool>(value->content);
}

std::string whole(std::size_t count) { return grouped_text(static_cast<double>(count)); }

/// A column of figures in the table: how the number is printed.
struct FigureColumn {
  const char *key, *title;
  double scale;
  int digits;
  const char* unit;
  const char* first;  ///< how the first click sorts
};

/// What a page says of a sweep, the rows in the order in which it ranks them.
class SweepPage {
 public:
  SweepPage(const Sweep& sweep, const PartRows& rows, const SweepPageOptions& options)
      : sweep_(sweep), rows_(rows), options_(options) {
    rank_rows();
    data_ = plot_data(rows, sweep.points().columns());
    explained_ = explain_points(sweep, points_to_explain(), options.limits);
  }

  std::string html() const {
    HtmlPage page;
    page.kind = "sweep";
    page.title = sweep_.name();
    page.body = headline() + curves() + time_section() + point_section() + failure_section() +
                input_section() + scenario_section();
    page.places = {{"curves", "Curves"}};
    if (!explained_.empty()) page.places.push_back({"time", "Time"});
    page.places.push_back({"points", "Points"});
    if (num_failed_ > 0) page.places.push_back({"failed", "Failed"});
    page.places.push_back({"inputs", "Inputs"});
    page.places.push_back({"scenario", "Scenario"});
    page.data = {{"report", sweep_json(sweep_, rows_, options_.directory)},
                 {"sweep-points", points_json_text()},
                 {"explained", explained_json()}};
    page.footer = escaped(options_.version) + " · sweep " + escaped(sweep_.hash()) +
                  " · the same numbers: <code>windtunnel sweep --json</code> and " +
                  escaped((options_.directory / "results.jsonl").string());
    return html_document(page);
  }

 private:
  /// What fits before what does not, that before what failed; among these the most tokens a second first.
  void rank_rows() {
    for (const auto& [point, entry] : rows_.by_point)
      if (std::optional<Row> row = parse_row(entry.row)) {
        if (!row->ok) ++num_failed_;
        if (row->ok && fits(*row)) ++num_fitting_;
        ranked_.push_back(std::move(*row));
      }
    const auto key = [](const Row& row) {
      return std::tuple(!row.ok, row.ok && !fits(row), -figure(row.content, "tokens_per_s"));
    };
    std::stable_sort(ranked_.begin(), ranked_.end(),
                     [&](const Row& a, const Row& b) { return key(a) < key(b); });
    if (ranked_.size() > most_page_rows) ranked_.resize(most_page_rows);
  }

  /// The fastest at each place of the axis, at most ten, and the best of all.
  std::vector<std::size_t> points_to_explain() const {
    constexpr std::size_t most = 10;
    std::vector<std::size_t> points;
    if (data_) {
      const std::vector<PlotPoint> fastest = fastest_points(*data_);
      const std::size_t count = std::min(most, fastest.size());
      for (std::size_t i = 0; i < count; ++i)
        points.push_back(fastest[count == 1 ? 0 : i * (fastest.size() - 1) / (count - 1)].point);
    } else if (!ranked_.empty() && ranked_.front().ok) {
      points.push_back(ranked_.front().point);
    }
    if (has_best() && std::find(points.begin(), points.end(), best().point) == points.end())
      points.push_back(best().point);
    return points;
  }

  bool has_best() const { return num_fitting_ > 0; }
  const Row& best() const { return ranked_.front(); }

  /// "/nodes 512 · /training/micro_batch 1"
  std::string values_of(const JsonValue& row) const {
    std::string text;
    for (const std::string& column : sweep_.points().columns())
      if (row.find(column) != nullptr)
        text += (text.empty() ? "" : " · ") + column + " " + text_at(row, column);
    return text;
  }

  static std::string point_number(std::size_t place, const char* key, const std::string& text,
                                  const char* unit = "") {
    return of_data("sweep-points", number("/" + std::to_string(place) + "/" + key, text, unit));
  }

  std::string best_headline() const {
    if (!has_best())
      return std::string("<h1><span class=\"big\">No point</span> ") +
             (ranked_.empty() || !ranked_.front().ok ? "could be simulated" : "fits in memory") +
             "</h1>\n";
    const JsonValue& row = best().content;
    return "<h1><span class=\"big\">" +
           point_number(0, "tokens_per_s", grouped_text(figure(row, "tokens_per_s"))) +
           "</span> tokens/s at best</h1>\n<p class=\"job best-values\">Best point, " +
           std::to_string(best().point) + ": " + escaped(values_of(row)) +
           "</p>\n<p class=\"job\">" +
           point_number(0, "iteration_time_s", to_text(Seconds{figure(row, "iteration_time_s")})) +
           " per iteration on " + point_number(0, "gpus", grouped_text(figure(row, "gpus"))) +
           " GPUs, MFU " + point_number(0, "mfu", percent_text(figure(row, "mfu"))) + ", " +
           point_number(0, "memory_max_bytes", to_text(Bytes{figure(row, "memory_max_bytes")})) +
           " of memory on the fullest GPU.</p>\n";
  }

  std::string warning(const std::string& kind, const std::string& text) const {
    return "<p class=\"verdict " + kind + "\">" + escaped(text) + "</p>\n";
  }

  /// How throughput grows from the smallest cluster to the largest while nothing else changes.
  std::string scaling_text() const {
    const std::optional<Scaling> scaling = data_ ? scaling_of(*data_) : std::nullopt;
    if (!scaling) return "";
    const PlotPoint &first = *scaling->smallest, &last = *scaling->largest;
    const double growth = last.tokens_per_s / first.tokens_per_s, ideal = last.x / first.x;
    const std::string& name = scaling->series->name;
    return "<p class=\"job\">" + (name.empty() ? "" : "With " + escaped(name) + ", from ") +
           (name.empty() ? "From " : "") + grouped_text(first.x) + " to " + grouped_text(last.x) +
           " GPUs, " + significant_text(ideal, 3) + " times as many, training is " +
           significant_text(growth, 3) + " times as fast: a scaling efficiency of " +
           escaped(percent_text(growth / ideal)) +
           (data_->batch_grows ? ", with a batch that grows alike" : "") + ".</p>\n";
  }

  std::string headline() const {
    const std::size_t total = sweep_.points().size(), left = total - rows_.by_point.size();
    const std::size_t ok = rows_.by_point.size() - num_failed_;
    std::string html = "<header class=\"hero\">\n<div>\n<p class=\"kicker\">" +
                       escaped(sweep_.name()) + "</p>\n" + best_headline() + scaling_text();
    if (left > 0)
      html += warning("doubtful", whole(left) + " of " + whole(total) + " points are left to do");
    if (num_failed_ > 0)
      html += warning("bad", whole(num_failed_) + " of " + whole(total) +
                                 " points could not be simulated; the reasons stand below");
    if (const std::string same = same_text(sweep_, rows_); !same.empty())
      html += warning("doubtful", same);
    if (const std::string same = same_text(sweep_, rows_); !same.empty())
      html += warning("doubtful", same);
    html += "</div>\n<div class=\"cards\">\n" +
            card("points", number("/points", whole(total)), "of the sweep") +
            card("simulated", number("/ok", whole(ok)), "") +
            card("failed", number("/failed", whole(num_failed_)), "each with its reason") +
            card("too large", number("/does_not_fit", whole(ok - num_fitting_)),
                 "do not fit in memory");
    html += extreme("mfu", "best MFU", -1, [](double v) { return percent_text(v); });
    html += extreme("iteration_time_s", "shortest iteration", 1,
                    [](double v) { return to_text(Seconds{v}); });
    return html + "</div>\n</header>\n";
  }

  /// A card of the fitting point whose figure is the smallest, or with a negative sign the largest.
  std::string extreme(const char* key, const char* label, double sign,
                      const std::function<std::string(double)>& text) const {
    std::size_t found = ranked_.size();
    for (std::size_t i = 0; i < ranked_.size() && ranked_[i].ok && fits(ranked_[i]); ++i)
      if (found == ranked_.size() ||
          sign * figure(ranked_[i].content, key) < sign * figure(ranked_[found].content, key))
        found = i;
    if (found == ranked_.size()) return "";
    return card(label, point_number(found, key, text(figure(ranked_[found].content, key))),
                escaped("point " + std::to_string(ranked_[found].point)));
  }

  std::string curves() const {
    if (!data_)
      return section({"curves", "Curves",
                      "<p>A curve needs two simulated points that differ; here there are none to "
                      "draw.</p>\n"});
    std::string keys, pictures;
    for (const CurveKey& key : curve_keys(*data_))
      keys += "<span><svg class=\"curves\" viewBox=\"0 -6 30 12\" aria-hidden=\"true\">" +
              key.sample + "</svg>" + escaped(key.name) + "</span> ";
    for (const std::string& picture : sweep_pictures(*data_)) pictures += picture;
    return section({"curves", "Curves",
                    "<p class=\"keys\">" + keys + "</p>\n<div class=\"plots\">\n" + pictures +
                        "</div>\n" + curve_note()});
  }

  std::string curve_note() const {
    std::string text;
    if (!data_->others.empty())
      text += "There are more than " + std::to_string(most_series) +
              " lines' worth of other values: the " + std::to_string(most_series) +
              " with the fastest points are drawn, the others' points are dots. ";
    if (data_->categories.empty())
      text += "A line joins points that differ in " +
              std::string(data_->x_counts_gpus ? "the size of the job" : "what the axis shows") +
              " alone. ";
    if (scaling_of(*data_))
      text += "The dotted line is what the throughput per GPU of its smallest cluster would give. ";
    return text.empty() ? "" : "<p class=\"quiet\">" + escaped(text) + "</p>\n";
  }

  const Row* row_of(std::size_t point) const {
    const auto found = std::find_if(ranked_.begin(), ranked_.end(),
                                    [&](const Row& row) { return row.point == point; });
    return found == ranked_.end() ? nullptr : &*found;
  }

  /// "512 GPUs, micro_batch 2"
  std::string label_of(const ExplainedPoint& explained) const {
    const Row* row = row_of(explained.point);
    if (row == nullptr) return "point " + std::to_string(explained.point);
    const bool by_gpus = data_ && data_->x_counts_gpus;
    std::string text = by_gpus ? grouped_text(figure(row->content, "gpus")) + " GPUs" : "";
    for (const std::string& column : sweep_.points().columns())
      if (row->content.find(column) != nullptr && !(by_gpus && column == "/nodes"))
        text += (text.empty() ? "" : ", ") + column.substr(column.rfind('/') + 1) + " " +
                text_at(row->content, column);
    return text;
  }

  std::string breakdown_chart() const {
    std::vector<std::vector<std::string>> rows;
    for (std::size_t i = 0; i < explained_.size(); ++i) {
      const JsonValue& report = explained_[i].report;
      const Seconds time{figure(report, "iteration_time_s")};
      std::vector<html::Piece> pieces;
      for (int k = 0; k < num_lines; ++k) {
        const std::string line = name_of(static_cast<Line>(k));
        const Seconds part{number_of(find_at(report, "/breakdown_s/" + line)).value_or(0)};
        if (part > 0_s)
          pieces.push_back(
              {part / time, line,
               spoken(line) + ": " + time_text(part, time) + ", " + percent_text(part / time)});
      }
      rows.push_back(
          {"<span class=\"name\" title=\"" + escaped(values_of_point(explained_[i].point)) + "\">" +
               escaped(label_of(explained_[i])) + "</span>",
           html::stacked_bar(
               pieces, "where the time of point " + std::to_string(explained_[i].point) + " goes"),
           of_data("explained",
                   number("/" + std::to_string(i) + "/iteration_time_s", to_text(time)))});
    }
    rows.push_back(
        {"", html::axis(100, [](double share) { return fixed_text(share, 0) + " %"; }), ""});
    return html::table(
        {"Where the time goes, by point", {"", "", ""}, std::move(rows), 2, "chart"});
  }

  std::string values_of_point(std::size_t point) const {
    const Row* row = row_of(point);
    return row == nullptr ? "" : values_of(row->content);
  }

  /// What makes the lines of the best point so long.
  std::string best_reasons() const {
    if (!has_best()) return "";
    const auto found =
        std::find_if(explained_.begin(), explained_.end(),
                     [&](const ExplainedPoint& each) { return each.point == best().point; });
    if (found == explained_.end()) return "";
    const std::string at = "/" + std::to_string(found - explained_.begin()) + "/breakdown_s/";
    const Seconds time{figure(found->report, "iteration_time_s")};
    std::vector<std::pair<Seconds, std::string>> lines;
    for (const JsonValue::Member& reason : found->reasons.object())
      lines.emplace_back(
          number_of(find_at(found->report, "/breakdown_s/" + reason.key)).value_or(0) * 1_s,
          reason.key);
    std::stable_sort(lines.begin(), lines.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::string items;
    for (const auto& [part, line] : lines)
      items += "<li><b>" + html::swatch(line) + escaped(spoken(line)) + ": " +
               of_data("explained", number(at + line, time_text(part, time))) + ", " +
               escaped(percent_text(part / time)) + "</b><p>" +
               escaped(text_at(found->reasons, line)) + "</p></li>\n";
    return "<h3>Why does the best point take this long?</h3>\n<ol class=\"why\">\n" + items +
           "</ol>\n";
  }

  std::string time_section() const {
    if (explained_.empty()) return "";
    std::string legend;
    for (int i = 0; i < num_lines; ++i) {
      const std::string line = name_of(static_cast<Line>(i));
      const bool is_there =
          std::any_of(explained_.begin(), explained_.end(), [&](const ExplainedPoint& each) {
            return number_of(find_at(each.report, "/breakdown_s/" + line)).value_or(0) > 0;
          });
      if (is_there) legend += "<span>" + html::swatch(line) + escaped(spoken(line)) + "</span> ";
    }
    return section({"time", "Where the time goes",
                    "<p class=\"quiet\">Shares of each iteration, on the GPUs that finish last; "
                    "behind each bar the iteration time." +
                        std::string(data_ ? " Along the axis of the curves, the fastest point "
                                            "that fits at each place."
                                          : "") +
                        "</p>\n<p class=\"legend\">" + legend + "</p>\n" + breakdown_chart() +
                        best_reasons()});
  }

  /// The unit that suits the longest iteration.
  FigureColumn time_column() const {
    double longest = 0;
    for (const Row& row : ranked_)
      longest = std::max(longest, figure(row.content, "iteration_time_s"));
    constexpr double ms = 1e-3, us = 1e-6;
    if (longest >= 1 || longest == 0)
      return {"iteration_time_s", "s/iteration", 1, 3, "s", "ascending"};
    if (longest >= ms) return {"iteration_time_s", "ms/iteration", ms, 3, "ms", "ascending"};
    return {"iteration_time_s", "us/iteration", us, 3, "us", "ascending"};
  }

  std::vector<FigureColumn> figure_columns() const {
    constexpr double percent = 0.01, gib = 1073741824;
    return {{"gpus", "GPUs", 1, 0, "", "ascending"},
            time_column(),
            {"tokens_per_s", "tokens/s", 1, 0, "", "descending"},
            {"model_tflops_per_gpu", "TFLOP/s per GPU", 1, 1, "", "descending"},
            {"mfu", "MFU, %", percent, 1, "%", "descending"},
            {"memory_max_bytes", "memory, GiB", gib, 1, "GiB", "ascending"}};
  }

  std::string table_head(const std::vector<FigureColumn>& figures) const {
    std::string html =
        "<th data-key=\"point\" data-scale=\"1\" data-digits=\"0\" data-unit=\"\" "
        "class=\"n\">point</th>";
    for (const std::string& column : sweep_.points().columns())
      html += "<th data-key=\"" + escaped(column) + "\">" + escaped(column) + "</th>";
    for (const FigureColumn& each : figures)
      html += "<th class=\"n\" data-key=\"" + std::string(each.key) + "\" data-scale=\"" +
              significant_text(each.scale, 17) + "\" data-digits=\"" + std::to_string(each.digits) +
              "\" data-unit=\"" + each.unit + "\" data-first=\"" + each.first + "\">" +
              escaped(each.title) + "</th>";
    html += "<th data-key=\"fits\">fits</th>";
    if (num_failed_ > 0) html += "<th data-key=\"error\">error</th>";
    return html;
  }

  std::string table_row(std::size_t place, const std::vector<FigureColumn>& figures) const {
    const Row& row = ranked_[place];
    const JsonValue& content = row.content;
    std::string html = row.ok && !fits(row) ? "<tr class=\"large\">" : "<tr>";
    html += "<td class=\"n\">" + point_number(place, "point", whole(row.point)) + "</td>";
    for (const std::string& column : sweep_.points().columns())
      html += element("td", "", escaped(text_at(content, column)));
    for (const FigureColumn& each : figures) {
      const std::optional<double> value = number_of(content.find(each.key));
      const std::string text = !value             ? ""
                               : each.digits == 0 ? grouped_text(*value / each.scale)
                                                  : fixed_text(*value / each.scale, each.digits);
      html +=
          element("td", "class=\"n\"", value ? point_number(place, each.key, text, each.unit) : "");
    }
    html += element("td", "",
                    !row.ok     ? ""
                    : fits(row) ? "yes"
                                : "<strong class=\"bad\">NO</strong>");
    if (num_failed_ > 0)
      html += element("td", "class=\"error-text\"", escaped(text_at(content, "error")));
    return html + "</tr>\n";
  }

  std::string point_section() const {
    if (ranked_.empty())
      return section({"points", "Points", "<p>No point has been done yet.</p>\n"});
    const std::vector<FigureColumn> figures = figure_columns();
    std::string body;
    for (std::size_t i = 0; i < std::min(first_page_rows, ranked_.size()); ++i)
      body += table_row(i, figures);
    std::string note =
        "The most tokens a second first; what does not fit in memory, then what failed, last.";
    if (rows_.by_point.size() > ranked_.size())
      note += " Of " + whole(rows_.by_point.size()) + " points these are the first " +
              whole(ranked_.size()) + "; results.csv has all.";
    return section(
        {"points", "Points",
         "<p class=\"quiet\">" + escaped(note) +
             "</p>\n<p class=\"quiet sort-hint\" hidden>Press a column's head to sort by it.</p>\n"
             "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"Points\"><table "
             "class=\"points-table\" data-shown=\"" +
             std::to_string(first_page_rows) + "\">\n<thead><tr>" + table_head(figures) +
             "</tr></thead>\n<tbody>\n" + body + "</tbody></table></div>\n"});
  }

  /// Failed points with the same reason together, the commonest first.
  std::string failure_section() const {
    if (num_failed_ == 0) return "";
    struct Group {
      std::string kind, error;
      std::vector<const Row*> rows;
    };
    std::map<std::pair<std::string, std::string>, Group> by_reason;
    for (const Row& row : ranked_) {
      if (row.ok) continue;
      const std::string kind = text_at(row.content, "failure"),
                        error = text_at(row.content, "error");
      Group& group = by_reason[{kind, error}];
      group.kind = kind;
      group.error = error;
      group.rows.push_back(&row);
    }
    std::vector<Group> groups;
    for (auto& [reason, group] : by_reason) groups.push_back(std::move(group));
    std::stable_sort(groups.begin(), groups.end(),
                     [](const Group& a, const Group& b) { return a.rows.size() > b.rows.size(); });
    constexpr std::size_t most_groups = 50, most_named = 3;
    html::Table table{"Failed points", {"kind", "reason", "points", "such as"}, {}, 4, "failures"};
    for (std::size_t i = 0; i < std::min(most_groups, groups.size()); ++i) {
      std::string named;
      for (std::size_t k = 0; k < std::min(most_named, groups[i].rows.size()); ++k)
        named +=
            (k == 0 ? "" : "<br>") + escaped("point " + std::to_string(groups[i].rows[k]->point) +
                                             ": " + values_of(groups[i].rows[k]->content));
      table.rows.push_back({escaped(spoken(groups[i].kind)), escaped(groups[i].error),
                            whole(groups[i].rows.size()), named});
    }
    const std::string rest = groups.size() > most_groups
                                 ? "<p class=\"quiet\">" + whole(groups.size() - most_groups) +
                                       " more reasons stand in results.csv.</p>\n"
                                 : "";
    return section({"failed", "Points that failed", html::table(table) + rest});
  }

  /// What the explained points rest on, by name; with the values of those that differ.
  std::string input_section() const {
    struct Input {
      std::string source, note;
      std::set<std::string> values;
      std::size_t points = 0;
    };
    std::vector<std::string> order;
    std::map<std::string, Input> inputs;
    for (const ExplainedPoint& explained : explained_) {
      const JsonValue* list = explained.report.find("assumptions");
      if (list == nullptr) continue;
      for (const JsonValue& each : list->array()) {
        const std::string what = text_at(each, "what");
        const auto [place, is_new] = inputs.try_emplace(what);
        if (is_new) order.push_back(what);
        place->second.source = text_at(each, "source");
        place->second.note = text_at(each, "note");
        place->second.values.insert(text_at(each, "value"));
        ++place->second.points;
      }
    }
    html::Table shared{
        "Inputs of all points", {"input", "value", "source", "note"}, {}, 4, "inputs"};
    std::size_t num_different = 0;
    for (const std::string& what : order) {
      const Input& input = inputs.at(what);
      if (input.values.size() != 1 || input.points != explained_.size()) {
        ++num_different;
        continue;
      }
      shared.rows.push_back({escaped(what), element("code", "", escaped(*input.values.begin())),
                             element("span", "class=\"badge e-" + escaped(input.source) + "\"",
                                     escaped(input.source)),
                             escaped(input.note)});
    }
    if (shared.rows.empty())
      return section({"inputs", "Inputs and their sources",
                      "<p>No point could be simulated, so there is nothing to list.</p>\n"});
    return section(
        {"inputs", "Inputs and their sources",
         "<p>" + whole(shared.rows.size()) +
             (explained_.size() == 1 ? std::string(" inputs of the point that was looked at")
                                     : " inputs are the same in all " + whole(explained_.size()) +
                                           " points that were looked at") +
             (num_different > 0 ? "; " + whole(num_different) + " differ between them" : "") +
             ".</p>\n<details><summary>The inputs that all share, with their "
             "sources</summary>\n" +
             html::table(shared) + "</details>\n"});
  }

  std::string scenario_section() const {
    html::Table matrix{"What is swept", {"pointer", "values"}, {}, 2, "matrix"};
    const JsonValue* block = sweep_.written().find("sweep");
    const JsonValue* axes = block == nullptr ? nullptr : block->find("matrix");
    if (axes != nullptr && axes->is_object())
      for (const JsonValue::Member& axis : axes->object()) {
        std::string values;
        for (const JsonValue& value : axis.value.array())
          values += (values.empty() ? "" : ", ") +
                    (value.is_string() ? value.string() : canonical_text(value));
        matrix.rows.push_back(
            {element("code", "", escaped(axis.key)), element("code", "", escaped(values))});
      }
    const SweepPoints& points = sweep_.points();
    return section({"scenario", "Scenario and its sweep",
                    "<p>" + whole(points.num_combinations()) + " combinations, " +
                        whole(points.num_excluded()) + " excluded, " +
                        whole(points.num_included()) + " included: " + whole(points.size()) +
                        " points.</p>\n" + html::table(matrix) +
                        "<details><summary>The whole scenario, with the origin of each "
                        "value</summary>\n<pre tabindex=\"0\">" +
                        escaped(resolved_text(sweep_.written())) + "</pre></details>\n"});
  }

  std::string points_json_text() const {
    std::string text;
    for (const Row& row : ranked_)
      text += (text.empty() ? "[" : ",\n") + rows_.by_point.at(row.point).row;
    return (text.empty() ? "[" : text) + "]";
  }

  std::string explained_json() const {
    JsonValue::Array list;
    for (const ExplainedPoint& each : explained_) {
      JsonValue object(JsonValue::Object{});
      object.set("point", JsonValue(static_cast<std::int64_t>(each.point)));
      for (const char* key : {"iteration_time_s", "breakdown_s"})
        object.set(key, *each.report.find(key));
      list.push_back(std::move(object));
    }
    return canonical_text(JsonValue(std::move(list)));
  }

  const Sweep& sweep_;
  const PartRows& rows_;
  const SweepPageOptions& options_;
  std::vector<Row> ranked_;
  std::size_t num_failed_ = 0, num_fitting_ = 0;
  std::optional<PlotData> data_;
  std::vector<ExplainedPoint> explained_;
};

}  // namespace

std::string sweep_page(const Sweep& sweep, const PartRows& rows, const SweepPageOptions& options) {
  return SweepPage(sweep, rows, options).html();
}

}  // namespace windtunnel
