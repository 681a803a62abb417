#pragma once

#include <filesystem>
#include <string>
#include <variant>
#include <vector>

#include "core/json_value.hpp"
#include "report/comparison.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

/// One side of a comparison: a scenario that will be simulated, or the report of a run that was.
struct CompareInput {
  std::string label;
  std::variant<Scenario, JsonValue> content;
};

/// Reads a file as what it says it is: a report of `run --json`, else a scenario with the changes of `options`.
CompareInput read_compare_input(const std::filesystem::path& file, const Library& library,
                                ReadOptions options);

/// The two sides of `compare FILE --toggle POINTER`: without what stands at the pointer ("compression" is short for
/// "/compression"), and with it. InputError when taking it away changes nothing.
std::vector<CompareInput> toggle_inputs(const std::filesystem::path& file, const Library& library,
                                        ReadOptions options, const std::string& pointer);

/// The same of two scenarios that are read already, called `name`.
std::vector<CompareInput> toggle_inputs(Scenario without, Scenario with, const std::string& name,
                                        const std::string& pointer);
/// "/compression" for "compression".
std::string toggled_pointer(const std::string& pointer);

/// Search for the bandwidth at which the runs are equally fast.
enum class BreakEvens { none, simulated };

/// Results kept of each run: its report, or also what a page shows beyond it.
enum class RunDetail { report, page };

/// Simulates the scenarios, several at once, and lays the runs side by side. With
/// BreakEvens::simulated, each scenario is also set against the first over the bandwidth between nodes and inside them.
/// A scenario that fails is listed as such next to the others; when nothing is left, its failure is thrown.
Comparison compare(const std::vector<CompareInput>& inputs, const Library& library,
                   BreakEvens break_evens = BreakEvens::none, RunDetail detail = RunDetail::report);

/// Differences between the trees, in the order of the first tree that has the value: resolved scenarios, or the `job` of reports.
/// Objects that bear different names (models, platforms, devices, software profiles) differ in their names, not value by
/// value. Left out: names, descriptions, sources, `sweep` and `search`, which change nothing that is simulated.
std::vector<InputDifference> input_differences(const std::vector<const JsonValue*>& trees);

}  // namespace windtunnel
