#include "report/run_page.hpp"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

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

class WhySection {
 public:
  WhySection(const Explanation& e, const JsonValue& data)
      : e_(e),
        view_{&data, "", "explanation"},
        whole_(e.report.iteration_time),
        shares_(main_shares(e.shares, most_shares)) {}

  std::string html() const { return path() + what_ifs() + slack(); }

 private:
  /// A number of a share, with its place in the explanation unless it is several shares together.
  std::string share_number(const PathShare& share, const char* key, const std::string& text) const {
    const auto found = std::ranges::find(e_.shares, share.what, &PathShare::what);
    if (found == e_.shares.end()) return escaped(text);
    const std::string place = std::to_string(found - e_.shares.begin());
    return number(Exact{"/critical_path/" + place + "/" + key, "", "explanation"}, text);
  }

  /// The critical path, in a sentence ("75.9 % compute of stage 7, 8.9 % tensor collectives of stage 7, …, and 9.1 % in
  /// smaller parts"), as a bar and as a table.
  std::string path() const {
    if (shares_.empty()) return "";
    std::string said;
    Seconds rest = whole_;
    std::vector<Piece> pieces;
    Table list{
        "The critical path", {"what", "", "share", "time", "intervals"}, {}, "llr", "bars path"};
    for (const PathShare& share : shares_) {
      const double part = share.time / whole_;
      const std::string kind = name_of(share.line), words = spoken_share(share),
                        percent = share_number(share, "share", percent_text(part));
      if (pieces.size() < most_said) {
        said += (said.empty() ? "" : ", ") + element("b", "", percent) + " " + escaped(words);
        rest -= share.time;
      }
      pieces.push_back({std::min(1.0, part), kind,
                        words + ": " + time_text(share.time, whole_) + ", " + percent_text(part)});
      list.rows.push_back({swatch(kind) + escaped(words), meter(part, kind), percent,
                           share_number(share, "time_s", to_text(share.time)),
                           share_number(share, "steps", grouped_text(share.steps))});
    }
    if (most_said < shares_.size())
      said += ", and " + percent_text(rest / whole_) + " in smaller parts";
    return "<p class=\"said\">The end of the iteration waited for " + said +
           ".</p>\n<div class=\"main-bar\">" +
           stacked_bar(pieces, "The critical path by what it was spent on") +
           "</div>\n<p class=\"quiet\">The critical path: the chain of work and messages that the "
           "end of the iteration waited for. Only what is on it makes the iteration longer; make "
           "it shorter, and another chain may be the longest. <a id=\"show-path\" "
           "href=\"#timeline\">Show it on the timeline</a></p>\n" +
           table(list);
  }

  std::string slack() const {
    return subsection(
        "Slack",
        "How much later a pass or a message could end without delaying the iteration, if nothing "
        "else changed. <i>Least</i>: the smallest slack of any of them; none: it is on a critical "
        "path. <i>Median</i>: half of the busy time is in passes or messages with at least this "
        "slack.",
        slack_table("/stages", "stage", most_slacks) +
            folded("/devices", "simulated device", "devices", 0) +
            slack_table("/links", "path between nodes", most_slacks) +
            folded("/links", "path between nodes", "paths between nodes", most_slacks));
  }

  /// All of a list of which the page has shown the first, folded away.
  std::string folded(const std::string& list, const char* what, const char* plural,
                     std::size_t shown) const {
    const std::size_t count = view_.size(list);
    if (count <= shown) return "";
    const std::string all = grouped_text(static_cast<double>(count)) + " " + plural;
    return details(
        count > most_listed ? std::to_string(most_listed) + " of the " + all : "All " + all,
        slack_table(list, what, most_listed));
  }

  /// The places most on the path, then those of least slack.
  std::string slack_table(const std::string& list, const char* what, std::size_t most) const {
    std::vector<std::string> places = view_.items(list);
    std::ranges::stable_sort(places, {}, [&](const std::string& at) {
      return std::pair(-view_.amount(at + "on_path_s"), view_.amount(at + "slack_s"));
    });
    places.resize(std::min(most, places.size()));
    Table rows{std::string("Slack by ") + what,
               {what, "", "on the path", "busy", "least slack", "median slack"},
               {},
               "llr",
               "bars slack"};
    for (const std::string& at : places) {
      const auto slack = [&](const std::string& key) {
        return view_.amount(at + key) > 0 ? view_.cell(at + key, text_of_time) : "none";
      };
      const double whole = whole_ / 1_s;
      const double path = std::clamp(view_.amount(at + "on_path_s") / whole, 0.0, 1.0);
      const double busy = std::clamp(view_.amount(at + "busy_s") / whole - path, 0.0, 1 - path);
      rows.rows.push_back(
          {escaped(view_.text(at + "what")),
           stacked_bar({{path, "path", "on the path: " + percent_text(path)},
                        {busy, "busy", "busy, not on the path: " + percent_text(busy)},
                        {1 - path - busy, "idle", "idle: " + percent_text(1 - path - busy)}},
                       "on the path " + percent_text(path)),
           view_.cell(at + "on_path_s", text_of_time), view_.cell(at + "busy_s", text_of_time),
           slack("slack_s"), slack("median_slack_s")});
    }
    return rows.rows.empty() ? "" : table(rows);
  }

  double change_of(const WhatIfResult& result) const { return result.iteration_time / whole_ - 1; }

  /// Value that fills half of the bar: the largest gain, or without any the largest loss.
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

  std::vector<std::string> what_if_row(std::size_t i, double scale) const {
    const WhatIfResult& result = e_.what_ifs[i];
    const std::string at = "/what_ifs/" + std::to_string(i) + "/",
                      what = escaped(result.change.what),
                      command = scenario_details("repeat", result.command);
    if (!result.failure.empty())
      return {what, "", "", "", "", escaped(first_line_of(result.failure)), command};
    const std::string note = memory_note(result, e_.report),
                      kind = result.fits ? "class=\"good\"" : "class=\"bad\"";
    const bool lacks_memory = !result.fits && e_.report.memory.fits;
    const double change = change_of(result);
    return {what + (note.empty() ? "" : " " + element("span", kind, note)),
            signed_bar(change, scale, lacks_memory ? "other" : "gain",
                       lacks_memory ? "other" : "loss", windtunnel::change_text(change)),
            view_.cell(at + "change", signed_percent_text),
            result.ordering ? view_.cell(at + "ordering/sure", percent_text) : "",
            view_.cell(at + "iteration_time_s", text_of_time),
            escaped(moved_text(result, e_.report)),
            command};
  }

  std::string what_ifs() const {
    constexpr std::string_view run = "windtunnel run ";
    if (e_.what_ifs.empty() && !e_.command.starts_with(run)) return "";
    if (e_.what_ifs.empty())
      return subsection("What if", "",
                        "<p>What would change it, each what-if simulated: <code>" +
                            escaped("windtunnel explain " + e_.command.substr(run.size()) +
                                    " --report why.html") +
                            "</code></p>\n");
    constexpr double least_change = 0.002;
    Table much{"What if",
               {"what if", "shorter | longer", "change", "sure", "iteration", "where", ""},
               {},
               "llrr",
               "bars whatifs"};
    Table little = much;  // to read about
    const double full = scale();
    for (std::size_t i = 0; i < e_.what_ifs.size(); ++i) {
      const WhatIfResult& result = e_.what_ifs[i];
      const bool is_little = result.fate == WhatIfFate::cannot_matter ||
                             (result.failure.empty() && std::abs(change_of(result)) < least_change);
      (is_little ? little : much).rows.push_back(what_if_row(i, full));
    }
    std::string html = table(much);
    if (const auto count = static_cast<double>(little.rows.size()); count > 0)
      html += details(grouped_text(count) + (count == 1 ? " other" : " others") +
                          " that change less than 0.2 %",
                      table(little));
    return subsection(
        "What if",
        "Each is a simulation of its own, ordered by gain times how sure its sign is; "
        "<i>sure</i>, of a choice, is how often the sign of such a difference was right in "
        "validation; <i>where</i> says which parts of the breakdown grew or shrank, <i>repeat</i> "
        "what to type to get the same numbers.",
        html);
  }

  const Explanation& e_;
  DataView view_;
  Seconds whole_;
  std::vector<PathShare> shares_;
};

/// The interval as a bar with the prediction on it, on an axis a little wider than both.
std::string interval(const DataView& view) {
  const std::string at = "/iteration_time_interval_s";
  if (view.size(at) != 2)
    return "<p class=\"interval\">No interval: nothing comparable has been measured.</p>\n";
  const double low = view.amount(at + "/0"), high = view.amount(at + "/1");
  constexpr double margin = 0.15 / 1.3;  // of the axis, at each end
  const double mark =
      high > low
          ? margin + (1 - 2 * margin) * (view.amount("/iteration_time_s") - low) / (high - low)
          : 0.5;
  return "<p class=\"interval\"><span class=\"range\">" +
         stacked_bar({{margin, "idle", ""}, {1 - 2 * margin, "span", "90 %"}, {margin, "idle", ""}},
                     "90 % interval", mark) +
         "</span><span>90 % interval: " + view.cell(at + "/0", text_of_time) + " to " +
         view.cell(at + "/1", text_of_time) + "</span></p>\n";
}

std::string memory_verdict(const Report& report) {
  const std::string text = detail::verdict_text(report.memory);
  const detail::VerdictMark mark = detail::mark_of(report.memory.verdict);
  return text.empty() ? "" : verdict(mark.kind, mark.mark, text);
}

/// Memory of a device of the fullest stage over the iteration, the most in each thousandth of it. Empty if none was simulated.
Chart memory_chart(const SimulatedIteration& iteration, const MemoryAccount& memory) {
  constexpr double most_points = 1000, gib = 1ull << 30;
  const std::string stage = "stage " + std::to_string(memory.worst_stage.index());
  Chart chart{"Memory allocated on a GPU of " + stage + " over the iteration",
              Chart::Shape::line,
              {0, iteration.timeline->end / 1_s, number_mark, "time, s"},
              {}};
  const auto device = std::ranges::find_if(
      iteration.plan->devices, [&](const auto& each) { return each.stage == memory.worst_stage; });
  const auto account = std::ranges::find(memory.stages, memory.worst_stage, &StageMemory::stage);
  if (device == iteration.plan->devices.end() || account == memory.stages.end()) return chart;
  const std::vector<detail::MemorySample> samples = detail::memory_counters(
      *iteration.timeline, *iteration.plan,
      memory)[static_cast<std::size_t>(device - iteration.plan->devices.begin())];
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
  chart.y.text = number_mark;
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
  return subsection("Tensors at the peak", "", tables);
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
  return subsection("Traffic by class",
                    "Bytes that all GPUs send in one iteration, NVLink included; messages of one "
                    "pipeline.",
                    html::table(table));
}

/// The first screen: how long, how sure, does it fit, how fast, what job.
std::string headline(const Report& report, const DataView& view) {
  std::string job = escaped(detail::job_text(report)) + "<br>" +
                    escaped(joined(detail::plan_items(report), " · ")),
              cards;
  if (!report.placement_note.empty())
    job += "<br>" + escaped("placement searched: " + report.placement_note);
  for (const std::string& cost : detail::neighbour_texts(report)) job += "<br>" + escaped(cost);
  for (const Figure* figure : shown_figures(report)) {
    if (!figure->shown_with.empty()) continue;
    std::string note = escaped(figure->note);
    for (const Figure* other : shown_figures(report))
      if (other->shown_with == figure->key)
        note += (note.empty() ? "" : ", ") + escaped(other->name) + " " +
                view.cell("/" + other->key, other->text);
    cards += card(figure->name, view.cell("/" + figure->key, figure->text), note);
  }
  cards += card("memory, fullest GPU",
                (report.memory.verdict == MemoryVerdict::lower_bound ? "≥ " : "") +
                    view.cell("/memory/max_bytes", text_of_bytes),
                "of " + view.cell("/memory/usable_bytes", text_of_bytes) + " usable");
  for (const Reason& reason : reasons_for_time(report)) {
    if (reason.line == Line::compute) continue;
    cards += card("largest overhead", escaped(with_spaces(name_of(reason.line))),
                  escaped(time_text(reason.time, report.iteration_time) + ", " +
                          percent_text(reason.time / report.iteration_time)));
    break;
  }
  return hero(report.name,
              "<h1><span class=\"big\">" + view.cell("/iteration_time_s", text_of_time) +
                  "</span> per iteration</h1>\n" + interval(view) + memory_verdict(report) +
                  (report.memory.fits
                       ? ""
                       : verdict("bad", "", "The time is what it would be if the plan fitted.")) +
                  warnings(report.warnings) + "<p class=\"job\">" + job + "</p>\n",
              cards);
}

/// The breakdown as one bar and a table, and what is behind each line.
std::string where_time_goes(const Report& report, const DataView& view) {
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
  std::string reasons;
  for (const Reason& reason : reasons_for_time(report))
    reasons += reason_item(name_of(reason.line), escaped(reason.title),
                           element("p", "", escaped(reason.text)));
  return "<div class=\"main-bar\">" +
         stacked_bar(breakdown_pieces(view.find("/breakdown_s"), total, total),
                     "Where the time goes") +
         "</div>\n<div class=\"columns\"><div>" + html::table(table) + "</div><div>" +
         subsection("What each part is", "", list("why", reasons)) + "</div></div>\n";
}

}  // namespace

std::string why_section(const Explanation& explanation, const JsonValue& data) {
  return WhySection(explanation, data).html();
}

}  // namespace html

std::string run_page(const Explanation& explanation, const SimulatedIteration& iteration,
                     const std::string& scenario) {
  const Report& report = explanation.report;
  const bool explains = !explanation.what_ifs.empty();
  const ShownDevices shown = shown_devices(iteration);
  const JsonValue data = without_wall_time(report_value(report));
  const JsonValue why =
      explains ? without_wall_time(explanation_value(explanation)) : path_value(explanation);
  const html::DataView view{&data};
  HtmlPage html{explains ? "explain" : "run", report.name, html::headline(report, view)};
  const auto add_why = [&] {
    html.add("why", "Why", "Why this long?", html::why_section(explanation, why));
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
           html::stage_times({view}) +
               html::subsection("Memory of a GPU, GiB", "",
                                html::memory_verdict(report) + html::stage_memory({view})) +
               chart_svg(html::memory_chart(iteration, report.memory)) +
               html::tensor_tables(report.memory));
  html.add("network", "Network", "Network",
           html::busiest_links({view}, most_links) + html::traffic_table(view));
  html.add("inputs", "Inputs", "Inputs and their sources",
           "<p>" + html::escaped(detail::inputs_text(report)) + ".</p>\n" +
               html::input_tables({view}, {}).common);
  html.add("scenario", "Scenario", "Scenario",
           html::scenario_details("The whole scenario, with the origin of each value", scenario));
  html.data = {{"report", pretty_text(data) + "\n"},
               {"explanation", explains ? pretty_text(why) + "\n" : canonical_text(why)},
               {"timeline-data", timeline_json(iteration, shown, explanation.path)}};
  html.footer = "windtunnel " + html::escaped(report.version) + " · scenario " +
                html::escaped(report.scenario_hash) + " · seed " + std::to_string(report.seed) +
                " · " + grouped_text(static_cast<double>(report.activities)) + " activities, " +
                grouped_text(static_cast<double>(report.flows)) + " flows, simulated by " +
                html::escaped(report.engine);
  return html_document(html);
}

}  // namespace windtunnel
