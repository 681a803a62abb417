#include "windtunnel/command_checks.hpp"

#include <algorithm>
#include <functional>

#include "core/text_list.hpp"
#include "questions/collective.hpp"
#include "simulate/tasks.hpp"
#include "windtunnel/command_table.hpp"

namespace windtunnel {

std::string in_quotes(const std::string& word) { return "\"" + word + "\""; }

void check_one_argument(const CommandLine& line) {
  const Command& command = command_named(line.command);
  const std::string& what = command.argument;
  if (line.arguments.size() == 1) return;
  if (line.command == "device" && !line.arguments.empty()) return;
  if (line.arguments.empty()) {
    std::string about = command.about;
    if (about.starts_with("A ")) about.front() = 'a';
    throw UsageError(line.command + " needs a " + what + " (" + about + ")");
  }
  throw UsageError(line.command + " takes one " + what + ", these are " +
                   std::to_string(line.arguments.size()) + ": " + in_quotes(line.arguments[0]) +
                   ", " + in_quotes(line.arguments[1]) +
                   (line.arguments.size() > 2 ? ", ..." : ""));
}

void check_sweep(const CommandLine& line) {
  check_one_argument(line);
  if (line.worker && line.arguments.front() == "-")
    throw UsageError(
        "windtunnel-mpi starts many processes, of which one could read standard input: name a "
        "file");
  if (line.out.empty() && !line.dry_run)
    throw UsageError("sweep needs --out DIR, the folder of its results (or --dry-run)");
  if (line.dry_run + line.status + line.worker > 1)
    throw UsageError("sweep takes one of --dry-run and --status");
  if (!line.report.empty() && line.dry_run)
    throw UsageError("--report shows results, and sweep --dry-run has none");
}

void check_validate(const CommandLine& line) {
  if (!line.residuals.empty() && (!line.arguments.empty() || !line.overrides.empty()))
    throw UsageError(
        "--residuals takes the errors of all sets as shipped: it goes without SETs and --set");
}

void check_calibrate(const CommandLine& line) {
  if (!line.calibrate.advise_name.empty()) {
    if (line.memory || !line.residuals.empty() || !line.output.empty() ||
        !line.calibrate.predict_name.empty() || !line.prior.empty() || line.fit_draws > 0)
      throw UsageError("--advise writes no file: it goes with SETs and --fit alone");
    return;
  }
  if (!line.calibrate.against_name.empty())
    throw UsageError("--against names the plan that the one of --advise is decided against");
  if (line.fit_draws > 0 && (line.memory || line.calibrate.fit.empty() || !line.residuals.empty() ||
                             !line.output.empty() || !line.calibrate.predict_name.empty()))
    throw UsageError("--draws tries fits and keeps none: it goes with SETs and --fit alone");
  if (line.fit_rows > 0 && line.fit_draws == 0)
    throw UsageError("--rows says how many rows a draw has: it goes with --draws");
  if (line.arguments.empty())
    throw UsageError("calibrate needs a SET (a path, or a name as validate takes it)");
  if (line.memory) {
    if (!line.calibrate.fit.empty() || !line.residuals.empty() || !line.device.empty() ||
        !line.software.empty() || !line.platform.empty() || !line.calibrate.predict_name.empty() ||
        !line.prior.empty())
      throw UsageError("--memory fits no constants: it goes with -o alone");
    return;
  }
  const int files = !line.device.empty() + !line.software.empty() + !line.platform.empty();
  if (files > 1) throw UsageError("calibrate writes one file: --device, --software or --platform");
  if ((files == 1) != !line.output.empty())
    throw UsageError(files == 1 ? "-o OUT is missing: where the fitted copy goes"
                                : "-o needs --device, --software or --platform: the file to copy");
}

void check_import(const CommandLine& line) {
  const std::string kinds = listed(importers(), std::mem_fn(&Importer::name));
  if (line.arguments.empty())
    throw UsageError("import needs to be told what: " + kinds +
                     " (windtunnel import KIND IN -o OUT)");
  if (line.arguments.size() == 1)
    throw UsageError("import " + line.arguments[0] +
                     " needs a file to import (windtunnel import KIND IN -o OUT)");
}

void check_probe(const CommandLine& line) {
  if (!line.script)
    throw UsageError(
        "probe measures nothing itself, it prints the script that does (write windtunnel probe "
        "--script >probe.py, and run it where the GPUs are)");
}

void check_codec(const CommandLine& line) {
  const CodecRequest& request = line.codec;
  if (line.arguments.size() + (request.synthetic.empty() ? 0 : 1) != 1)
    throw UsageError("codec takes one FILE.npy, or --synthetic gradient or activation");
  if (request.synthetic.empty() && request.rows + request.columns > 0)
    throw UsageError("--rows and --columns belong to --synthetic: a file has its own shape");
}

void check_collective(const CommandLine& line) {
  const auto known = enumerators<CollectiveOperation>();
  const std::string kinds = listed(known, dashed_name<CollectiveOperation>);
  if (line.arguments.size() != 1) throw UsageError("collective takes one KIND: " + kinds);
  if (std::ranges::none_of(
          known, [&](CollectiveOperation each) { return line.arguments[0] == dashed_name(each); }))
    throw UsageError("there is no collective " + in_quotes(line.arguments[0]) + " (write " + kinds +
                     ")");
  if (line.platform.empty())
    throw UsageError("collective needs --platform, a name that `windtunnel list platforms` prints");
}

void check_compare(const CommandLine& line) {
  const std::size_t files = line.arguments.size();
  if (!line.toggle.empty() && files != 1)
    throw UsageError("compare --toggle takes one FILE, these are " + std::to_string(files));
  if (line.toggle.empty() && files < 2)
    throw UsageError(files == 0 ? "compare needs two or more FILEs, or one with --toggle"
                                : "compare needs a second FILE beside " +
                                      in_quotes(line.arguments[0]) + ", or --toggle /POINTER");
}

void check_schedule(const CommandLine& line) {
  const std::string usage =
      "windtunnel schedule check 1f1b --stages 4 --microbatches 8, or schedule check FILE";
  if (line.arguments.empty() || (line.arguments[0] != "check" && line.arguments[0] != "draw"))
    throw UsageError("schedule needs to be told what: check or draw (" + usage + ")");
  if (line.arguments.size() != 2)
    throw UsageError("schedule " + line.arguments[0] + " takes one NAME or FILE (" + usage + ")");
  if (!line.svg.empty() && line.arguments[0] != "draw")
    throw UsageError("--svg belongs to schedule draw");
}

void check_emit(const CommandLine& line) {
  if (!line.rank.host_map.empty() && line.emit.empty())
    throw UsageError("--host-map belongs to --emit");
  if (line.rank.plan > 1 && line.emit.empty()) throw UsageError("--plan belongs to --emit");
  if (!line.emit.empty() && !line.rank.why.empty())
    throw UsageError("--why explains a plan and --emit writes one: use one of them");
}

namespace {

void check_steps(const CommandLine& line) {
  if (line.steps == 0) {
    if (!line.csv.empty()) throw UsageError("--csv belongs to --steps");
    if (line.jobs > 0) throw UsageError("--jobs belongs to --steps");
    return;
  }
  if (!line.engine.empty())
    throw UsageError("--engine belongs to run without --steps: the native engine simulates many");
  if (line.command == "explain") {
    if (!line.report.empty() || line.budget)
      throw UsageError("--report and --budget belong to explain without --steps");
    return;
  }
  if (!line.trace.empty() || !line.rank_traces.empty() || !line.out.empty() || line.lists_memory)
    throw UsageError(
        "--trace, --rank-traces, --out and --memory show one iteration: leave out "
        "--steps, or write the steps with --csv or --report");
}

}  // namespace

void check_outputs(const CommandLine& line) {
  if (line.command == "run" || line.command == "explain") check_steps(line);
  if (line.trace_all && line.trace.empty() && line.out.empty())
    throw UsageError("--trace-all belongs to --trace or --out");
  if (!line.report.empty() && !line.report.ends_with(".html") && !line.report.ends_with(".htm"))
    throw UsageError("--report is " + in_quotes(line.report) + ", which does not end in .html");
  if (!line.trace.empty() && !line.trace.ends_with(".json") && !line.trace.ends_with(".json.gz"))
    throw UsageError("--trace is " + in_quotes(line.trace) +
                     ", which ends in neither .json nor .json.gz");
}

}  // namespace windtunnel
