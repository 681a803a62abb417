#include "validate/validate.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>

#include "core/json_value.hpp"
#include "scenario/scenario.hpp"
#include "validate/validation_report.hpp"

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
  if (name == "dead") throw std::logic_error("a bug");
  if (name == "later") throw UnsupportedError({{{}, "/x", "this comes later", {}}});
  PointPrediction prediction;
  prediction.time = Seconds{name == "good" ? 10.5 : 8.0};
  prediction.ideal_work = Flops{1};
  prediction.interval = {Seconds{9}, Seconds{name == "good" ? 11 : 9.5}};
  if (name == "oom") prediction.verdict = MemoryVerdict::does_not_fit;
  prediction.fitted = {{"number", "mixed, 3 rows"}};
  return prediction;
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

TEST_CASE("intervals, verdicts and what was fitted on the set are counted") {
  const ValidatedSet set = validated_mixed_set();
  CHECK(interval_coverage(set.comparisons) == 0.5);  // 10 s lies in 9 to 11 s, not in 9 to 9.5 s
  CHECK(set.capacity.caught == std::vector<std::string>{"oom"});
  CHECK(set.capacity.ran.size() == 2);
  CHECK(set.fitted_numbers.contains("number"));
}

TEST_CASE("collectives are compared by their own time") {
  MeasurementSet set;
  set.name = "collectives";
  set.kind = MeasurementKind::collective;
  set.base = JsonValue(JsonValue::Object{});
  set.points = {point("c", 1)};
  set.points[0].iteration_time.reset();
  set.points[0].collective = {CollectiveOperation::all_reduce, 2, 1, 1_MiB, Seconds{2}};
  Prediction prediction{fake_predict};
  prediction.predict_collective = [](const CollectiveRun& run, const JsonValue&,
                                     const std::filesystem::path&) {
    PointPrediction predicted;
    predicted.time = Seconds{run.gpus * 1.5};
    predicted.ideal_work = Flops{1};
    return predicted;
  };
  const ValidatedSet validated = validate(set, prediction);
  REQUIRE(validated.comparisons.size() == 1);
  CHECK(validated.comparisons[0].error() == doctest::Approx(0.5));  // 3 / 2 - 1
  CHECK(validated.capacity.ran.empty());
  CHECK(validation_text(validated).find("one constant bus bandwidth") != std::string::npos);
  CHECK(validation_json({validated}).find("out_of_memory") == std::string::npos);
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
  CHECK(canonical_text(*find_at(json, "/sets/0/interval_coverage")) == "0.5");
  CHECK(canonical_text(*find_at(json, "/sets/0/out_of_memory")) ==
        R"({"caught":1,"missed":0,"ran":2,"refused_that_ran":0})");
  CHECK(canonical_text(*find_at(json, "/sets/0/fitted_on_this_set")) == R"(["number"])");
  CHECK(find_at(json, "/sets/0/memory_mape") == nullptr);
}

TEST_CASE("memory and timers stand in the JSON document by kind and name") {
  ValidatedSet set;
  set.name = "m";
  set.memory = {{"a", MemoryKind::reserved, "last stage", 10_MiB, 11_MiB}};
  set.timers = {{"a", "forward-compute", Seconds{2}, Seconds{1}}};
  const std::string json = validation_json({set});
  CHECK(json.find("\"memory_reserved_mape\": 0.1") != std::string::npos);
  CHECK(json.find("\"memory_allocated_mape\"") == std::string::npos);
  CHECK(json.find("\"forward-compute\": 0.5") != std::string::npos);
  CHECK(json.find("\"ranks\": \"last stage\"") != std::string::npos);
  const std::string text = validation_text(set);
  CHECK(text.find("memory, reserved") != std::string::npos);
  CHECK(text.find("timer forward-compute") != std::string::npos);
}

TEST_CASE("a set of which nothing is scored has no scores and says so") {
  MeasurementSet set = mixed_set();
  for (MeasurementPoint& each : set.points) each.failed = true;
  const ValidatedSet validated = validate(set, {fake_predict, 1});
  CHECK(validation_json({validated}).find("\"mape\"") == std::string::npos);
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
