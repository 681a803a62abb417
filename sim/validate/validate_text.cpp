#include "validate/validate_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <string_view>
#include <vector>

#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

/// Rows with an error above this carry a star.
constexpr double outlier_error = 0.10;

enum class Sign { shown, hidden };

/// 0.0534 as "5.3 %", with its sign "+5.3 %".
std::string percent(double fraction, Sign sign) {
  const double rounded = std::round(fraction * 1000) / 10 + 0.0;  // + 0.0: no "-0.0"
  std::array<char, 64> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), rounded,
                                 std::chars_format::fixed, 1)
                       .ptr;
  return (sign == Sign::shown && rounded >= 0 ? "+" : "") + std::string(buffer.data(), end) + " %";
}

std::string tau_text(double tau) {
  std::array<char, 32> buffer;
  const auto end =
      std::to_chars(buffer.data(), buffer.data() + buffer.size(), tau, std::chars_format::fixed, 2)
          .ptr;
  return {buffer.data(), end};
}

using Row = std::vector<std::string>;

/// Rows with the first and the last column left-aligned and the others right-aligned, two blanks in
/// between.
std::string table(const std::vector<Row>& rows) {
  std::vector<std::size_t> widths;
  for (const Row& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const Row& row : rows) {
    std::string line = "  ";
    for (std::size_t i = 0; i < row.size(); ++i) {
      const std::string blanks(widths[i] - row[i].size(), ' ');
      const bool left = i == 0 || i + 1 == widths.size();
      line += (i == 0 ? "" : "  ") + (left ? row[i] + blanks : blanks + row[i]);
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string rows_text(const std::vector<Comparison>& comparisons) {
  std::vector<Row> rows{{"point", "measured", "predicted", "error", ""}};
  bool outliers = false;
  for (const Comparison& row : comparisons) {
    const bool outlier = std::abs(row.error()) > outlier_error;
    outliers = outliers || outlier;
    rows.push_back({row.id, to_text(row.measured), to_text(row.predicted),
                    percent(row.error(), Sign::shown), outlier ? "*" : ""});
  }
  return "\n" + table(rows) +
         (outliers ? "  * off by more than " + percent(outlier_error, Sign::hidden) + "\n" : "");
}

std::string score_text(const std::vector<Comparison>& comparisons) {
  const Score all = score(comparisons);
  std::vector<Row> rows;
  rows.push_back({"mean absolute error", percent(all.mape, Sign::hidden),
                  "median " + percent(all.median_ape, Sign::hidden) + ", 90th percentile " +
                      percent(all.p90_ape, Sign::hidden) + ", worst " +
                      percent(all.worst_ape, Sign::hidden) + ", bias " +
                      percent(all.bias, Sign::shown)});
  rows.push_back({"bar to clear", percent(naive_mape(comparisons), Sign::hidden),
                  "one constant efficiency x ideal bubble, fitted on these rows"});
  if (const std::size_t left_out = num_largest(comparisons.size()); left_out > 0)
    rows.push_back({"without the " + std::to_string(left_out) + " largest",
                    percent(score_without_largest(comparisons, left_out).mape, Sign::hidden),
                    "picked after looking: not the score; it tells what a few rows weigh"});
  return "\n" + table(rows);
}

std::string groups_text(const std::vector<Comparison>& comparisons) {
  const auto groups = by_group(comparisons);
  if (groups.size() < 2) return {};
  std::vector<Row> rows{{"group", "points", "mean", "bias", "order (Kendall)", "regret", ""}};
  for (const auto& [name, members] : groups) {
    const Score of_group = score(members);
    const auto tau = kendall_tau(members);
    rows.push_back({name, std::to_string(members.size()), percent(of_group.mape, Sign::hidden),
                    percent(of_group.bias, Sign::shown), tau ? tau_text(*tau) : "-",
                    members.size() > 1 ? percent(top1_regret(members), Sign::hidden) : "-", ""});
  }
  return "\n" + table(rows) +
         "  regret: what choosing the plan predicted fastest costs over the best measured one\n";
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
  if (set.comparisons.empty())
    text += "\n  nothing could be scored\n";
  else
    text += rows_text(set.comparisons) + score_text(set.comparisons) + groups_text(set.comparisons);
  return text + skipped_text(set.skipped);
}

}  // namespace windtunnel
