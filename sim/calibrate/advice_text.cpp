#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "calibrate/advice.hpp"
#include "calibrate/calibration_text.hpp"
#include "core/count_text.hpp"
#include "core/json_build.hpp"
#include "core/normal.hpp"
#include "report/explanation.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/terminal_text.hpp"

namespace windtunnel {
namespace {

using detail::time_text;

double factor_of(double width) { return std::exp(normal_95th * width); }

std::string interval_text(Seconds time, double width) {
  const Seconds upper = time * factor_of(width);
  return time_text(time / factor_of(width), upper) + " to " + time_text(upper, upper);
}

std::string value_of(const Overrides& overrides, const std::string& pointer) {
  const auto found = std::find_if(overrides.begin(), overrides.end(),
                                  [&](const auto& each) { return each.first == pointer; });
  return found == overrides.end() ? "" : found->second;
}

std::string run_text(const AdvisedRun& run) {
  return count_text(run.gpus, "GPU") + ": " + run.plan + ", " +
         count_text(std::stoul(value_of(run.overrides, "/model/layers")), "layer") + " in all";
}

std::string command_of(const AdvisedRun& run, const std::string& file) {
  std::vector<std::string> words{"windtunnel", "run", file};
  for (const auto& [pointer, value] : run.overrides)
    words.insert(words.end(), {"--set", pointer + "=" + value});
  return shell_line(words);
}

std::string constants_text(const Advice& advice) {
  std::string text = "\n  It depends on\n";
  std::size_t widest = 0;
  for (const AdvisedConstant& each : advice.constants)
    widest = std::max(widest, each.constant.name.size());
  for (const AdvisedConstant& each : advice.constants)
    text += "    " + left_aligned(each.constant.name, static_cast<int>(widest) + 2) +
            right_aligned(text_of(each.given), 10) + "  known to a factor of " +
            fixed_text(factor_of(each.spread), 2) + "; 10 % of it is " +
            signed_percent_text(std::pow(1.1, each.sensitivity) - 1) + " of the time\n";
  return text;
}

/// "87 of 100 cases"
std::string cases_text(double share) { return fixed_text(100 * share, 0) + " of 100 cases"; }

std::string decision_text(const AdvisedDecision& decision, const std::string& against) {
  const double ratio = std::exp(decision.gain);  // time of the other over that of the plan
  const std::string change =
      ratio < 1 ? percent_text(1 / ratio - 1) + " slower" : percent_text(1 - 1 / ratio) + " faster";
  return "It is " + change + " than " + against + ", which is right in " +
         cases_text(decision.sure);
}

std::string skipped_text(const Advice& advice) {
  std::string text;
  for (const auto& [row, why] : advice.skipped) text += "  skipped " + row + ": " + why + "\n";
  return text;
}

std::string refused_text(const Advice& advice) {
  if (advice.num_refused == 0) return {};
  return "  (" + std::to_string(advice.num_refused) +
         " more cannot be simulated; the first: " + advice.why_refused + ")\n";
}

JsonValue interval_value(Seconds time, double width) {
  return array_of(
      std::array{time / factor_of(width) / Seconds{1}, time * factor_of(width) / Seconds{1}});
}

JsonValue advised_constant(const AdvisedConstant& each) {
  return object_of({{"name", each.constant.name},
                    {"pointer", each.constant.pointer},
                    {"value", text_of(each.given)},
                    {"spread", each.spread},
                    {"sensitivity", each.sensitivity}});
}

}  // namespace

std::string advice_text(const Advice& advice, const std::string& file, const std::string& against) {
  const Seconds time = advice.iteration_time;
  std::string text = file + ": " + time_text(time, time) +
                     " per iteration\n\n  90 % interval of what its constants leave open: " +
                     interval_text(time, advice.width) + ", with " +
                     count_text(advice.num_rows, "measured row") + "\n" + skipped_text(advice) +
                     constants_text(advice);
  if (advice.decision) text += "\n  " + decision_text(*advice.decision, against) + "\n";
  if (advice.runs.empty())
    return text + "\n  No run on one to four nodes would narrow it by a twentieth: " +
           count_text(advice.num_candidates, "configuration") + " tried\n" + refused_text(advice);
  text += "\n  Measure next, of " + count_text(advice.num_candidates, "configuration") +
          " that fit on one to four nodes\n" + refused_text(advice);
  int number = 0;
  for (const AdvisedRun& run : advice.runs)
    text += "    " + std::to_string(++number) + ". " + run_text(run) + "; " +
            time_text(run.iteration_time, run.iteration_time) + " an iteration\n       then " +
            interval_text(time, run.width_after) +
            (advice.decision ? "; should it take that long, the decision is right in " +
                                   cases_text(run.sure_after)
                             : "") +
            "\n       " + command_of(run, file) + "\n";
  return text;
}

std::string advice_json(const Advice& advice) {
  const auto run_value = [&](const AdvisedRun& run) {
    JsonValue set = empty_object();
    for (const auto& [pointer, text] : run.overrides) set.set(pointer, JsonValue(text));
    return object_of({{"set", set},
                      {"gpus", run.gpus},
                      {"iteration_time_s", run.iteration_time},
                      {"interval_s", interval_value(advice.iteration_time, run.width_after)},
                      {"sure", only_if(advice.decision.has_value(), run.sure_after)}});
  };
  std::optional<JsonValue> decision;
  if (advice.decision)
    decision = object_of({{"speedup", std::exp(advice.decision->gain)},
                          {"spread", advice.decision->width},
                          {"sure", advice.decision->sure}});
  return pretty_text(
             object_of({{"schema", "windtunnel/advice-v1"},
                        {"iteration_time_s", advice.iteration_time},
                        {"interval_s", interval_value(advice.iteration_time, advice.width)},
                        {"measured_rows", advice.num_rows},
                        {"candidates", advice.num_candidates},
                        {"refused", advice.num_refused},
                        {"first_refusal",
                         advice.num_refused > 0 ? std::optional(advice.why_refused) : std::nullopt},
                        {"decision", decision},
                        {"constants", array_of(advice.constants, advised_constant)},
                        {"measure_next", array_of(advice.runs, run_value)},
                        {"skipped", skipped_value(advice.skipped)}})) +
         "\n";
}

}  // namespace windtunnel
