#include <algorithm>
#include <array>
#include <utility>

#include "core/json_number.hpp"
#include "report/compare_bars.hpp"
#include "report/compare_sections.hpp"
#include "report/comparison_words.hpp"
#include "report/number_text.hpp"
#include "report/report_json.hpp"
#include "report/terminal_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel::html {
namespace {

using detail::letter_of;
using detail::with_spaces;

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
    const std::string total =
        figures.cell(run, {"", at, [](double b) { return to_text(Bytes{b}); }, {}});
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
         figures.cell(
             run, {"", "/stage_times_s/" + std::to_string(i) + "/end", times_of(figures), {}})});
  return "<div><h4>" + letter(run) + escaped(figures.run(run).label) + "</h4>" +
         chart("Time of each stage of " + letter_of(run), std::move(rows), time_axis(whole)) +
         "</div>\n";
}

std::string stage_charts(const ComparedFigures& figures) {
  std::string charts;
  for (std::size_t i = 0; i < figures.size(); ++i)
    charts += stage_chart(figures, i, longest_time(figures));
  if (charts.empty()) return "";
  return "<h3>Time</h3>\n<p class=\"quiet\">The stages of the replica that ends last, all runs on "
         "one scale; behind each, when it ends.</p>\n" +
         line_legend(figures) + "<div class=\"side\">" + charts + "</div>\n";
}

std::string traffic_table(const ComparedFigures& figures) {
  std::vector<FigureRow> rows;
  const auto bytes = [](double b) { return to_text(Bytes{b}); };
  for (const Traffic traffic : published_traffic) {
    const std::string name = name_of(traffic);
    rows.push_back({escaped(with_spaces(name)), "/traffic_bytes/" + name, bytes, Change::relative});
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
        {escaped(string_at(figures, run, at + "name")),
         stacked_bar({{std::min(1.0, use), "link", percent_text(use)}}, percent_text(use)),
         figures.cell(run, {"", at + "utilisation", percent_text, {}}),
         figures.cell(run, {"", at + "bytes", [](double b) { return to_text(Bytes{b}); }, {}}),
         figures.cell(run, {"",
                            at + "bandwidth_bytes_per_s",
                            [](double r) { return to_text(BytesPerSecond{r}); },
                            {}})});
  }
  return head + html::table(table) + "<p class=\"quiet\">Links that carried anything: " +
         figures.cell(run, {"", "/links/in_use", grouped_text, {}}) + ", used " +
         figures.cell(run, {"", "/links/mean_utilisation", percent_text, {}}) +
         " on average.</p></div>\n";
}

std::string link_lists(const ComparedFigures& figures) {
  std::string lists;
  for (std::size_t i = 0; i < figures.size(); ++i) lists += link_list(figures, i);
  if (lists.empty()) return "";
  return "<h3>Hottest links</h3>\n<p class=\"quiet\">Utilisation is what a link carried over what "
         "it could have carried in the iteration.</p>\n<div class=\"side\">" +
         lists + "</div>\n";
}

}  // namespace

std::string compared_stages(const ComparedFigures& figures) {
  return section({"stages", "Stages", stage_charts(figures) + memory_charts(figures)});
}

std::string compared_network(const ComparedFigures& figures) {
  return section({"network", "Network", traffic_table(figures) + link_lists(figures)});
}

}  // namespace windtunnel::html
