#include <doctest/doctest.h>

#include <memory>

#include "calibrate/calibration_points.hpp"

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

}  // namespace
}  // namespace windtunnel
