#include <doctest/doctest.h>

#include <memory>
#include <string>

#include "evidence/measurement_set.hpp"

namespace windtunnel {
namespace {

/// A set of one point, as text: its members beside the id.
MeasurementSet set_of(const std::string& point, const std::string& kind) {
  const std::string text =
      R"({"schema": "windtunnel/measurements-v1", "name": "small", "kind": ")" + kind +
      R"(", "source": {"citation": "A table", "licence": "MIT"}, "base": {}, "points": [{"id": "a", )" +
      point + "}]}";
  Problems problems;
  JsonValue value =
      parse_json(std::make_shared<const SourceText>(SourceText{"set.json", text}), problems);
  problems.throw_if_any();
  return read_measurement_set(std::move(value), "folder");
}

MeasurementPoint iteration(const std::string& measured) {
  return set_of(R"("measured": )" + measured, "iteration").points[0];
}

TEST_CASE("memory is read in GiB for nvidia-smi and in MiB by rank for the allocator") {
  const MeasurementPoint point = iteration(R"({"nvidia_smi_gib": 51,
      "max_allocated_mib_by_rank": {"0": 100.5, "12": 90}, "max_reserved_mib_by_rank": {"12": 128}})");
  CHECK(*point.memory.nvidia_smi == 51_GiB);
  CHECK(point.memory.allocated.at(0) == 100.5 * 1_MiB);
  CHECK(point.memory.allocated.at(12) == 90_MiB);
  CHECK(point.memory.reserved.at(12) == 128_MiB);
  CHECK(point.memory.reading == MemoryReading::steady_state);
  CHECK(iteration("{}").memory.empty());
}

TEST_CASE(
    "gigabytes and GiB of memory have the bound of memory, so that bytes are told from them") {
  CHECK_NOTHROW(iteration(R"({"max_memory_usage_gb": 92.0, "max_reserved_gib": 80})"));
  CHECK_THROWS_AS(iteration(R"({"max_memory_usage_gb": 98784247808})"), InputError);
  CHECK_THROWS_AS(iteration(R"({"max_reserved_gib": 85899345920})"), InputError);
}

TEST_CASE("a throughput is a time of the work of an iteration") {
  const IterationWork work{.samples = 64, .tokens_of_gpu = 8192};
  CHECK(*measured_time(iteration(R"({"tokens_per_s_per_gpu": 4096})"), work) == Seconds{2});
  CHECK(*measured_time(iteration(R"({"samples_per_s": 128})"), work) == Seconds{0.5});
  CHECK(*measured_time(iteration(R"({"samples_per_s": 128, "iteration_time_s": 3})"), work) ==
        Seconds{3});
  CHECK_FALSE(measured_time(iteration("{}"), work));
  CHECK(iteration(R"({"samples_per_s": 128})").has_time());
  CHECK_THROWS_WITH_AS(iteration(R"({"samples_per_s": 0})"), doctest::Contains("above zero"),
                       InputError);
  CHECK_THROWS_WITH_AS(iteration(R"({"iteraton_time_s": 3})"),
                       doctest::Contains("did you mean \"iteration_time_s\"?"), InputError);
  // Keys of the authors' own.
  CHECK_FALSE(iteration(R"({"tokens_per_s": 3, "iteration_time_s_std": 1})").has_time());
}

TEST_CASE("what NeMo logs is rank 0's, in GiB, unless ranks are told apart") {
  const MeasurementPoint point =
      iteration(R"({"max_memory_usage_gb": 92.1, "max_reserved_gib": 70.5})");
  CHECK(point.memory.allocated == std::map<int, Bytes>{{0, 92.1 * 1_GiB}});
  CHECK(iteration(R"({"max_memory_usage_gb": 92.1, "max_allocated_mib_by_rank": {"0": 8}})")
            .memory.allocated == std::map<int, Bytes>{{0, 8_MiB}});
  CHECK(*point.memory.most_reserved == 70.5 * 1_GiB);
}

TEST_CASE("a log that prints the first step's maximum says so") {
  CHECK(iteration(R"({"memory_reading": "first_step"})").memory.reading ==
        MemoryReading::first_step);
  CHECK_THROWS_WITH_AS(iteration(R"({"memory_reading": "first"})"),
                       doctest::Contains("steady_state"), InputError);
}

TEST_CASE("timers are read in milliseconds") {
  const MeasurementPoint point =
      iteration(R"({"megatron_timers_ms": {"forward-compute": 250, "optimizer": 2}})");
  CHECK(point.timers.at("forward-compute") == Seconds{0.25});
  CHECK(point.timers.at("optimizer") == Seconds{0.002});
}

TEST_CASE("measurements that cannot be are said with their place") {
  CHECK_THROWS_WITH_AS(iteration(R"({"max_allocated_mib_by_rank": {"first": 1}})"),
                       doctest::Contains("no rank"), InputError);
  CHECK_THROWS_WITH_AS(iteration(R"({"megatron_timers_ms": {"optimizer": 0}})"),
                       doctest::Contains("/points/0/measured/megatron_timers_ms/optimizer"),
                       InputError);
  CHECK_THROWS_AS(iteration(R"({"nvidia_smi_gib": "51 GB"})"), InputError);
}

TEST_CASE("a collective is an operation, GPUs of each node, bytes and a time") {
  const auto run = set_of(R"("collective": "all_gather", "gpus": 4, "nodes": 2, "bytes": 1048576,
                             "measured": {"time_s": 0.5})",
                          "collective")
                       .points[0]
                       .collective;
  REQUIRE(run);
  CHECK(run->operation == CollectiveOperation::all_gather);
  CHECK(run->gpus == 4);
  CHECK(run->nodes == 2);
  CHECK(run->payload == 1_MiB);
  CHECK(run->measured == Seconds{0.5});
  CHECK_THROWS_WITH_AS(set_of(R"("collective": "all_reduce", "gpus": 4, "nodes": 2, "bytes": 1,
                                 "measured": {})",
                              "collective"),
                       doctest::Contains("time_s"), InputError);
  CHECK_THROWS_WITH_AS(set_of(R"("collective": "gossip", "gpus": 4, "nodes": 2, "bytes": 1,
                                 "measured": {"time_s": 1}, "scenario": {})",
                              "collective"),
                       doctest::Contains("all_reduce"), InputError);
}

}  // namespace
}  // namespace windtunnel
