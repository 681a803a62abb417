#include "calibrate/calibration_points.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <memory>

namespace windtunnel {
namespace {

JsonValue json(const char* text) {
  Problems problems;
  JsonValue value =
      parse_json(std::make_shared<const SourceText>(SourceText{"test", text}), problems);
  problems.throw_if_any();
  return value;
}

TEST_CASE("a short name is a pointer with bounds") {
  const FitConstant constant = parse_fit_constant("emax");
  CHECK(constant.pointer == "/platform/node_types/0/device/gemm/peak_fraction");
  REQUIRE(constant.bounds);
  CHECK(constant.bounds->upper == 1);
}

TEST_CASE("any pointer can be fitted, with bounds of its own") {
  const FitConstant constant = parse_fit_constant("/software/optimizer_bytes=10..60");
  CHECK(constant.pointer == "/software/optimizer_bytes");
  REQUIRE(constant.bounds);
  CHECK(constant.bounds->lower == 10);
  CHECK(constant.bounds->upper == 60);
  CHECK_FALSE(parse_fit_constant("/software/optimizer_bytes").bounds);
}

TEST_CASE("a misspelt constant is refused with the nearest one") {
  CHECK_THROWS_WITH_AS(parse_fit_constant("emaxx"), doctest::Contains("did you mean \"emax\"?"),
                       InputError);
  CHECK_THROWS_WITH_AS(parse_fit_constant("emax=1..0.5"), doctest::Contains("no pair of bounds"),
                       InputError);
  CHECK_THROWS_AS(parse_fit_constant("emax=0..1"), InputError);
}

TEST_CASE("the number in a quantity is fitted and its unit stays") {
  JsonValue scenario = json(R"({"launch": {"cf": "0.32 ms", "q": 4, "name": "x", "s": 0.5}})");
  const auto floor = number_at(scenario, "/launch/cf");
  REQUIRE(floor);
  CHECK(floor->number == 0.32);
  CHECK(text_of({0.25, floor->unit}) == "0.25 ms");
  CHECK(number_at(scenario, "/launch/q")->number == 4);
  CHECK(number_at(scenario, "/launch/s")->number == 0.5);
  CHECK_FALSE(number_at(scenario, "/launch/name"));
  CHECK_FALSE(number_at(scenario, "/launch/none"));
}

TEST_CASE("the start is moved into the bounds; without bounds they are a tenth and ten times it") {
  CHECK(range_of(parse_fit_constant("arf"), 0.5).start == 1);
  const FitRange open = range_of(parse_fit_constant("/software/optimizer_bytes"), 30);
  CHECK(open.bounds.lower == 3);
  CHECK(open.bounds.upper == 300);
}

TEST_CASE("a measured row moves predictions near it, and less those further away") {
  const AnchoredResiduals one({{{"", "a", {0, 0}}, 0.2}});
  // By hand, at the row itself: 0.05^2 / (0.05^2 + 0.05^2) = half of what it missed; of the variance 2 * 0.05^2, 0.05^2 / 2 is explained.
  CHECK(one.at({"", "a", {0, 0}}).mean == doctest::Approx(0.1));
  CHECK(one.at({"", "a", {0, 0}}).left_open == doctest::Approx(0.75));
  // At a distance of 2: exp(-2^2 / 2) of that, and its square of what is explained.
  CHECK(one.at({"", "a", {0, 2}}).mean == doctest::Approx(0.1 * std::exp(-2)));
  CHECK(one.at({"", "a", {0, 2}}).left_open == doctest::Approx(1 - 0.25 * std::exp(-4)));
}

TEST_CASE("a run that was measured is predicted as measured, but for what a repeat misses") {
  const AnchoredResiduals one({{{"", "a", {0}, "this run"}, 0.2}});
  // 0.05^2 shared and 0.05^2 - 0.03^2 of its own, of 2 * 0.05^2.
  CHECK(one.at({"", "a", {0}, "this run"}).mean == doctest::Approx(0.2 * 0.0041 / 0.005));
  CHECK(one.at({"", "a", {0}, "this run"}).left_open ==
        doctest::Approx(1 - (0.0041 / 0.005) * (0.0041 / 0.005)));
  CHECK(one.at({"", "a", {0}, "its twin"}).mean == doctest::Approx(0.2 * 0.0025 / 0.005));
  // Two repeats count as one and a bit: each has a noise of its own.
  const AnchoredResiduals two(
      {{{"", "a", {0}, "this run"}, 0.2}, {{"", "a", {0}, "this run"}, 0.2}});
  CHECK(two.at({"", "a", {0}, "this run"}).mean ==
        doctest::Approx(0.2 * 2 * 0.0041 / (0.005 + 0.0041)));
}

TEST_CASE("on a stack that nobody measured a run that was measured is predicted as measured") {
  std::vector<Anchor> anchors;
  for (const char* run : {"a", "b", "c", "d"}) {
    anchors.push_back({{"s", "k", {static_cast<double>(anchors.size()) * 9}, run}, std::log(2)});
    const AnchoredShift shift = AnchoredResiduals(anchors).at(anchors.front().place);
    CHECK(std::exp(shift.mean) == doctest::Approx(2).epsilon(0.06));
  }
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
  // By hand: they agree on 0.1, and three rows bear witness to 3 * 0.08: 0.1 / sqrt(1 + (0.1 / 0.24)^2) = 0.0923077.
  CHECK(three.at({"s", "d", {3}}).mean == doctest::Approx(0.0923077));
  CHECK(three.at({"t", "d", {3}}).mean == 0);
  // The stack's variance: 0.0064 * 0.0121 / (3 * 0.0064 + 0.0121), with 0.0121 of each row.
  CHECK(three.at({"s", "d", {3}}).left_open ==
        doctest::Approx((0.0064 * 0.0121 / 0.0313 + 0.0121) / 0.0185));
  // Kin move by their part of what is left of 0.3.
  CHECK(three.at({"s", "b", {0}}).mean ==
        doctest::Approx(0.0923077 + (0.3 - 0.1) * 0.0025 / 0.0146));
}

TEST_CASE("more rows make a larger shift believable") {
  const auto shift_of = [](std::size_t rows) {
    std::vector<Anchor> anchors;
    for (std::size_t i = 0; i < rows; ++i)
      anchors.push_back({{"s", "row " + std::to_string(i), {0}}, 0.7});
    return AnchoredResiduals(anchors).at({"s", "other", {0}}).mean;
  };
  CHECK(shift_of(3) == doctest::Approx(0.7 / std::sqrt(1 + std::pow(0.7 / 0.24, 2))));
  CHECK(shift_of(12) == doctest::Approx(0.7 / std::sqrt(1 + std::pow(0.7 / 0.96, 2))));
}

TEST_CASE("the stack's and the nodes' constant of one name are told apart") {
  CHECK(shown_name("compute_efficiency") == "stack's compute_efficiency");
  CHECK(shown_name("/software/compute_efficiency") == "stack's compute_efficiency");
  CHECK(shown_name("/platform/node_types/0/compute_efficiency") == "nodes' compute_efficiency");
  CHECK(shown_name("/platform/node_types/0/interconnect/floor_base") == "interconnect/floor_base");
  CHECK(shown_name("emax") == "emax");
}

}  // namespace
}  // namespace windtunnel
