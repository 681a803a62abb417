#include "windtunnel/outputs.hpp"

#include <system_error>
#include <utility>
#include <vector>

#include "core/staged_files.hpp"
#include "report/run_page.hpp"
#include "scenario/scenario.hpp"
#include "simulate/simulate.hpp"
#include "windtunnel/console.hpp"

namespace windtunnel {
namespace {

namespace fs = std::filesystem;

/// The traces in a folder that --rank-traces may write again.
std::vector<fs::path> rank_traces_in(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().filename().string().starts_with("rank-")) files.push_back(entry->path());
  return files;
}

std::vector<std::string> names_in_out(const std::string& command) {
  if (command == "sweep") return {"results.jsonl", "results.csv", "sweep.svg"};
  return {"report.json", "report.html", "trace.json.gz"};
}

}  // namespace

std::vector<fs::path> named_outputs(const CommandLine& line) {
  std::vector<fs::path> outputs;
  for (const std::string& name : {line.trace, line.report, line.svg, line.rank.host_map,
                                  line.output, line.residuals, line.csv})
    if (!name.empty()) outputs.emplace_back(name);
  if (!line.out.empty())
    for (const std::string& name : names_in_out(line.command))
      outputs.push_back(fs::path(line.out) / name);
  if (!line.rank_traces.empty())
    for (fs::path& file : rank_traces_in(line.rank_traces)) outputs.push_back(std::move(file));
  return outputs;
}

void write_output(const CommandLine& line, const std::filesystem::path& path,
                  const std::string& text) {
  write_outputs(line, {{path.string(), [&text] { return text; }}});
}

void write_outputs(const CommandLine& line, const std::vector<NamedOutput>& outputs) {
  StagedFiles files;
  for (const NamedOutput& output : outputs)
    if (!output.path.empty()) files.add(output.path, output.text());
  files.commit();
  for (const NamedOutput& output : outputs)
    if (!output.path.empty()) print_note(line, "wrote " + output.path);
}

std::string page_of(const Scenario& scenario, const Simulation& simulation,
                    const Explanation& explanation) {
  return run_page(explanation,
                  {&simulation.timeline, &simulation.programs, &simulation.network, &scenario.plan,
                   explanation.report.last_device},
                  resolved_text(scenario.resolved));
}

AskedRun asked_run(const CommandLine& line) {
  return {line.arguments.front(), line.overrides, line.seed, line.engine};
}

}  // namespace windtunnel
