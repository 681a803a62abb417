#include "calibrate/calibrate_command.hpp"

#include <doctest/doctest.h>

#include <filesystem>
#include <memory>
#include <sstream>

#include "core/file_io.hpp"
#include "core/testing.hpp"
#include "platform/platform_json.hpp"
#include "scenario/scenario_files.hpp"

namespace windtunnel {
namespace {

namespace fs = std::filesystem;

Library library() { return Library{source_dir()}; }

/// Three model sizes, each with little and with much work between its gradient reductions.
std::string scenarios_text() {
  std::string points;
  for (const int hidden : {1024, 2048, 4096}) {
    for (const int batch : {32, 256}) {
      const std::string id = std::to_string(hidden) + "-" + std::to_string(batch);
      points +=
          std::string(points.empty() ? "" : ",") + R"({"id": ")" + id +
          R"(", "scenario": {"model": {"family": "gpt", "layers": 4, "hidden": )" +
          std::to_string(hidden) +
          R"(, "heads": 16, "sequence": 1024, "vocab": 50257}, "training": {"global_batch": )" +
          std::to_string(batch) + R"(}}, "measured": {"iteration_time_s": 1}})";
    }
  }
  return R"({"schema": "windtunnel/measurements-v1", "name": "synthetic", "kind": "iteration",
    "source": {"citation": "generated", "licence": "none"},
    "base": {"platform": "a100-80gb-4hdr", "software": "megatron-deepspeed-2021", "nodes": 2,
             "training": {"micro_batch": 2}, "parallel": {"tensor": 1, "pipeline": 1, "data": 16}},
    "points": [)" +
         points + "]}";
}

JsonValue parse(const std::string& text) {
  Problems problems;
  JsonValue value =
      parse_json(std::make_shared<const SourceText>(SourceText{"test", text}), problems);
  problems.throw_if_any();
  return value;
}

/// The scenarios with the times that the simulator gives them at emax 0.7 and NICs at 60 %.
fs::path write_synthetic_set(const fs::path& folder) {
  const std::vector<FitConstant> truth{parse_fit_constant("emax"),
                                       parse_fit_constant("nic_efficiency")};
  const Library shipped = library();
  JsonValue value = parse(scenarios_text());
  const CalibrationPoints read =
      read_calibration_points({read_measurement_set(value, folder)}, {&shipped, {}, truth});
  PointPredictor predictor(read.points, truth, predict_by_simulation(shipped, {}));
  const auto times = predictor.predict({0.7, 0.6}, {0, 1, 2, 3, 4, 5});
  for (std::size_t i = 0; i < times.size(); ++i)
    set_at(value, "/points/" + std::to_string(i) + "/measured/iteration_time_s",
           JsonValue(times[i] / Seconds{1}));
  write_file_atomically(folder / "synthetic.json", pretty_text(value));
  return folder / "synthetic.json";
}

JsonValue read_json(const fs::path& file) { return parse(read_source(file)->text); }

double number_in(JsonValue document, const std::string& pointer) {
  return number_at(document, pointer).value_or(NumberWithUnit{}).number;
}

TEST_CASE(
    "constants that made a set are found again by simulation, and written with their source") {
  const TemporaryFolder folder;
  CalibrateRequest request;
  request.sets = {write_synthetic_set(folder.path()).string()};
  request.fit = {"emax,nic_efficiency"};
  request.prior = PriorKind::none;
  request.file = FittedFile{"--device", "a100-sxm-80gb", folder.path() / "mine.json"};
  request.residuals = folder.path() / "residuals.json";
  request.format = ResultFormat::json;
  std::ostringstream out, messages;
  CHECK(run_calibrate(request, library(), out, messages) == 0);

  const JsonValue result = parse(out.str());
  CHECK(number_in(result, "/constants/0/value") == doctest::Approx(0.7).epsilon(0.01));
  CHECK(number_in(result, "/constants/1/value") == doctest::Approx(0.6).epsilon(0.01));
  CHECK(result.find("given_fitted_on")->array().empty());
  CHECK(number_in(result, "/in_sample/mape") < 0.002);
  CHECK(number_in(result, "/leave_one_size_out/mape") < 0.01);
  CHECK(number_in(result, "/as_given/mape") > 0.05);
  CHECK(messages.str().find("nic_efficiency stands in another kind of file") != std::string::npos);

  JsonValue device = read_json(folder.path() / "mine.json");
  CHECK(number_in(device, "/gemm/peak_fraction") == doctest::Approx(0.7).epsilon(0.01));
  CHECK(device.find("name")->string() == "mine");
  Problems problems;
  const Device read = read_device(device, "", problems);
  CHECK(problems.empty());
  CHECK(read.sources.at("gemm/peak_fraction").evidence == Evidence::fitted);
  CHECK(read.sources.at("gemm/peak_fraction")
            .text.starts_with("synthetic (emax, nic_efficiency; 6 rows"));

  const auto regimes = read_evidence(folder.path() / "residuals.json").regimes;
  REQUIRE(regimes.size() == 1);
  CHECK(regimes[0].software == "megatron-deepspeed-2021");
  CHECK(regimes[0].residuals.size() == 6);
}

TEST_CASE(
    "a constant of the nodes is fitted on all node types of a device, and written into each") {
  const TemporaryFolder folder;
  folder.write("ours.json", R"({"extends": "dgx-h100", "name": "ours", "node_types": [
      {"count": 2, "source": "datasheet: none"},
      {"extends": "dgx-h100", "count": 2, "nics": 4, "source": "datasheet: none"},
      {"extends": "a100-80gb-4hdr", "count": 2, "source": "datasheet: none"}]})");
  const auto set_of = [&](const std::string& time) {
    folder.write("set.json", R"({"schema": "windtunnel/measurements-v1", "name": "mine",
        "kind": "iteration", "source": {"citation": "none", "licence": "none"}, "points": [{"id": "a",
        "scenario": {"platform": "ours.json", "nodes": 4, "software": "megatron-core-2024",
          "model": {"layers": 8, "hidden": 4096, "heads": 32, "sequence": 2048, "vocab": 51200},
          "training": {"global_batch": 64, "micro_batch": 1},
          "parallel": {"tensor": 1, "pipeline": 1, "data": 32}},
        "measured": {"iteration_time_s": )" +
                                 time + "}}]}");
    return (folder.path() / "set.json").string();
  };
  const Library shipped = library();
  const auto points_of = [&](const FitConstant& constant) {
    return read_calibration_points({read_measurement_set(set_of("1"))}, {&shipped, {}, {constant}})
        .points;
  };
  CalibrateRequest request;
  request.fit = {"compute_efficiency"};
  request.prior = PriorKind::none;
  request.file = FittedFile{"--platform", (folder.path() / "ours.json").string(),
                            folder.path() / "fitted.json"};
  // What a clock of 80 % on the nodes of both H100 types takes, and not the A100.
  const auto points = points_of(parse_fit_constant("nic_efficiency"));
  CHECK(points[0].alike.at("/platform/node_types/0/nic_efficiency") ==
        std::vector<std::string>{"/platform/node_types/1/nic_efficiency"});
  CHECK(points_of(parse_fit_constant("/platform/node_types/0/nic_efficiency"))[0].alike.empty());
  const Seconds slow = predict_by_simulation(
      shipped, {{"/platform/node_types/0/compute_efficiency", "0.8"},
                {"/platform/node_types/1/compute_efficiency", "0.8"}})(points[0], {});
  request.sets = {set_of(std::to_string(slow / Seconds{1}))};
  std::ostringstream out, messages;
  REQUIRE(run_calibrate(request, shipped, out, messages) == 0);
  JsonValue fitted = read_json(folder.path() / "fitted.json");
  for (const char* type : {"0", "1"}) {
    const std::string node = std::string("/node_types/") + type;
    CHECK(number_in(fitted, node + "/compute_efficiency") == doctest::Approx(0.8).epsilon(0.01));
    CHECK(find_at(fitted, node + "/source/compute_efficiency") != nullptr);
  }
  CHECK(find_at(fitted, "/node_types/2/compute_efficiency") == nullptr);
}

TEST_CASE("a constant is looked for among the values that its file may have") {
  const TemporaryFolder folder;
  const Library shipped = library();
  const PointReading reading{
      &shipped,
      {},
      {parse_fit_constant("/platform/node_types/0/in_node_collective_slowdown"),
       parse_fit_constant("/software/compute_efficiency"),
       parse_fit_constant("/platform/node_types/0/nic_efficiency=0.5..3")}};
  const CalibrationPoints read = read_calibration_points(
      {read_measurement_set(parse(scenarios_text()), folder.path())}, reading);
  std::vector<FitConstant> constants = reading.constants;
  narrow_to_readable(constants, read.points, reading);
  CHECK(constants[0].bounds->lower == 1);  // of a tenth to ten times 1, what a slowdown may be
  CHECK(constants[0].bounds->upper == 10);
  CHECK(constants[1].bounds->lower == doctest::Approx(0.1));  // of 1
  CHECK(constants[1].bounds->upper == 10);
  CHECK(constants[2].bounds->lower == 0.5);
  CHECK(constants[2].bounds->upper == 1);
  const auto refused = [&](const char* constant) {
    PointReading one{&shipped, {}, {parse_fit_constant(constant)}};
    const CalibrationPoints points = read_calibration_points(
        {read_measurement_set(parse(scenarios_text()), folder.path())}, one);
    try {
      narrow_to_readable(one.constants, points.points, one);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  CHECK(contains(refused("/platform/node_types/0/nics"), "is a whole number in 1024-32"));
  CHECK(contains(refused("/model/layers"), "is a whole number in 1024-32"));
  CHECK(contains(refused("/platform/node_types/0/nic_efficiency=1.5..3"),
                 "no value between 1.5 and 3 can be read"));
  CHECK(contains(refused("/platform/node_types/0/pass_spread"), "from which no bounds follow"));
}

TEST_CASE("a constant at its bound is an error with the bound in it, and nothing is written") {
  const TemporaryFolder folder;
  CalibrateRequest request;
  request.sets = {write_synthetic_set(folder.path()).string()};
  // The set was made at emax 0.7 and with slower cards than the files have: the fit wants 0.7 or less.
  request.fit = {"emax=0.75..1"};
  request.prior = PriorKind::none;
  request.file = FittedFile{"--device", "a100-sxm-80gb", folder.path() / "mine.json"};
  request.residuals = folder.path() / "residuals.json";
  write_file_atomically(folder.path() / "mine.json", "old");
  std::ostringstream out, messages;
  CHECK(run_calibrate(request, library(), out, messages) == 1);
  const auto holds = [](const std::ostringstream& stream, const char* text) {
    return stream.str().find(text) != std::string::npos;
  };
  CHECK(holds(out, "at its bound: not identified by these rows"));
  CHECK(holds(messages,
              "calibrate: error: emax ends at the lower bound of its range, 0.75 (range 0.75 to 1, "
              "from 0.83): the value is the bound's"));
  CHECK(holds(messages, "do not agree"));
  CHECK(holds(messages, "calibrate: not written: "));
  CHECK_FALSE(holds(messages, "wrote"));
  CHECK(read_source(folder.path() / "mine.json")->text == "old");
  CHECK_FALSE(fs::exists(folder.path() / "residuals.json"));

  std::ostringstream json, ignored;
  request.format = ResultFormat::json;
  CHECK(run_calibrate(request, library(), json, ignored) == 1);
  CHECK(json.str().find("\"at_bound\": true") != std::string::npos);
}

TEST_CASE("the bound of a quantity is told with its unit") {
  FittedConstant floor;
  floor.constant = parse_fit_constant("kernel_launch");
  floor.given = {25, " us"};
  floor.range = range_of(floor.constant, 25);
  floor.value = 1000;
  CHECK(
      bound_text(floor).starts_with("kernel_launch ends at the upper bound of its range, 1000 us "
                                    "(range 0.1 us to 1000 us, from 25 us)"));
}

TEST_CASE("what a calibration cannot do is refused before anything is simulated") {
  std::ostringstream out, messages;
  const auto refuses = [&](CalibrateRequest request, const char* text) {
    request.sets = {"vtrain"};
    CHECK_THROWS_WITH_AS(run_calibrate(request, library(), out, messages), doctest::Contains(text),
                         InputError);
  };
  CalibrateRequest request;
  refuses(request, "a constant to fit");
  request.fit = {"emax,emax"};
  refuses(request, "named twice");
  request.fit = {"/software/no_such_thing"};
  refuses(request, "no number at /software/no_such_thing");
  request.fit = {"emax"};
  request.file = FittedFile{"--software", "megatron-lm-2021", "out.json"};
  refuses(request,
          "none of the constants to fit stands in such a file (emax is "
          "/platform/node_types/0/device/gemm/peak_fraction of a scenario: use --device)");
  request.fit = {"compute_efficiency,/platform/node_types/0/compute_efficiency"};
  request.file = FittedFile{"--platform", "selene-a100", "out.json"};
  refuses(request, "named twice");  // in a platform it is the nodes'
  CHECK(out.str().empty());
}

/// A calibration of emax and a launch floor that needs no simulation.
Calibration made_up_calibration() {
  Calibration calibration;
  FittedConstant emax;
  emax.constant = parse_fit_constant("emax");
  emax.given = {0.83, ""};
  emax.value = 0.81234;
  FittedConstant floor;
  floor.constant = parse_fit_constant("kernel_launch");
  floor.given = {25, " us"};
  floor.value = 41.234;
  calibration.constants = {emax, floor};
  calibration.in_sample = {{"a", "1B", Seconds{1}, Seconds{1.02}, Flops{}}};
  calibration.as_given = calibration.in_sample;
  return calibration;
}

TEST_CASE("a software file keeps its units and the sources of its other numbers") {
  CalibrationPoint point;
  point.set = "mine";
  const FittedFile file{"--software", "megatron-deepspeed-2021", "new-stack.json"};
  JsonValue document = parse(fitted_file_text(file, made_up_calibration(), {point}, library()));
  CHECK(find_at(document, "/launch/kernel")->string() == "41.23 us");
  Problems problems;
  const SoftwareProfile profile = read_software(document, "", problems);
  CHECK(problems.empty());
  CHECK(profile.name == "new-stack");
  CHECK(profile.sources.at("launch/kernel").text ==
        "mine (emax, kernel_launch; 1 rows, in-sample 2.0 %)");
  CHECK(profile.sources.at("layer_traffic/forward_hidden").text.find("vtrain") !=
        std::string::npos);
}

TEST_CASE("a file that the sets do not use is refused") {
  CalibrationPoint point;
  point.set = "mine";
  const FittedFile file{"--device", "v100-sxm2-32gb", "out.json"};
  CHECK_THROWS_WITH_AS(fitted_file_text(file, made_up_calibration(), {point}, library()),
                       doctest::Contains("the scenarios of the sets have 0.83"), InputError);
}

TEST_CASE("a fitted number of a platform stands in the node type that it has from another") {
  CalibrationPoint point;
  point.set = "mine";
  Calibration calibration = made_up_calibration();
  calibration.constants.resize(1);
  calibration.constants[0].constant =
      parse_fit_constant("/platform/node_types/0/interconnect/saturated_bandwidth");
  calibration.constants[0].given = {240, " GB/s"};
  calibration.constants[0].value = 180.5;
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "mine.json";
  write_file_atomically(path, R"({"name": "mine", "extends": "hgx-a100-80gb"})");
  const std::string text = fitted_file_text({"--platform", path.string(), "fitted.json"},
                                            calibration, {point}, library());
  Problems problems;
  JsonValue fitted = parse(text);
  CHECK(find_at(fitted, "/node_types/0/interconnect/saturated_bandwidth")->string() ==
        "180.5 GB/s");
  JsonValue whole(path.string());
  write_file_atomically(path, text);
  const Library known = library();
  ScenarioFiles(known, {}, problems).expand(whole, platform_files, "");
  CHECK(problems.empty());
  CHECK(find_at(whole, "/node_types/0/interconnect/saturated_bandwidth")->string() == "180.5 GB/s");
  CHECK(find_at(whole, "/node_types/0/device")->string() == "a100-sxm-80gb");
}

TEST_CASE("new regimes take the place of old ones of the same stack and GPUs; others stay") {
  const TemporaryFolder folder;
  const auto regime = [](const char* software, double residual) {
    EvidenceRegime made;
    made.software = software;
    made.device_family = "a100";
    made.method = "m";
    made.residuals = {residual};
    return made;
  };
  const fs::path file = folder.path() / "residuals.json";
  write_file_atomically(file, evidence_json({{regime("b", 0.1)}, {"m", {{"set", {{}, {0.5}}}}}}));
  write_file_atomically(file, merged_residuals(file, {regime("b", 0.1), regime("a", 0.2)}));
  write_file_atomically(file, merged_residuals(file, {regime("b", 0.3)}));
  CHECK(read_evidence(file).unseen.sets.at("set").residuals == std::vector<double>{0.5});
  const auto regimes = read_evidence(file).regimes;
  REQUIRE(regimes.size() == 2);
  CHECK(regimes[0].residuals.front() == doctest::Approx(0.2));
  CHECK(regimes[1].residuals.front() == doctest::Approx(0.3));
}

}  // namespace
}  // namespace windtunnel
