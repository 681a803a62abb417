#pragma once

#include <array>
#include <cstddef>
#include <filesystem>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "core/output_guard.hpp"
#include "evidence/pair_errors.hpp"
#include "evidence/used_values.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

/// Axes of the evidence behind a prediction. Each may have been measured or not, whatever the others are.
enum class EvidenceAxis { stack, gpu, cluster, job };
inline constexpr std::size_t num_evidence_axes = 4;
/// The axes whose values are compared: all but the job, which is compared by its sizes and choices.
inline constexpr std::size_t num_valued_axes = 3;

/// Traits of a scenario outside the measured range, by axis: "gpus 128, measured 8 to 64". Refers to both.
struct Extrapolation {
  std::array<std::vector<Difference>, num_evidence_axes> reasons;
  std::size_t unused_of_stack =
      0;  ///< values of the stack that differ and that this job does not use
  std::vector<Difference>& of(EvidenceAxis axis) { return reasons[static_cast<std::size_t>(axis)]; }
  const std::vector<Difference>& of(EvidenceAxis axis) const {
    return reasons[static_cast<std::size_t>(axis)];
  }
};

/// Traits of a scenario that decide whether measured runs apply to it. Its names are for people: what is compared of
/// stack, GPU and cluster are values.
struct ScenarioTraits {
  std::string software, device_family, platform;
  std::map<std::string, double>
      amounts;  ///< gpus, parameters, sequence, tensor, pipeline, micro_batch
  std::map<std::string, std::string> choices;  ///< schedule, recompute, attention, precision, …
  std::array<UsedValues, num_valued_axes> values;
  bool has_experts = false;
};
ScenarioTraits traits_of(const Scenario& scenario);
/// A number of a device, platform or software file that was fitted to measurements.
struct FittedNumber {
  std::string name;    ///< "device a100-sxm-80gb: gemm/peak_fraction"
  std::string source;  ///< as written; says on which sets
  /// True if the source begins with a list of sets, "SET, SET and SET", that has this one. The prose after it may mention others.
  bool is_fitted_on(const std::string& set) const;
};
/// Fitted numbers among the sources of a file of this kind ("platform"), named after the file that states each; and of all files of a scenario.
std::vector<FittedNumber> fitted_numbers(const std::map<std::string, Source>& sources,
                                         const std::string& kind);
std::vector<FittedNumber> fitted_numbers(const Scenario& scenario);

/// "a100" of "a100-sxm-80gb"; of a mixed job every family, as "t4+v100".
std::string device_family(const std::vector<NodeType>& nodes);

/// Runs of one software stack on one family of GPUs that were measured and predicted, and how far
/// the predictions were off.
struct EvidenceRegime {
  std::string software;       ///< name of the profile
  std::string device_family;  ///< what comes before the first '-' of a device's name: "a100"
  std::set<std::string> platforms, sets;
  std::string method;                                       ///< how the residuals were held out
  std::map<std::string, std::pair<double, double>> ranges;  ///< smallest and largest of each amount
  std::map<std::string, std::set<std::string>> choices;
  std::array<MeasuredValues, num_valued_axes> values;  ///< by axis
  std::vector<double> residuals;  ///< ln(measured / predicted) of runs that were held out; sorted

  /// Widens ranges, choices, values and platforms so that they hold `traits`.
  void include(const ScenarioTraits& traits);
  /// The traits that lie outside the measured range; refers to both.
  Extrapolation extrapolation(const ScenarioTraits& traits) const;
};

/// Prediction errors of whole measurement sets: sets that constants were fitted on, predicted without that set, and sets that were
/// never fitted, as shipped. A stack that nobody measured is judged by them.
struct UnseenErrors {
  struct Set {
    std::set<std::string> software;            ///< the stacks that it ran on
    std::vector<double> residuals;             ///< ln(measured / predicted) of its runs
    std::vector<double> outside_kernels = {};  ///< share_outside_kernels() of each, as predicted
    bool experts = false;  ///< a quarter or more of its runs train models with experts
  };
  std::string method;  ///< how the sets were left out
  std::map<std::string, Set> sets;
  std::set<std::string> profiles = {};  ///< stacks that have one, run or not
  Allowance allowance = {};  ///< of residuals of stacks with a profile, by share_outside_kernels()

  bool has_profile(const std::string& software) const {
    return profiles.empty() || profiles.contains(software);
  }
  /// True if no stack of the set has a profile: another's stood in.
  bool is_stand_in(const Set& set) const;
  /// Fits the allowance, after sets were added or taken out, where all sets say the shares.
  void find_allowance();
  /// Bounds of ln(measured / predicted) of a run of a new set, so much of whose time is outside kernels: the shortest interval, in
  /// allowances, that holds 0.9 (n+1) of the n sets' runs; below nine sets the extremes, times 1.5. Of the sets whose stacks have a profile
  /// each counts alike. Each set that ran `software` counts as much as these others together; if that has no profile, each stand-in set does
  /// whose models also have (or also lack) experts. Rows of a set share its stack and cluster, so a set is what is drawn anew (Dunn,
  /// Wasserman & Ramdas, JASA 118(544), 2023, who pool groups likewise). Kinds of GPU, and the number of values in which a stack differs
  /// from the nearest measured one, are not distinguished.
  std::pair<double, double> bounds(const std::optional<std::string>& software,
                                   double outside_kernels, bool experts = false) const;
  /// Sets that the stack of this name ran, with the residuals of their runs.
  std::map<std::string, std::vector<double>> of_software(const std::string& name) const;
};

/// Measured errors that predictions are judged by.
struct MeasuredErrors {
  std::vector<EvidenceRegime> regimes;
  UnseenErrors unseen;
  PairErrors pairs = {};

  /// For the score of a set: without what it says of sets and pairs that are new.
  void leave_out(const std::string& set) {
    unseen.sets.erase(set);
    unseen.find_allowance();
    pairs.sets.erase(set);
    pairs.find_bounds();
  }
};

/// Reads a file in the format windtunnel/residuals-v2; InputError with every problem, EnvironmentError when it cannot be read.
MeasuredErrors read_evidence(const std::filesystem::path& file, ReadFor purpose = ReadFor::use);
/// The same, of such a file's text.
MeasuredErrors parse_evidence(std::shared_ptr<const SourceText> source);
/// The residuals' file of a library; nothing where it has none.
std::optional<std::filesystem::path> residuals_of(const Library& library);
/// Measured errors of the library's file; empty if there is no file.
MeasuredErrors read_evidence(const Library& library);
/// The file's text:
///   {"schema": "windtunnel/residuals-v2", "regimes": [{"software": "megatron-deepspeed-2021",
///    "device_family": "a100", "platforms": […], "sets": […], "method": "…",
///    "ranges": {"gpus": [64, 512], …}, "choices": {"recompute": ["full"], …},
///    "values": {"stack": {"launch/kernel": [0.000025, 0.000025], "fused_kernels": ["yes"], …}, "gpu": {…},
///    "cluster": {…}},
///    "residuals": [-0.021, …]}],
///    "unseen": {"method": "…", "sets": {"amp-t4": {"software": ["megatron-lm-2020"], "residuals": [0.31, …]},
///                                       "mine": {"software": ["mine"], "experts": true, …}, …},
///               "profiles": ["megatron-lm-2020", …]},
///    "pairs": {"same": 0.018, "moved": 0.1, "sets": {"amp-t4": {"scores": [0.02, …]}, …}}}
/// `unseen` and `pairs` are left out where there are no sets.
std::string evidence_json(const MeasuredErrors& errors);

}  // namespace windtunnel
