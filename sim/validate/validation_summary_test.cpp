#include <doctest/doctest.h>

#include <algorithm>
#include <sstream>

#include "validate/validation_report.hpp"

namespace windtunnel {
namespace {

/// Four rows, 10 % slow and 10 % fast in turn, and one that was skipped.
ValidatedSet set_of(const char* name, MeasurementKind kind) {
  ValidatedSet set;
  set.name = name;
  set.kind = kind;
  set.num_points = 5;
  for (const double predicted : {11.0, 9.0, 11.0, 9.0})
    set.comparisons.push_back({"row", "", Seconds{10}, Seconds{predicted}, Flops{1}});
  set.skipped = {{"row", SkipKind::no_time, "the run ended out of memory"}};
  set.fitted_numbers = {"device a100: peak"};
  return set;
}

TEST_CASE("the summary has a line for each set, and what the columns mean") {
  ValidatedSet times = set_of("times", MeasurementKind::iteration);
  for (ScoredRow& row : times.comparisons) row.interval = {Seconds{9}, Seconds{11}};
  times.comparisons.back().interval = {Seconds{7}, Seconds{9.5}};  // holds no 10 s
  ValidatedSet rings = set_of("rings", MeasurementKind::collective);
  rings.num_points = 4;
  CHECK(validation_summary({rings, times}, Legend::hidden) ==
        R"(  iteration times, errors in %  rows  mean  worst  bias  bar  inside  fitted
  times                          4/5  10.0   10.0  +0.0  0.0      75       1

  collectives, errors in %      rows  mean  worst  bias  bar  inside  fitted
  rings                            4  10.0   10.0  +0.0  0.0       -       1
)");
  CHECK(validation_summary({times}, Legend::shown).find("--details") != std::string::npos);
}

TEST_CASE("a set with nothing to compare, and changes over every point, are said") {
  ValidatedSet set = set_of("empty", MeasurementKind::iteration);
  set.comparisons.clear();
  set.overrides = {"/nodes=4"};
  const std::string text = validation_summary({set, set}, Legend::hidden);
  CHECK(text.find("  empty                          0/5     -      -") != std::string::npos);
  const std::string change = "  With /nodes=4 over every point: not the score";
  REQUIRE(text.find(change) != std::string::npos);
  CHECK(text.find(change) == text.rfind(change));
}

TEST_CASE("the summary of as many sets as are shipped fits on a screen of 24 lines of 80") {
  const std::vector<ValidatedSet> sets(
      15, set_of("megatron-2020-tensor-scaling", MeasurementKind::iteration));
  const std::string text = validation_summary(sets, Legend::shown);
  CHECK(std::count(text.begin(), text.end(), '\n') <= 24);
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) CHECK(line.size() <= 80);
}

}  // namespace
}  // namespace windtunnel
