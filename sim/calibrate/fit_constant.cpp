#include "calibrate/fit_constant.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>

#include "core/option_error.hpp"

namespace windtunnel {
namespace {

/// A constant with a short name, and where it can sensibly lie.
struct KnownConstant {
  const char* name;
  const char* pointer;
  FitBounds bounds;
};
// Ratios end at 1, where their readers do; a stack may be better than the device's shipped emax.
constexpr FitBounds ratio{0.05, 1};
constexpr std::array known_constants{
    KnownConstant{"emax", "/platform/node_types/0/device/gemm/peak_fraction", {0.3, 1}},
    KnownConstant{
        "memory_efficiency", "/platform/node_types/0/device/memory/bandwidth_efficiency", {0.3, 1}},
    KnownConstant{"nic_efficiency", "/platform/node_types/0/nic_efficiency", ratio},
    KnownConstant{"in_node_collective_slowdown",
                  "/platform/node_types/0/in_node_collective_slowdown",
                  {1, 20}},
    KnownConstant{"arf", "/platform/node_types/0/in_node_collective_slowdown", {1, 20}},
    KnownConstant{"compute_efficiency", "/software/compute_efficiency", {0.3, 1.5}},
    KnownConstant{
        "tensor_collective_overhead", "/software/tensor_collective_overhead", {0.1, 10'000}},
    KnownConstant{"kernel_launch", "/software/launch/kernel", {0.1, 1'000}},
    KnownConstant{"flash_forward", "/software/flash_forward_efficiency", ratio},
    KnownConstant{"flash_backward", "/software/flash_backward_efficiency", ratio},
    KnownConstant{"exposed_gather_factor", "/software/exposed_gather_factor", {0.01, 10}},
};

/// A pointer without known bounds is looked for between a tenth of its start and ten times it.
constexpr double unknown_range = 10;

/// ln of the ratio between stacks or clusters, and what it was read from. Most are judged from few
/// shipped values, so that they are rounded up.
struct PriorSpread {
  const char* pointer;
  double spread;
};
constexpr double memory_spread = 0.10;  ///< 0.75 and 0.76 fitted on V100 and A100; data sheets 0.85
constexpr double peak_spread = 0.10;    ///< 0.83 on A100, 0.92 on V100
constexpr double compute_spread =
    0.30;  ///< 1 (A100), 0.84 (V100), 0.59 (T4, were all its slowness in products)
constexpr double nic_spread = 0.25;       ///< 0.6 to 0.85 on five clusters
constexpr double slowdown_spread = 0.80;  ///< 1, 1.7 (T4) and 3.8 (Jean Zay): rms of the logarithms
constexpr double launch_spread = 0.50;    ///< launches of hosts and stacks differ by 1.2 to 2 times
constexpr double flash_spread = 0.40;     ///< 0.265 to 0.49 between passes of one stack
constexpr double gather_spread = 0.50;    ///< 1.65 on one stack, 1 if a gather hides as modelled
constexpr double other_spread = 0.50;     ///< a number that we know nothing of: a factor of 1.65
/// A time off by 5 %, the held-out error of measured stacks, moves a constant of the stack as far.
constexpr double known_spread = 0.05;
constexpr std::array prior_spreads{
    PriorSpread{"/platform/node_types/0/device/gemm/peak_fraction", peak_spread},
    PriorSpread{"/platform/node_types/0/device/memory/bandwidth_efficiency", memory_spread},
    PriorSpread{"/platform/node_types/0/nic_efficiency", nic_spread},
    PriorSpread{"/platform/node_types/0/in_node_collective_slowdown", slowdown_spread},
    PriorSpread{"/platform/node_types/0/compute_efficiency", compute_spread},
    PriorSpread{"/software/compute_efficiency", compute_spread},
    PriorSpread{"/software/launch/kernel", launch_spread},
    PriorSpread{"/software/tensor_collective_overhead", launch_spread},
    PriorSpread{"/software/flash_forward_efficiency", flash_spread},
    PriorSpread{"/software/flash_backward_efficiency", flash_spread},
    PriorSpread{"/software/exposed_gather_factor", gather_spread},
};

std::optional<double> parse_number(std::string_view text) {
  double number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(number)) return {};
  return number;
}

FitBounds parse_bounds(const std::string& option, const std::string& text) {
  const std::size_t dots = text.find("..");
  const auto lower = parse_number(std::string_view(text).substr(0, dots));
  const auto upper = dots == std::string::npos
                         ? std::nullopt
                         : parse_number(std::string_view(text).substr(dots + 2));
  if (!lower || !upper || *lower <= 0 || *upper <= *lower)
    throw option_error("--fit", option, "\"" + text + "\" is no pair of bounds above 0",
                       "write them as in emax=0.6..1");
  return {*lower, *upper};
}

[[noreturn]] void refuse_name(const std::string& option, const std::string& name) {
  std::vector<std::string> names;
  std::string list = "a JSON pointer, or one of";
  for (const KnownConstant& known : known_constants) {
    names.emplace_back(known.name);
    list += (names.size() == 1 ? " " : ", ") + names.back();
  }
  const std::string nearest = closest_match(name, names);
  throw option_error("--fit", option, "\"" + name + "\" is no constant that can be fitted",
                     nearest.empty() ? list : "did you mean \"" + nearest + "\"?");
}

}  // namespace

FitConstant parse_fit_constant(const std::string& text) {
  const std::size_t equals = text.find('=');
  FitConstant constant;
  constant.name = text.substr(0, equals);
  if (constant.name.starts_with('/')) {
    constant.pointer = constant.name;
  } else {
    const auto known = std::find_if(
        known_constants.begin(), known_constants.end(),
        [&](const KnownConstant& candidate) { return constant.name == candidate.name; });
    if (known == known_constants.end()) refuse_name(text, constant.name);
    constant.pointer = known->pointer;
    constant.bounds = known->bounds;
  }
  if (equals != std::string::npos) constant.bounds = parse_bounds(text, text.substr(equals + 1));
  return constant;
}

std::vector<FitConstant> named_fit_constants() {
  std::vector<FitConstant> constants;
  for (const KnownConstant& known : known_constants)
    if (std::none_of(constants.begin(), constants.end(),
                     [&](const FitConstant& each) { return each.pointer == known.pointer; }))
      constants.push_back({known.name, known.pointer, known.bounds});
  return constants;
}

double prior_spread(const FitConstant& constant, StackKnowledge stack) {
  if (stack == StackKnowledge::known && constant.pointer.starts_with("/software/"))
    return known_spread;
  const auto found = std::find_if(
      prior_spreads.begin(), prior_spreads.end(),
      [&](const PriorSpread& candidate) { return constant.pointer == candidate.pointer; });
  return found == prior_spreads.end() ? other_spread : found->spread;
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

}  // namespace windtunnel
