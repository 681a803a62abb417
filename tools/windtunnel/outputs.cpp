#include "windtunnel/outputs.hpp"

#include <set>

#include "core/file_io.hpp"
#include "report/run_page.hpp"
#include "scenario/resolved_text.hpp"
#include "windtunnel/console.hpp"

namespace windtunnel {
namespace {

/// The files a scenario was read from.
void collect_sources(const JsonValue& value, std::set<std::string>& files) {
  if (value.origin.kind == OriginKind::file && value.origin.source)
    files.insert(value.origin.source->name);
  if (value.is_object())
    for (const JsonValue::Member& member : value.object()) collect_sources(member.value, files);
  if (value.is_array())
    for (const JsonValue& element : value.array()) collect_sources(element, files);
}

}  // namespace

void write_output(const CommandLine& line, const std::filesystem::path& path,
                  const std::string& text) {
  write_file_atomically(path, path.extension() == ".gz" ? gzip(text) : text);
  if (line.verbosity == Verbosity::normal) print_message("wrote " + path.string());
}

void expect_not_an_input(const JsonValue& scenario, const std::filesystem::path& output) {
  std::set<std::string> inputs;
  collect_sources(scenario, inputs);
  for (const std::string& input : inputs) {
    std::error_code ignored;
    if (!std::filesystem::equivalent(input, output, ignored)) continue;
    throw InputError(
        {{{},
          "",
          "the output " + output.string() + " is a file that the scenario was read from",
          "write to another file"}});
  }
}

std::string page_of(const Scenario& scenario, const Simulation& simulation,
                    const Explanation& explanation) {
  RunPage page;
  page.explanation = &explanation;
  page.played = {&simulation.timeline, &simulation.programs, &simulation.network, &scenario.plan,
                 explanation.report.last_device};
  page.scenario = resolved_text(scenario.resolved);
  return run_page(page);
}

std::string run_command_line(const CommandLine& line, const Scenario& scenario) {
  std::vector<std::string> words{"windtunnel", "run", line.arguments.front()};
  const auto set = [&words](const std::string& pointer, const std::string& value) {
    words.insert(words.end(), {"--set", pointer + "=" + value});
  };
  for (const auto& [pointer, value] : line.overrides) set(pointer, value);
  if (!scenario.placement_note.empty())
    set("/parallel/placement",
        canonical_text(*scenario.resolved.find("parallel")->find("placement")));
  if (line.seed != 0) words.insert(words.end(), {"--seed", std::to_string(line.seed)});
  return shell_line(words);
}

}  // namespace windtunnel
