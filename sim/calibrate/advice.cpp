#include "calibrate/advice.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <numeric>
#include <optional>
#include <utility>
#include <variant>

#include "calibrate/calibrate.hpp"
#include "calibrate/calibrate_command.hpp"
#include "core/contracts.hpp"
#include "core/count_text.hpp"
#include "core/json_build.hpp"
#include "core/mapped.hpp"
#include "core/normal.hpp"
#include "core/number_in.hpp"
#include "core/option_error.hpp"
#include "core/text_list.hpp"
#include "evidence/interval.hpp"
#include "report/explanation.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/report_words.hpp"
#include "report/terminal_text.hpp"
#include "scenario/scenario.hpp"
#include "simulate/built_scenario.hpp"

namespace windtunnel {

namespace {

Eigen::Map<const Eigen::VectorXd> vector_of(const std::vector<double>& numbers) {
  return {numbers.data(), static_cast<Eigen::Index>(numbers.size())};
}

constexpr double step = 0.05;           ///< of ln(constant), for differences
constexpr double least_effect = 1e-3;   ///< of a constant on ln(time): below, it is left out
constexpr double nearly_as_well = 0.1;  ///< of the gain: for that, fewer GPUs are taken
constexpr double hardly_any = 0.1;      ///< of the variance: not worth a measurement
constexpr std::size_t most_runs = 3;
constexpr int most_nodes = 4;

/// A scenario that is simulated with several values of the constants.
struct Configuration {
  const JsonValue* scenario = nullptr;
  std::filesystem::path folder;
  Overrides overrides;
};

/// The result of simulating one.
struct Figures {
  Seconds time{};
  int gpus = 0;
  bool fits = false;
};

/// A configuration's time, and its differences by ln(constant).
struct LinearTime {
  Figures figures;
  std::vector<double> gradient;
};

/// A configuration's, or why it cannot be simulated.
using LinearOutcome = std::variant<LinearTime, ChildFailure>;

class Linearizer {
 public:
  Linearizer(const AdviceRequest& request, const Library& library,
             std::vector<FitConstant> constants, std::vector<NumberWithUnit> given, bool has_alike)
      : request_(&request),
        library_(&library),
        constants_(std::move(constants)),
        given_(std::move(given)),
        has_alike_(has_alike) {
    for (std::size_t j = 0; j < constants_.size(); ++j)
      starts_.push_back(range_of(constants_[j], given_[j].number).start);
  }

  const std::vector<FitConstant>& constants() const { return constants_; }
  const std::vector<NumberWithUnit>& given() const { return given_; }
  std::size_t num_simulations() const { return num_simulations_; }

  std::vector<LinearOutcome> linearize(const std::vector<Configuration>& configurations) {
    const std::size_t each = constants_.size() + 1;
    Tasks<Figures> tasks{configurations.size() * each, default_at_once(), [&](std::size_t i) {
                           return simulate_one(configurations[i / each], i % each);
                         }};
    if (request_->on_progress)
      tasks.on_done = [&](std::size_t done) { request_->on_progress(num_simulations_ + done); };
    const std::vector<TaskOutcome<Figures>> outcomes = run_tasks(tasks);
    num_simulations_ += tasks.count;
    std::vector<LinearOutcome> times;
    for (std::size_t i = 0; i < configurations.size(); ++i)
      times.push_back(time_of(outcomes, i * each));
    return times;
  }

 private:
  /// With the given values where `moved` is 0, else with constant `moved` - 1 larger.
  Figures simulate_one(const Configuration& configuration, std::size_t moved) const {
    ReadOptions options{.overrides = configuration.overrides};
    Overrides values;
    for (std::size_t j = 0; j < constants_.size(); ++j)
      values.emplace_back(
          constants_[j].pointer,
          text_of({starts_[j] * (j + 1 == moved ? std::exp(step) : 1), given_[j].unit}));
    AlikePlaces places;  // rows may have another platform than the plan
    if (has_alike_) {
      Scenario given =
          read_scenario(*configuration.scenario, configuration.folder, *library_, options);
      places = alike_places(constants_, given.resolved);
    }
    for (auto& each : on_all_places(values, places)) options.overrides.push_back(std::move(each));
    const Scenario scenario =
        read_scenario(*configuration.scenario, configuration.folder, *library_, options);
    const Report report = simulate_key_figures(scenario, build(scenario));
    return {report.iteration_time, report.num_gpus, report.memory.fits};
  }

  LinearOutcome time_of(const std::vector<TaskOutcome<Figures>>& outcomes,
                        std::size_t first) const {
    for (std::size_t j = 0; j <= constants_.size(); ++j)
      if (const auto* failure = std::get_if<ChildFailure>(&outcomes[first + j])) return *failure;
    LinearTime time{std::get<Figures>(outcomes[first]), {}};
    for (std::size_t j = 1; j <= constants_.size(); ++j)
      time.gradient.push_back(
          std::log(std::get<Figures>(outcomes[first + j]).time / time.figures.time) / step);
    return time;
  }

  const AdviceRequest* request_;
  const Library* library_;
  std::vector<FitConstant> constants_;
  std::vector<NumberWithUnit> given_;
  bool has_alike_;  ///< a constant is of several node types of the plan
  std::vector<double> starts_;
  std::size_t num_simulations_ = 0;
};

Linearizer make_linearizer(const AdviceRequest& request, Scenario& plan, const Library& library) {
  std::vector<FitConstant> constants;
  std::vector<NumberWithUnit> given;
  const bool all = request.constants.empty();
  for (const FitConstant& constant : all ? named_fit_constants() : request.constants) {
    const auto number = number_at(plan.resolved, constant.pointer);
    if (!number && !all)
      throw option_error("--fit", constant.name,
                         "the plan's scenario has no number at " + constant.pointer,
                         "windtunnel show --resolved prints all that there are");
    if (!number) continue;
    constants.push_back(constant);
    given.push_back(*number);
  }
  const bool has_alike = !alike_places(constants, plan.resolved).empty();
  return {request, library, std::move(constants), std::move(given), has_alike};
}

/// Splits experts as the plan does, as far as the ranks of a stage allow: expert * expert_tensor must divide them. With a tensor degree experts
/// ask for split sequences.
void split_experts(const Parallel& plan, Overrides& changes) {
  const auto ranks = static_cast<int>(plan.ranks_of_stage());
  const int expert = std::gcd(plan.expert, ranks);
  const int expert_tensor = std::gcd(plan.expert_tensor, ranks / expert);
  if (expert != plan.expert) changes.emplace_back("/parallel/expert", std::to_string(expert));
  if (expert_tensor != plan.expert_tensor)
    changes.emplace_back("/parallel/expert_tensor", std::to_string(expert_tensor));
  if (plan.tensor > 1 && !plan.sequence_parallel)
    changes.emplace_back("/parallel/sequence_parallel", "true");
}

/// A configuration to measure.
struct Cut {
  int nodes = 1, tensor = 1, pipeline = 1, micro_batch = 1;
  int layers_of_stage = 1;
};

/// The plan on fewer nodes, with fewer stages or layers.
std::optional<Overrides> changed_plan(const Scenario& plan, const Cut& cut) {
  const auto& [nodes, tensor, pipeline, micro_batch, layers_of_stage] = cut;
  const Parallel& given = plan.plan.parallel;
  const int gpus = nodes * plan.nodes.front().gpus;
  Parallel parallel = given;
  parallel.tensor = tensor;
  parallel.pipeline = pipeline;
  const auto ranks = static_cast<int>(parallel.ranks_of_replica());
  if (gpus % ranks != 0) return {};
  const int data = parallel.data = gpus / ranks;
  const int layers = layers_of_stage * pipeline;
  constexpr int microbatches_a_stage = 4, least_microbatches = 8;
  const int microbatches = std::max(least_microbatches, microbatches_a_stage * pipeline);
  Overrides changes{{"/nodes", std::to_string(nodes)},
                    {"/model/layers", std::to_string(layers)},
                    {"/parallel/tensor", std::to_string(tensor)},
                    {"/parallel/pipeline", std::to_string(pipeline)},
                    {"/parallel/data", std::to_string(data)},
                    {"/training/micro_batch", std::to_string(micro_batch)},
                    {"/training/global_batch", std::to_string(data * micro_batch * microbatches)}};
  if (pipeline == 1 && given.pipeline > 1) {
    changes.emplace_back("/parallel/schedule", "1f1b");
    changes.emplace_back("/parallel/virtual_pipeline", "1");
  }
  const JsonValue* const stage_layers = find_at(plan.resolved, "/parallel/stage_layers");
  if (stage_layers != nullptr && stage_layers->is_array() &&
      stage_layers->origin.kind != OriginKind::defaulted)
    changes.emplace_back("/parallel/stage_layers", "null");
  if (plan.model.moe) split_experts(parallel, changes);
  return changes;
}

/// True if the stack can run what is changed: its profile lists such values under `supports`, or the plan has them.
bool can_run(const Scenario& plan, const Overrides& changes) {
  const SearchLists supported = supported_values(plan);
  return std::ranges::all_of(changes, [&](const auto& change) {
    const auto& [pointer, text] = change;
    const auto listed = supported.find(pointer.substr(pointer.rfind('/') + 1));
    const auto value = text == "true" ? 1 : number_in(text);
    const JsonValue* const own = find_at(plan.resolved, pointer);
    return listed == supported.end() || !value || std::ranges::count(listed->second, *value) > 0 ||
           (own != nullptr && canonical_text(*own) == text);
  });
}

/// A candidate with what is known of its time.
struct Candidate {
  Overrides overrides;
  LinearTime time;
  bool is_taken = false;
};

/// The one to measure next: of those that gain nearly as much as the best, that on the fewest GPUs.
/// `noise`: the variance of what is asked that no constant explains.
Candidate* best_of(std::vector<Candidate>& candidates, const LinearBelief& belief,
                   const std::vector<double>& asked, double noise) {
  const double before = belief.variance(asked);
  const auto gain = [&](const Candidate& candidate) {
    return before - belief.variance_after(asked, candidate.time.gradient, row_noise);
  };
  double most = 0;
  for (const Candidate& candidate : candidates)
    if (!candidate.is_taken) most = std::max(most, gain(candidate));
  if (most <= hardly_any * (before + noise)) return nullptr;
  Candidate* best = nullptr;
  for (Candidate& candidate : candidates) {
    if (candidate.is_taken || gain(candidate) < (1 - nearly_as_well) * most) continue;
    const auto cost = [](const Candidate& each) {
      return std::pair(each.time.figures.gpus, each.time.figures.time);
    };
    if (best == nullptr || cost(candidate) < cost(*best)) best = &candidate;
  }
  return best;
}

double width_of(double variance) { return std::sqrt(variance + row_noise * row_noise); }

/// Ends of the 90 % interval that `run` states, over the time.
std::optional<std::pair<double, double>> interval_of_run(const Report& report) {
  if (!report.iteration_time_interval) return std::nullopt;
  return std::pair(report.iteration_time_interval->first / report.iteration_time,
                   report.iteration_time_interval->second / report.iteration_time);
}

/// Refuses another plan whose constants are not those of the plan.
void expect_same_constants(const Linearizer& linearizer, Scenario& other, const std::string& name) {
  for (std::size_t j = 0; j < linearizer.constants().size(); ++j) {
    const FitConstant& constant = linearizer.constants()[j];
    const auto number = number_at(other.resolved, constant.pointer);
    if (number && text_of(*number) == text_of(linearizer.given()[j])) continue;
    throw option_error("--against", name,
                       "the plans do not share " + constant.name + " (" +
                           (number ? text_of(*number) + " here" : "absent here") + ")",
                       "name a plan of the same stack and platform");
  }
}

/// The doubt that constants leave in a decision, with the noise of both plans; `gain` as it is predicted, with its gradient.
AdvisedDecision decision_of(double gain, const std::vector<double>& gradient,
                            const LinearBelief& belief) {
  const double moved = gain + belief.expected(gradient),
               width = std::sqrt(belief.variance(gradient) + 2 * row_noise * row_noise);
  return {moved, width, normal_below(std::abs(moved) / width)};
}

/// Candidates with this many layers per stage that fit in memory; `advice` counts the others.
std::vector<Candidate> candidates_of(Linearizer& linearizer, const Scenario& plan,
                                     const Configuration& asked, int layers_of_stage,
                                     Advice& advice) {
  std::vector<Overrides> changes;
  const int nodes_of_plan = static_cast<int>(plan.nodes.size());
  for (int nodes = 1; nodes <= std::min(most_nodes, nodes_of_plan); nodes *= 2)
    for (int tensor = 1; tensor <= plan.nodes.front().gpus; tensor *= 2)
      for (const int pipeline : {1, 2, 4})
        for (const int micro_batch : {1, 2, 4})
          if (auto changed =
                  changed_plan(plan, {nodes, tensor, pipeline, micro_batch, layers_of_stage});
              changed && can_run(plan, *changed))
            changes.push_back(std::move(*changed));
  const std::vector<LinearOutcome> outcomes =
      linearizer.linearize(mapped(changes, [&](const Overrides& each) {
        return Configuration{asked.scenario, asked.folder, each};
      }));
  std::vector<Candidate> found;
  for (std::size_t i = 0; i < changes.size(); ++i) {
    if (const auto* failure = std::get_if<ChildFailure>(&outcomes[i])) {
      if (advice.num_refused++ == 0) advice.why_refused = first_line_of(failure->text);
    } else if (const auto& time = std::get<LinearTime>(outcomes[i]); time.figures.fits) {
      found.push_back({changes[i], time});
    }
  }
  return found;
}

/// Candidates with as many layers per stage as the plan, or a half, a quarter and so on if none of them fits.
std::vector<Candidate> candidates_of(Linearizer& linearizer, const Scenario& plan,
                                     const Configuration& asked, Advice& advice) {
  std::vector<Candidate> found;
  for (int layers = std::max(1, plan.model.layers / plan.plan.parallel.pipeline);
       found.empty() && layers > 0; layers /= 2) {
    advice.num_refused = 0;
    found = candidates_of(linearizer, plan, asked, layers, advice);
  }
  advice.num_candidates = found.size();
  return found;
}

/// Narrows the constants by the measured rows.
void learn(LinearBelief& belief, Linearizer& linearizer, const std::vector<MeasurementSet>& sets,
           const AdviceRequest& request, const Library& library, Advice& advice) {
  const CalibrationPoints read = read_calibration_points(sets, {&library, request.overrides, {}});
  advice.skipped = read.skipped;
  const std::vector<LinearOutcome> outcomes =
      linearizer.linearize(mapped(read.points, [&](const CalibrationPoint& point) {
        return Configuration{&point.scenario, point.folder, request.overrides};
      }));
  for (std::size_t i = 0; i < outcomes.size(); ++i) {
    if (const auto* failure = std::get_if<ChildFailure>(&outcomes[i])) {
      advice.skipped.emplace_back(read.points[i].set + ": " + read.points[i].id,
                                  first_line_of(failure->text));
      continue;
    }
    const LinearTime& time = std::get<LinearTime>(outcomes[i]);
    belief.measure(time.gradient, row_noise, std::log(read.points[i].measured / time.figures.time));
    ++advice.num_rows;
  }
}

using detail::time_text;

double factor_of(double width) { return std::exp(normal_95th * width); }

/// The 90 % interval of the plan's time when ln(time) has this standard deviation: before any row what `run` states.
std::pair<Seconds, Seconds> interval_of(const Advice& advice, double width) {
  const Seconds time = advice.iteration_time;
  if (!advice.run_interval) return {time / factor_of(width), time * factor_of(width)};
  const double share = width / advice.width_of_run;
  return {time * std::pow(advice.run_interval->first, share),
          time * std::pow(advice.run_interval->second, share)};
}

std::string interval_text(const Advice& advice, double width) {
  const auto [low, high] = interval_of(advice, width);
  return time_text(low, high) + " to " + time_text(high, high);
}

/// The evidence behind the interval.
std::string before_text(const Advice& advice) {
  const std::string rows = "with " + count_text(advice.num_rows, "measured row");
  if (!advice.run_interval) return rows;
  return advice.num_rows == 0
             ? "as run states it; no rows were measured"
             : "of run's " + interval_text(advice, advice.width_of_run) + ", " + rows;
}

std::string constants_text(const Advice& advice) {
  std::string text = "\n  It depends on\n";
  std::size_t widest = 0;
  const auto name_of_constant = [](const AdvisedConstant& each) {
    const std::string& pointer = each.constant.pointer;
    const std::string key = pointer.substr(pointer.rfind('/') + 1);
    return shown_name(each.constant.name) +
           (each.constant.name.ends_with(key) ? "" : " (" + key + ")");
  };
  for (const AdvisedConstant& each : advice.constants)
    widest = std::max(widest, name_of_constant(each).size());
  for (const AdvisedConstant& each : advice.constants)
    text += "    " + left_aligned(name_of_constant(each), static_cast<int>(widest) + 2) +
            right_aligned(text_of(each.given), 10) + "  known to a factor of " +
            fixed_text(factor_of(each.spread), 2) + "; 10 % of it is " +
            signed_percent_text(std::pow(1.1, each.sensitivity) - 1) + " of the time\n";
  return text;
}

/// "87 of 100 cases"
std::string cases_text(double share) { return fixed_text(100 * share, 0) + " of 100 cases"; }

std::string refused_text(const Advice& advice) {
  if (advice.num_refused == 0) return {};
  return "  (" + std::to_string(advice.num_refused) +
         " more cannot be simulated; the first: " + advice.why_refused + ")\n";
}

JsonValue interval_value(const Advice& advice, double width) {
  const auto [low, high] = interval_of(advice, width);
  return array_of(std::array{low / Seconds{1}, high / Seconds{1}});
}

}  // namespace

LinearBelief::LinearBelief(const std::vector<double>& spreads)
    : covariance_(vector_of(spreads).array().square().matrix().asDiagonal()),
      mean_(Eigen::VectorXd::Zero(covariance_.rows())) {}

double LinearBelief::variance(const std::vector<double>& gradient) const {
  return vector_of(gradient).dot(covariance_ * vector_of(gradient));
}

double LinearBelief::variance_after(const std::vector<double>& asked,
                                    const std::vector<double>& gradient, double noise) const {
  const Eigen::VectorXd moved = covariance_ * vector_of(gradient);
  const double shared = vector_of(asked).dot(moved);
  return variance(asked) - shared * shared / (noise * noise + vector_of(gradient).dot(moved));
}

void LinearBelief::measure(const std::vector<double>& gradient, double noise,
                           std::optional<double> residual) {
  const Eigen::VectorXd moved = covariance_ * vector_of(gradient);
  const double scale = 1 / (noise * noise + vector_of(gradient).dot(moved));
  if (residual) mean_ += scale * (*residual - expected(gradient)) * moved;
  covariance_ -= scale * moved * moved.transpose();
}

double LinearBelief::expected(const std::vector<double>& gradient) const {
  return vector_of(gradient).dot(mean_);
}

double LinearBelief::spread(std::size_t constant) const {
  const auto at = static_cast<Eigen::Index>(constant);
  return std::sqrt(covariance_(at, at));
}

Advice advise(const AdviceRequest& request, const std::vector<MeasurementSet>& sets,
              const Library& library) {
  const ReadOptions options{.overrides = request.overrides};
  const std::filesystem::path folder = request.file.parent_path();
  const JsonValue merged = merged_scenario(request.file, library, options);
  Scenario plan = read_scenario(request.file, library, options);
  Linearizer linearizer = make_linearizer(request, plan, library);
  const StackKnowledge stack =
      plan.software.profiled ? StackKnowledge::known : StackKnowledge::unmeasured;
  LinearBelief belief(mapped(linearizer.constants(), [&](const FitConstant& constant) {
    return prior_spread(constant, stack);
  }));

  Advice advice;
  advice.noise = row_noise;
  const Configuration configuration{&merged, folder, {}};
  std::vector<Configuration> plans{configuration};
  JsonValue other;
  if (!request.against.empty()) {
    other = merged_scenario(request.against, library, options);
    Scenario read = read_scenario(request.against, library, options);
    expect_same_constants(linearizer, read, request.against.string());
    plans.push_back({&other, request.against.parent_path(), {}});
  }
  std::vector<LinearTime> times;
  for (const LinearOutcome& outcome : linearizer.linearize(plans)) {
    const auto* const time = std::get_if<LinearTime>(&outcome);
    if (time == nullptr)
      throw UnsupportedError({{{}, {}, "a plan cannot be simulated", "windtunnel run says why"}});
    times.push_back(*time);
  }
  const LinearTime* const asked = &times.front();
  advice.width_of_run = width_of(belief.variance(asked->gradient));
  Report report = simulate_key_figures(plan, build(plan));
  add_interval(plan, library, report);
  advice.run_interval = interval_of_run(report);
  // The runs shall make this surer: the plan's time, or that of the other over it.
  std::vector<double> gradient = asked->gradient;
  double gain = 0;
  if (times.size() == 2) {
    gain = std::log(times[1].figures.time / asked->figures.time);
    for (std::size_t j = 0; j < gradient.size(); ++j)
      gradient[j] = times[1].gradient[j] - asked->gradient[j];
  }
  learn(belief, linearizer, sets, request, library, advice);
  const auto moved = [&](Seconds time, const std::vector<double>& by) {
    return time * std::exp(belief.expected(by));
  };
  // The time as `run` has it: the linearizer starts constants that are 0 a little above 0.
  advice.iteration_time = moved(report.iteration_time, asked->gradient);
  advice.width = width_of(belief.variance(asked->gradient));
  if (times.size() == 2) advice.decision = decision_of(gain, gradient, belief);
  for (std::size_t j = 0; j < asked->gradient.size(); ++j)
    if (std::abs(asked->gradient[j]) > least_effect)
      advice.constants.push_back(
          {linearizer.constants()[j], linearizer.given()[j], belief.spread(j), asked->gradient[j]});
  std::vector<Candidate> found = candidates_of(linearizer, plan, configuration, advice);
  while (advice.runs.size() < most_runs) {
    Candidate* const best =
        best_of(found, belief, gradient, (advice.decision ? 2 : 1) * row_noise * row_noise);
    if (best == nullptr) break;
    best->is_taken = true;
    belief.measure(best->time.gradient, row_noise);
    // Values set for the plan hold for its runs too, unless a run changes them.
    Overrides overrides;
    for (const auto& each : request.overrides) {
      const auto is_same = [&](const auto& change) { return change.first == each.first; };
      if (std::ranges::none_of(best->overrides, is_same)) overrides.push_back(each);
    }
    overrides.insert(overrides.end(), best->overrides.begin(), best->overrides.end());
    const Plan run = read_scenario(*configuration.scenario, configuration.folder, library,
                                   {.overrides = overrides})
                         .plan;
    advice.runs.push_back({overrides, detail::plan_text(run.training, run.parallel),
                           best->time.figures.gpus,
                           moved(best->time.figures.time, best->time.gradient),
                           width_of(belief.variance(asked->gradient)),
                           advice.decision ? decision_of(gain, gradient, belief).sure : 0});
  }
  advice.num_simulations = linearizer.num_simulations();
  return advice;
}

std::string advice_text(const Advice& advice, const std::string& file, const std::string& against) {
  const Seconds time = advice.iteration_time;
  std::string text = file + ": " + time_text(time, time) + " per iteration\n\n  90 % interval" +
                     (advice.run_interval ? "" : " of what its constants leave open") + ": " +
                     interval_text(advice, advice.width) + ", " + before_text(advice) + "\n";
  for (const auto& [row, why] : advice.skipped) text += "  skipped " + row + ": " + why + "\n";
  text += constants_text(advice);
  if (const auto& decision = advice.decision) {
    const double ratio = std::exp(decision->gain);  // time of the other over that of the plan
    text += "\n  It is " +
            (ratio < 1 ? percent_text(1 / ratio - 1) + " slower"
                       : percent_text(1 - 1 / ratio) + " faster") +
            " than " + against + ", which is right in " + cases_text(decision->sure) + "\n";
  }
  if (advice.num_candidates == 0)
    return text + "\n  Nothing to measure: no cut of the plan fits on one to four nodes\n" +
           refused_text(advice);
  if (advice.runs.empty())
    return text + "\n  No run on one to four nodes would narrow it by a twentieth: " +
           count_text(advice.num_candidates, "configuration") + " tried\n" + refused_text(advice);
  text += "\n  Measure next, of " + count_text(advice.num_candidates, "configuration") +
          (advice.num_candidates == 1 ? " that fits" : " that fit") + " on one to four nodes\n" +
          refused_text(advice);
  int number = 0;
  for (const AdvisedRun& run : advice.runs) {
    std::vector<std::string> command{"windtunnel", "run", file};
    std::string layers;
    for (const auto& [pointer, value] : run.overrides) {
      command.insert(command.end(), {"--set", pointer + "=" + value});
      if (pointer == "/model/layers") layers = value;
    }
    text += "    " + std::to_string(++number) + ". " + count_text(run.gpus, "GPU") + ": " +
            run.plan + ", " + count_text(std::stoul(layers), "layer") + " in all; " +
            time_text(run.iteration_time, run.iteration_time) + " per iteration\n       then " +
            interval_text(advice, run.width_after) +
            (advice.decision ? "; should it take that long, the decision is right in " +
                                   cases_text(run.sure_after)
                             : "") +
            "\n       " + shell_line(command) + "\n";
  }
  return text +
         "  Measure three or more of them: calibrate seldom believes one or two, whose errors it "
         "cannot tell from a constant's.\n";
}

std::string advice_json(const Advice& advice) {
  const auto run_value = [&](const AdvisedRun& run) {
    return object_of({{"set", object_by_key(run.overrides, std::identity{})},
                      {"gpus", run.gpus},
                      {"iteration_time_s", run.iteration_time},
                      {"interval_s", interval_value(advice, run.width_after)},
                      {"sure", only_if(advice.decision.has_value(), run.sure_after)}});
  };
  const auto advised_constant = [](const AdvisedConstant& each) {
    return object_of({{"name", each.constant.name},
                      {"pointer", each.constant.pointer},
                      {"value", text_of(each.given)},
                      {"spread", each.spread},
                      {"sensitivity", each.sensitivity}});
  };
  const AdvisedDecision decided = advice.decision.value_or(AdvisedDecision{});
  const JsonValue decision = object_of(
      {{"speedup", std::exp(decided.gain)}, {"spread", decided.width}, {"sure", decided.sure}});
  return pretty_text(
             object_of({{"schema", "windtunnel/advice-v1"},
                        {"iteration_time_s", advice.iteration_time},
                        {"interval_s", interval_value(advice, advice.width)},
                        {"measured_rows", advice.num_rows},
                        {"candidates", advice.num_candidates},
                        {"refused", advice.num_refused},
                        {"first_refusal", only_if(advice.num_refused > 0, advice.why_refused)},
                        {"decision", only_if(advice.decision.has_value(), decision)},
                        {"constants", array_of(advice.constants, advised_constant)},
                        {"measure_next", array_of(advice.runs, run_value)},
                        {"skipped", skipped_value(advice.skipped)}})) +
         "\n";
}
}  // namespace windtunnel
