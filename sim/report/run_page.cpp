#include "report/run_page.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/contracts.hpp"
#include "core/text_list.hpp"
#include "report/chart.hpp"
#include "report/figures.hpp"
#include "report/html_text.hpp"
#include "report/number_text.hpp"
#include "report/report_json.hpp"
#include "report/report_view.hpp"
#include "report/report_words.hpp"
#include "report/summary_text.hpp"
#include "report/terminal_text.hpp"
#include "report/trace_slices.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace html {
namespace {

using detail::time_text;
using detail::with_spaces;

constexpr std::size_t most_shares = 14, most_said = 5, most_slacks = 8, most_listed = 64;

/// A number of the explanation as text, with its place there.
std::string exact(const std::string& pointer, const std::string& text) {
  return of_data("explanation", number(pointer, text));
}

std::string at(const char* list, std::size_t index, const char* key) {
  return "/" + std::string(list) + "/" + std::to_string(index) + "/" + key;
}

class WhySection {
 public:
  explicit WhySection(const Explanation& e)
      : e_(e), whole_(e.report.iteration_time), shares_(main_shares(e.shares, most_shares)) {}

  std::string html() const { return path() + what_ifs() + slack(); }

 private:
  /// A number of a share, with its place in the explanation unless it is several shares together.
  std::string share_number(const PathShare& share, const char* key, const std::string& text) const {
    for (std::size_t i = 0; i < e_.shares.size(); ++i)
      if (e_.shares[i].what == share.what) return exact(at("critical_path", i, key), text);
    return escaped(text);
  }

  std::string path() const {
    if (shares_.empty()) return "";
    return "<p class=\"said\">" + sentence() + "</p>\n<div class=\"main-bar\">" + bar() +
           "</div>\n<p class=\"quiet\">The critical path: the chain of work and messages that the "
           "end of the iteration waited for. Only what is on it makes the iteration longer; make "
           "it shorter, and another chain may be the longest. <a id=\"show-path\" "
           "href=\"#timeline\">Show it on the timeline</a></p>\n" +
           share_table();
  }

  /// "75.9 % compute of stage 7, 8.9 % tensor collectives of stage 7, …, and 9.1 % in 7 smaller parts."
  std::string sentence() const {
    std::string text = "The end of the iteration waited for ";
    Seconds rest = whole_;
    const std::size_t count = std::min(most_said, shares_.size());
    for (std::size_t i = 0; i < count; ++i) {
      const PathShare& share = shares_[i];
      text += std::string(i == 0 ? "" : ", ") + "<b>" +
              share_number(share, "share", percent_text(share.time / whole_)) + "</b> " +
              escaped(spoken_share(share));
      rest -= share.time;
    }
    if (count < shares_.size())
      text += ", and " + escaped(percent_text(rest / whole_)) + " in smaller parts";
    return text + ".";
  }

  std::string bar() const {
    std::vector<Piece> pieces;
    for (const PathShare& share : shares_)
      pieces.push_back({std::min(1.0, share.time / whole_), name_of(share.line),
                        spoken_share(share) + ": " + time_text(share.time, whole_) + ", " +
                            percent_text(share.time / whole_)});
    return stacked_bar(pieces, "The critical path by what it was spent on");
  }

  std::string share_table() const {
    Table list{
        "The critical path", {"what", "", "share", "time", "intervals"}, {}, "llr", "bars path"};
    for (const PathShare& share : shares_) {
      const double part = share.time / whole_;
      list.rows.push_back({swatch(name_of(share.line)) + escaped(spoken_share(share)),
                           meter(part, name_of(share.line)),
                           share_number(share, "share", percent_text(part)),
                           share_number(share, "time_s", to_text(share.time)),
                           share_number(share, "steps", grouped_text(share.steps))});
    }
    return table(list);
  }

  std::string slack() const {
    return "<h3>Slack</h3>\n<p class=\"quiet\">How much later a pass or a message could end "
           "without delaying the iteration, if nothing else changed. <i>Least</i>: the smallest "
           "slack of any of them; none: it is on a critical path. <i>Median</i>: half of the busy "
           "time is in passes or messages with at least this slack.</p>\n" +
           slack_table("stages", "stage", e_.stages) +
           folded(slack_table("devices", "simulated device", e_.devices, most_listed), "devices",
                  e_.devices.size()) +
           slack_table("links", "path between nodes", e_.links) +
           (e_.links.size() > most_slacks
                ? folded(slack_table("links", "path between nodes", e_.links, most_listed),
                         "paths between nodes", e_.links.size())
                : "");
  }

  static std::string folded(const std::string& html, const std::string& what, std::size_t count) {
    if (count == 0) return "";
    std::string summary = count > most_listed
                              ? grouped_text(static_cast<double>(most_listed)) + " of the " +
                                    grouped_text(static_cast<double>(count)) + " " + what
                              : "All " + grouped_text(static_cast<double>(count)) + " " + what;
    return details(escaped(summary), html);
  }

  std::string slack_time(const std::string& pointer, Seconds time) const {
    return time > Seconds{0} ? exact(pointer, to_text(time)) : "none";
  }

  std::string slack_bar(const Slack& slack) const {
    const double path = std::clamp(slack.on_path / whole_, 0.0, 1.0),
                 busy = std::clamp(slack.busy / whole_ - path, 0.0, 1 - path);
    return stacked_bar({{path, "path", "on the path: " + percent_text(path)},
                        {busy, "busy", "busy, not on the path: " + percent_text(busy)},
                        {1 - path - busy, "idle", "idle: " + percent_text(1 - path - busy)}},
                       "on the path " + percent_text(path));
  }

  /// The places most on the path, then those of least slack.
  std::string slack_table(const char* list, const std::string& what, const std::vector<Slack>& all,
                          std::size_t most = most_slacks) const {
    if (all.empty()) return "";
    std::vector<std::size_t> order(all.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) {
      return std::pair(-all[a].on_path, all[a].least) < std::pair(-all[b].on_path, all[b].least);
    });
    order.resize(std::min(most, order.size()));
    Table rows{"Slack by " + what,
               {escaped(what), "", "on the path", "busy", "least slack", "median slack"},
               {},
               "llr",
               "bars slack"};
    for (const std::size_t i : order)
      rows.rows.push_back({escaped(all[i].what), slack_bar(all[i]),
                           exact(at(list, i, "on_path_s"), to_text(all[i].on_path)),
                           exact(at(list, i, "busy_s"), to_text(all[i].busy)),
                           slack_time(at(list, i, "slack_s"), all[i].least),
                           slack_time(at(list, i, "median_slack_s"), all[i].median)});
    return table(rows);
  }

  double change_of(const WhatIfResult& result) const { return result.iteration_time / whole_ - 1; }

  /// What fills half of the bar: the largest gain, and no loss of more than that.
  double scale() const {
    double gain = 0, loss = 0;
    for (const WhatIfResult& result : e_.what_ifs) {
      if (!result.failure.empty()) continue;
      gain = std::max(gain, -change_of(result));
      loss = std::max(loss, change_of(result));
    }
    constexpr double least = 0.01;
    return std::max(least, gain > 0 ? gain : loss);
  }

  std::string change_bar(const WhatIfResult& result, double scale) const {
    const double change = change_of(result);
    const bool lacks_memory = !result.fits && e_.report.memory.fits;
    return signed_bar(change, scale, lacks_memory ? "other" : "gain",
                      lacks_memory ? "other" : "loss", windtunnel::change_text(change));
  }

  std::string command(const WhatIfResult& result) const {
    return scenario_details("repeat", result.command);
  }

  std::vector<std::string> what_if_row(std::size_t i, double scale) const {
    const WhatIfResult& result = e_.what_ifs[i];
    if (!result.failure.empty())
      return {escaped(result.change.what),
              "",
              "",
              "",
              "",
              escaped(result.failure.substr(0, result.failure.find('\n'))),
              command(result)};
    const std::string note = memory_note(result, e_.report);
    return {escaped(result.change.what) +
                (note.empty() ? ""
                              : " <span class=\"" + std::string(result.fits ? "good" : "bad") +
                                    "\">" + note + "</span>"),
            change_bar(result, scale),
            exact(at("what_ifs", i, "change"), signed_percent_text(change_of(result))),
            result.ordering
                ? exact(at("what_ifs", i, "ordering/sure"), percent_text(result.ordering->sure))
                : "",
            exact(at("what_ifs", i, "iteration_time_s"), to_text(result.iteration_time)),
            escaped(moved_text(result, e_.report)),
            command(result)};
  }

  /// The what-ifs whose effect is too little to read about, or the others.
  Table what_if_table(bool little) const {
    constexpr double least_change = 0.002;
    Table list{"What if",
               {"what if", "shorter | longer", "change", "sure", "iteration", "where", ""},
               {},
               "llrr",
               "bars whatifs"};
    const double full = scale();
    for (std::size_t i = 0; i < e_.what_ifs.size(); ++i) {
      const WhatIfResult& result = e_.what_ifs[i];
      const bool is_little = result.fate == WhatIfFate::cannot_matter ||
                             (result.failure.empty() && std::abs(change_of(result)) < least_change);
      if (is_little == little) list.rows.push_back(what_if_row(i, full));
    }
    return list;
  }

  std::string what_ifs() const {
    if (e_.what_ifs.empty()) return no_what_ifs();
    const Table much = what_if_table(false), little = what_if_table(true);
    std::string html =
        "<h3>What if</h3>\n<p class=\"quiet\">Each is a simulation of its own, ordered by gain "
        "times how sure its sign is; <i>sure</i>, of a choice, is how often the sign of such a "
        "difference was right in validation; <i>where</i> says which parts of the breakdown grew "
        "or shrank, <i>repeat</i> what "
        "to type to get the same numbers.</p>\n" +
        table(much);
    if (!little.rows.empty())
      html += details(counted(little.rows.size()) + " that change less than 0.2 %", table(little));
    return html;
  }
  static std::string counted(std::size_t count) {
    return grouped_text(static_cast<double>(count)) + (count == 1 ? " other" : " others");
  }

  /// The command that makes this page with what-ifs: "windtunnel explain …" in place of "windtunnel run …".
  std::string no_what_ifs() const {
    constexpr std::string_view run = "windtunnel run ";
    if (!e_.command.starts_with(run)) return "";
    return "<h3>What if</h3>\n<p>What would change it, each what-if simulated: <code>" +
           escaped("windtunnel explain " + e_.command.substr(run.size()) + " --report why.html") +
           "</code></p>\n";
  }

  const Explanation& e_;
  Seconds whole_;
  std::vector<PathShare> shares_;
};

/// The interval as a bar with the prediction on it, on an axis a little wider than both.
std::string interval(const Report& report) {
  if (!report.iteration_time_interval)
    return "<p class=\"interval\">No interval: nothing comparable has been measured.</p>\n";
  const auto [low, high] = *report.iteration_time_interval;
  constexpr double margin = 0.15 / 1.3;  // of the axis, at each end
  const double mark =
      high > low ? margin + (1 - 2 * margin) * ((report.iteration_time - low) / (high - low)) : 0.5;
  return "<p class=\"interval\"><span class=\"range\">" +
         stacked_bar({{margin, "idle", ""}, {1 - 2 * margin, "span", "90 %"}, {margin, "idle", ""}},
                     "90 % interval", mark) +
         "</span><span>90 % interval: " + number("/iteration_time_interval_s/0", to_text(low)) +
         " to " + number("/iteration_time_interval_s/1", to_text(high)) + "</span></p>\n";
}

std::string verdict(const Report& report) {
  const std::string text = detail::verdict_text(report.memory);
  if (text.empty()) return "";
  const detail::VerdictMark mark = detail::mark_of(report.memory.verdict);
  return "<p class=\"verdict " + std::string(mark.kind) + "\"><b>" + mark.mark + "</b> " +
         escaped(text) + "</p>\n";
}

std::string reasons(const Report& report) {
  std::string items;
  for (const Reason& reason : reasons_for_time(report))
    items += "<li><b>" + swatch(name_of(reason.line)) + escaped(reason.title) + "</b><p>" +
             escaped(reason.text) + "</p></li>\n";
  return "<h3>What each part is</h3>\n<ol class=\"why\">\n" + items + "</ol>\n";
}

std::string breakdown_table(const Report& report, const DataView& view) {
  Table table{"Where the time goes", {"on the GPUs that finish last", "time", "share"}, {}};
  const Seconds total = report.breakdown.total();
  const auto text = [total](double time) { return time_text(Seconds{time}, total); };
  for (const Line line : all_lines) {
    const double time = report.breakdown.of(line) / 1_s;
    if (text(time) == text(0)) continue;
    table.rows.push_back({swatch(name_of(line)) + escaped(with_spaces(name_of(line))),
                          view.cell(std::string("/breakdown_s/") + name_of(line), text),
                          escaped(percent_text(Seconds{time} / total))});
  }
  return html::table(table);
}

/// What a device of the fullest stage holds over the iteration, the most in each thousandth of it. Empty where none was played.
Chart memory_chart(const PlayedIteration& played, const MemoryAccount& memory) {
  constexpr double most_points = 1000, gib = 1ull << 30;
  const auto text = [](double value) { return significant_text(value, 3); };
  const std::string stage = "stage " + std::to_string(memory.worst_stage.index());
  Chart chart{"Memory allocated on a GPU of " + stage + " over the iteration",
              Chart::Shape::line,
              {0, played.timeline->end / 1_s, text, "s"},
              {}};
  const auto device = std::ranges::find_if(
      played.plan->devices, [&](const auto& each) { return each.stage == memory.worst_stage; });
  const auto account = std::ranges::find(memory.stages, memory.worst_stage, &StageMemory::stage);
  if (device == played.plan->devices.end() || account == memory.stages.end()) return chart;
  const std::vector<detail::MemorySample> samples = detail::memory_counters(
      *played.timeline, *played.plan,
      memory)[static_cast<std::size_t>(device - played.plan->devices.begin())];
  double last = 0;
  for (const detail::MemorySample& sample : samples) {
    const double at = static_cast<double>(sample.at) / 1e9,
                 held = static_cast<double>(sample.bytes) / gib;
    if (chart.points.size() > 1 && at - chart.points.back().x < chart.x.high / most_points) {
      chart.points.back().y = std::max(chart.points.back().y, held);
    } else {
      if (!chart.points.empty()) chart.points.push_back({at, last});
      chart.points.push_back({at, held});
    }
    last = held;
  }
  if (chart.points.empty()) return chart;
  chart.points.push_back({chart.x.high, last});
  const double states = (account->weights + account->gradients + account->optimizer) / Bytes{gib},
               room = (account->usable - account->context) / Bytes{gib};
  chart.rules = {
      {states, "weights, gradients, optimizer", true, true},
      {room, "usable, without the context: " + fixed_text(room, 1) + " GiB", true, true}};
  chart.y = axis_from_zero({account->allocated / Bytes{gib}, room});
  chart.y.text = text;
  chart.y.title = "GiB allocated, " + stage;
  return chart;
}

/// The tensors of each stage at its peak, folded away; stages that read the same once.
std::string tensor_tables(const MemoryAccount& memory) {
  std::string tables;
  for (const StagesAlike& stages : stages_alike(memory)) {
    Table table{
        name_of(stages), {"", "tensor", "number × size", "GiB", "share"}, {}, "llr", "bars"};
    for (const TensorRow& row : stages.rows)
      table.rows.push_back({swatch("m-" + std::string(name_of(row.line))), escaped(row.name),
                            escaped(row.parts), escaped(row.gib), escaped(row.share)});
    tables +=
        details(escaped(name_of(stages) + ": " + to_text(stages.first->allocated)) + " allocated",
                html::table(table));
  }
  return "<h3>Tensors at the peak</h3>\n" + tables;
}

std::string traffic_table(const DataView& view) {
  double total = 0;
  for (const Traffic traffic : published_traffic)
    total += view.amount(std::string("/traffic_bytes/") + name_of(traffic));
  if (!(total > 0)) return "";
  Table table{"Traffic by class",
              {"class", "share", "bytes", "messages", "of them compressed"},
              {},
              "llr",
              "bars"};
  for (const Traffic traffic : published_traffic) {
    const std::string name = name_of(traffic), counts = "/messages/" + name + "/";
    const double bytes = view.amount("/traffic_bytes/" + name);
    if (!(bytes > 0)) continue;
    const double messages =
        view.amount(counts + "compressed") + view.amount(counts + "uncompressed");
    table.rows.push_back({escaped(with_spaces(name)), meter(bytes / total, "t-" + name),
                          view.cell("/traffic_bytes/" + name, text_of_bytes),
                          messages > 0 ? grouped_text(messages) : "",
                          messages > 0 ? view.cell(counts + "compressed", grouped_text) : ""});
  }
  return "<h3>Traffic by class</h3>\n" +
         quiet(
             "Bytes that all GPUs send in one iteration, NVLink included; messages of one "
             "pipeline.") +
         html::table(table);
}

/// A figure, with those beside it.
std::string figure_card(const Figure& figure, const Report& report) {
  const auto shown = [&report](const Figure& each) {
    return number("/" + each.key, each.text(each.value(report)));
  };
  std::string note = escaped(figure.note);
  for (const Figure* other : shown_figures(report))
    if (other->beside == figure.key)
      note += (note.empty() ? "" : ", ") + escaped(other->name) + " " + shown(*other);
  return card(figure.name, shown(figure), note);
}

std::string neighbours(const Report& report) {
  std::string html;
  for (const std::string& cost : detail::neighbour_texts(report)) html += "<br>" + escaped(cost);
  return html;
}

/// The first screen: how long, how sure, does it fit, how fast, what job.
std::string headline(const Report& report) {
  std::string html = "<header class=\"hero\">\n<div>\n<p class=\"kicker\">" + escaped(report.name) +
                     "</p>\n<h1><span class=\"big\">" +
                     number("/iteration_time_s", to_text(report.iteration_time)) +
                     "</span> per iteration</h1>\n" + interval(report) + verdict(report);
  if (!report.memory.fits)
    html += "<p class=\"verdict bad\">The time is what it would be if the plan fitted.</p>\n";
  html += warnings(report.warnings) + "<p class=\"job\">" + escaped(detail::job_text(report)) +
          "<br>" + escaped(joined(detail::plan_items(report), " · ")) +
          (report.placement_note.empty()
               ? ""
               : "<br>" + escaped("placement searched: " + report.placement_note)) +
          neighbours(report) + "</p>\n</div>\n<div class=\"cards\">\n";
  for (const Figure* figure : shown_figures(report))
    if (figure->beside.empty()) html += figure_card(*figure, report);
  html += card("memory, fullest GPU",
               (report.memory.verdict == MemoryVerdict::lower_bound ? "≥ " : "") +
                   number("/memory/max_bytes", to_text(report.memory.max_total)),
               "of " + number("/memory/usable_bytes", to_text(report.memory.usable)) + " usable");
  const std::vector<Reason> why = reasons_for_time(report);
  const auto overhead =
      std::ranges::find_if(why, [](const Reason& reason) { return reason.line != Line::compute; });
  if (overhead != why.end())
    html += card("largest overhead", escaped(with_spaces(name_of(overhead->line))),
                 escaped(time_text(overhead->time, report.iteration_time) + ", " +
                         percent_text(overhead->time / report.iteration_time)));
  return html + "</div>\n</header>\n";
}

/// The breakdown as one bar and a table, and what is behind each line.
std::string where_time_goes(const Report& report, const DataView& view) {
  const Seconds total = report.breakdown.total();
  return "<div class=\"main-bar\">" +
         stacked_bar(breakdown_pieces(view.find("/breakdown_s"), total, total),
                     "Where the time goes") +
         "</div>\n<div class=\"columns\"><div>" + breakdown_table(report, view) + "</div><div>" +
         reasons(report) + "</div></div>\n";
}

std::string provenance(const Report& report) {
  return "windtunnel " + escaped(report.version) + " · scenario " + escaped(report.scenario_hash) +
         " · seed " + std::to_string(report.seed) + " · " +
         grouped_text(static_cast<double>(report.activities)) + " activities, " +
         grouped_text(static_cast<double>(report.flows)) + " flows, simulated by " +
         escaped(report.engine);
}

}  // namespace

std::string why_section(const Explanation& explanation) { return WhySection(explanation).html(); }

}  // namespace html

std::string run_page(const RunPage& page) {
  WT_EXPECT(page.explanation != nullptr);
  const Explanation& explanation = *page.explanation;
  const Report& report = explanation.report;
  const bool explains = !explanation.what_ifs.empty();
  const ShownDevices shown = shown_devices(page.played);
  const JsonValue data = without_wall_time(report_value(report));
  const html::DataView view{&data};
  HtmlPage html{explains ? "explain" : "run", report.name, html::headline(report)};
  const auto add_why = [&] {
    html.add("why", "Why", "Why this long?", html::why_section(explanation));
  };
  if (explains) add_why();
  html.add("time", "Time", "Where the time goes", html::where_time_goes(report, view));
  if (!explains) add_why();
  html.add("timeline", "Timeline", "Timeline",
           html::quiet("Shown: " + html::escaped(shown.text) + ".") +
               "<div id=\"timeline-view\"><noscript><p>The timeline is drawn by a "
               "script. Without one, the trace (trace.json.gz) shows the same in a trace "
               "viewer.</p></noscript></div>\n");
  html.add("stages", "Stages", "Stages",
           html::stage_times({view}) + "<h3>Memory of a GPU, GiB</h3>\n" + html::verdict(report) +
               html::stage_memory({view}) +
               chart_svg(html::memory_chart(page.played, report.memory)) +
               html::tensor_tables(report.memory));
  html.add("network", "Network", "Network",
           html::busiest_links({view}, most_links) + html::traffic_table(view));
  html.add("inputs", "Inputs", "Inputs and their sources",
           "<p>" + html::escaped(detail::inputs_text(report)) + ".</p>\n" +
               html::input_tables({view}, {}).common);
  html.add(
      "scenario", "Scenario", "Scenario",
      html::scenario_details("The whole scenario, with the origin of each value", page.scenario));
  html.data = {{"report", pretty_text(data) + "\n"},
               {"explanation",
                explains ? pretty_text(without_wall_time(explanation_value(explanation))) + "\n"
                         : canonical_text(path_value(explanation))},
               {"timeline-data", timeline_json(page.played, shown, explanation.path)}};
  html.footer = html::provenance(report);
  return html_document(html);
}

}  // namespace windtunnel
