#include "evidence/measurement_set.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "core/testing.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {
namespace {

MeasurementSet read(const std::string& text) {
  Problems problems;
  JsonValue value =
      parse_json(std::make_shared<const SourceText>(SourceText{"set.json", text}), problems);
  problems.throw_if_any();
  return read_measurement_set(std::move(value), "folder");
}

/// A set with these points.
std::string set_with(const std::string& points, const std::string& kind = "iteration") {
  return R"({"schema": "windtunnel/measurements-v1", "name": "small", "kind": ")" + kind +
         R"(", "source": {"citation": "A table", "licence": "MIT"},
             "base": {"platform": "p", "training": {"precision": "fp16", "recompute": "full"}},
             "points": )" +
         points + "}";
}

/// The reader's complaint about a set.
std::string complaint(const std::string& text) {
  try {
    read(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no complaint";
}

bool complains(const std::string& text, const std::string& part) {
  const std::string said = complaint(text);
  CAPTURE(said);
  const bool found = said.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

TEST_CASE("a set is read with its source and points") {
  const MeasurementSet set = read(set_with(
      R"([{"id": "a", "group": "g", "scenario": {"nodes": 2}, "measured": {"iteration_time_s": 1.5}},
          {"id": "b", "measured": {"out_of_memory": true}},
          {"id": "c", "measured": {"failed": true, "nvidia_smi_gib": 60}}])"));
  CHECK(set.name == "small");
  CHECK(set.citation == "A table");
  CHECK(set.licence == "MIT");
  REQUIRE(set.points.size() == 3);
  CHECK(set.points[0].group == "g");
  CHECK(*set.points[0].iteration_time == Seconds{1.5});
  CHECK(set.points[1].out_of_memory);
  CHECK_FALSE(set.points[1].iteration_time.has_value());
  CHECK(set.points[2].failed);
  CHECK(set.points[2].measured.find("nvidia_smi_gib") != nullptr);
}

TEST_CASE("a point's scenario is merged over the base and named after the point") {
  const MeasurementSet set = read(set_with(
      R"([{"id": "a", "scenario": {"nodes": 2, "training": {"micro_batch": 4, "recompute": null}}, "measured": {}}])"));
  CHECK(canonical_text(scenario_of(set, set.points[0])) ==
        R"({"name":"a","nodes":2,"platform":"p","training":{"micro_batch":4,"precision":"fp16"}})");
}

TEST_CASE("a row's container is the release of its software where it names one") {
  const MeasurementSet set = read(set_with(
      R"([{"id": "a", "container": "26.04.01", "scenario": {"software": "s"}, "measured": {}},
          {"id": "b", "container": "nvcr.io/x:1", "scenario": {"software": "s"}, "measured": {}},
          {"id": "c", "container": "26.04", "scenario": {}, "measured": {}}])"));
  CHECK(scenario_of(set, set.points[0]).find("software")->string() == "s@26.04.01");
  CHECK(scenario_of(set, set.points[1]).find("software")->string() == "s");
  CHECK(scenario_of(set, set.points[2]).find("software") == nullptr);
}

TEST_CASE("a set of collectives keeps its points without scenarios") {
  const MeasurementSet set = read(set_with(
      R"([{"id": "a", "collective": "all_reduce", "gpus": 2, "nodes": 1, "bytes": 1, "measured": {"time_s": 1}}])",
      "collective"));
  CHECK(set.kind == MeasurementKind::collective);
}

TEST_CASE("what is wrong in a set is said with its place") {
  complains("[]", "object");
  complains(set_with(R"([{"id": "a", "measured": {"iteration_time_s": "2 s"}}])"),
            "/points/0/measured/iteration_time_s");
  complains(set_with(R"([{"id": "a", "measured": {"iteration_time_s": 0}}])"), "above zero");
  complains(set_with(R"([{"id": "a", "measured": {}}, {"id": "a", "measured": {}}])"),
            "two points have the id \"a\"");
  complains(set_with(R"([{"id": "a"}])"), "measured");
  complains(set_with(R"([{"id": "a", "scenrio": {}, "measured": {}}])"), "scenario");
  complains(set_with("[]"), "without points");
  complains(set_with("[3]"), "/points/0");
  complains(set_with(R"([{"id": "a", "measured": {}}])", "iterations"), "iteration");
  complains(R"({"schema": "windtunnel/measurements-v2"})", "measurements-v2");
  complains(R"({"name": "small"})", R"(add "schema": "windtunnel/measurements-v1")");
  complains(R"({"model": "gpt-39b", "parallel": {}})", "this is a scenario");
  for (const char* const key : {"schema", "kind", "citation", "licence", "/points/0"})
    complains(R"({"name": "small", "source": {}, "points": [{"id": "a"}]})", key);
}

TEST_CASE("sets are found by path, by name, or all of them") {
  const std::filesystem::path folder = source_dir() / "validation";
  const auto all = find_measurement_sets({}, folder);
  REQUIRE_FALSE(all.empty());
  for (const char* name : {"vtrain-a100-multi-node", "vtrain/a100-multi-node", "a100-multi-node"})
    CHECK(find_measurement_sets({name}, folder).size() == 1);
  CHECK_FALSE(find_measurement_sets({"vtrain"}, folder).empty());
  CHECK(find_measurement_sets({all.front().string()}, "/no/such/folder").front() == all.front());
  // A set that is named twice counts once, however it is written.
  const std::string again = (folder / "../validation/vtrain/a100-multi-node.json").string();
  CHECK(
      find_measurement_sets({"vtrain-a100-multi-node", "a100-multi-node", again}, folder).size() ==
      1);
  CHECK_THROWS_WITH_AS(find_measurement_sets({"vtrain-a100-multi-nod"}, folder),
                       doctest::Contains("did you mean \"vtrain-a100-multi-node\"?"), InputError);
  CHECK_THROWS_AS(find_measurement_sets({}, "/no/such/folder"), EnvironmentError);
}

TEST_CASE("every set that is shipped can be read, and is found by the name that scores print") {
  const std::filesystem::path folder = source_dir() / "validation";
  for (const auto& file : find_measurement_sets({}, folder)) {
    CAPTURE(file.string());
    const std::string name = read_measurement_set(file).name;
    CHECK(find_measurement_sets({name}, folder) == std::vector<std::filesystem::path>{file});
  }
}

TEST_CASE("the vTrain set is whole") {
  const MeasurementSet set =
      read_measurement_set(source_dir() / "validation/vtrain/a100-multi-node.json");
  CHECK(set.points.size() == 54);
  Seconds sum{};
  for (const MeasurementPoint& point : set.points) sum += *point.iteration_time;
  CHECK(sum / Seconds{1} ==
        doctest::Approx(1122.8766).epsilon(1e-9));  // the published column, added up
}

/// All of validation/.
std::vector<MeasurementSet> shipped_sets() {
  std::vector<MeasurementSet> sets;
  for (const auto& file : find_measurement_sets({}, source_dir() / "validation"))
    sets.push_back(read_measurement_set(file));
  return sets;
}

/// The profile that a row names. It may say which switches of experts and which kernels of adapters the run had, and the name of a stack
/// for which the profile stands in, and no number.
std::string profile_of(const JsonValue& software) {
  if (software.is_string()) return software.string();
  for (const JsonValue::Member& key : software.object())
    CHECK((key.key == "extends" || key.key == "name" || key.key == "experts" ||
           key.key == "adapters"));
  if (const JsonValue* const experts = software.find("experts"))
    for (const JsonValue::Member& member : experts->object())
      CHECK((member.key == "dispatch" || member.key == "pads_tokens" ||
             member.key == "overlap_exchanges"));
  return software.find("extends")->string();
}

TEST_CASE("rows of validation/ name shipped platforms and profiles, and change no number in them") {
  const Library library{source_dir()};
  const auto is_shipped = [&](const char* kind, std::string name) {
    const std::vector<std::string> names = library.names(kind);
    return std::find(names.begin(), names.end(), name) != names.end();
  };
  const std::vector<std::string> blocks = {"name",  "platform", "nodes",   "software",
                                           "model", "training", "parallel"};
  for (const MeasurementSet& set : shipped_sets())
    for (const MeasurementPoint& point : set.points) {
      CAPTURE(set.name);
      CAPTURE(point.id);
      const JsonValue scenario = scenario_of(set, point);
      for (const JsonValue::Member& member : scenario.object())
        CHECK(std::find(blocks.begin(), blocks.end(), member.key) != blocks.end());
      const JsonValue* platform = scenario.find("platform");
      REQUIRE(platform != nullptr);
      REQUIRE(platform->is_string());
      CHECK(is_shipped("platforms", platform->string()));
      const JsonValue* software = scenario.find("software");
      if (software == nullptr) continue;  // of a collective
      const std::string profile = profile_of(*software);
      CHECK(is_shipped("software", profile.substr(0, profile.find('@'))));
    }
}

TEST_CASE("no file of platforms/ names a set that says it was never fitted") {
  std::vector<std::string> never_fitted;
  for (const MeasurementSet& set : shipped_sets())
    if (set.never_fitted) never_fitted.push_back(set.name);
  CHECK(never_fitted.size() >= 7);
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(source_dir() / "platforms")) {
    if (!entry.is_regular_file()) continue;
    std::ifstream in(entry.path());
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    for (const std::string& name : never_fitted) {
      CAPTURE(entry.path());
      CAPTURE(name);
      CHECK(text.find(name) == std::string::npos);
    }
  }
}

/// A set of one point, as text: its members besides the id.
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

TEST_CASE("a row may say whether it fitted, without a time") {
  CHECK(iteration(R"({"fits": true})").ran());
  CHECK(iteration(R"({"nvidia_smi_gib": 51})").ran());
  CHECK(iteration(R"({"fits": false})").out_of_memory);
  CHECK_FALSE(iteration(R"({"fits": false, "nvidia_smi_gib": 51})").ran());
  CHECK_FALSE(iteration(R"({})").ran());
  CHECK_THROWS_WITH_AS(iteration(R"({"fits": true, "out_of_memory": true})"),
                       doctest::Contains("/points/0/measured/fits"), InputError);
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

TEST_CASE("what NeMo logs is rank 0's, in GiB, unless it distinguishes ranks") {
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
