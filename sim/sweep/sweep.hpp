#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

#include "core/json_value.hpp"
#include "scenario/scenario.hpp"
#include "sweep/points.hpp"

namespace windtunnel {

/// A scenario file with its sweep: read once, then asked for one point after the other.
class Sweep {
 public:
  /// Throws InputError with what is wrong with the file or its `sweep` block, and when it has none.
  Sweep(const std::filesystem::path& file, const Library& library, const ReadOptions& options);

  const std::string& name() const { return name_; }
  const SweepPoints& points() const { return points_; }
  /// Of everything that decides the results: scenario, files named by it or by the swept values, measured residuals, seed.
  const std::string& hash() const { return hash_; }
  const Library& library() const { return library_; }
  /// The file as it was read, merged, with its sweep.
  const JsonValue& written() const { return written_; }

  /// The scenario of one point, as `run --set` with the same values would read it. Throws InputError.
  Scenario scenario(std::size_t point) const;
  /// Throws InputError when every point has the same problem, which is then not the swept values' fault. Looks at so many points as it
  /// takes to find out.
  void expect_a_readable_point() const;

 private:
  JsonValue take_sweep(const std::filesystem::path& file);
  std::string hash_of_inputs(const JsonValue& block) const;
  /// Throws InputError for each --set that the swept values replace.
  void expect_effect(const Overrides& overrides) const;

  Library library_;
  std::filesystem::path folder_;
  std::uint64_t seed_ = 0;
  JsonValue base_;  ///< merged, without its sweep
  std::string name_;
  std::string hash_;
  JsonValue written_;
  SweepPoints points_;  ///< last: taking them out of base_ also makes the hash
};

}  // namespace windtunnel
