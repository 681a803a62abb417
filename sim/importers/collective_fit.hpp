#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <functional>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "core/json_value.hpp"
#include "core/robust_fit.hpp"
#include "evidence/score.hpp"
#include "importers/base_platform.hpp"
#include "importers/gpu_trace.hpp"
#include "platform/platform.hpp"

namespace windtunnel {

/// Name in nccl-tests of a collective whose times are informative about a platform: "all_reduce", …, "alltoall".
const char* nccl_name_of(CollectiveKind collective);

/// One line of nccl-tests' table: `bytes` is its "size" column.
struct CollectiveTime {
  Bytes bytes{};
  Seconds time{};
  Origin origin;
};

/// One run of nccl-tests.
struct NcclRun {
  CollectiveKind collective = CollectiveKind::all_reduce;
  int ranks = 0;
  int nodes = 1;
  bool hosts_known = false;  ///< false: the file does not list its ranks, one node is assumed
  /// The fewest and most GPUs that the bandwidths allow, if `ranks` is derived from them alone; 0 otherwise.
  int least_ranks = 0, most_ranks = 0;
  bool is_always_ring = false;        ///< the file shows NCCL_ALGO=Ring
  std::vector<NamedGpu> gpus;         ///< each kind once; none where the file does not say
  std::vector<CollectiveTime> times;  ///< out of place; in place where that was not run
  int num_empty = 0;                  ///< lines of 0 bytes, which are left out
  int num_in_place = 0;               ///< lines that have no out-of-place time
  std::vector<Origin>
      unread;  ///< lines that look like rows of the table, but begin with no size and count
  bool has_end = true;  ///< false: the text ends before its summary
};

/// One number of what is fitted: what it is called in the file, and the range it may have.
template <class Subject>
struct FittedConstant {
  std::string key;
  std::function<void(Subject&, double)> set;
  double start, lower, upper;
};

/// The search for some constants of `base`, such that the residuals of a candidate become small. Base and constants must outlive it.
template <class Subject>
class ConstantSearch {
 public:
  using Constants = std::vector<FittedConstant<Subject>>;
  using StartFactors = std::array<double, 3>;
  using FactorOf = std::function<double(const std::string& key, double first, double second)>;

  ConstantSearch(const Subject& base, const Constants& constants, std::vector<double> weights,
                 std::function<std::vector<double>(const Subject&)> residuals)
      : base_(base), constants_(constants) {
    problem_.weights = std::move(weights);
    for (const FittedConstant<Subject>& each : constants) {
      problem_.start.push_back(each.start);
      problem_.lower.push_back(each.lower);
      problem_.upper.push_back(each.upper);
    }
    problem_.residuals = [this, residuals = std::move(residuals)](
                             const std::vector<double>& values) { return residuals(with(values)); };
  }
  ConstantSearch(const ConstantSearch&) = delete;

  /// The best fit from all starts that two groups of constants have when they are moved by a factor each; `factor_of` says what the
  /// start of a constant is multiplied by.
  RobustFit best_fit(const StartFactors& first, const StartFactors& second,
                     const FactorOf& factor_of) {
    RobustFit best;
    best.cost = std::numeric_limits<double>::infinity();
    for (const double one : first)
      for (const double other : second) {
        for (std::size_t i = 0; i < constants_.size(); ++i) {
          const FittedConstant<Subject>& each = constants_[i];
          problem_.start[i] =
              std::clamp(each.start * factor_of(each.key, one, other), each.lower, each.upper);
        }
        RobustFit fit = robust_fit(problem_);
        if (fit.cost < best.cost) best = std::move(fit);
      }
    return best;
  }

  /// The base with these values of its constants.
  Subject with(const std::vector<double>& values) const {
    Subject result = base_;
    for (std::size_t i = 0; i < constants_.size(); ++i) constants_[i].set(result, values[i]);
    return result;
  }

  /// Sum of weighted absolute residuals, to compare two choices of constants.
  double misfit(const std::vector<double>& values) const {
    const std::vector<double> residuals = problem_.residuals(values);
    double sum = 0;
    for (std::size_t i = 0; i < residuals.size(); ++i)
      sum += problem_.weights[i] * std::abs(residuals[i]);
    return sum;
  }

 private:
  const Subject& base_;
  const Constants& constants_;
  FitProblem problem_;
};

/// Sensitivity of all residuals together to a constant.
inline double total(const std::vector<double>& sensitivities) {
  double sum = 0;
  for (const double each : sensitivities) sum += std::abs(each);
  return sum;
}

/// One measured time with the fitted one.
struct FittedTime {
  int ranks = 0;
  CollectiveKind collective = CollectiveKind::all_reduce;
  Bytes bytes{};
  Seconds measured{}, fitted{};
  enum class Role {
    fitted,       ///< 1 MiB and more
    floor,        ///< smaller, within 10 % of the shortest: holds the floor
    not_modelled  ///< between: no constant is meant to describe it
  } role = Role::fitted;
  double error() const { return fitted / measured - 1; }
};

/// The constants of an interconnect (collective_cost.hpp) found from measured times.
struct InterconnectFit {
  Interconnect interconnect;
  std::vector<std::string> fitted;  ///< keys of the platform file that were fitted
  std::vector<std::string>
      bounded;                    ///< keys of which the runs only say that the base's does not fit
  std::vector<std::string> kept;  ///< keys that the runs do not determine: as in the base
  std::vector<FittedTime> times;
  Score error;  ///< of the times whose role is `fitted`
};

/// Fits floor, saturated bandwidth, half size and sharpness of `base` to runs inside one node, by
/// robust least squares on the logarithms of the times (robust_fit.hpp), from several starts. Fitted
/// are sizes of 1 MiB and more (below, nothing is modelled); smaller ones that take about as long as
/// the smallest say what the floor is, and count as one time. Runs with one number of GPUs say
/// nothing about how constants change with it: then group_loss and the ratio of the floor's two
/// parts stay as in the base. A half size of less than 1 KiB in the base means that its form does
/// without one, and is kept.
InterconnectFit fit_interconnect(const Interconnect& base, const std::vector<NcclRun>& runs);

/// Bus bandwidth of a run over several nodes: the largest measured, and, where there are sizes enough
/// for a fit, that at infinite size by the same form.
struct BusBandwidthFit {
  BytesPerSecond saturated{};
  BytesPerSecond largest_measured{};
  double mean_error = 0;  ///< of the sizes of 1 MiB and more
  int num_times = 0;
};
BusBandwidthFit fit_bus_bandwidth(const NcclRun& run);

inline constexpr double largest_trusted_error = 0.15;  ///< of a fit, on average; beyond, a warning
inline constexpr double least_efficiency = 0.01;       ///< of network cards; less is something else
inline constexpr int fitted_digits = 4;                ///< of a constant that was fitted
/// Sizes of 1 MiB and more that a fit needs.
inline constexpr int least_sizes = 5;
/// Number of the run's sizes that are fitted.
int num_fitted_sizes(const NcclRun& run);

/// "16 us" of 16.0 and "us": an amount as a file has it, with four digits.
JsonValue amount_text(double number, const char* unit);
/// A ratio with as many digits.
JsonValue ratio_number(double ratio);

/// "3.1 % on average, 8.0 % at most, over 12"
std::string text_of(const Score& error);
/// The constants for people, by key.
std::vector<std::pair<std::string, std::string>> shown_constants(const Interconnect& found);
/// The fitted times, a line each, next to the measured ones.
std::string times_table(const InterconnectFit& fit);

/// Sets what was fitted or bounded in the `interconnect` of a node type; the rest stays as it is in `base`.
void write_constants(JsonValue& interconnect, const Interconnect& base, const InterconnectFit& fit,
                     const std::string& source);

/// Rate of one node's network cards, from a run over several nodes or NVLink domains. What a node sends is that of the
/// algorithm that the simulation takes too (crossing()): in a ring what one GPU sends in all, so that the cards' rate is
/// the bus bandwidth; over two nodes a tree, some half of it.
struct CardRate {
  BusBandwidthFit fit;
  bool is_saturated = false;  ///< the largest size is near the limit, which then is `rate`
  std::string algorithm;      ///< "a ring"
  BytesPerSecond rate{};      ///< out of a node, as the algorithm sends
  int cards = 0;              ///< that the run's GPUs use
  double efficiency = 0;      ///< of their datasheet rate
  /// The work inside a node, as `base` has it, lasts about as long as the run: its cards carry at least `rate`.
  bool is_bound_inside = false;
};
CardRate card_rate(const NcclRun& run, const Platform& base);

}  // namespace windtunnel
