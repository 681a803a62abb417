#pragma once

/// The public C++ interface: load a scenario, simulate it, read the report.
///
///   #include <windtunnel.hpp>
///   using namespace windtunnel;
///   const Library library{"/usr/share/windtunnel"};                      // models, platforms, software profiles; or Library::find()
///   const Scenario scenario = read_scenario("mine.json", library);       // throws InputError with every problem of the file
///   const Report report = simulate(scenario, {.evidence = &library}).report;
///   std::cout << report.iteration_time / Seconds{1} << " s\n" << to_json(report);
///
/// - `Scenario::plan` says who holds what and where; `ReadOptions::overrides` changes values as `--set` does.
/// - A process simulates as often as it wants, on any number of threads; with `{.make_engine = make_simgrid_engine}` once.
/// - InputError: what is wrong in which line, and what to write instead. EnvironmentError: files that cannot be read.
/// An example that is built and run by the tests: tools/example.
#include "report/report_json.hpp"     // IWYU pragma: export
#include "report/summary_text.hpp"    // IWYU pragma: export
#include "scenario/scenario.hpp"      // IWYU pragma: export
#include "simulate/simulate.hpp"      // IWYU pragma: export
#include "units/quantity_reader.hpp"  // IWYU pragma: export
