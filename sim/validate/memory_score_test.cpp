#include <doctest/doctest.h>

#include "validate/validate.hpp"

namespace windtunnel {
namespace {

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

TEST_CASE("a maximum over all ranks meets the fullest stage, unless ranks are told apart") {
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

}  // namespace
}  // namespace windtunnel
