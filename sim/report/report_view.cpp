#include "report/report_view.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <utility>

#include "core/text_list.hpp"
#include "report/number_text.hpp"
#include "report/report_json.hpp"
#include "report/terminal_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel::html {
namespace {

using detail::time_text;
using detail::with_spaces;

/// The parts of a GPU's memory that lie on top of each other, in their order in the bar.
constexpr std::array memory_parts{"weights", "gradients", "optimizer", "activations",
                                  "buffers", "cache",     "context"};

bool reads_as_nothing(const std::string& text) {
  return text.find_first_of("123456789") == std::string::npos;
}

/// Classes by their bytes, the largest first: "data gradients 62.1 %, zero gather 37.9 %".
std::string classes_of(const DataView& run, const std::string& link) {
  std::vector<std::pair<double, std::string>> classes;
  for (const Traffic traffic : published_traffic)
    if (const double bytes = run.amount(link + "traffic_bytes/" + name_of(traffic)); bytes > 0)
      classes.emplace_back(bytes, with_spaces(name_of(traffic)) + " " +
                                      percent_text(bytes / run.amount(link + "bytes")));
  std::ranges::stable_sort(classes, [](const auto& a, const auto& b) { return a.first > b.first; });
  return joined(classes, ", ", [](const auto& each) { return each.second; });
}

}  // namespace

const JsonValue* DataView::find(const std::string& pointer) const {
  return document == nullptr ? nullptr : find_at(*document, pointer);
}

std::optional<double> DataView::number(const std::string& pointer) const {
  return number_of(find(pointer));
}

std::string DataView::text(const std::string& pointer) const {
  const JsonValue* found = find(pointer);
  return found != nullptr && found->is_string() ? found->string() : "";
}

std::size_t DataView::size(const std::string& pointer) const {
  const JsonValue* found = find(pointer);
  return found != nullptr && found->is_array() ? found->array().size() : 0;
}

std::vector<std::string> DataView::items(const std::string& list, std::size_t most) const {
  std::vector<std::string> pointers;
  for (std::size_t i = 0; i < std::min(most, size(list)); ++i)
    pointers.push_back(list + "/" + std::to_string(i) + "/");
  return pointers;
}

std::string DataView::cell(const std::string& pointer, const NumberText& text,
                           const std::string& unit) const {
  const std::optional<double> exact = number(pointer);
  if (!exact) return "–";
  return html::number(Exact{place + pointer, unit, data}, text(*exact));
}

std::string text_of_time(double seconds) { return to_text(Seconds{seconds}); }
std::string text_of_bytes(double bytes) {
  const std::string text = to_text(Bytes{bytes});
  const std::size_t end = text.find_first_not_of("0123456789");
  return end > 3 ? grouped_text(std::stod(text)) + text.substr(end) : text;
}

double largest(const DataViews& runs, const std::string& pointer) {
  double most = 0;
  for (const DataView& run : runs) most = std::max(most, run.amount(pointer));
  return most;
}

std::string change_text(const FigureRow& row, double base, double exact) {
  if (*row.change == Change::relative) return relative_change(base, exact);
  std::string text = row.text(std::abs(exact - base));
  if (reads_as_nothing(text)) return "=";
  if (text.ends_with('%')) text.replace(text.size() - 1, 1, "pp");  // percentage points
  return (exact < base ? "-" : "+") + text;
}

FigureRows shown_rows(FigureRows rows, const DataViews& runs) {
  std::erase_if(rows, [&](const FigureRow& row) {
    return std::ranges::none_of(runs, [&](const DataView& run) {
      const std::optional<double> exact = run.number(row.pointer);
      return exact && !reads_as_nothing(row.text(*exact));
    });
  });
  return rows;
}

std::string letter(std::size_t run) { return element("b", "class=\"letter\"", run_letter(run)); }

std::string change_html(const FigureRow& row, const DataView& first, const DataView& run) {
  const std::optional<double> base = first.number(row.pointer), exact = run.number(row.pointer);
  if (!row.change || !base || !exact) return "";
  const std::string text = change_text(row, *base, *exact);
  // Text such as "=" has no number to point at.
  if (text.front() != '+' && text.front() != '-')
    return element("span", "class=\"same\"", escaped(text));
  return number(
      Exact{run.place + row.pointer, "", run.data, first.place + row.pointer, *row.change}, text);
}

std::string figure_table(const std::string& caption, const FigureRows& rows, const DataViews& runs,
                         bool bars) {
  bars = bars && runs.size() == 2;
  Table figures{caption, {"", letter(0)}, {}, "lr", bars ? "figures changes" : "figures"};
  for (std::size_t i = 1; i < runs.size(); ++i)
    figures.head.insert(figures.head.end(), {letter(i), run_letter(i) + " − A"});
  if (bars) figures.head.emplace_back("less | more");
  const auto difference = [&](const FigureRow& row) {
    return runs[1].amount(row.pointer) - runs[0].amount(row.pointer);
  };
  double widest = 0;
  for (const FigureRow& row : rows)
    if (bars) widest = std::max(widest, std::abs(difference(row)));
  for (const FigureRow& row : shown_rows(rows, runs)) {
    std::vector<std::string>& cells = figures.rows.emplace_back();
    cells = {row.label.starts_with(' ') ? element("span", "class=\"part\"", escaped(row.label))
             : row.kind.empty()         ? escaped(row.label)
                                        : swatch(row.kind) + escaped(row.label),
             runs[0].cell(row.pointer, row.text)};
    for (std::size_t i = 1; i < runs.size(); ++i)
      cells.insert(cells.end(),
                   {runs[i].cell(row.pointer, row.text), change_html(row, runs[0], runs[i])});
    if (bars)
      cells.push_back(signed_bar(difference(row), widest, "short", "long",
                                 change_text(row, 0, difference(row))));
  }
  return figures.rows.empty() ? "" : table(figures);
}

std::vector<Piece> breakdown_pieces(const JsonValue* lines, Seconds whole, Seconds iteration) {
  std::vector<Piece> pieces;
  for (const Line line : all_lines) {
    const std::string name = name_of(line);
    const Seconds time{lines == nullptr ? 0 : number_of(lines->find(name)).value_or(0)};
    if (time > 0_s)
      pieces.push_back({time / whole, name,
                        with_spaces(name) + ": " + time_text(time, whole) + ", " +
                            percent_text(time / iteration)});
  }
  return pieces;
}

std::string breakdown_legend(const DataViews& runs) {
  std::vector<std::pair<std::string, std::string>> colours;
  for (const Line line : all_lines)
    if (largest(runs, std::string("/breakdown_s/") + name_of(line)) > 0)
      colours.emplace_back(name_of(line), with_spaces(name_of(line)));
  return legend(colours);
}

std::string meter(double share, const std::string& kind) {
  return stacked_bar({{std::min(share, 1.0), kind, percent_text(share)}}, percent_text(share));
}

std::string stage_times(const DataViews& runs) {
  const Seconds whole{largest(runs, "/iteration_time_s")};
  const auto text = [whole](double time) { return time_text(Seconds{time}, whole); };
  std::string html;
  for (const DataView& run : runs) {
    Table table{"Time of each stage",
                {"stage", "of " + escaped(to_text(whole)), "compute", "tensor comm", "waiting",
                 "data comm", "ends"},
                {},
                "llr",
                "bars"};
    const Seconds iteration{run.amount("/iteration_time_s")};
    for (const std::string& at : run.items("/stage_times_s")) {
      const std::string stage = grouped_text(run.amount(at + "stage"));
      std::vector<Piece> pieces =
          breakdown_pieces(run.find(at.substr(0, at.size() - 1)), whole, iteration);
      if (const Seconds idle = iteration - Seconds{run.amount(at + "end")}; idle > 0_s)
        pieces.push_back({idle / whole, "idle", "has ended: " + time_text(idle, whole)});
      double waiting = 0;
      for (const Line line : {Line::pipeline_bubble, Line::pipeline_comm, Line::peer_wait})
        waiting += run.amount(at + name_of(line));
      table.rows.push_back({stage, stacked_bar(pieces, "time of stage " + stage),
                            run.cell(at + "compute", text), run.cell(at + "tensor_comm", text),
                            escaped(text(waiting)), run.cell(at + "data_comm", text),
                            run.cell(at + "end", text)});
    }
    if (!table.rows.empty()) html += run.heading + html::table(table);
  }
  if (html.empty()) return "";
  return subsection("Time",
                    "The stages of the replica that ends last. Waiting is bubble, messages on the "
                    "way and slower GPUs.",
                    breakdown_legend(runs) + html);
}

std::string stage_memory(const DataViews& runs) {
  const auto gib = [](double bytes) { return fixed_text(Bytes{bytes} / 1_GiB, 2); };
  constexpr double room = 1.02;  // so that the mark of what is usable stands inside the bar
  const double whole =
      room * std::max(largest(runs, "/memory/usable_bytes"), largest(runs, "/memory/max_bytes"));
  std::string html;
  for (const DataView& run : runs) {
    const double usable = run.amount("/memory/usable_bytes");
    Table table{"Memory of a GPU of each stage, in GiB",
                {"stage", "of " + escaped(text_of_bytes(usable)) + " usable", "weights",
                 "gradients", "optimizer", "activations", "buffers", "allocated", "in use"},
                {},
                "llr",
                "bars"};
    for (const std::string& at : run.items("/memory/per_stage")) {
      const std::string stage = grouped_text(run.amount(at + "stage"));
      const double total = run.amount(at + "total");
      std::vector<Piece> pieces;
      for (const std::string part : memory_parts) {
        const double bytes = part == "cache"
                                 ? run.amount(at + "reserved") - run.amount(at + "allocated")
                                 : run.amount(at + part);
        pieces.push_back({bytes / whole, "m-" + part, part + ": " + text_of_bytes(bytes)});
      }
      if (total < usable)
        pieces.push_back(
            {(usable - total) / whole, "m-free", "free: " + text_of_bytes(usable - total)});
      std::vector<std::string>& row = table.rows.emplace_back();
      row = {stage, stacked_bar(pieces,
                                "memory of stage " + stage + ": " + text_of_bytes(total) + " of " +
                                    text_of_bytes(usable),
                                usable / whole)};
      for (const char* part :
           {"weights", "gradients", "optimizer", "activations", "buffers", "allocated", "total"})
        row.push_back(run.cell(at + part, gib, "GiB"));
      if (run.text(at + "verdict") == name_of(MemoryVerdict::does_not_fit))
        row.back() = element("strong", "class=\"bad\"", row.back());
    }
    if (!table.rows.empty()) html += run.heading + html::table(table);
  }
  std::vector<std::pair<std::string, std::string>> colours;
  for (const std::string part : memory_parts) colours.emplace_back("m-" + part, part);
  colours.emplace_back("limit", "usable");
  return legend(colours) + html;
}

std::string busiest_links(const DataViews& runs, std::size_t most) {
  const auto rate = [](double value) { return to_text(BytesPerSecond{value}); };
  std::string html;
  for (const DataView& run : runs) {
    if (run.find("/links/hottest") == nullptr) continue;
    html += run.heading;
    if (run.size("/links/hottest") == 0) {
      html += quiet("Nothing crosses a shared link: all traffic stays inside nodes.");
      continue;
    }
    Table table{"Links by utilisation",
                {"link", "utilisation", "", "carried", "rate", "time at full rate", "carries"},
                {},
                "llr",
                "bars links"};
    for (const std::string& at : run.items("/links/hottest", most))
      table.rows.push_back(
          {escaped(run.text(at + "name")), meter(run.amount(at + "utilisation"), "link"),
           run.cell(at + "utilisation", percent_text), run.cell(at + "bytes", text_of_bytes),
           run.cell(at + "bandwidth_bytes_per_s", rate),
           escaped(
               text_of_time(run.amount(at + "bytes") / run.amount(at + "bandwidth_bytes_per_s"))),
           escaped(classes_of(run, at))});
    html +=
        "<p>Hottest: <b>" + escaped(run.text("/links/hottest/0/name")) + "</b>, " +
        escaped(percent_text(run.amount("/links/hottest/0/utilisation"))) +
        " of what it could carry in the iteration. Shown: " + std::to_string(table.rows.size()) +
        " of " + run.cell("/links/in_use", grouped_text) +
        " shared links that carried anything; their mean is " +
        run.cell("/links/mean_utilisation", percent_text) + ".</p>\n" + html::table(table);
  }
  return subsection("Links",
                    "Utilisation is what a link carried over what it could have carried in the "
                    "iteration. A low mean does not say that a link never holds anybody up: "
                    "gradients cross it in a short time.",
                    html);
}

InputTables input_tables(const DataViews& runs, const std::vector<std::string>& heads) {
  struct Input {
    std::string what, source, note;
    std::vector<std::string> values;  ///< by run; empty where a run does not have it
  };
  std::vector<Input> inputs;
  std::set<std::string> differing;
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < runs.size(); ++i)
    for (const std::string& at : runs[i].items("/assumptions")) {
      Input input{runs[i].text(at + "what"), runs[i].text(at + "source"), runs[i].text(at + "note"),
                  std::vector<std::string>(runs.size())};
      const auto [place, is_new] =
          places.try_emplace(input.what + '\n' + input.source + '\n' + input.note, inputs.size());
      if (is_new) inputs.push_back(std::move(input));
      inputs[place->second].values[i] = runs[i].text(at + "value");
    }
  Table common{"Inputs of all runs", {"input", "value", "source", "note"}, {}, "l", "inputs"};
  Table different{"Inputs of some runs, or with other values", {"input"}, {}, "l", "inputs wide"};
  different.head.insert(different.head.end(), heads.begin(), heads.end());
  different.head.insert(different.head.end(), {"source", "note"});
  for (const Input& input : inputs) {
    const bool is_common = std::ranges::count(input.values, input.values.front()) ==
                           std::ptrdiff_t(input.values.size());
    if (!is_common) differing.insert(input.what);
    std::vector<std::string>& row = (is_common ? common : different).rows.emplace_back();
    row.push_back(escaped(input.what));
    for (std::size_t i = 0; i < (is_common ? 1 : input.values.size()); ++i)
      row.push_back(input.values[i].empty() ? "–" : element("code", "", escaped(input.values[i])));
    row.insert(row.end(), {badge(input.source), escaped(input.note)});
  }
  const auto html = [](const Table& table) { return table.rows.empty() ? "" : html::table(table); };
  return {html(common), html(different), common.rows.size(), differing.size()};
}

}  // namespace windtunnel::html
