#include "report/compare_figures.hpp"

#include <algorithm>
#include <cmath>

#include "core/json_number.hpp"
#include "report/comparison_words.hpp"

namespace windtunnel::html {
namespace {

bool reads_as_nothing(const std::string& text) {
  return text.find_first_of("123456789") == std::string::npos;
}

/// A change that is text only, such as "=", has no number to point at.
bool is_number(const std::string& text) {
  return !text.empty() && (text.front() == '+' || text.front() == '-');
}

std::string difference_text(double difference, const FigureRow& row) {
  std::string text = row.text(std::abs(difference));
  if (reads_as_nothing(text)) return "=";
  if (text.ends_with('%')) text.replace(text.size() - 1, 1, "pp");  // percentage points
  return (difference < 0 ? "-" : "+") + text;
}

}  // namespace

std::string letter(std::size_t run) {
  return element("b", "class=\"letter\"", detail::letter_of(run));
}

const JsonValue* ComparedFigures::value(std::size_t run, const std::string& pointer,
                                        FigureSource source) const {
  const ComparedRun& compared = comparison_->runs[run];
  if (source == FigureSource::report) return find_at(compared.report, pointer);
  return compared.details ? find_at(compared.details->why, pointer) : nullptr;
}

std::optional<double> ComparedFigures::number(std::size_t run, const std::string& pointer,
                                              FigureSource source) const {
  return number_of(value(run, pointer, source));
}

double ComparedFigures::largest(const std::string& pointer) const {
  double most = 0;
  for (std::size_t i = 0; i < size(); ++i) most = std::max(most, number(i, pointer).value_or(0));
  return most;
}

std::string ComparedFigures::place(std::size_t run, const std::string& pointer,
                                   FigureSource source) const {
  return (source == FigureSource::report ? "/runs/" : "/") + std::to_string(run) + pointer;
}

std::string ComparedFigures::cell(std::size_t run, const FigureRow& row,
                                  FigureSource source) const {
  const std::optional<double> exact = number(run, row.pointer, source);
  if (!exact) return "–";
  const std::string printed =
      html::number(place(run, row.pointer, source), row.text(*exact), row.unit);
  return source == FigureSource::report ? printed : of_data("why", printed);
}

std::string ComparedFigures::change(std::size_t run, const FigureRow& row,
                                    FigureSource source) const {
  const std::optional<double> base = number(0, row.pointer, source),
                              exact = number(run, row.pointer, source);
  if (!row.change || !base || !exact) return "";
  const std::string text = *row.change == Change::relative ? detail::relative_change(*base, *exact)
                                                           : difference_text(*exact - *base, row);
  if (!is_number(text)) return element("span", "class=\"same\"", escaped(text));
  const std::string printed =
      changed_number(place(run, row.pointer, source), place(0, row.pointer, source), *row.change,
                     text, *row.change == Change::relative ? "" : row.unit);
  return source == FigureSource::report ? printed : of_data("why", printed);
}

std::string ComparedFigures::table(const std::string& caption, const std::vector<FigureRow>& rows,
                                   bool bars, FigureSource source) const {
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
      widest = std::max(widest, std::abs(number(1, row.pointer, source).value_or(0) -
                                         number(0, row.pointer, source).value_or(0)));
  for (const FigureRow& row : rows) {
    bool is_shown = false;
    for (std::size_t i = 0; i < size(); ++i)
      if (const auto exact = number(i, row.pointer, source))
        is_shown = is_shown || !reads_as_nothing(row.text(*exact));
    if (!is_shown) continue;
    std::vector<std::string> cells{row.label, cell(0, row, source)};
    for (std::size_t i = 1; i < size(); ++i) {
      cells.push_back(cell(i, row, source));
      cells.push_back(change(i, row, source));
    }
    if (bars) {
      const double difference =
          number(1, row.pointer, source).value_or(0) - number(0, row.pointer, source).value_or(0);
      cells.push_back(
          signed_bar(difference, widest, "short", "long", difference_text(difference, row)));
    }
    table.rows.push_back(std::move(cells));
  }
  return table.rows.empty() ? "" : html::table(table);
}

}  // namespace windtunnel::html
