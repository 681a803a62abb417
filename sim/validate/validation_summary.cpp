#include "validate/validation_summary.hpp"

#include <set>

#include "report/number_text.hpp"
#include "report/text_table.hpp"

namespace windtunnel {
namespace {

constexpr const char* legend_text =
    "\n"
    "  bar     error of one constant (efficiency, bus bandwidth) fitted on these rows\n"
    "  inside  measured times inside the predicted 90 % interval, in %\n"
    "  fitted  how many numbers of the files in use were fitted on these very rows\n"
    "          (never: a set that nothing may be fitted on)\n"
    "  --details prints rows, memory, timers, the order of plans, what was skipped\n";

std::string in_percent(double share) { return fixed_text(100 * share, 1); }

std::string signed_in_percent(double share) {
  std::string text = signed_percent_text(share);
  return text.substr(0, text.find(' '));
}

std::string inside_text(const std::vector<ScoredRow>& comparisons) {
  const auto share = interval_coverage(comparisons);
  return share ? fixed_text(100 * *share, 0) : "-";
}

/// "42/47", or "42" where that is all.
std::string scored_text(const ValidatedSet& set) {
  const std::string scored = std::to_string(set.comparisons.size());
  return set.comparisons.size() == set.num_points ? scored
                                                  : scored + "/" + std::to_string(set.num_points);
}

TextRow row_of(const ValidatedSet& set) {
  TextRow row{set.name, scored_text(set)};
  if (set.comparisons.empty()) {
    row.insert(row.end(), 5, "-");
  } else {
    const Score all = score(set.comparisons);
    row.insert(row.end(),
               {in_percent(all.mape), in_percent(all.worst_ape), signed_in_percent(all.bias),
                in_percent(naive_mape(set.comparisons)), inside_text(set.comparisons)});
  }
  row.push_back(set.never_fitted && set.fitted_numbers.empty()
                    ? "never"
                    : std::to_string(set.fitted_numbers.size()));
  return row;
}

TextRow heading(MeasurementKind kind) {
  const std::string what = kind == MeasurementKind::iteration ? "iteration times" : "collectives";
  return {what + ", errors in %", "rows", "mean", "worst", "bias", "bar", "inside", "fitted"};
}

}  // namespace

std::string validation_summary(const std::vector<ValidatedSet>& sets, Legend legend) {
  std::vector<TextRow> rows;
  for (const MeasurementKind kind : {MeasurementKind::iteration, MeasurementKind::collective}) {
    std::vector<TextRow> of_kind{heading(kind)};
    for (const ValidatedSet& set : sets)
      if (set.kind == kind) of_kind.push_back(row_of(set));
    if (of_kind.size() == 1) continue;
    if (!rows.empty()) rows.push_back({""});
    rows.insert(rows.end(), of_kind.begin(), of_kind.end());
  }
  std::set<std::string> overrides;
  for (const ValidatedSet& set : sets) overrides.insert(set.overrides.begin(), set.overrides.end());
  std::string text = text_table("lr", rows);
  for (const std::string& override : overrides)
    text += "  With " + override + " over every point: not the score of the shipped files\n";
  return legend == Legend::shown ? text + legend_text : text;
}

}  // namespace windtunnel
