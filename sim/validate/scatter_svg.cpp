#include "validate/scatter_svg.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>

#include "core/count_text.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

/// Sets beyond these have the same colours and marks of another form.
constexpr std::size_t num_colours = 8;

/// A power of ten: 1e-5 s as "10 µs".
std::string time_text(double seconds) {
  const int decade = static_cast<int>(std::lround(std::log10(seconds)));
  const int exponent = decade >= -1 ? 0 : decade >= -3 ? -3 : -6;
  const char* unit = exponent == 0 ? " s" : exponent == -3 ? " ms" : " µs";
  const int digits = std::max(0, exponent - decade);
  return fixed_text(std::pow(10.0, decade - exponent), digits) + unit;
}

/// Those with iterations; all with comparisons where none has.
std::vector<ValidatedSet> shown(const std::vector<ValidatedSet>& sets) {
  std::vector<ValidatedSet> iterations, all;
  for (const ValidatedSet& set : sets) {
    if (set.comparisons.empty()) continue;
    all.push_back(set);
    if (set.kind == MeasurementKind::iteration) iterations.push_back(set);
  }
  return iterations.empty() ? all : iterations;
}

}  // namespace

ScatterPlot scatter_plot(const std::vector<ValidatedSet>& sets) {
  const std::vector<ValidatedSet> drawn = shown(sets);
  const bool iterations = drawn.empty() || drawn.front().kind == MeasurementKind::iteration;
  ScatterPlot plot{{iterations ? "Predicted and measured iteration times"
                               : "Predicted and measured collective times",
                    Chart::Shape::marks,
                    {},
                    {}},
                   {}};
  Chart& chart = plot.chart;
  std::vector<double> times;
  for (std::size_t i = 0; i < drawn.size(); ++i) {
    const ValidatedSet& set = drawn[i];
    const std::string kind = "s" + std::to_string(i % num_colours);
    const std::size_t form = i / num_colours;
    for (const ScoredRow& row : set.comparisons) {
      const double measured = row.measured / 1_s, predicted = row.predicted / 1_s;
      times.insert(times.end(), {measured, predicted});
      chart.points.push_back({.x = measured,
                              .y = predicted,
                              .title = row.id + ": measured " + to_text(row.measured) +
                                       ", predicted " + to_text(row.predicted) + ", " +
                                       signed_percent_text(row.error()),
                              .kind = kind,
                              .form = form});
    }
    plot.keys.push_back({key_mark(kind, false, form),
                         set.name + ": " + count_text(set.comparisons.size(), "point") +
                             ", mean error " + percent_text(score(set.comparisons).mape)});
  }
  chart.x = chart.y = decade_axis(times);
  chart.x.text = chart.y.text = time_text;
  chart.x.title = "measured";
  chart.y.title = "predicted";
  chart.height = 330;
  for (const double ratio :
       {0.9, 1.0, 1.1}) {  // from the edge at which it enters to that at which it leaves
    const double enters = std::max(1.0, 1 / ratio), leaves = std::min(1.0, 1 / ratio);
    chart.guides.push_back({chart.x.low * enters, chart.x.low * enters * ratio,
                            chart.x.high * leaves, chart.x.high * leaves * ratio, "exact"});
  }
  return plot;
}

std::string scatter_svg(const std::vector<ValidatedSet>& sets, const std::string& title) {
  const ScatterPlot plot = scatter_plot(sets);
  return chart_sheet(
      title.empty() ? plot.chart.label : title,
      count_text(static_cast<std::int64_t>(plot.chart.points.size()), "measured run") +
          "; dotted: exact, and 10 % off",
      {plot.chart}, plot.keys);
}

}  // namespace windtunnel
