#include "validate/validate_text.hpp"

#include <cmath>
#include <vector>

#include "report/number_text.hpp"
#include "report/text_table.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

/// Rows with an error above this carry a star.
constexpr double outlier_error = 0.10;

enum class Sign { shown, hidden };

/// 0.0534 as "5.3 %", with its sign "+5.3 %".
std::string percent(double fraction, Sign sign) {
  return sign == Sign::shown ? signed_percent_text(fraction) : percent_text(fraction);
}

std::string rows_text(const std::vector<ScoredRow>& comparisons) {
  std::vector<TextRow> rows{{"point", "measured", "predicted", "error"}};
  bool outliers = false;
  for (const ScoredRow& row : comparisons) {
    const bool outlier = std::abs(row.error()) > outlier_error;
    outliers = outliers || outlier;
    rows.push_back({row.id, to_text(row.measured), to_text(row.predicted),
                    percent(row.error(), Sign::shown), outlier ? "*" : ""});
  }
  return "\n" + text_table("lrrrl", rows) +
         (outliers ? "  * off by more than " + percent(outlier_error, Sign::hidden) + "\n" : "");
}

const char* naive_model(MeasurementKind kind) {
  return kind == MeasurementKind::collective
             ? "one constant bus bandwidth, fitted on these rows"
             : "one constant efficiency x ideal bubble, fitted on these rows";
}

std::string score_text(const ValidatedSet& set) {
  const std::vector<ScoredRow>& comparisons = set.comparisons;
  const Score all = score(comparisons);
  std::vector<TextRow> rows;
  rows.push_back({"mean absolute error", percent(all.mape, Sign::hidden),
                  "median " + percent(all.median_ape, Sign::hidden) + ", 90th percentile " +
                      percent(all.p90_ape, Sign::hidden) + ", worst " +
                      percent(all.worst_ape, Sign::hidden) + ", bias " +
                      percent(all.bias, Sign::shown)});
  rows.push_back(
      {"bar to clear", percent(naive_mape(comparisons), Sign::hidden), naive_model(set.kind)});
  if (const std::size_t left_out = num_largest(comparisons.size()); left_out > 0)
    rows.push_back({"without the " + std::to_string(left_out) + " largest",
                    percent(score_without_largest(comparisons, left_out).mape, Sign::hidden),
                    "picked after looking: not the score; it tells what a few rows weigh"});
  if (const auto share = interval_coverage(comparisons))
    rows.push_back({"inside the interval", percent(*share, Sign::hidden),
                    "of the measured times; the goal is 90 %"});
  return "\n" + text_table("lrl", rows);
}

std::string groups_text(const std::vector<ScoredRow>& comparisons) {
  const auto groups = by_group(comparisons);
  if (groups.size() < 2 && groups.front().name.empty()) return {};
  std::vector<TextRow> rows{
      {"group", "points", "mean", "bias", "order (Kendall)", "(Spearman)", "regret"}};
  for (const auto& [name, members] : groups) {
    const Score of_group = score(members);
    const auto tau = kendall_tau(members), rho = spearman_rho(members);
    rows.push_back({name, std::to_string(members.size()), percent(of_group.mape, Sign::hidden),
                    percent(of_group.bias, Sign::shown), tau ? fixed_text(*tau, 2) : "-",
                    rho ? fixed_text(*rho, 2) : "-",
                    members.size() > 1 ? percent(top1_regret(members), Sign::hidden) : "-"});
  }
  return "\n" + text_table("lr", rows) +
         "  regret: what choosing the plan predicted fastest costs over the best measured one\n";
}

/// Collectives have no plans to choose among: errors only.
std::string collective_groups_text(const std::vector<ScoredRow>& comparisons) {
  const auto groups = by_group(comparisons);
  if (groups.size() < 2) return {};
  std::vector<TextRow> rows{{"group", "points", "mean", "worst", "bias"}};
  for (const auto& [name, members] : groups) {
    const Score of_group = score(members);
    rows.push_back({name, std::to_string(members.size()), percent(of_group.mape, Sign::hidden),
                    percent(of_group.worst_ape, Sign::hidden),
                    percent(of_group.bias, Sign::shown)});
  }
  return "\n" + text_table("lr", rows);
}

std::string listed(const std::vector<std::string>& names) {
  std::string list;
  for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
  return list;
}

/// One line for each kind of reading, one for each timer.
std::string other_scores_text(const ValidatedSet& set) {
  std::vector<TextRow> rows;
  const auto add = [&rows](const std::string& name, const std::vector<double>& errors) {
    if (errors.empty()) return;
    const Score all = score_errors(errors);
    rows.push_back({name, percent(all.mape, Sign::hidden),
                    "of " + std::to_string(all.scored) + ", worst " +
                        percent(all.worst_ape, Sign::hidden) + ", bias " +
                        percent(all.bias, Sign::shown)});
  };
  for (const MemoryKind kind :
       {MemoryKind::allocated, MemoryKind::reserved, MemoryKind::nvidia_smi})
    add(std::string("memory, ") + name_of(kind), memory_errors(set.memory, kind));
  for (const auto& [name, errors] : timer_errors(set.timers)) add("timer " + name, errors);
  return rows.empty() ? "" : "\n" + text_table("lrl", rows);
}

std::string capacity_text(const CapacityVerdicts& verdicts) {
  std::string text;
  const auto add = [&text](const char* what, const std::vector<std::string>& ids) {
    if (!ids.empty()) text += std::string("  ") + what + ": " + listed(ids) + "\n";
  };
  add("ended out of memory, and refused", verdicts.caught);
  add("ended out of memory, but let run", verdicts.missed);
  add("ran, but refused for want of memory", verdicts.refused_that_ran);
  return text.empty() ? text : "\n" + text;
}

std::string fitted_text(const ValidatedSet& set) {
  const std::set<std::string>& numbers = set.fitted_numbers;
  if (numbers.empty())
    return set.never_fitted ? "\n  never fitted: no constant was chosen with this set\n" : "";
  return "\n  fitted on this set: " + listed({numbers.begin(), numbers.end()}) + "\n";
}

/// The first line of a reason is enough for a list; what follows shows where the text stands.
std::string skipped_text(const std::vector<SkippedPoint>& skipped) {
  std::string text;
  for (const SkippedPoint& point : skipped)
    text += "  skipped " + point.id + ": " + point.why.substr(0, point.why.find('\n')) + "\n";
  return text.empty() ? text : "\n" + text;
}

}  // namespace

std::string validation_text(const ValidatedSet& set) {
  std::string text = set.name + ": " + std::to_string(set.comparisons.size()) + " of " +
                     std::to_string(set.num_points) + " points scored\n  " + set.citation + "\n";
  if (!set.note.empty()) text += "  Note: " + set.note + "\n";
  for (const std::string& override : set.overrides)
    text += "  With " + override + " over every point: not the score of the shipped files\n";
  if (!set.has_scores()) text += "\n  nothing could be scored\n";
  if (!set.comparisons.empty()) {
    text += rows_text(set.comparisons) + score_text(set);
    if (set.kind == MeasurementKind::iteration) text += groups_text(set.comparisons);
    if (set.kind == MeasurementKind::collective) text += collective_groups_text(set.comparisons);
  }
  return text + other_scores_text(set) + capacity_text(set.capacity) + fitted_text(set) +
         skipped_text(set.skipped);
}

}  // namespace windtunnel
