#include "calibrate/anchoring.hpp"

#include <doctest/doctest.h>

#include <cmath>

namespace windtunnel {
namespace {

TEST_CASE("a measured row moves predictions near it, and less those further away") {
  const AnchoredResiduals one({{{"", "a", {0, 0}}, 0.2}});
  // By hand, at the row itself: 0.05^2 / (0.05^2 + 0.05^2) = half of what it missed; of the variance 2 * 0.05^2, 0.05^2 / 2 is explained.
  CHECK(one.at({"", "a", {0, 0}}).mean == doctest::Approx(0.1));
  CHECK(one.at({"", "a", {0, 0}}).left_open == doctest::Approx(0.75));
  // At a distance of 2: exp(-2^2 / 2) of that, and its square of what is explained.
  CHECK(one.at({"", "a", {0, 2}}).mean == doctest::Approx(0.1 * std::exp(-2)));
  CHECK(one.at({"", "a", {0, 2}}).left_open == doctest::Approx(1 - 0.25 * std::exp(-4)));
}

TEST_CASE("rows of another model or tensor width move nothing") {
  const AnchoredResiduals one({{{"", "a", {0}}, 0.2}});
  CHECK(one.at({"", "b", {0}}).mean == 0);
  CHECK(one.at({"", "b", {0}}).left_open == 1);
  CHECK(one.num_near({"", "b", {0}}) == 0);
  CHECK(one.num_near({"", "a", {7}}) == 1);
}

TEST_CASE("two equal rows count more than one, and never more than what they missed") {
  const AnchoredResiduals two({{{"", "a", {0}}, 0.2}, {{"", "a", {0}}, 0.2}});
  // By hand: 2 k / (2 k + n) with k = n.
  CHECK(two.at({"", "a", {0}}).mean == doctest::Approx(0.2 * 2 / 3));
  CHECK(two.at({"", "a", {0}}).left_open == doctest::Approx(1 - 1.0 / 3));
}

TEST_CASE("three rows agree on the least of what they missed, seven on the second") {
  CHECK(agreed_shift({}) == 0);
  CHECK(agreed_shift({0.2, 0.3}) == 0);  // both above the median: 1 in 4
  CHECK(agreed_shift({0.3, 0.1, 0.2}) == 0.1);
  CHECK(agreed_shift({-0.3, -0.1, -0.2}) == -0.1);
  CHECK(agreed_shift({-0.1, 0.1, 0.2}) == 0);
  // At most one of seven below the median: (1 + 7) / 128 = 1 / 16; at most two: 29 / 128.
  CHECK(agreed_shift({0.7, 0.6, 0.5, 0.4, 0.3, 0.2, -0.1}) == 0.2);
}

TEST_CASE("rows of a stack that nobody measured move all others on it") {
  const AnchoredResiduals three(
      {{{"s", "a", {0}}, 0.2}, {{"s", "b", {0}}, 0.3}, {{"s", "c", {0}}, 0.1}});
  CHECK(three.at({"s", "d", {3}}).mean == doctest::Approx(0.1));
  CHECK(three.at({"t", "d", {3}}).mean == 0);
  // By hand: of the stack 0.04 * 0.0144 / (3 * 0.04 + 0.0144), with 0.0144 of each row.
  CHECK(three.at({"s", "d", {3}}).left_open ==
        doctest::Approx((0.04 * 0.0144 / 0.1344 + 0.0144) / 0.0544));
  // Kin move by their part of what is left of 0.3.
  CHECK(three.at({"s", "b", {0}}).mean == doctest::Approx(0.1 + 0.2 * 0.0025 / 0.0169));
}

}  // namespace
}  // namespace windtunnel
