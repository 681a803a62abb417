#include <algorithm>
#include <array>
#include <cmath>
#include <set>
#include <vector>

#include "core/text_list.hpp"
#include "report/number_text.hpp"
#include "report/terminal_text.hpp"
#include "units/quantity_reader.hpp"
#include "validate/validation_report.hpp"

namespace windtunnel {
namespace {

constexpr std::array memory_kinds{MemoryKind::allocated, MemoryKind::reserved,
                                  MemoryKind::nvidia_smi};

/// Rows with an error above this carry a star.
constexpr double outlier_error = 0.10;

std::string rows_text(const std::vector<ScoredRow>& comparisons) {
  std::vector<TextRow> rows{{"point", "measured", "predicted", "error"}};
  bool outliers = false;
  for (const ScoredRow& row : comparisons) {
    const bool outlier = std::abs(row.error()) > outlier_error;
    outliers = outliers || outlier;
    rows.push_back({row.id, to_text(row.measured), to_text(row.predicted),
                    signed_percent_text(row.error()), outlier ? "*" : ""});
  }
  return "\n" + text_table("wrrrl", rows) +
         (outliers ? "  * off by more than " + percent_text(outlier_error) + "\n" : "");
}

/// "97.2 %"; a dash of nothing.
std::string share_text(double part, std::size_t whole) {
  return whole == 0 ? "-" : percent_text(part / static_cast<double>(whole));
}

std::string score_text(const ValidatedSet& set) {
  const std::vector<ScoredRow>& comparisons = set.comparisons;
  const Score all = score(comparisons);
  std::vector<TextRow> rows;
  rows.push_back({"mean absolute error", percent_text(all.mape),
                  "median " + percent_text(all.median_ape) + ", 90th percentile " +
                      percent_text(all.p90_ape) + ", worst " + percent_text(all.worst_ape) +
                      ", bias " + signed_percent_text(all.bias)});
  rows.push_back({"bar to clear", percent_text(naive_mape(comparisons)),
                  (set.kind == MeasurementKind::collective
                       ? "one constant bus bandwidth, fitted on these rows"
                       : "one constant efficiency x ideal bubble, fitted on these rows")});
  if (const std::size_t left_out = num_largest(comparisons.size()); left_out > 0)
    rows.push_back({"without the " + std::to_string(left_out) + " largest",
                    percent_text(score_without_largest(comparisons, left_out).mape),
                    "picked after looking: not the score; it tells what a few rows weigh"});
  if (const auto share = interval_coverage(comparisons))
    rows.push_back(
        {"inside the interval", percent_text(*share), "of the measured times; the goal is 90 %"});
  if (const OrderScore& orders = set.orders; orders.apart > 0)
    rows.push_back({"order of two plans", share_text(orders.right, orders.apart),
                    "right, of " + std::to_string(orders.apart) +
                        " pairs that differ by more than 3 %; " +
                        share_text(static_cast<double>(orders.said), orders.apart) +
                        " are said to be known, " +
                        share_text(static_cast<double>(orders.said_right), orders.said) +
                        " of these are right"});
  return "\n" + text_table("lrw", rows);
}

std::string groups_text(const std::vector<ScoredRow>& comparisons) {
  const auto groups = by_group(comparisons);
  if (groups.size() < 2 && groups.front().name.empty()) return {};
  std::vector<TextRow> rows{
      {"group", "points", "mean", "bias", "order (Kendall)", "order (Spearman)", "regret"}};
  for (const auto& [name, members] : groups) {
    const Score of_group = score(members);
    const auto tau = kendall_tau(members), rho = spearman_rho(members);
    rows.push_back({name, std::to_string(members.size()), percent_text(of_group.mape),
                    signed_percent_text(of_group.bias), tau ? fixed_text(*tau, 2) : "-",
                    rho ? fixed_text(*rho, 2) : "-",
                    members.size() > 1 ? percent_text(top1_regret(members)) : "-"});
  }
  return "\n" + text_table("wrrrr?r??r", rows) +
         "  regret: what choosing the plan predicted fastest costs over the best measured one\n";
}

/// Of a set whose groups are pairs, what the second row of each has over the first: the difference is what was measured.
std::string pairs_text(const std::vector<ScoredRow>& comparisons) {
  const auto groups = by_group(comparisons);
  std::vector<TextRow> rows{{"pair", "measured", "predicted", "ratio"}};
  std::vector<double> ratios;
  for (const auto& [name, members] : groups) {
    if (members.size() != 2 || name.empty()) return {};
    const ScoredRow &off = members.front(), &on = members.back();
    const double measured = on.measured / off.measured - 1,
                 predicted = on.predicted / off.predicted - 1;
    ratios.push_back(predicted / measured);
    rows.push_back({name, signed_percent_text(measured), signed_percent_text(predicted),
                    fixed_text(ratios.back(), 2)});
  }
  const auto right = std::ranges::count_if(ratios, [](double r) { return r > 0; });
  return "\n" + text_table("lr", rows) + "  sign right in " + std::to_string(right) + " of " +
         std::to_string(ratios.size()) + ", median size " +
         fixed_text(score_errors(ratios).median_ape, 2) + " of the measured\n";
}

/// Collectives have no plans to choose among: errors only.
std::string collective_groups_text(const std::vector<ScoredRow>& comparisons) {
  const auto groups = by_group(comparisons);
  if (groups.size() < 2) return {};
  std::vector<TextRow> rows{{"group", "points", "mean", "worst", "bias"}};
  for (const auto& [name, members] : groups) {
    const Score of_group = score(members);
    rows.push_back({name, std::to_string(members.size()), percent_text(of_group.mape),
                    percent_text(of_group.worst_ape), signed_percent_text(of_group.bias)});
  }
  return "\n" + text_table("lr", rows);
}

/// One line for each kind of reading, one for each timer.
std::string other_scores_text(const ValidatedSet& set) {
  std::vector<TextRow> rows;
  const auto add = [&rows](const std::string& name, const std::vector<double>& errors) {
    if (errors.empty()) return;
    const Score all = score_errors(errors);
    rows.push_back({name, percent_text(all.mape),
                    "of " + std::to_string(all.scored) + ", worst " + percent_text(all.worst_ape) +
                        ", bias " + signed_percent_text(all.bias)});
  };
  for (const MemoryKind kind : memory_kinds)
    add("memory, " + dashed_name(kind), memory_errors(set.memory, kind));
  for (const auto& [name, errors] : timer_errors(set.timers)) add("timer " + name, errors);
  return rows.empty() ? "" : "\n" + text_table("lrw", rows);
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
  return "\n  fitted on this set: " + listed(numbers) + "\n";
}

/// The first line of a reason is enough for a list; what follows shows where the text stands.
std::string skipped_text(const std::vector<SkippedPoint>& skipped) {
  std::string text;
  for (const SkippedPoint& point : skipped)
    text += "  skipped " + point.id + ": " + point.why.substr(0, point.why.find('\n')) + "\n";
  return text.empty() ? text : "\n" + text;
}

constexpr const char* legend_text =
    "\n"
    "  bar     error of one constant (efficiency, bus bandwidth) fitted on these rows\n"
    "  inside  measured times inside the predicted 90 % interval, in %\n"
    "  fitted  how many numbers of the files in use were fitted on these very rows\n"
    "          (never: a set that nothing may be fitted on)\n"
    "  --details prints rows, timers, the order of plans, what was skipped\n";

std::string in_percent(double share) { return fixed_text(100 * share, 1); }

std::string signed_in_percent(double share) {
  std::string text = signed_percent_text(share);
  return text.substr(0, text.find(' '));
}

TextRow row_of(const ValidatedSet& set) {
  const std::string scored = std::to_string(set.comparisons.size());
  const bool are_all = set.comparisons.size() == set.num_points;
  TextRow row{set.name, are_all ? scored : scored + "/" + std::to_string(set.num_points)};
  if (set.comparisons.empty()) {
    row.insert(row.end(), 5, "-");
  } else {
    const Score all = score(set.comparisons);
    const auto inside = interval_coverage(set.comparisons);
    row.insert(row.end(), {in_percent(all.mape), in_percent(all.worst_ape),
                           signed_in_percent(all.bias), in_percent(naive_mape(set.comparisons)),
                           inside ? fixed_text(100 * *inside, 0) : "-"});
  }
  row.push_back(set.never_fitted && set.fitted_numbers.empty()
                    ? "never"
                    : std::to_string(set.fitted_numbers.size()));
  return row;
}

/// A heading and a row for each set of the kind; nothing where there is none. One without times, but with memory, has none here.
std::vector<TextRow> rows_of_times(const std::vector<ValidatedSet>& sets, MeasurementKind kind) {
  std::vector<TextRow> rows;
  for (const ValidatedSet& set : sets)
    if (set.kind == kind && (set.memory.empty() || !set.comparisons.empty()))
      rows.push_back(row_of(set));
  const bool of_iterations = kind == MeasurementKind::iteration;
  if (!rows.empty())
    rows.insert(rows.begin(),
                {of_iterations ? "iteration times, errors in %" : "collectives, errors in %",
                 "rows", "mean", "worst", "bias", "bar", "inside", "fitted"});
  return rows;
}

std::vector<TextRow> rows_of_memory(const std::vector<ValidatedSet>& sets) {
  std::vector<TextRow> rows;
  for (const ValidatedSet& set : sets)
    for (const MemoryKind kind : memory_kinds) {
      const std::vector<double> errors = memory_errors(set.memory, kind);
      if (errors.empty()) continue;
      const Score all = score_errors(errors);
      rows.push_back({set.name + ", " + dashed_name(kind), std::to_string(all.scored),
                      in_percent(all.mape), in_percent(all.worst_ape),
                      signed_in_percent(all.bias)});
    }
  if (!rows.empty())
    rows.insert(rows.begin(), {"memory, errors in %", "rows", "mean", "worst", "bias"});
  return rows;
}

/// Of sets some of whose runs ended out of memory; the last line is their sum.
std::vector<TextRow> rows_of_verdicts(const std::vector<ValidatedSet>& sets) {
  std::vector<TextRow> rows{
      {"memory, ran + out of memory", "fits", "at risk", "lower bound", "does not fit"}};
  std::array<CapacityVerdicts::Ends, 4> sum{};
  const auto add = [&rows](const std::string& name, const auto& by_verdict) {
    TextRow row{name};
    for (const CapacityVerdicts::Ends& ends : by_verdict)
      row.push_back(std::to_string(ends.ran) + " + " + std::to_string(ends.out_of_memory));
    rows.push_back(row);
  };
  for (const ValidatedSet& set : sets) {
    const CapacityVerdicts& verdicts = set.capacity;
    if (verdicts.caught.empty() && verdicts.missed.empty()) continue;
    add(set.name, verdicts.by_verdict);
    for (std::size_t i = 0; i < sum.size(); ++i) {
      sum[i].ran += verdicts.by_verdict[i].ran;
      sum[i].out_of_memory += verdicts.by_verdict[i].out_of_memory;
    }
  }
  if (rows.size() == 1) return {};
  if (rows.size() > 2) add("all of them", sum);
  return rows;
}

}  // namespace

std::string validation_text(const ValidatedSet& set) {
  const std::string points = std::to_string(set.num_points);
  std::string text = set.name + ": ";
  text += set.comparisons.empty() && !set.memory.empty()
              ? points + " points, scored by memory alone"
              : std::to_string(set.comparisons.size()) + " of " + points + " points scored";
  text += "\n  " + set.citation + "\n";
  if (!set.note.empty()) text += "  Note: " + set.note + "\n";
  for (const std::string& override : set.overrides)
    text += "  With " + override + " over every point: not the score of the shipped files\n";
  if (!set.has_scores()) text += "\n  nothing could be scored\n";
  if (!set.comparisons.empty()) {
    text += rows_text(set.comparisons) + score_text(set);
    if (set.kind == MeasurementKind::iteration)
      text += groups_text(set.comparisons) + pairs_text(set.comparisons);
    if (set.kind == MeasurementKind::collective) text += collective_groups_text(set.comparisons);
  }
  return text + other_scores_text(set) + capacity_text(set.capacity) + fitted_text(set) +
         skipped_text(set.skipped);
}

namespace {

/// How often the order of two plans is right, every set counting alike.
std::string orders_text(const std::vector<ValidatedSet>& sets) {
  double right = 0, said = 0, said_right = 0, covered = 0;
  std::size_t pairs = 0, with_apart = 0, with_said = 0, with_pairs = 0;
  const auto add = [](double& sum, auto part, std::size_t whole) -> std::size_t {
    if (whole > 0) sum += static_cast<double>(part) / static_cast<double>(whole);
    return whole > 0;
  };
  for (const ValidatedSet& set : sets) {
    const OrderScore& orders = set.orders;
    pairs += orders.apart;
    with_pairs += add(covered, orders.covered, orders.pairs);
    with_apart += add(right, orders.right, orders.apart);
    add(said, orders.said, orders.apart);
    with_said += add(said_right, orders.said_right, orders.said);
  }
  if (with_apart == 0) return "";
  const auto mean = [](double sum, std::size_t count) {
    return count == 0 ? std::string("-") : percent_text(sum / static_cast<double>(count));
  };
  return text_table("lrw", {{"order of two plans", mean(right, with_apart),
                             "right, of pairs that differ by more than 3 % (" +
                                 grouped_text(static_cast<double>(pairs)) + " in " +
                                 std::to_string(with_apart) + " sets that count alike)"},
                            {"  said to be known", mean(said, with_apart), "of these pairs"},
                            {"  right where said", mean(said_right, with_said), "the goal is 90 %"},
                            {"  ratio in its interval", mean(covered, with_pairs),
                             "of all pairs; the goal is 90 %"}});
}

}  // namespace

std::string validation_summary(const std::vector<ValidatedSet>& sets, Legend legend) {
  std::vector<TextRow> rows;
  for (const auto& part :
       {rows_of_times(sets, MeasurementKind::iteration),
        rows_of_times(sets, MeasurementKind::collective), rows_of_memory(sets)}) {
    if (!rows.empty() && !part.empty()) rows.push_back({""});
    rows.insert(rows.end(), part.begin(), part.end());
  }
  std::set<std::string> overrides;
  const std::string orders = orders_text(sets);
  for (const ValidatedSet& set : sets) overrides.insert(set.overrides.begin(), set.overrides.end());
  std::string text = text_table("lrrr?r??r???r?r??", rows);
  if (const std::vector<TextRow> verdicts = rows_of_verdicts(sets); !verdicts.empty())
    text += (text.empty() ? "" : "\n") + text_table("lr", verdicts);
  if (!orders.empty()) text += (text.empty() ? "" : "\n") + orders;
  for (const std::string& override : overrides)
    text += "  With " + override + " over every point: not the score of the shipped files\n";
  return legend == Legend::shown ? text + legend_text : text;
}

}  // namespace windtunnel
