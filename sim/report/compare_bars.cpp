#include "report/compare_bars.hpp"

#include <utility>

#include "core/json_number.hpp"
#include "report/number_text.hpp"
#include "report/terminal_text.hpp"

namespace windtunnel::html {
namespace {

/// The marks of an axis of time.
std::string time_mark(double time, Seconds whole) {
  constexpr int digits = 4;
  if (whole >= 1_s) return significant_text(time, digits) + " s";
  if (whole >= 1_ms) return significant_text(Seconds{time} / 1_ms, digits) + " ms";
  return significant_text(Seconds{time} / 1_us, digits) + " us";
}

}  // namespace

using detail::time_text;
using detail::with_spaces;

Seconds longest_time(const ComparedFigures& figures) {
  return Seconds{figures.largest(time_pointer)};
}

std::function<std::string(double)> times_of(const ComparedFigures& figures) {
  return [whole = longest_time(figures)](double time) { return time_text(Seconds{time}, whole); };
}

std::string time_axis(Seconds whole) {
  return axis(whole / Seconds{1}, [whole](double time) { return time_mark(time, whole); });
}

std::string string_at(const ComparedFigures& figures, std::size_t run, const std::string& pointer,
                      FigureSource source) {
  const JsonValue* value = figures.value(run, pointer, source);
  return value != nullptr && value->is_string() ? value->string() : "";
}

std::vector<Piece> pieces_of(const JsonValue* object, Seconds whole) {
  std::vector<Piece> pieces;
  for (int i = 0; object != nullptr && i < num_lines; ++i) {
    const std::string name = name_of(static_cast<Line>(i));
    const Seconds time{number_of(object->find(name)).value_or(0)};
    if (time > 0_s)
      pieces.push_back({time / whole, name, with_spaces(name) + ": " + time_text(time, whole)});
  }
  return pieces;
}

std::string line_legend(const ComparedFigures& figures) {
  std::string legend;
  for (int i = 0; i < num_lines; ++i) {
    const std::string name = name_of(static_cast<Line>(i));
    if (figures.largest("/breakdown_s/" + name) > 0)
      legend += "<span>" + swatch(name) + escaped(with_spaces(name)) + "</span> ";
  }
  return "<p class=\"legend\">" + legend + "</p>\n";
}

std::string chart(const std::string& caption, std::vector<std::vector<std::string>> rows,
                  const std::string& scale) {
  rows.push_back({"", scale, ""});
  return table({caption, {"", "", ""}, std::move(rows), "llr", "chart"});
}

}  // namespace windtunnel::html
