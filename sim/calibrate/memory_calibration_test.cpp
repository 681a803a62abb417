#include "calibrate/memory_calibration.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "core/testing.hpp"
#include "memory/memory_correction.hpp"

namespace windtunnel {
namespace {

/// Runs of `groups` kinds, five each, whose account is off by a smooth function of the first feature, or not at all.
MemoryRows rows_off_by(double size, int groups) {
  MemoryRows all{"allocated", "mine", {}};
  for (int g = 0; g < groups; ++g)
    for (int r = 0; r < 5; ++r) {
      MemoryRow row{"run", "group " + std::to_string(g), {}, 0, 1e10};
      row.features.assign(memory_feature_names().size(), 1);
      row.features[0] = g + 0.2 * r;
      row.measured = row.accounted * std::exp(size * std::tanh(row.features[0] - 3));
      all.rows.push_back(row);
    }
  return all;
}

TEST_CASE("what the account leaves unexplained is learned, and holds on groups held out") {
  const MemoryCorrection correction = calibrate_memory(rows_off_by(0.1, 6), 0);
  CHECK(correction.held_out.rows == 30);
  CHECK(correction.held_out.groups == 6);
  CHECK(correction.is_better());
  CHECK(correction.held_out.corrected < correction.held_out.analytic / 2);
}

TEST_CASE("noise is not learned: the account stays the better one on groups held out") {
  MemoryRows all = rows_off_by(0, 6);
  // Two readings of each group 2 % up, two as far down, one right: nothing to learn, and any lesson spoils the fifth.
  const double noise[] = {0.02, -0.02, -0.02, 0.02, 0};
  for (std::size_t i = 0; i < all.rows.size(); ++i) all.rows[i].measured *= std::exp(noise[i % 5]);
  CHECK(!calibrate_memory(all, 0).is_better());
}

TEST_CASE("the same rows and seed give the same file") {
  const MemoryRows all = rows_off_by(0.1, 3);
  CHECK(memory_correction_json(calibrate_memory(all, 5)) ==
        memory_correction_json(calibrate_memory(all, 5)));
  CHECK(memory_correction_json(calibrate_memory(all, 5)) !=
        memory_correction_json(calibrate_memory(all, 6)));
}

TEST_CASE("the shipped readings are found with their accounts") {
  const Library library{source_dir()};
  const auto rows = read_memory_rows(
      {read_measurement_set(library.root / "validation/bigscience/a100-176b.json")}, library);
  REQUIRE(rows.size() == 1);
  CHECK(rows[0].quantity == "nvidia-smi");
  CHECK(rows[0].rows.size() == 17);
  for (const MemoryRow& row : rows[0].rows)
    CHECK(row.accounted == doctest::Approx(row.measured).epsilon(0.06));
}

}  // namespace
}  // namespace windtunnel
