#pragma once

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

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

/// The command line that simulates the scenario with `changes`: `windtunnel run`, the file, and what was asked for. A placement that was
/// searched is part of it, so that the same is simulated without another search.
std::string run_command_line(const CommandLine& line, const Scenario& scenario,
                             const Overrides& changes = {});

}  // namespace windtunnel
