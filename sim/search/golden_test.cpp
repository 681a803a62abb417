// Every shipped scenario against its expected report. After a change that is meant to move numbers:
//   WINDTUNNEL_UPDATE_GOLDEN=1 ctest --preset release -R golden
// and read the difference before committing it.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "core/file_io.hpp"
#include "core/testing.hpp"
#include "report/chrome_trace.hpp"
#include "report/report_json.hpp"
#include "report/trace_check_fixtures.hpp"
#include "search/placement_search.hpp"
#include "simulate/forked_fixtures.hpp"
#include "simulate/simulate.hpp"

namespace windtunnel {
namespace {

const std::filesystem::path root = source_dir();

#ifdef WINDTUNNEL_SANITIZED
constexpr std::size_t step = 4;
#else
constexpr std::size_t step = 1;
#endif

/// All of them; every fourth under sanitizers, where all take twenty minutes.
std::vector<std::filesystem::path> shipped_scenarios() {
  std::vector<std::filesystem::path> all, files;
  for (const auto& entry : std::filesystem::directory_iterator(root / "scenarios"))
    if (entry.path().extension() == ".json") all.push_back(entry.path());
  std::sort(all.begin(), all.end());
  for (std::size_t i = 0; i < all.size(); i += step) files.push_back(all[i]);
  return files;
}

std::filesystem::path expected_report(const std::filesystem::path& scenario) {
  return root / "scenarios" / "expected" / (scenario.stem().string() + ".report.json");
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file);
  std::ostringstream text;
  text << stream.rdbuf();
  return text.str();
}

/// Outputs by which a golden scenario's simulation is judged.
struct Judged {
  std::string report;  ///< without wall time
  std::string faults;  ///< what else is wrong; empty when nothing is
};

/// Whatever does not add up in a trace.
std::string faults_of_trace(const Simulation& simulation, const Scenario& scenario) {
  const Report& report = simulation.report;
  std::string faults;
  const TraceFindings trace =
      check_trace(chrome_trace(simulation.timeline, simulation.programs, scenario.plan, report));
  for (const std::string& problem : trace.problems) faults += "trace: " + problem + "\n";
  if (trace.slices == 0) faults += "the trace is empty\n";
  double peak = 0;
  for (const auto& [process, bytes] : trace.counter_peak_by_process) peak = std::max(peak, bytes);
  double account = 0;
  for (const StageMemory& stage : report.memory.stages)
    account = std::max(account, stage.allocated / Bytes{1});
  if (std::llround(peak) != std::llround(account))
    faults += "the memory counter peaks at " + std::to_string(peak) + ", the account says " +
              std::to_string(account) + "\n";
  return faults;
}

/// Stages whose printed tensors are not all that they allocate. Shards are no whole bytes.
std::string faults_of_memory(const MemoryAccount& memory) {
  constexpr double of_a_byte = 1e-3;
  std::string faults;
  for (const StageMemory& stage : memory.stages) {
    Bytes sum{};
    for (const HeldTensor& tensor : stage.tensors_at_peak()) sum += tensor.size() * tensor.count;
    const Bytes lines =
        stage.weights + stage.gradients + stage.optimizer + stage.activations + stage.buffers;
    for (const Bytes other : {sum, lines})
      if (!(std::abs((other - stage.allocated) / 1_B) < of_a_byte))
        faults += "the tensors of stage " + std::to_string(stage.stage.index()) + " add up to " +
                  std::to_string(other / 1_B) + " of " + std::to_string(stage.allocated / 1_B) +
                  " bytes\n";
  }
  return faults;
}

/// The report of a scenario, and whatever does not add up in it or in its trace. For a forked child.
std::string judge(const std::filesystem::path& file) {
  ReadOptions reading;
  reading.left = LeftToCaller::neighbours_and_placement;
  const Scenario scenario = prepare_scenario(read_scenario(file, Library{root}, reading));
  SimulateOptions options;
  constexpr std::size_t most_traced = 1024;  // checking a trace of more devices takes minutes
  options.keep_timeline = scenario.plan.devices.size() <= most_traced;
  const Simulation simulation = simulate(scenario, options);
  const Report& report = simulation.report;
  std::string faults;
  const double sum = report.breakdown.total() / report.iteration_time;
  if (!(std::abs(sum - 1) <= 1e-9))
    faults += "the breakdown adds up to " + std::to_string(sum) + " of the time\n";
  faults += faults_of_memory(report.memory);
  if (options.keep_timeline) faults += faults_of_trace(simulation, scenario);
  return without_wall_time(to_json(report)) + "\n" + std::string(1, '\0') + faults;
}

Judged judged(const ChildOutcome& outcome) {
  if (const auto* failure = std::get_if<ChildFailure>(&outcome)) return {"", failure->text};
  const std::string& text = std::get<std::string>(outcome);
  const std::size_t end = text.find('\0');
  return {text.substr(0, end), text.substr(end + 1)};
}

TEST_CASE("golden: every shipped scenario gives its expected report, and all of it adds up") {
  const std::vector<std::filesystem::path> files = shipped_scenarios();
  REQUIRE(files.size() >= 5);
  const std::vector<ChildOutcome> outcomes = testing::run_forked(
      files.size(), default_at_once(), [&](std::size_t i) { return judge(files[i]); });
  const bool update = std::getenv("WINDTUNNEL_UPDATE_GOLDEN") != nullptr;
  for (std::size_t i = 0; i < files.size(); ++i) {
    CAPTURE(files[i].filename().string());
    const Judged now = judged(outcomes[i]);
    CHECK(now.faults == "");
    if (update) write_file_atomically(expected_report(files[i]), now.report);
    CHECK(now.report == text_of(expected_report(files[i])));
  }
}

}  // namespace
}  // namespace windtunnel
