#include "validate/validate.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>

#include "core/json_value.hpp"
#include "scenario/unsupported.hpp"
#include "validate/validate_json.hpp"
#include "validate/validate_text.hpp"

namespace windtunnel {
namespace {

MeasurementPoint point(const char* id, double measured) {
  MeasurementPoint made;
  made.id = id;
  made.group = "g";
  made.scenario = JsonValue(JsonValue::Object{});
  made.iteration_time = Seconds{measured};
  return made;
}

/// A set of which three points have no prediction, each for another reason.
MeasurementSet mixed_set() {
  MeasurementSet set;
  set.name = "mixed";
  set.citation = "Nobody, Nowhere, 2026";
  set.base = JsonValue(JsonValue::Object{});
  set.points = {point("good", 10), point("dead", 10), point("later", 10), point("oom", 1),
                point("slow", 10)};
  set.points[3].iteration_time.reset();
  set.points[3].out_of_memory = true;
  return set;
}

/// "Predicts" by the scenario's name.
PointPrediction fake_predict(const JsonValue& scenario, const std::filesystem::path&) {
  const std::string& name = scenario.find("name")->string();
  if (name == "dead") std::_Exit(3);
  if (name == "later") throw UnsupportedError({{{}, "/x", "this comes later", {}}});
  return {Seconds{name == "good" ? 10.5 : 8.0}, Flops{1}};
}

ValidatedSet validated_mixed_set() { return validate(mixed_set(), {fake_predict, 2}); }

TEST_CASE(
    "points that cannot be predicted are listed, and the others scored in the order of the file") {
  const ValidatedSet set = validated_mixed_set();
  CHECK(set.num_points == 5);
  REQUIRE(set.comparisons.size() == 2);
  CHECK(set.comparisons[0].id == "good");
  CHECK(set.comparisons[0].error() == doctest::Approx(0.05));   // 10.5 / 10 - 1
  CHECK(set.comparisons[1].error() == doctest::Approx(-0.20));  // 8 / 10 - 1
  REQUIRE(set.skipped.size() == 3);
  CHECK(set.skipped[0].id == "dead");
  CHECK(set.skipped[0].kind == SkipKind::failed);
  CHECK(set.skipped[1].kind == SkipKind::unsupported);
  CHECK(set.skipped[1].why.find("this comes later") != std::string::npos);
  CHECK(set.skipped[2].kind == SkipKind::no_time);
  CHECK(set.has_failures());
}

TEST_CASE("collectives are listed as not predicted") {
  MeasurementSet set = mixed_set();
  set.kind = MeasurementKind::collective;
  const ValidatedSet validated = validate(set, {fake_predict, 1});
  CHECK(validated.comparisons.empty());
  CHECK(validated.skipped.size() == 5);
  CHECK_FALSE(validated.has_failures());
}

TEST_CASE("the JSON document holds the scores, the skipped points and every comparison") {
  Problems problems;
  JsonValue json = parse_json(std::make_shared<const SourceText>(
                                  SourceText{"out", validation_json({validated_mixed_set()})}),
                              problems);
  REQUIRE(problems.empty());
  CHECK(canonical_text(*find_at(json, "/sets/0/points")) == "5");
  CHECK(canonical_text(*find_at(json, "/sets/0/scored")) == "2");
  CHECK(std::get<double>(find_at(json, "/sets/0/mape")->content) ==
        doctest::Approx(0.125));  // (0.05 + 0.20) / 2
  CHECK(std::get<double>(find_at(json, "/sets/0/bias")->content) == doctest::Approx(-0.075));
  CHECK(canonical_text(*find_at(json, "/sets/0/skipped/2/id")) == "\"oom\"");
  CHECK(canonical_text(*find_at(json, "/points/1/predicted_s")) == "8");
  CHECK(find_at(json, "/sets/0/naive_mape") != nullptr);
}

TEST_CASE("a set of which nothing is scored has no scores and says so") {
  MeasurementSet set = mixed_set();
  for (MeasurementPoint& each : set.points) each.failed = true;
  const ValidatedSet validated = validate(set, {fake_predict, 1});
  CHECK(validation_json({validated}).find("mape") == std::string::npos);
  CHECK(validation_text(validated).find("nothing could be scored") != std::string::npos);
}

TEST_CASE("the table shows measured beside predicted and marks what is far off") {
  const std::string text = validation_text(validated_mixed_set());
  CHECK(text.find("mixed: 2 of 5 points scored\n") == 0);
  CHECK(text.find("  good    10.00 s    10.50 s   +5.0 %\n") != std::string::npos);
  CHECK(text.find("  slow    10.00 s    8.000 s  -20.0 %  *\n") != std::string::npos);
  CHECK(text.find("  skipped oom: the run ended out of memory") != std::string::npos);
  CHECK(text.find("bias -7.5 %") != std::string::npos);
}

}  // namespace
}  // namespace windtunnel
