#include "report/run_page.hpp"

#include <algorithm>
#include <array>

#include "core/contracts.hpp"
#include "report/figures.hpp"
#include "report/html_page.hpp"
#include "report/html_text.hpp"
#include "report/memory_text.hpp"
#include "report/number_text.hpp"
#include "report/report_json.hpp"
#include "report/report_words.hpp"
#include "report/terminal_text.hpp"
#include "report/why_section.hpp"
#include "report/why_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace html {
namespace {

using detail::time_text;
using detail::with_spaces;

std::string joined(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) text += (text.empty() ? "" : " · ") + item;
  return text;
}

/// The interval as a bar with the prediction on it, on an axis a little wider than both.
std::string interval(const Report& report) {
  if (!report.iteration_time_interval)
    return "<p class=\"interval\">No interval: nothing comparable has been measured.</p>\n";
  const Seconds low = report.iteration_time_interval->first;
  const Seconds high = report.iteration_time_interval->second;
  constexpr double margin = 0.15, width = 1000;
  const Seconds pad = (high - low) * margin;
  const auto place = [&](Seconds time) {
    return fixed_text((time - low + pad) / (high - low + 2 * pad) * width, 1);
  };
  std::string svg;
  if (high > low) {
    svg =
        "<svg class=\"range\" viewBox=\"0 0 1000 16\" preserveAspectRatio=\"none\" "
        "aria-hidden=\"true\">"
        "<line class=\"axis\" x1=\"0\" x2=\"1000\" y1=\"8\" y2=\"8\"/><rect class=\"span\" x=\"" +
        place(low) + "\" width=\"" + fixed_text((high - low) / (high - low + 2 * pad) * width, 1) +
        "\" y=\"4\" height=\"8\"/><line class=\"mark\" x1=\"" + place(report.iteration_time) +
        "\" x2=\"" + place(report.iteration_time) + "\" y1=\"0\" y2=\"16\"/></svg>";
  }
  return "<p class=\"interval\">" + svg +
         "<span>90 % interval: " + number("/iteration_time_interval_s/0", to_text(low)) + " to " +
         number("/iteration_time_interval_s/1", to_text(high)) + "</span></p>\n";
}

std::string verdict(const Report& report) {
  const std::string text = detail::verdict_text(report.memory);
  if (text.empty()) return "";
  const detail::VerdictMark mark = detail::mark_of(report.memory.verdict);
  return "<p class=\"verdict " + std::string(mark.kind) + "\"><b>" + mark.mark + "</b> " +
         escaped(text) + "</p>\n";
}

std::string warnings(const Report& report) {
  std::string html;
  for (const std::string& warning : report.warnings)
    html += "<p class=\"verdict doubtful\"><b>!</b> " + escaped(warning) + "</p>\n";
  return html;
}

std::vector<Piece> pieces_of(const Breakdown& breakdown, Seconds whole) {
  std::vector<Piece> pieces;
  for (const Line line : all_lines) {
    const Seconds time = breakdown.of(line);
    if (!(time > 0_s)) continue;
    const std::string title = with_spaces(name_of(line)) + ": " + time_text(time, whole) + ", " +
                              percent_text(time / whole);
    pieces.push_back({time / whole, name_of(line), title});
  }
  return pieces;
}

std::string reasons(const Report& report) {
  std::string items;
  for (const Reason& reason : reasons_for_time(report))
    items += "<li><b>" + swatch(name_of(reason.line)) + escaped(reason.title) + "</b><p>" +
             escaped(reason.text) + "</p></li>\n";
  return "<h3>What each part is</h3>\n<ol class=\"why\">\n" + items + "</ol>\n";
}

std::string breakdown_table(const Report& report) {
  Table table{"Where the time goes", {"on the GPUs that finish last", "time", "share"}, {}};
  const Seconds total = report.breakdown.total();
  for (const Line line : all_lines) {
    const Seconds time = report.breakdown.of(line);
    const std::string text = time_text(time, total);
    if (text == time_text(0_s, total)) continue;
    table.rows.push_back({swatch(name_of(line)) + escaped(with_spaces(name_of(line))),
                          number("/breakdown_s/" + std::string(name_of(line)), text),
                          escaped(percent_text(time / total))});
  }
  return html::table(table);
}

/// The parts of a GPU's memory that lie on top of each other, in their order in the bar.
struct MemoryPart {
  const char* name;
  Bytes (*of)(const StageMemory&);
};
constexpr std::array memory_parts{
    MemoryPart{"weights", [](const StageMemory& stage) { return stage.weights; }},
    MemoryPart{"gradients", [](const StageMemory& stage) { return stage.gradients; }},
    MemoryPart{"optimizer", [](const StageMemory& stage) { return stage.optimizer; }},
    MemoryPart{"activations", [](const StageMemory& stage) { return stage.activations; }},
    MemoryPart{"buffers", [](const StageMemory& stage) { return stage.buffers; }},
    MemoryPart{"cache", [](const StageMemory& stage) { return stage.reserved - stage.allocated; }},
    MemoryPart{"context", [](const StageMemory& stage) { return stage.context; }},
};

std::string memory_bar(const StageMemory& stage, Bytes scale, Bytes capacity) {
  std::vector<Piece> pieces;
  for (const MemoryPart& part : memory_parts)
    pieces.push_back({part.of(stage) / scale, "m-" + std::string(part.name),
                      std::string(part.name) + ": " + to_text(part.of(stage))});
  if (stage.total < capacity)
    pieces.push_back(
        {(capacity - stage.total) / scale, "m-free", "free: " + to_text(capacity - stage.total)});
  return stacked_bar(pieces,
                     "memory of stage " + std::to_string(stage.stage.index()) + ": " +
                         to_text(stage.total) + " of " + to_text(capacity),
                     capacity / scale);
}

std::string gib(const std::string& pointer, Bytes bytes) {
  return number(pointer, fixed_text(bytes / 1_GiB, 2), "GiB");
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
    tables += "<details><summary>" + escaped(name_of(stages)) + ": " +
              escaped(to_text(stages.first->allocated)) + " allocated</summary>\n" +
              html::table(table) + "</details>\n";
  }
  return "<h3>Tensors at the peak</h3>\n" + tables;
}

std::string memory_table(const Report& report) {
  const MemoryAccount& memory = report.memory;
  Table table{"Memory of a GPU of each stage, in GiB",
              {"stage", "of " + escaped(to_text(memory.capacity)), "weights", "gradients",
               "optimizer", "activations", "buffers", "allocated", "in use"},
              {},
              "llr",
              "bars"};
  const Bytes scale = std::max(memory.capacity, memory.max_total);
  for (std::size_t i = 0; i < memory.stages.size(); ++i) {
    const StageMemory& stage = memory.stages[i];
    const std::string at = "/memory/per_stage/" + std::to_string(i) + "/";
    const std::string in_use = gib(at + "total", stage.total);
    table.rows.push_back(
        {std::to_string(stage.stage.index()), memory_bar(stage, scale, memory.capacity),
         gib(at + "weights", stage.weights), gib(at + "gradients", stage.gradients),
         gib(at + "optimizer", stage.optimizer), gib(at + "activations", stage.activations),
         gib(at + "buffers", stage.buffers), gib(at + "allocated", stage.allocated),
         stage.verdict == MemoryVerdict::does_not_fit ? element("strong", "class=\"bad\"", in_use)
                                                      : in_use});
  }
  std::string legend;
  for (const MemoryPart& part : memory_parts)
    legend += "<span>" + swatch("m-" + std::string(part.name)) + part.name + "</span> ";
  return "<h3>Memory of a GPU, GiB</h3>\n" + verdict(report) + "<p class=\"legend\">" + legend +
         "</p>\n" + html::table(table);
}

std::string stage_time_table(const Report& report) {
  Table table{"Time of each stage",
              {"stage", "of " + escaped(to_text(report.iteration_time)), "compute", "tensor comm",
               "waiting", "data comm", "ends"},
              {},
              "llr",
              "bars"};
  for (std::size_t i = 0; i < report.stage_times.size(); ++i) {
    const StageTime& time = report.stage_times[i];
    const std::string stage = std::to_string(time.stage.index()),
                      at = "/stage_times_s/" + std::to_string(i) + "/";
    std::vector<Piece> pieces = pieces_of(time.breakdown, report.iteration_time);
    if (time.end < report.iteration_time)
      pieces.push_back(
          {(report.iteration_time - time.end) / report.iteration_time, "idle",
           "has ended: " + time_text(report.iteration_time - time.end, report.iteration_time)});
    const auto cell = [&](Line line) {
      return number(at + name_of(line), time_text(time.breakdown.of(line), report.iteration_time));
    };
    const Seconds waiting = time.breakdown.of(Line::pipeline_bubble) +
                            time.breakdown.of(Line::pipeline_comm) +
                            time.breakdown.of(Line::peer_wait);
    table.rows.push_back({stage, stacked_bar(pieces, "time of stage " + stage), cell(Line::compute),
                          cell(Line::tensor_comm),
                          escaped(time_text(waiting, report.iteration_time)), cell(Line::data_comm),
                          number(at + "end", time_text(time.end, report.iteration_time))});
  }
  return "<h3>Time</h3>\n<p class=\"quiet\">The stages of the replica that ends last; colours as "
         "above. Waiting is bubble, "
         "messages on the way and slower GPUs.</p>\n" +
         html::table(table);
}

std::string meter(double share, const std::string& kind) {
  return stacked_bar({{std::min(share, 1.0), kind, percent_text(share)}}, percent_text(share));
}

constexpr std::array page_traffic{
    Traffic::tensor_activations, Traffic::data_gradients,    Traffic::zero_gather,
    Traffic::pipeline_forward,   Traffic::pipeline_backward, Traffic::embedding_sync,
    Traffic::expert_dispatch,    Traffic::expert_combine,    Traffic::context};
static_assert(page_traffic.size() == num_traffic_classes);

std::string traffic_table(const Report& report) {
  Bytes total{};
  for (const Bytes bytes : report.traffic) total += bytes;
  if (!(total > Bytes{0})) return "";
  Table table{"Traffic by class",
              {"class", "share", "bytes", "messages", "of them compressed"},
              {},
              "llr",
              "bars"};
  for (const Traffic traffic : page_traffic) {
    const auto i = static_cast<std::size_t>(traffic);
    if (!(report.traffic[i] > Bytes{0})) continue;
    const MessageCount& count = report.messages[i];
    const std::uint64_t messages = count.compressed + count.uncompressed;
    const std::string at = "/messages/" + std::string(name_of(traffic)) + "/compressed";
    table.rows.push_back(
        {escaped(with_spaces(name_of(traffic))),
         meter(report.traffic[i] / total, "t-" + std::string(name_of(traffic))),
         number("/traffic_bytes/" + std::string(name_of(traffic)), to_text(report.traffic[i])),
         messages > 0 ? grouped_text(static_cast<double>(messages)) : "",
         messages > 0 ? number(at, grouped_text(static_cast<double>(count.compressed))) : ""});
  }
  return "<h3>Traffic by class</h3>\n<p class=\"quiet\">Bytes that all GPUs send in one iteration, "
         "NVLink included; messages of one "
         "pipeline.</p>\n" +
         html::table(table);
}

std::string classes_of(const LinkUse& link) {
  std::vector<std::pair<Bytes, std::string>> classes;
  for (const Traffic traffic : page_traffic)
    if (const Bytes bytes = link.carried[static_cast<std::size_t>(traffic)]; bytes > Bytes{0})
      classes.emplace_back(bytes, with_spaces(name_of(traffic)) + " " +
                                      percent_text(bytes / total_of(link.carried)));
  std::stable_sort(classes.begin(), classes.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::string text;
  for (const auto& [bytes, name] : classes) text += (text.empty() ? "" : ", ") + name;
  return text;
}

std::string link_table(const Report& report) {
  constexpr std::size_t most_rows = 16;  // as many as the JSON names
  if (report.links.empty())
    return "<h3>Links</h3>\n<p class=\"quiet\">Nothing crosses a shared link: all traffic stays "
           "inside nodes.</p>\n";
  Table table{"Links by utilisation",
              {"link", "utilisation", "", "carried", "rate", "time at full rate", "carries"},
              {},
              "llr",
              "bars links"};
  double mean = 0;
  for (const LinkUse& link : report.links) mean += link.utilisation(report.iteration_time);
  mean /= static_cast<double>(report.links.size());
  const std::size_t rows = std::min(most_rows, report.links.size());
  for (std::size_t i = 0; i < rows; ++i) {
    const LinkUse& link = report.links[i];
    const std::string at = "/links/hottest/" + std::to_string(i) + "/";
    const double use = link.utilisation(report.iteration_time);
    table.rows.push_back(
        {escaped(link.name), meter(use, "link"), number(at + "utilisation", percent_text(use)),
         number(at + "bytes", to_text(total_of(link.carried))),
         number(at + "bandwidth_bytes_per_s", to_text(link.bandwidth)),
         escaped(to_text(total_of(link.carried) / link.bandwidth)), escaped(classes_of(link))});
  }
  const LinkUse& hottest = report.links.front();
  return "<h3>Links</h3>\n<p>Hottest: <b>" + escaped(hottest.name) + "</b>, " +
         escaped(percent_text(hottest.utilisation(report.iteration_time))) +
         " of what it could carry in the iteration. " +
         "Shown: " + grouped_text(static_cast<double>(rows)) + " of " +
         number("/links/in_use", grouped_text(static_cast<double>(report.links.size()))) +
         " shared links that carried anything; their mean is " +
         number("/links/mean_utilisation", percent_text(mean)) +
         ". A low mean does not say that a link never holds anybody up: gradients cross it in a "
         "short time.</p>\n" +
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

/// The first screen: how long, how sure, does it fit, how fast, what job.
std::string headline(const Report& report) {
  std::string html = "<header class=\"hero\">\n<div>\n<p class=\"kicker\">" + escaped(report.name) +
                     "</p>\n<h1><span class=\"big\">" +
                     number("/iteration_time_s", to_text(report.iteration_time)) +
                     "</span> per iteration</h1>\n" + interval(report) + verdict(report);
  if (!report.memory.fits)
    html += "<p class=\"verdict bad\">The time is what it would be if the plan fitted.</p>\n";
  html += warnings(report) + "<p class=\"job\">" + escaped(detail::job_text(report)) + "<br>" +
          escaped(joined(detail::plan_items(report))) +
          (report.placement_note.empty()
               ? ""
               : "<br>" + escaped("placement searched: " + report.placement_note)) +
          "</p>\n</div>\n<div class=\"cards\">\n";
  for (const Figure* figure : shown_figures(report))
    if (figure->beside.empty()) html += figure_card(*figure, report);
  html += card("memory, fullest GPU", number("/memory/max_bytes", to_text(report.memory.max_total)),
               "of " + number("/memory/capacity_bytes", to_text(report.memory.capacity)));
  const std::vector<Reason> why = reasons_for_time(report);
  const auto overhead = std::find_if(
      why.begin(), why.end(), [](const Reason& reason) { return reason.line != Line::compute; });
  if (overhead != why.end())
    html += card("largest overhead", escaped(with_spaces(name_of(overhead->line))),
                 escaped(time_text(overhead->time, report.iteration_time) + ", " +
                         percent_text(overhead->time / report.iteration_time)));
  return html + "</div>\n</header>\n";
}

/// The breakdown as one bar and a table, and what is behind each line.
std::string where_time_goes(const Report& report) {
  return "<div class=\"main-bar\">" +
         stacked_bar(pieces_of(report.breakdown, report.breakdown.total()), "Where the time goes") +
         "</div>\n<div class=\"columns\"><div>" + breakdown_table(report) + "</div><div>" +
         reasons(report) + "</div></div>\n";
}

std::string inputs(const Report& report) {
  Table table{
      "Inputs and their sources", {"input", "value", "source", "note"}, {}, "llllr", "inputs"};
  for (const Assumption& assumption : report.assumptions) {
    const std::string kind = name_of(assumption.evidence);
    table.rows.push_back({escaped(assumption.what), element("code", "", escaped(assumption.value)),
                          element("span", "class=\"badge e-" + kind + "\"", kind),
                          escaped(assumption.note)});
  }
  return "<p>" + escaped(detail::inputs_text(report)) + ".</p>\n" + html::table(table);
}

std::string provenance(const Report& report) {
  return "windtunnel " + escaped(report.version) + " · scenario " + escaped(report.scenario_hash) +
         " · seed " + std::to_string(report.seed) + " · " +
         grouped_text(static_cast<double>(report.activities)) + " activities, " +
         grouped_text(static_cast<double>(report.flows)) + " flows, played by " +
         escaped(report.engine);
}

}  // namespace
}  // namespace html

std::string run_page(const RunPage& page) {
  WT_EXPECT(page.explanation != nullptr);
  const Explanation& explanation = *page.explanation;
  const Report& report = explanation.report;
  const bool explains = !explanation.what_ifs.empty();
  const ShownDevices shown = shown_devices(page.played);
  HtmlPage html{explains ? "explain" : "run", report.name, html::headline(report)};
  const auto add_why = [&] {
    html.add("why", "Why", "Why this long?", html::why_section(explanation));
  };
  if (explains) add_why();
  html.add("time", "Time", "Where the time goes", html::where_time_goes(report));
  if (!explains) add_why();
  html.add("timeline", "Timeline", "Timeline",
           "<p class=\"quiet\">Shown: " + html::escaped(shown.text) +
               ".</p>\n<div id=\"timeline-view\"><noscript><p>The timeline is drawn by a "
               "script. Without one, the trace (trace.json.gz) shows the same in a trace "
               "viewer.</p></noscript></div>\n");
  html.add("stages", "Stages", "Stages",
           html::stage_time_table(report) + html::memory_table(report) +
               html::tensor_tables(report.memory));
  html.add("network", "Network", "Network", html::link_table(report) + html::traffic_table(report));
  html.add("inputs", "Inputs", "Inputs and their sources", html::inputs(report));
  html.add("scenario", "Scenario", "Scenario",
           "<details><summary>The whole scenario, with the origin of each "
           "value</summary>\n<pre tabindex=\"0\">" +
               html::escaped(page.scenario) + "</pre></details>\n");
  html.data = {
      {"report", without_wall_time(to_json(report))},
      {"explanation", explains ? without_wall_time(pretty_text(explanation_value(explanation)))
                               : canonical_text(path_value(explanation))},
      {"timeline-data", timeline_json(page.played, shown, explanation.path)}};
  html.footer = html::provenance(report);
  return html_document(html);
}

}  // namespace windtunnel
