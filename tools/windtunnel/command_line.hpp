#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "calibrate/calibrate_command.hpp"
#include "codec/codec_command.hpp"
#include "importers/importer.hpp"
#include "search/rank_command.hpp"
#include "sweep/sweep_command.hpp"
#include "windtunnel/completion_text.hpp"

namespace windtunnel {

enum class Verbosity { normal, quiet };
enum class ColourChoice { automatic, always, never };

/// Command line as the user typed it, checked as far as one can without reading a file.
struct CommandLine {
  std::string command;  ///< "run", …; "help" and "version" stand for the options of that name
  std::vector<std::string> arguments;  ///< of the command: files, sets, a kind
  std::string help;                    ///< text for "help"

  std::vector<std::pair<std::string, std::string>> overrides;  ///< --set pointer=value
  ResultFormat format = ResultFormat::text;
  Verbosity verbosity = Verbosity::normal;
  ColourChoice colour = ColourChoice::automatic;
  std::uint64_t seed = 0;

  bool resolved = false;  ///< of show: the whole scenario
  bool pointers = false;  ///< of show: what --set can change, instead of the scenario
  bool network = false;   ///< of show: the fabric and its bisection bandwidth
  bool simgrid = false;   ///< of show: the machine as a platform file

  std::string trace, out;               ///< of run; out also of sweep
  std::string rank_traces;              ///< of run
  bool trace_all = false;               ///< of run
  bool lists_memory = false;            ///< of run
  std::string detail;                   ///< of run: "pass", "layer"; empty: pass
  std::string engine;                   ///< of `run`: engine_named(); empty: simgrid
  std::string report;                   ///< --report: the page, of all commands that have one
  std::vector<std::string> fail_above;  ///< of validate
  bool details = false;                 ///< of validate

  // Options of compare.
  std::string toggle;  ///< JSON pointer of what one of two runs goes without; empty: none
  bool break_even = false;

  CodecRequest codec;  ///< of codec; file and seed stand elsewhere here

  // Options of collective.
  std::vector<std::string> bytes;
  std::vector<int> gpus;
  std::string model;  ///< of new, which has platform and gpus as collective does
  std::optional<int> global_batch, sequence, lora_rank;  ///< of new
  std::string algorithm;  ///< of collective_algorithms(); empty: the first

  // Options of schedule. 0: not given.
  int stages = 0, microbatches = 0, chunks = 0;
  std::string svg;  ///< of schedule draw and of validate

  RankRequest rank;  ///< what it has in common with other commands stands elsewhere here
  std::optional<std::size_t> budget;  ///< of rank and explain
  std::string emit;                   ///< of rank

  std::size_t jobs = 0;  ///< of rank, sweep, job and run --steps; 0: one a core
  int draws = 1000;      ///< of job
  int steps = 0;         ///< of run and explain: how many iterations, with noise; 0: one, without
  std::string csv;       ///< of job: the draws as a table; of run: the steps

  SweepRequest sweep;    ///< as rank
  std::string baseline;  ///< of a sweep: a label, a number, or values as JSON; empty: not given
  bool dry_run = false, status = false, worker = false;

  CalibrateRequest calibrate;  ///< as rank
  std::string device, software,
      platform;  ///< the file that takes the fitted numbers, at most one; platform also of collective
  std::string output, residuals;                 ///< output: of import too
  std::string prior;                             ///< "shipped", "none" or empty: the default
  int fit_draws = 0, fit_rows = 0;               ///< of --draws and --rows; 0: not given
  ImportOptions import;                          ///< of import
  bool from_datasheet = false, kernels = false;  ///< of device
  bool script = false;                           ///< of probe
  CompletionGrammar grammar;                     ///< of completion
  bool memory = false;  ///< train a correction of the memory account instead of fitting constants
};

/// Wrong usage: what is wrong, and what to write instead. Exit code 2.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};
inline void refuse_if(bool is_wrong, const char* why) {
  if (is_wrong) throw UsageError(why);
}

/// Throws UsageError.
CommandLine parse_command_line(int argc, const char* const* argv);

/// Exit codes of the program.
enum ExitCode {
  exit_done = 0,
  exit_negative = 1,     ///< done, and the verdict is no: does not fit, below a threshold
  exit_bad_input = 2,    ///< wrong usage or a wrong file
  exit_environment = 3,  ///< cannot read or write
  exit_our_bug = 4,
  exit_resumable = 75,  ///< interrupted; the same command goes on where it stopped
};

}  // namespace windtunnel
