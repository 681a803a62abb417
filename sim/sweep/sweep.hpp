#pragma once

#include <cstdint>
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "core/json_value.hpp"
#include "scenario/scenario.hpp"
#include "scenario/sweep_block.hpp"
#include "sweep/points.hpp"

namespace windtunnel {

/// The scenario with the best of the plans that its search tries. InputError where none fits.
using PlanChooser = std::function<Scenario(Scenario)>;

/// A figure that rows of a sweep with a baseline get when they are merged: tokens a second over those of the baseline.
inline constexpr const char* speedup_key = "speedup";

/// A scenario file with its sweep: read once, then asked for one point after the other.
class Sweep {
 public:
  /// Throws InputError with what is wrong with the file or its `sweep` block, and when it has none.
  Sweep(const std::filesystem::path& file, const Library& library, const ReadOptions& options,
        PlanChooser chooser = {});
  /// The same from what merged_scenario() gives. `folder` is what relative paths are relative to.
  Sweep(JsonValue merged, std::filesystem::path folder, const Library& library,
        const ReadOptions& options, PlanChooser chooser = {});

  const std::string& name() const { return name_; }
  const SweepPoints& points() const { return points_; }
  const SweepChoices& choices() const { return choices_; }
  /// Figures of a row that are there because the sweep asks for them, after the others.
  std::vector<std::string> asked_figures() const;
  /// Hash of everything that decides the results: scenario, files named by it or by the swept values, measured residuals, seed.
  const std::string& hash() const { return hash_; }
  const Library& library() const { return library_; }
  /// The file as it was read, merged, with its sweep.
  const JsonValue& written() const { return written_; }

  /// The scenario of one point, as `run --set` with the same values would read it. Throws InputError.
  Scenario scenario(std::size_t point) const;
  /// The same, to be simulated as a job: where the `job` block wants the best plan, the point's own need not be legal. Throws InputError.
  Scenario job_scenario(std::size_t point) const;
  /// With the plan that the sweep wants it to be simulated with.
  Scenario planned(Scenario scenario) const;
  /// Throws InputError when every point has the same problem, which is then not the swept values' fault. Looks at so many points as it
  /// takes to find out. As jobs: &Sweep::job_scenario.
  void expect_a_readable_point(Scenario (Sweep::*read)(std::size_t point)
                                   const = &Sweep::scenario) const;

 private:
  JsonValue take_sweep();
  /// The points of the sweep that the file has. What is wrong with it is reported with what else is wrong with the file.
  SweepPoints read_points();
  std::vector<Problem> problems_around_sweep() const;
  ReadOptions options_of(std::size_t point) const;
  /// The blocks `nodes`, `parallel` and `job` with a point's values: what decides which plan it is read with.
  JsonValue written_plan(const PointValues& values) const;
  Scenario with_any_plan(const ReadOptions& options, const JsonValue& written) const;
  /// Throws InputError for each --set that the swept values replace.
  void expect_effect(const Overrides& overrides) const;

  Library library_;
  std::filesystem::path folder_;
  std::uint64_t seed_ = 0;
  JsonValue base_;  ///< merged, without its sweep
  std::string name_;
  std::string hash_;
  JsonValue written_;
  PlanChooser chooser_;
  SweepChoices choices_;
  SweepPoints points_;         ///< taking them out of base_ also makes the hash
  ScenarioTemplate template_;  ///< of base_ as it is then
};

}  // namespace windtunnel
