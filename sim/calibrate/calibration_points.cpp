#include "calibrate/calibration_points.hpp"

#include <Eigen/Dense>
#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <functional>
#include <iterator>
#include <numeric>

#include "core/mapped.hpp"
#include "core/number_in.hpp"
#include "core/option_error.hpp"
#include "core/text_list.hpp"
#include "report/number_text.hpp"
#include "scenario/overrides.hpp"

namespace windtunnel {
namespace {

/// In ln(time): held-out rows of measured stacks miss by 5 % (row_noise). Half of that variance, taken as shared among neighbours
/// and as a row's own alike, is what leave-one-row-out errors on the A100 sets allow: a larger shared part makes BigScience's rows worse.
constexpr double shared_spread = row_noise;
/// The rms of the medians of twelve sets on GPUs up to the A100, their constants left out (`unseen` in validation/residuals.json).
constexpr double stack_spread = 0.08;
/// Probability that an end of the interval behind agreed_shift() is on the wrong side of the median.
constexpr double most_wrong = 0.125;
/// In logarithms of sizes: at a factor e in one of them, 61 % of the shift is left; at 4 in each of two, 15 %. Leave-one-row-out
/// errors on the A100 sets are flat between 0.7 and 1.5.
constexpr double length_scale = 1;

double own_variance(const AnchorPlace& place) {
  return place.stack.empty() ? row_noise * row_noise : unmeasured_row_noise * unmeasured_row_noise;
}

double variance_of(const AnchorPlace& place) {
  return shared_spread * shared_spread + own_variance(place);
}

bool is_same_run(const AnchorPlace& a, const AnchorPlace& b) {
  return !a.run.empty() && a.run == b.run;
}

double covariance(const AnchorPlace& a, const AnchorPlace& b) {
  double squared = 0;
  for (std::size_t i = 0; i < a.shares.size(); ++i)
    squared += (a.shares[i] - b.shares[i]) * (a.shares[i] - b.shares[i]);
  return (is_same_run(a, b) ? own_variance(a) - repeat_noise * repeat_noise : 0) +
         shared_spread * shared_spread * std::exp(-squared / (2 * length_scale * length_scale));
}

bool share_stack(const AnchorPlace& a, const AnchorPlace& b) {
  return !a.stack.empty() && a.stack == b.stack;
}

/// The process among kin, after what the stack's rows agree on: of others by `agreed`, of the same run by as much of it as is believed, which
/// is added to it.
AnchoredShift shift_among(const std::vector<const Anchor*>& kin, double agreed, double believed,
                          const AnchorPlace& place) {
  if (kin.empty()) return {};
  const auto count = static_cast<Eigen::Index>(kin.size());
  Eigen::MatrixXd among(count, count);
  Eigen::VectorXd towards(count), missed(count);
  for (Eigen::Index i = 0; i < count; ++i) {
    const Anchor& anchor = *kin[static_cast<std::size_t>(i)];
    for (Eigen::Index j = 0; j < count; ++j)
      among(i, j) = i == j ? variance_of(anchor.place)
                           : covariance(anchor.place, kin[static_cast<std::size_t>(j)]->place);
    towards(i) = covariance(anchor.place, place);
    missed(i) = anchor.residual - (is_same_run(anchor.place, place) ? believed : agreed);
  }
  const Eigen::VectorXd weights = among.ldlt().solve(towards);
  return {weights.dot(missed), 1 - weights.dot(towards) / variance_of(place)};
}

/// A constant, where it can sensibly lie, and how far apart stacks or clusters are: the standard deviation of its logarithm. Most spreads are
/// judged from few shipped values, so that they are rounded up.
struct KnownConstant {
  const char* name;  ///< short
  const char* pointer;
  FitBounds bounds;
  double spread;
};
// Ratios end at 1, where their readers do; a stack may be better than the device's shipped emax.
constexpr FitBounds ratio{0.05, 1};
constexpr double compute_spread =
    0.30;  ///< 1 (A100), 0.84 (V100), 0.59 (T4, were all its slowness in products)
constexpr double slowdown_spread = 0.80;  ///< 1, 1.7 (T4) and 3.8 (Jean Zay): rms of the logarithms
constexpr double launch_spread = 0.50;    ///< launches of hosts and stacks differ by 1.2 to 2 times
constexpr double flash_spread = 0.40;     ///< 0.265 to 0.49 between passes of one stack
constexpr double other_spread = 0.50;     ///< a number that we know nothing of: a factor of 1.65
/// A time off by 5 %, the held-out error of measured stacks, moves a constant of the stack as far.
constexpr double known_spread = 0.05;
constexpr KnownConstant known_constants[]{
    // 0.83 on A100, 0.92 on V100
    {"emax", "/platform/node_types/0/device/gemm/peak_fraction", {0.3, 1}, 0.10},
    // 0.75 and 0.76 fitted on V100 and A100; data sheets 0.85
    {"memory_efficiency",
     "/platform/node_types/0/device/memory/bandwidth_efficiency",
     {0.3, 1},
     0.10},
    // 0.6 to 0.85 on five clusters
    {"nic_efficiency", "/platform/node_types/0/nic_efficiency", ratio, 0.25},
    {"in_node_collective_slowdown",
     "/platform/node_types/0/in_node_collective_slowdown",
     {1, 20},
     slowdown_spread},
    {"arf", "/platform/node_types/0/in_node_collective_slowdown", {1, 20}, slowdown_spread},
    {"compute_efficiency", "/software/compute_efficiency", {0.3, 1.5}, compute_spread},
    {"tensor_collective_overhead",
     "/software/tensor_collective_overhead",
     {0.1, 10'000},
     launch_spread},
    {"kernel_launch", "/software/launch/kernel", {0.1, 1'000}, launch_spread},
    {"flash_forward", "/software/flash_forward_efficiency", ratio, flash_spread},
    {"flash_backward", "/software/flash_backward_efficiency", ratio, flash_spread}};

/// A pointer without known bounds is looked for between a tenth of its start and ten times it.
constexpr double unknown_range = 10;

[[noreturn]] void refuse_name(const std::string& option, const std::string& name) {
  const auto names = mapped<std::string>(known_constants, &KnownConstant::name);
  const std::string nearest = closest_match(name, names);
  throw option_error("--fit", option, "\"" + name + "\" is no constant that can be fitted",
                     nearest.empty() ? "a JSON pointer, or one of " + listed(names)
                                     : "did you mean \"" + nearest + "\"?");
}

CalibrationPoint read_point(const MeasurementSet& set, const MeasurementPoint& measured,
                            const PointReading& reading) {
  CalibrationPoint point;
  point.set = set.name;
  point.id = measured.id;
  point.scenario = scenario_of(set, measured);
  point.folder = set.folder;
  Scenario scenario = read_scenario(point.scenario, point.folder, *reading.library,
                                    {.overrides = reading.overrides});
  point.measured = measured_time(measured, iteration_work(scenario)).value();
  point.traits = traits_of(scenario);
  point.place = anchor_place(scenario);
  if (scenario.software.profiled) point.stack = StackKnowledge::known;
  point.is_fitted = std::ranges::any_of(fitted_numbers(scenario), [&](const FittedNumber& number) {
    return number.is_fitted_on(set.name);
  });
  point.size = size_name(total_parameters(scenario.model));
  for (const FitConstant& constant : reading.constants) {
    const auto number = number_at(scenario.resolved, constant.pointer);
    const std::string nearest = number ? "" : closest_known_pointer(constant.pointer);
    if (!number)
      throw option_error("--fit", constant.name,
                         "the scenario of " + point.id + " has no number at " + constant.pointer,
                         nearest.empty() || nearest == constant.pointer
                             ? "windtunnel show --resolved prints all that there are"
                             : "did you mean " + nearest + "?");
    point.given.push_back(*number);
  }
  point.alike = alike_places(reading.constants, scenario.resolved);
  return point;
}

/// True if the scenario of the point can be read with this value of the constant.
bool is_readable(const FitConstant& constant, double value, const CalibrationPoint& point,
                 const std::string& unit, const PointReading& reading) {
  ReadOptions options{.overrides = reading.overrides};
  options.overrides.emplace_back(constant.pointer, text_of({value, unit}));
  try {
    read_scenario(point.scenario, point.folder, *reading.library, options);
    return true;
  } catch (const InputError&) {
    return false;
  }
}

/// The value farthest from the readable one, towards `bound`, that can be read.
double farthest_readable(double readable, double bound,
                         const std::function<bool(double)>& is_readable) {
  if (is_readable(bound)) return bound;
  constexpr int digits = 9, halvings = 60;  // the fit rounds its values so
  double refused = bound;
  for (int i = 0; i < halvings; ++i) {
    const double between = std::midpoint(readable, refused);
    (is_readable(between) ? readable : refused) = between;
  }
  const double rounded = rounded_to(readable, digits);
  return is_readable(rounded) ? rounded : readable;
}

}  // namespace

AlikePlaces alike_places(const std::vector<FitConstant>& constants, JsonValue& scenario) {
  const std::string beginning = "/platform/node_types/";
  const auto device_of = [&](const std::string& node_type) -> std::string {
    const JsonValue* const device = find_at(scenario, node_type + "/device");
    const JsonValue* const name =
        device != nullptr && device->is_object() ? device->find("name") : device;
    return name == nullptr ? "" : canonical_text(*name);
  };
  const auto value_at = [&](const std::string& pointer) {
    return text_of(number_at(scenario, pointer).value_or(NumberWithUnit{}));
  };
  AlikePlaces alike;
  for (const FitConstant& constant : constants) {
    const std::string first = beginning + "0";
    if (constant.node_types == NodeTypes::named || !constant.pointer.starts_with(first + "/"))
      continue;
    for (int i = 1; find_at(scenario, beginning + std::to_string(i)) != nullptr; ++i) {
      const std::string other = beginning + std::to_string(i),
                        place = other + constant.pointer.substr(first.size());
      if (device_of(other) == device_of(first) && value_at(place) == value_at(constant.pointer))
        alike[constant.pointer].push_back(place);
    }
  }
  return alike;
}

Overrides on_all_places(const Overrides& values, const AlikePlaces& alike) {
  Overrides all;
  for (const auto& [pointer, value] : values) {
    all.emplace_back(pointer, value);
    if (const auto others = alike.find(pointer); others != alike.end())
      for (const std::string& other : others->second) all.emplace_back(other, value);
  }
  return all;
}

AnchorPlace anchor_place(const Scenario& scenario) {
  const Plan& plan = scenario.plan;
  const ScenarioTraits traits = traits_of(scenario);
  const JsonValue* const model = find_at(scenario.resolved, "/model");
  AnchorPlace place;
  place.kin = traits.software + "|" + traits.device_family;
  if (!scenario.software.profiled) place.stack = place.kin;
  place.kin += "|" + std::to_string(plan.parallel.tensor) + "|" +
               (model == nullptr ? "" : canonical_text(*model));
  for (const int size : {plan.parallel.pipeline, plan.parallel.replicas(),
                         plan.training.micro_batch, plan.microbatches})
    place.shares.push_back(std::log(size));
  JsonValue step = scenario.resolved;  // neither its length nor its noise make another run
  step.erase("job");
  step.erase("noise");
  place.run = resolved_hash(step);
  return place;
}

double agreed_shift(std::vector<double> residuals) {
  std::ranges::sort(residuals);
  const std::size_t count = residuals.size();
  // With this probability, `below` or fewer of `count` rows lie below their median.
  double term = std::exp2(-static_cast<double>(count)), probability = 0;
  std::size_t below = 0;
  while (below < count && probability + term <= most_wrong) {
    probability += term;
    term *= static_cast<double>(count - below) / static_cast<double>(below + 1);
    ++below;
  }
  if (below == 0) return 0;
  const double low = residuals[below - 1], high = residuals[count - below];
  return low > 0 ? low : std::min(high, 0.0);
}

AnchoredShift AnchoredResiduals::at(const AnchorPlace& place) const {
  std::vector<double> on_stack;
  std::vector<const Anchor*> kin;
  for (const Anchor& anchor : anchors_) {
    if (share_stack(anchor.place, place)) on_stack.push_back(anchor.residual);
    if (anchor.place.kin == place.kin) kin.push_back(&anchor);
  }
  const double agreed = agreed_shift(on_stack);
  // The believed part of an agreed shift: a stack that is further off than most stacks needs more rows to show it. Each row bears witness to
  // one spread of stacks, n spreads in all:  s / sqrt(1 + (s / (n spread))^2). Own; three rows that happen to be the slowest of their set no
  // longer make the others worse than they were (draw_check_test).
  const auto rows = static_cast<double>(on_stack.size());
  const double believed =
      on_stack.empty() ? 0 : agreed / std::hypot(1, agreed / (rows * stack_spread));
  const AnchoredShift near = shift_among(kin, agreed, believed, place);
  // Share of the variance of an unmeasured stack's row that so many rows leave; 1 with too few to agree.
  constexpr std::size_t least_rows = 3;
  const double of_stack = stack_spread * stack_spread,
               of_row = unmeasured_row_noise * unmeasured_row_noise;
  const double left = of_stack * of_row / (rows * of_stack + of_row);
  const double left_by_stack =
      on_stack.size() < least_rows ? 1 : (left + of_row) / (of_stack + of_row);
  return {believed + near.mean, left_by_stack * near.left_open};
}

std::size_t AnchoredResiduals::num_near(const AnchorPlace& place) const {
  return static_cast<std::size_t>(std::ranges::count_if(anchors_, [&](const Anchor& anchor) {
    return anchor.place.kin == place.kin || share_stack(anchor.place, place);
  }));
}

FitConstant parse_fit_constant(const std::string& text) {
  const std::size_t equals = text.find('=');
  FitConstant constant;
  constant.name = text.substr(0, equals);
  if (constant.name.starts_with('/')) {
    constant.pointer = constant.name;
  } else {
    const KnownConstant* const known = std::ranges::find_if(
        known_constants, [&](const KnownConstant& each) { return constant.name == each.name; });
    if (known == std::end(known_constants)) refuse_name(text, constant.name);
    constant.pointer = known->pointer;
    constant.bounds = known->bounds;
    constant.node_types = NodeTypes::alike;
  }
  if (equals == std::string::npos) return constant;
  const std::string bounds = text.substr(equals + 1);
  const std::size_t dots = std::min(bounds.find(".."), bounds.size());
  const auto lower = number_in(bounds.substr(0, dots)),
             upper = number_in(bounds.substr(std::min(dots + 2, bounds.size())));
  if (!lower || !upper || *lower <= 0 || *upper <= *lower)
    throw option_error("--fit", text, "\"" + bounds + "\" is no pair of bounds above 0",
                       "write them as in emax=0.6..1");
  constant.bounds = FitBounds{*lower, *upper};
  return constant;
}

std::vector<FitConstant> named_fit_constants() {
  std::vector<FitConstant> constants;
  for (const KnownConstant& known : known_constants)
    if (std::ranges::none_of(
            constants, [&](const FitConstant& each) { return each.pointer == known.pointer; }))
      constants.push_back({known.name, known.pointer, known.bounds, NodeTypes::alike});
  return constants;
}

std::string shown_name(const std::string& name) {
  constexpr std::string_view of_nodes = "/platform/node_types/0/", of_stack = "/software/",
                             shared = "compute_efficiency";
  const bool is_of_nodes = name.starts_with(of_nodes);
  const std::string shown = is_of_nodes ? name.substr(of_nodes.size()) : name;
  if (shown == shared || shown == std::string(of_stack).append(shared))
    return std::string(is_of_nodes ? "nodes' " : "stack's ").append(shared);
  return shown;
}

double prior_spread(const FitConstant& constant, StackKnowledge stack) {
  if (stack == StackKnowledge::known && constant.pointer.starts_with("/software/"))
    return known_spread;
  if (constant.pointer == "/platform/node_types/0/compute_efficiency") return compute_spread;
  const KnownConstant* const found = std::ranges::find_if(
      known_constants, [&](const KnownConstant& each) { return constant.pointer == each.pointer; });
  return found == std::end(known_constants) ? other_spread : found->spread;
}

std::optional<NumberWithUnit> number_at(JsonValue& scenario, const std::string& pointer) {
  const JsonValue* value = find_at(scenario, pointer);
  if (value == nullptr) return {};
  if (const auto* integer = std::get_if<std::int64_t>(&value->content))
    return NumberWithUnit{static_cast<double>(*integer), {}};
  if (const auto* number = std::get_if<double>(&value->content)) return NumberWithUnit{*number, {}};
  if (!value->is_string()) return {};
  const std::string& text = value->string();
  NumberWithUnit parsed;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), parsed.number);
  if (error != std::errc()) return {};
  parsed.unit = text.substr(static_cast<std::size_t>(end - text.data()));
  return parsed;
}

std::string text_of(const NumberWithUnit& value) {
  std::array<char, 32> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value.number).ptr;
  return std::string(buffer.data(), end) + value.unit;
}

FitRange range_of(const FitConstant& constant, double start) {
  const FitBounds bounds =
      constant.bounds.value_or(FitBounds{start / unknown_range, start * unknown_range});
  return {std::clamp(start, bounds.lower, bounds.upper), bounds};
}

std::vector<MeasurementSet> read_sets(const std::vector<std::string>& asked,
                                      const Library& library) {
  return mapped(find_measurement_sets(asked, library.root / "validation"),
                [](const auto& file) { return read_measurement_set(file); });
}

void narrow_to_readable(std::vector<FitConstant>& constants,
                        const std::vector<CalibrationPoint>& points, const PointReading& reading) {
  constexpr double little = 1e-3;
  for (std::size_t j = 0; j < constants.size(); ++j) {
    FitConstant& constant = constants[j];
    const double first = points.front().given[j].number;
    if (!constant.bounds && first <= 0)
      throw option_error(
          "--fit", constant.name,
          "its value is " + text_of(points.front().given[j]) + ", from which no bounds follow",
          "give them, as in " + constant.name + "=0.1..2");
    FitBounds bounds = range_of(constant, first).bounds;
    const FitBounds asked = bounds;
    for (const CalibrationPoint& point : points) {
      const NumberWithUnit& given = point.given[j];
      const auto can_read = [&](double value) {
        return is_readable(constant, value, point, given.unit, reading);
      };
      if (given.number > 0 && !can_read(given.number * (1 + little)) &&
          !can_read(given.number * (1 - little)))
        throw option_error("--fit", constant.name, "is a whole number in " + point.id,
                           "fit one that may have any value");
      bounds.lower = farthest_readable(given.number, bounds.lower, can_read);
      bounds.upper = farthest_readable(given.number, bounds.upper, can_read);
    }
    if (!(bounds.lower < bounds.upper))
      throw option_error("--fit", constant.name,
                         "no value between " +
                             text_of({asked.lower, points.front().given[j].unit}) + " and " +
                             text_of({asked.upper, points.front().given[j].unit}) + " can be read",
                         "give bounds that its file may have");
    constant.bounds = bounds;
  }
}

CalibrationPoints read_calibration_points(const std::vector<MeasurementSet>& sets,
                                          const PointReading& reading) {
  CalibrationPoints read;
  for (const MeasurementSet& set : sets) {
    for (const MeasurementPoint& measured : set.points) {
      std::string why = why_not_scored(set, measured);
      try {
        if (why.empty()) read.points.push_back(read_point(set, measured, reading));
      } catch (const UnsupportedError& error) {
        why = error.what();
      }
      if (!why.empty())
        read.skipped.emplace_back(set.name + ": " + measured.id, first_line_of(why));
    }
  }
  for (const CalibrationPoint& point : read.points)
    if (point.is_fitted) read.fitted_sets.insert(point.set);
  return read;
}

std::string size_name(double parameters) {
  constexpr double billion = 1e9;
  constexpr int digits = 2;
  const double in_billions = parameters / billion;
  const double unit = std::pow(10.0, std::floor(std::log10(in_billions)) - (digits - 1));
  const double rounded = std::round(in_billions / unit) * unit;
  return fixed_text(rounded, in_billions < 1 ? 2 : rounded < 10 ? 1 : 0) + "B";
}

}  // namespace windtunnel
