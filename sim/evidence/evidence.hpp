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
#include "evidence/measured_values.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

/// Axes of the evidence behind a prediction. Each may have been measured or not, whatever the others are.
enum class EvidenceAxis { stack, gpu, cluster, job };
inline constexpr std::size_t num_evidence_axes = 4;
/// The axes whose values are compared: all but the job, which is compared by its sizes and choices.
inline constexpr std::size_t num_valued_axes = 3;

/// Traits of a scenario outside the measured range, by axis: "gpus 128, measured 8 to 64". Refers to both.
struct Beyond {
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
  /// What of `traits` lies outside what was measured; refers to both.
  Beyond beyond(const ScenarioTraits& traits) const;
};

/// How far predictions of whole measurement sets were off when nothing fitted on them or their cluster was used, in groups of GPUs whose
/// constants are alike in kind.
struct UnseenErrors {
  struct Group {
    std::string name;  ///< what the constants of its GPUs rest on
    std::set<std::string> device_families;
    std::map<std::string, std::vector<double>>
        sets;  ///< by set, ln(measured / predicted) of its runs
    std::map<std::string, std::set<std::string>> software;  ///< by set, the stacks it ran on
  };
  std::string method;  ///< how the sets were left out
  std::vector<Group> groups;
  /// Sets that nothing may be fitted on, as shipped: cited, and never what an interval is made of, whose coverage they test.
  std::optional<Group> never_fitted = std::nullopt;

  /// What 90 % of the runs are no further off than, either way, every set counting alike: of the group that holds the scenario's GPUs, or
  /// of all sets where none does and for models with experts, of which too few sets were measured. Rows of a set share its stack and
  /// cluster, so a set is what is drawn anew (Dunn, Wasserman & Ramdas, JASA 118(544), 2023, who pool groups likewise); with as few sets
  /// as there are this is an estimate without a guarantee. 0 without sets.
  double bound(const ScenarioTraits& traits) const;
  /// Sets that the stack of this name ran, with the residuals of their runs.
  std::map<std::string, std::vector<double>> of_software(const std::string& name) const;
  /// Whether sets on GPUs of the scenario's kind were left out.
  bool know(const ScenarioTraits& traits) const;
  /// For the score of a set: its own errors say nothing about how sure a prediction of it was.
  void leave_out(const std::string& set);
};

/// Measured errors that predictions are judged by.
struct MeasuredErrors {
  std::vector<EvidenceRegime> regimes;
  UnseenErrors unseen;
};

/// Reads a file in the format windtunnel/residuals-v2; InputError with every problem, EnvironmentError when it cannot be read.
MeasuredErrors read_evidence(const std::filesystem::path& file, ReadFor purpose = ReadFor::use);
/// The same, of such a file's text.
MeasuredErrors parse_evidence(std::shared_ptr<const SourceText> source);
/// The residuals' file of a library; nothing where it has none.
std::optional<std::filesystem::path> residuals_of(const Library& library);
/// What it holds; nothing where there is no file.
MeasuredErrors read_evidence(const Library& library);
/// The file's text:
///   {"schema": "windtunnel/residuals-v2", "regimes": [{"software": "megatron-deepspeed-2021",
///    "device_family": "a100", "platforms": […], "sets": […], "method": "…",
///    "ranges": {"gpus": [64, 512], …}, "choices": {"recompute": ["full"], …},
///    "values": {"stack": {"launch/kernel": [0.000025, 0.000025], "fused_kernels": ["yes"], …}, "gpu": {…},
///    "cluster": {…}},
///    "residuals": [-0.021, …]}],
///    "unseen": {"method": "…", "groups": [{"name": "…", "device_families": ["t4", …], "sets": {"amp-t4": [0.31, …], …},
///    "software": {"amp-t4": ["megatron-lm-2020"], …}}, …],
///    "never_fitted": {…, as such a group}}}
/// `unseen` is left out where there are no groups.
std::string evidence_json(const MeasuredErrors& errors);

}  // namespace windtunnel
