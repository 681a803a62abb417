#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "core/json_value.hpp"
#include "sweep/explained_points.hpp"
#include "sweep/parts.hpp"
#include "sweep/plot_data.hpp"
#include "sweep/row.hpp"
#include "sweep/sweep.hpp"
#include "sweep/sweep_page.hpp"

namespace windtunnel::detail {

/// Contents of a sweep's page.
struct SweepContent {
  SweepContent(const Sweep& its_sweep, const PartRows& its_rows, const SweepPageOptions& options);

  const Sweep& sweep;
  const PartRows& rows;
  /// What fits before what does not, that before what failed; among these the most tokens a second first.
  std::vector<Row> ranked;
  std::size_t num_failed = 0, num_fitting = 0;
  std::optional<PlotData> data;
  std::vector<ExplainedPoint> explained;

  bool has_best() const { return num_fitting > 0; }
  const Row& best() const { return ranked.front(); }
  /// The row of a point; null where it is not among the ranked.
  const Row* row_of(std::size_t point) const;
  /// "/nodes 512 · /training/micro_batch 1"
  std::string values_of(const JsonValue& row) const;

 private:
  void rank_rows();
  /// The fastest at each place of the axis, at most ten, and the best of all.
  std::vector<std::size_t> points_to_explain() const;
};

/// A figure of a row; 0 where it has none.
double figure(const JsonValue& row, const char* key);
/// A text as it is, other values as JSON; empty where there is none.
std::string text_at(const JsonValue& object, const std::string& key);
bool fits(const Row& row);
/// "12,345"
std::string whole(std::size_t count);
/// A figure of the `place`th ranked row, bound to the page's data.
std::string point_number(std::size_t place, const char* key, const std::string& text,
                         const char* unit = "");

/// The sections of the page, in their order.
std::string headline(const SweepContent& page);
std::string curves(const SweepContent& page);
std::string time_section(const SweepContent& page);
std::string point_section(const SweepContent& page);
std::string failure_section(const SweepContent& page);
std::string input_section(const SweepContent& page);
std::string scenario_section(const SweepContent& page);

}  // namespace windtunnel::detail
