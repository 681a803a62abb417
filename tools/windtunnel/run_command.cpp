#include <algorithm>
#include <filesystem>
#include <functional>
#include <ostream>
#include <string>
#include <vector>

#include "core/staged_files.hpp"
#include "core/work_note.hpp"
#include "noise/step_series.hpp"
#include "report/chrome_trace.hpp"
#include "report/explanation.hpp"
#include "report/report_json.hpp"
#include "report/report_words.hpp"
#include "report/summary_text.hpp"
#include "search/placement_search.hpp"
#include "simulate/simulate.hpp"
#include "windtunnel/commands.hpp"
#include "windtunnel/console.hpp"
#include "windtunnel/outputs.hpp"
#include "windtunnel/scenario_argument.hpp"

namespace windtunnel {
namespace {

std::string with_line_end(std::string text) {
  if (!text.ends_with('\n')) text += '\n';
  return text;
}

bool writes_files(const CommandLine& line) {
  return !line.trace.empty() || !line.rank_traces.empty() || !line.report.empty() ||
         !line.out.empty();
}

/// The files of one run: all of them appear, or none.
class RunFiles {
 public:
  explicit RunFiles(const CommandLine& line) : line_(&line) {}

  void add(const std::filesystem::path& path, const std::string& text) {
    files_.add(path, text);
    added_.push_back(path.string());
  }
  void add(const std::filesystem::path& path, const std::function<void(std::ostream&)>& write) {
    files_.add_streamed(path, write);
    added_.push_back(path.string());
  }
  void commit() {
    files_.commit();
    for (const std::string& path : added_) print_note(*line_, "wrote " + path);
  }
  /// "rank-0008.json.gz", a file for each simulated device.
  void add_rank_traces(const Scenario& scenario, const Simulation& simulation);

 private:
  const CommandLine* line_;
  StagedFiles files_;
  std::vector<std::string> added_;  ///< as they are told
};

void RunFiles::add_rank_traces(const Scenario& scenario, const Simulation& simulation) {
  constexpr std::size_t fewest_digits = 4;
  const std::size_t digits =
      std::max(fewest_digits, std::to_string(scenario.plan.num_ranks() - 1).size());
  const std::vector<DeviceId> devices = all_devices(simulation.programs);
  write_device_traces(simulation.timeline, simulation.programs, scenario.plan, simulation.report,
                      devices, [&](DeviceId device, const std::string& text) {
                        std::string rank = std::to_string(
                            scenario.plan.devices[device.index()].ranks.front().index());
                        rank.insert(0, digits - std::min(digits, rank.size()), '0');
                        files_.add_streamed(std::filesystem::path(line_->rank_traces) /
                                                ("rank-" + rank + ".json.gz"),
                                            [&text](std::ostream& out) { out << text; });
                      });
  added_.push_back(std::to_string(devices.size()) + " traces into " + line_->rank_traces);
}

/// Those that --trace shows: all, unless viewers could not load them and nothing else was asked for.
std::vector<DeviceId> traced_devices(const CommandLine& line, const Scenario& scenario,
                                     const Simulation& simulation) {
  const std::vector<DeviceId> all = all_devices(simulation.programs);
  if (line.trace_all) return all;
  const std::vector<DeviceId> devices =
      devices_that_viewers_load(simulation.timeline, simulation.programs, scenario.plan);
  if (devices.size() < all.size())
    print_note(
        line,
        "note: the trace shows " + std::to_string(devices.size()) + " of " +
            std::to_string(all.size()) +
            " devices, whole replicas from the first, since viewers load no more than a "
            "million events; --trace-all writes all into the file, --rank-traces a file each");
  return devices;
}

std::string explained_page(const CommandLine& line, const Scenario& scenario,
                           const Simulation& simulation) {
  const WorkNoteScope writing("writing the page");
  Explanation explanation =
      explain_path(simulation.report, scenario.plan, simulation.programs, simulation.timeline);
  explanation.command = run_command_line(asked_run(line), scenario);
  return page_of(scenario, simulation, explanation);
}

TensorList tensors_of(const CommandLine& line) {
  return line.lists_memory ? TensorList::written : TensorList::left_out;
}

/// Those of --trace, --rank-traces and --out.
void add_traces(RunFiles& files, const CommandLine& line, const Scenario& scenario,
                const Simulation& simulation) {
  if (!line.rank_traces.empty()) files.add_rank_traces(scenario, simulation);
  const bool writes_trace = !line.trace.empty() || !line.out.empty();
  const std::vector<DeviceId> devices =
      writes_trace ? traced_devices(line, scenario, simulation) : std::vector<DeviceId>{};
  const auto trace = [&](std::ostream& out) {
    write_chrome_trace(simulation.timeline, simulation.programs, scenario.plan, simulation.report,
                       devices, out);
  };
  if (!line.trace.empty()) files.add(line.trace, trace);
  if (!line.out.empty()) files.add(std::filesystem::path(line.out) / "trace.json.gz", trace);
}

void write_outputs(const CommandLine& line, const Scenario& scenario,
                   const Simulation& simulation) {
  const std::filesystem::path folder = line.out;
  RunFiles files(line);
  if (!line.out.empty())
    files.add(folder / "report.json", with_line_end(to_json(simulation.report, tensors_of(line))));
  if (!line.report.empty() || !line.out.empty()) {
    const std::string page = explained_page(line, scenario, simulation);
    if (!line.report.empty()) files.add(line.report, page);
    if (!line.out.empty()) files.add(folder / "report.html", page);
  }
  add_traces(files, line, scenario, simulation);
  files.commit();
}

/// On the native engine where SimGrid would take too long.
Simulation simulated(const CommandLine& line, const Scenario& scenario, SimulateOptions options) {
  try {
    return simulate(scenario, options);
  } catch (const TooManySharedFlows&) {
    print_note(
        line,
        "note: so many messages share links that SimGrid would take minutes; the native engine, "
        "which shares them by the same rule, simulates this run (--engine native does so at "
        "once)");
    options.make_engine = make_native_engine;
    return simulate(scenario, options);
  }
}

ExitCode run_steps(const CommandLine& line) {
  const Scenario scenario = read_placed_scenario_argument(line);
  const NoiseBlock noise = noise_block_of(scenario);
  const ExitCode exit = exit_of_steps(line, scenario);
  const StepSeries series = simulate_steps(scenario, noise, step_options(line));
  const document::Document steps = steps_document(series);
  write_outputs(line, {{line.csv, [&] { return steps_csv(series); }},
                       {line.report, [&] { return page_of(steps); }}});
  if (!line.trace.empty() || !line.rank_traces.empty()) {
    RunFiles files(line);
    add_traces(files, line, scenario, first_step(scenario, noise, step_options(line)));
    files.commit();
  }
  print_result(line, steps);
  return exit;
}

}  // namespace

ExitCode run_command(const CommandLine& line) {
  if (line.steps > 0) return run_steps(line);
  Scenario scenario = read_scenario_argument(line, LeftToCaller::neighbours_and_placement);
  scenario = prepare_scenario(std::move(scenario));
  const Library library = Library::find();
  const Simulation simulation =
      simulated(line, scenario,
                {.make_engine = engine_named(line.engine.empty() ? "simgrid" : line.engine),
                 .keep_timeline = writes_files(line),
                 .detail = line.detail == "layer" ? Detail::layer : Detail::pass,
                 .evidence = &library});
  const Report& report = simulation.report;
  write_outputs(line, scenario, simulation);
  if (scenario.resolved.find("sweep") != nullptr)
    print_note(line, "note: run simulates the file's own point, not its sweep");
  note_noise(line, scenario);
  if (line.format == ResultFormat::text) {
    const Colour colour = colour_of_results(line);
    print_result(line, with_line_end(line.lists_memory ? memory_text(report, colour)
                                                       : summary_text(report, colour)));
  } else {
    if (!report.placement_note.empty())
      print_note(line, "placement searched: " + report.placement_note);
    for (const std::string& warning : report.warnings) print_note(line, "warning: " + warning);
    if (const std::string doubt = detail::memory_doubt(report.memory); !doubt.empty())
      print_note(line, "warning: " + doubt);
    print_result(line, with_line_end(to_json(report, tensors_of(line))));
  }
  return report.memory.fits ? exit_done : exit_negative;
}

}  // namespace windtunnel
