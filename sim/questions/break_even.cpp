#include "questions/break_even.hpp"

#include <cmath>
#include <cstdint>
#include <cstring>
#include <string>
#include <variant>

#include "core/contracts.hpp"
#include "report/number_text.hpp"
#include "simulate/simulate.hpp"
#include "units/amount_range.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

constexpr int digits = 17;  ///< that every double survives

/// "200 Gbps" times `factor`, as text in bytes per second, as far as a file may say it.
void scale_rate(JsonValue& object, const char* key, double factor) {
  JsonValue* const value = object.find(key);
  if (value == nullptr || !value->is_string()) return;
  std::string problem, suggestion;
  const auto rate = parse_quantity<BytesPerSecond>(value->string(), problem, suggestion);
  WT_EXPECT(rate.has_value());
  value->content = significant_text(clamped(*rate * factor) / BytesPerSecond{1}, digits) + " B/s";
}

void scale_number(JsonValue& value, double factor) {
  if (const auto* integer = std::get_if<std::int64_t>(&value.content))
    value.content = static_cast<double>(*integer) * factor;
  else if (const auto* number = std::get_if<double>(&value.content))
    value.content = *number * factor;
}

/// Does something to each element of list `key`, where there is one.
template <class Change>
void for_each_in(JsonValue& object, const char* key, Change change) {
  JsonValue* const list = object.find(key);
  if (list == nullptr || !list->is_array()) return;
  for (JsonValue& element : list->array()) change(element);
}

void scale_between_nodes(JsonValue& platform, double factor) {
  for_each_in(platform, "node_types",
              [=](JsonValue& node) { scale_rate(node, "nic_rate", factor); });
  for_each_in(platform, "link_overrides",
              [=](JsonValue& link) { scale_rate(link, "bandwidth", factor); });
  JsonValue* const matrix = platform.find("bandwidth_matrix");
  if (matrix == nullptr) return;
  for_each_in(*matrix, "rows", [=](JsonValue& row) {
    for (JsonValue& cell : row.array()) scale_number(cell, factor);
  });
}

void scale_inside_nodes(JsonValue& platform, double factor) {
  for_each_in(platform, "node_types", [=](JsonValue& node) {
    JsonValue* const interconnect = node.find("interconnect");
    if (interconnect == nullptr) return;
    for (const char* rate : {"saturated_bandwidth", "small_bandwidth", "point_to_point"})
      scale_rate(*interconnect, rate, factor);
  });
}

/// -1: the second is faster; 1: slower; 0: as fast.
int sign_of(Seconds first, Seconds second) {
  if (std::abs(second / first - 1) < equal_within) return 0;
  return second < first ? -1 : 1;
}

/// The search of one question: the range that is left, as logarithms of the factor, and the signs at its ends.
struct Bracket {
  double low, high;
  int low_sign = 0, high_sign = 0;
  double middle() const { return (low + high) / 2; }
  bool is_open(double tolerance) const {
    return low_sign != high_sign && high - low > std::log1p(tolerance);
  }
  void narrow(int middle_sign) {
    if (middle_sign == low_sign)
      low = middle();
    else
      high = middle();
  }
};

BreakEven::Outcome outcome_of(const Bracket& bracket) {
  if (bracket.low_sign != bracket.high_sign) return BreakEven::Outcome::crosses;
  if (bracket.low_sign == 0) return BreakEven::Outcome::always_equal;
  return bracket.low_sign < 0 ? BreakEven::Outcome::always_faster
                              : BreakEven::Outcome::always_slower;
}

BreakEven answer_of(const BreakEvenQuestion& question, const Bracket& bracket) {
  BreakEven found;
  found.what = question.what;
  found.part = question.part;
  found.outcome = outcome_of(bracket);
  found.bandwidth_now = question.bandwidth_now;
  if (found.outcome != BreakEven::Outcome::crosses) return found;
  found.factor = std::exp(bracket.middle());
  found.bandwidth = question.bandwidth_now * found.factor;
  found.faster_below = bracket.low_sign < bracket.high_sign;
  return found;
}

/// A question at one factor.
struct Probe {
  std::size_t question;
  double log_factor;
};

/// The signs at the probes, all simulated together.
std::vector<int> signs_at(const std::vector<Probe>& probes,
                          const std::vector<BreakEvenQuestion>& questions, const Library& library,
                          const BreakEvenSearch& search, std::uint64_t seed) {
  std::vector<JsonValue> trees;
  for (const Probe& probe : probes) {
    const BreakEvenQuestion& question = questions[probe.question];
    const double factor = std::exp(probe.log_factor);
    trees.push_back(with_scaled_network(question.first, question.part, factor));
    trees.push_back(with_scaled_network(question.second, question.part, factor));
  }
  const std::vector<Seconds> times =
      iteration_times(trees, library, {"searching the break-even bandwidth", search.at_once, seed});
  std::vector<int> signs;
  for (std::size_t i = 0; i < times.size(); i += 2)
    signs.push_back(sign_of(times[i], times[i + 1]));
  return signs;
}

}  // namespace

std::vector<Seconds> iteration_times(const std::vector<JsonValue>& resolved, const Library& library,
                                     const TimedSimulations& how) {
  const auto outcomes = run_tasks<Seconds>(
      {.count = resolved.size(), .at_once = how.at_once, .work = [&](std::size_t i) {
         const Scenario scenario = read_scenario(resolved[i], {}, library, {{}, how.seed});
         return simulate(scenario).report.iteration_time;
       }});
  std::vector<Seconds> times;
  for (const TaskOutcome<Seconds>& outcome : outcomes) {
    if (const auto* failure = std::get_if<ChildFailure>(&outcome))
      throw_failure(*failure, how.what_for);
    times.push_back(std::get<Seconds>(outcome));
  }
  return times;
}

JsonValue with_scaled_network(JsonValue resolved, NetworkPart part, double factor) {
  JsonValue* const platform = resolved.find("platform");
  WT_EXPECT(platform != nullptr && platform->is_object());
  if (part == NetworkPart::between_nodes)
    scale_between_nodes(*platform, factor);
  else
    scale_inside_nodes(*platform, factor);
  return resolved;
}

BytesPerSecond network_bandwidth(const Scenario& scenario, NetworkPart part) {
  const NodeType& node = scenario.nodes.front();
  return part == NetworkPart::between_nodes ? node.effective_nic_rate() * node.nics
                                            : node.interconnect.point_to_point;
}

std::vector<BreakEven> find_break_evens(const std::vector<BreakEvenQuestion>& questions,
                                        const Library& library, const BreakEvenSearch& search,
                                        std::uint64_t seed) {
  const auto signs = [&](const std::vector<Probe>& probes) {
    return signs_at(probes, questions, library, search, seed);
  };
  std::vector<Bracket> brackets(questions.size(),
                                {std::log(search.lowest), std::log(search.highest)});
  std::vector<Probe> ends;
  for (std::size_t i = 0; i < questions.size(); ++i)
    for (const double end : {brackets[i].low, brackets[i].high}) ends.push_back({i, end});
  const std::vector<int> at_ends = signs(ends);
  for (std::size_t i = 0; i < questions.size(); ++i) {
    brackets[i].low_sign = at_ends[2 * i];
    brackets[i].high_sign = at_ends[2 * i + 1];
  }
  for (;;) {
    std::vector<Probe> probes;
    for (std::size_t i = 0; i < questions.size(); ++i)
      if (brackets[i].is_open(search.tolerance)) probes.push_back({i, brackets[i].middle()});
    if (probes.empty()) break;
    const std::vector<int> found = signs(probes);
    for (std::size_t i = 0; i < probes.size(); ++i) brackets[probes[i].question].narrow(found[i]);
  }
  std::vector<BreakEven> answers;
  for (std::size_t i = 0; i < questions.size(); ++i)
    answers.push_back(answer_of(questions[i], brackets[i]));
  return answers;
}

}  // namespace windtunnel
