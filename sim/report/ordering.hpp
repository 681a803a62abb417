#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/enum_names.hpp"
#include "core/json_value.hpp"
#include "report/chart.hpp"
#include "report/report_words.hpp"

namespace windtunnel {

/// Knowledge about which of two runs is the faster one.
enum class OrderVerdict {
  faster,          ///< the second, in at least 90 of 100 cases
  slower,          ///< the second, likewise
  about_the_same,  ///< most likely within 3 % of each other
  not_known,       ///< none of these
};

/// A run set against another, with the errors of such differences in validation.
struct Ordering {
  double ratio = 1;  ///< predicted: what the other run takes over what this one takes
  std::pair<double, double> interval{1, 1};  ///< which holds the measured ratio in 90 of 100 cases
  /// Probability that the run predicted to be faster is the faster one: 0.5 is a coin toss.
  double sure = 0.5;
  OrderVerdict verdict = OrderVerdict::not_known;
  bool per_token = false;  ///< of times for a token, where iterations do not hold as many
  std::string reason;      ///< what it rests on, for people

  /// No error turns the order round, as of runs that differ in rates of the machine alone.
  bool is_certain = false;

  bool is_known() const {
    return verdict == OrderVerdict::faster || verdict == OrderVerdict::slower;
  }
};
/// The same where only the size of the difference is in doubt, for `reason`. The runs may not be predicted to be equal.
Ordering certain(Ordering ordering, std::string reason);
/// Mark of the ordering: "✓" if the order is known, else "~".
detail::VerdictMark mark_of(const Ordering& ordering);

/// "faster by 7.0 %, in 96 of 100 cases (in 90 of 100 by 1.2 to 12.5 %)", "about the same: 0.8 % slower by the model, in 55 of 100 cases
/// (…)", "not known which is faster: the difference (5.6 % faster) is within what the model misses by; the sign is right in 81 of 100 cases
/// (…)".
/// The change is of the time, of which the other run's is the whole.
std::string text_of(const Ordering& ordering);
/// {"ratio_interval": [1.012, 1.143], "sure": 0.95, "verdict": "faster", "reason": "…"}
JsonValue ordering_value(const Ordering& ordering);

/// One alternative for a job.
struct PricedPoint {
  std::string label;
  double days = 0, cost = 0;
  bool on_front = false;                   ///< no other point takes fewer days and less money
  std::optional<Chart::Error> error = {};  ///< of days and cost, which go together
  std::string currency = {};               ///< ", USD"
};

/// Marks the points on the Pareto front of days against cost. Of points that are equal in both, all are on it or none is.
void mark_pareto_front(std::vector<PricedPoint>& points);

/// A chart of days (right) against money (up), each from nought.
Chart days_money_chart(const std::vector<PricedPoint>& points);

}  // namespace windtunnel
