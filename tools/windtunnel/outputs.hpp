#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "questions/explain.hpp"
#include "report/explanation.hpp"
#include "simulate/simulate.hpp"
#include "windtunnel/command_line.hpp"

namespace windtunnel {

/// Writes a file and says so.
void write_output(const CommandLine& line, const std::filesystem::path& path,
                  const std::string& text);

/// A file that the command line names, or not.
struct NamedOutput {
  std::string path;  ///< empty: it is not asked for
  std::function<std::string()> text;
};
/// Writes those that are asked for, all of them or none, and says so.
void write_outputs(const CommandLine& line, const std::vector<NamedOutput>& outputs);

/// Every file that the command line asks to write.
std::vector<std::filesystem::path> named_outputs(const CommandLine& line);

/// The page of a simulated iteration that was explained.
std::string page_of(const Scenario& scenario, const Simulation& simulation,
                    const Explanation& explanation);

/// The request that run_command_line() repeats.
AskedRun asked_run(const CommandLine& line);

}  // namespace windtunnel
