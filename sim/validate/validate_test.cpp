#include "validate/validate.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <stdexcept>
#include <string>

#include "core/contracts.hpp"
#include "core/json_value.hpp"
#include "core/testing.hpp"
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
  REQUIRE(set.skipped.size() == 2);
  CHECK(set.skipped[0].id == "dead");
  CHECK(set.skipped[0].kind == SkipKind::failed);
  CHECK(set.skipped[1].kind == SkipKind::unsupported);
  CHECK(set.skipped[1].why.find("this comes later") != std::string::npos);
  CHECK(set.has_failures());
}

TEST_CASE("intervals, verdicts and what was fitted on the set are counted") {
  const ValidatedSet set = validated_mixed_set();
  CHECK(interval_coverage(set.comparisons) == 0.5);  // 10 s lies in 9 to 11 s, not in 9 to 9.5 s
  CHECK(set.capacity.caught == std::vector<std::string>{"oom"});
  CHECK(set.capacity.ran.size() == 2);
  CHECK(set.fitted_numbers.contains("number"));
}

TEST_CASE("a row without a time is scored by its memory and by whether it ran") {
  MeasurementSet set;
  set.name = "verdicts";
  set.base = JsonValue(JsonValue::Object{});
  for (const char* id : {"fits", "smi", "oom", "nothing"}) {
    set.points.push_back(point(id, 1));
    set.points.back().iteration_time.reset();
  }
  set.points[0].fits = true;
  set.points[1].memory.nvidia_smi = 8_GiB;
  set.points[2].out_of_memory = true;
  const ValidatedSet validated = validate(set, {fake_predict, 2});
  CHECK(validated.capacity.ran == std::vector<std::string>{"fits", "smi"});
  CHECK(validated.capacity.caught == std::vector<std::string>{"oom"});
  REQUIRE(validated.skipped.size() == 1);
  CHECK(validated.skipped[0].id == "nothing");
  CHECK(validated.skipped[0].kind == SkipKind::no_time);
  CHECK(validated.has_scores());
  CHECK(validation_text(validated).starts_with("verdicts: 4 points, scored by memory alone\n"));
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
  CHECK(canonical_text(*find_at(json, "/sets/0/skipped/1/id")) == "\"later\"");
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

TEST_CASE("the table shows measured next to predicted and marks what is far off") {
  const std::string text = validation_text(validated_mixed_set());
  CHECK(text.find("mixed: 2 of 5 points scored\n") == 0);
  CHECK(text.find("  good    10.00 s    10.50 s   +5.0 %\n") != std::string::npos);
  CHECK(text.find("  slow    10.00 s    8.000 s  -20.0 %  *\n") != std::string::npos);
  CHECK(text.find("  ended out of memory, and refused: oom") != std::string::npos);
  CHECK(text.find("bias -7.5 %") != std::string::npos);
}

ValidatedSet set_with_everything() {
  ValidatedSet set;
  set.comparisons = {{"a", "", Seconds{10}, Seconds{8}, Flops{1}}};
  set.memory = {{"a", MemoryKind::allocated, "", 10_MiB, 11_MiB},
                {"a", MemoryKind::nvidia_smi, "", 10_GiB, 7_GiB}};
  set.timers = {{"a", "forward-compute", Seconds{1}, Seconds{1.5}}};
  set.capacity.refused_that_ran = {"a", "b"};
  return set;
}

double value(const char* name, const ValidatedSet& set) {
  return find_metric(name)->of(set).value();
}

TEST_CASE("each metric is a mean of its own kind") {
  const ValidatedSet set = set_with_everything();
  CHECK(value("mape", set) == doctest::Approx(0.2));
  CHECK(value("bias", set) == doctest::Approx(0.2));  // -0.2, without its sign
  CHECK(value("memory_allocated_mape", set) == doctest::Approx(0.1));
  CHECK(value("memory_smi_mape", set) == doctest::Approx(0.3));
  CHECK(value("memory_mape", set) == doctest::Approx(0.2));  // (0.1 + 0.3) / 2
  CHECK(value("timers_mape", set) == doctest::Approx(0.5));
  CHECK(value("refused_that_ran", set) == 2);
  CHECK(value("missed", set) == 0);
}

TEST_CASE("a set without readings has no metric of them") {
  const ValidatedSet set;
  for (const char* name : {"mape", "memory_mape", "memory_reserved_mape", "timers_mape"})
    CHECK_FALSE(find_metric(name)->of(set).has_value());
  ValidatedSet collectives;
  collectives.kind = MeasurementKind::collective;
  CHECK_FALSE(find_metric("missed")->of(collectives).has_value());
  CHECK(find_metric("accuracy") == nullptr);
}

/// Four stages of two ranks each, which hold 10, 8, 8 and 6 MiB; reserved twice that, and in the
/// first step half of it.
PointPrediction four_stages() {
  PointPrediction prediction;
  prediction.stage_of_rank = {0, 0, 1, 1, 2, 2, 3, 3};
  for (const double mib : {10.0, 8.0, 8.0, 6.0})
    prediction.stages.push_back({mib * 1_MiB, 2 * mib * 1_MiB, 0.5 * mib * 1_MiB, mib * 1_MiB});
  prediction.memory_max = 30_GiB;
  return prediction;
}

TEST_CASE("stages that hold alike are one class") {
  CHECK(std::string(rank_class(0, 4)) == "first stage");
  CHECK(std::string(rank_class(1, 4)) == "middle stages");
  CHECK(std::string(rank_class(2, 4)) == "next-to-last stage");
  CHECK(std::string(rank_class(3, 4)) == "last stage");
  CHECK(std::string(rank_class(0, 1)) == "first stage");
  CHECK(std::string(rank_class(1, 2)) == "last stage");
}

TEST_CASE("ranks are averaged by class over those that were read") {
  MeasurementPoint point;
  point.id = "p";
  point.memory.allocated = {{0, 10_MiB}, {1, 12_MiB}, {7, 8_MiB}, {99, 1_MiB}};
  const auto compared = compare_memory(point, four_stages());
  REQUIRE(compared.size() == 2);  // rank 99 is not in the plan
  CHECK(compared[0].ranks == "first stage");
  CHECK(compared[0].measured == 11_MiB);  // (10 + 12) / 2
  CHECK(compared[0].predicted == 10_MiB);
  CHECK(compared[1].ranks == "last stage");
  CHECK(compared[1].error() == doctest::Approx(-0.25));  // 6 / 8 - 1
}

TEST_CASE("a first-step reading meets the first step's maxima") {
  MeasurementPoint point;
  point.memory.allocated = {{0, 5_MiB}};
  point.memory.reserved = {{0, 10_MiB}};
  const auto steady = compare_memory(point, four_stages());
  CHECK(steady[0].predicted == 10_MiB);
  CHECK(steady[1].predicted == 20_MiB);
  point.memory.reading = MemoryReading::first_step;
  const auto first = compare_memory(point, four_stages());
  CHECK(first[0].predicted == 5_MiB);
  CHECK(first[1].predicted == 10_MiB);
}

TEST_CASE("a maximum over all ranks meets the fullest stage, unless ranks are distinguished") {
  MeasurementPoint point;
  point.memory.most_reserved = 25_MiB;
  const auto compared = compare_memory(point, four_stages());
  REQUIRE(compared.size() == 1);
  CHECK(compared[0].kind == MemoryKind::reserved);
  CHECK(compared[0].ranks == "fullest GPU");
  CHECK(compared[0].error() == doctest::Approx(-0.2));  // 20 / 25 - 1
  point.memory.reserved = {{0, 10_MiB}};
  CHECK(compare_memory(point, four_stages())[0].ranks == "first stage");
}

TEST_CASE("nvidia-smi meets the fullest GPU") {
  MeasurementPoint point;
  point.memory.nvidia_smi = 25_GiB;
  const auto compared = compare_memory(point, four_stages());
  REQUIRE(compared.size() == 1);
  CHECK(compared[0].kind == MemoryKind::nvidia_smi);
  CHECK(compared[0].error() == doctest::Approx(0.2));  // 30 / 25 - 1
  CHECK(memory_errors(compared, MemoryKind::allocated).empty());
  CHECK(memory_errors(compared).size() == 1);
}

TEST_CASE("verdicts are counted against what happened, and unknown ends count nowhere") {
  MeasurementPoint ran, died, unknown;
  ran.id = "ran";
  ran.iteration_time = Seconds{1};
  died.id = "died";
  died.out_of_memory = true;
  CapacityVerdicts verdicts;
  verdicts.add(ran, MemoryVerdict::fits);
  verdicts.add(ran, MemoryVerdict::does_not_fit);
  verdicts.add(died, MemoryVerdict::at_risk);
  verdicts.add(died, MemoryVerdict::does_not_fit);
  verdicts.add(unknown, MemoryVerdict::does_not_fit);
  CHECK(verdicts.by_verdict[0].ran == 1);
  CHECK(verdicts.by_verdict[1].out_of_memory == 1);
  CHECK(verdicts.by_verdict[3].ran + verdicts.by_verdict[3].out_of_memory == 2);
  CHECK(verdicts.ran.size() == 1);
  CHECK(verdicts.refused_that_ran.size() == 1);
  CHECK(verdicts.missed.size() == 1);
  CHECK(verdicts.caught.size() == 1);
}

TEST_CASE(
    "forward and backward timers meet the last stage's passes, and others are not predicted") {
  MeasurementPoint point;
  point.timers = {{"forward-compute", Seconds{2}},
                  {"backward-compute", Seconds{4}},
                  {"forward-recv", Seconds{9}}};
  PointPrediction predicted;
  predicted.last_stage_forward = Seconds{2.5};
  predicted.last_stage_backward = Seconds{3};
  const auto compared = compare_timers(point, predicted);
  REQUIRE(compared.size() == 2);
  const auto errors = timer_errors(compared);
  CHECK(errors.at("forward-compute").front() == doctest::Approx(0.25));    // 2.5 / 2 - 1
  CHECK(errors.at("backward-compute").front() == doctest::Approx(-0.25));  // 3 / 4 - 1
}

TEST_CASE("a point without timers has nothing to compare") {
  CHECK(compare_timers({}, {}).empty());
}

TEST_CASE("eight H200 take a step in the time of eight H100, but for what waits for memory") {
  const auto step = [](const std::string& platform, const Overrides& changes = {}) {
    Problems problems;
    const JsonValue scenario = parse_json(
        std::make_shared<const SourceText>(SourceText{
            "step.json",
            R"({"version": 1, "model": "llama3-8b", "software": "nemo-2024", "platform": ")" +
                platform +
                R"(", "training": {"global_batch": 64, "micro_batch": 1, "precision": "bf16", "attention": "flash"},
                              "parallel": {"tensor": 2, "data": 4, "zero_stage": 1}})"}),
        problems);
    problems.throw_if_any();
    return predict_by_simulation(scenario, {}, Library{source_dir()}, {.overrides = changes}).time;
  };
  const Seconds h100 = step("dgx-h100");
  CHECK(step("hgx-h200", {{"/platform/node_types/0/device/memory/bandwidth", "3350 GB/s"}}) ==
        h100);
  // A sixth of the step waits for memory, which an H200 reads 4800 / 3350 times as fast: 1 - (1 - 3350 / 4800) / 6 = 0.95
  CHECK(step("hgx-h200") / h100 == doctest::Approx(0.95).epsilon(0.01));
}

}  // namespace
}  // namespace windtunnel
