#include <array>
#include <exception>
#include <new>
#include <string>
#include <system_error>

#include "core/output_guard.hpp"
#include "core/problem.hpp"
#include "windtunnel/commands.hpp"
#include "windtunnel/console.hpp"
#include "windtunnel/outputs.hpp"
#include "windtunnel/signals.hpp"
#include "windtunnel/version_text.hpp"

namespace windtunnel {
namespace {

struct Command {
  const char* name;
  ExitCode (*carry_out)(const CommandLine&);
};

ExitCode help_command(const CommandLine& line) {
  print_result(line.help);
  return exit_done;
}

ExitCode version_command(const CommandLine&) {
  print_result(version_text() + "\n");
  return exit_done;
}

ExitCode completion_command(const CommandLine& line) {
  print_result(completion_text(line.grammar, line.arguments.front()));
  return exit_done;
}

constexpr std::array commands{Command{"run", run_command},
                              Command{"check", check_command},
                              Command{"compare", compare_command},
                              Command{"codec", codec_command},
                              Command{"show", show_command},
                              Command{"list", list_command},
                              Command{"rank", rank_command},
                              Command{"schedule", schedule_command},
                              Command{"sweep", sweep_command},
                              Command{"validate", validate_command},
                              Command{"calibrate", calibrate_command},
                              Command{"explain", explain_command},
                              Command{"job", job_command},
                              Command{"import", import_command},
                              Command{"device", device_command},
                              Command{"probe", probe_command},
                              Command{"completion", completion_command},
                              Command{"help", help_command},
                              Command{"version", version_command}};

ExitCode carry_out(int argc, const char* const* argv) {
  const CommandLine line = parse_command_line(argc, argv);
  announce_outputs(named_outputs(line));
  if (line.verbosity == Verbosity::normal) report_long_work();
  for (const Command& command : commands)
    if (line.command == command.name) return command.carry_out(line);
  throw UsageError("unknown command \"" + line.command + "\"");
}

/// Runs the program, and turns what is thrown into a message and an exit code.
ExitCode guarded_main(int argc, const char* const* argv) {
  try {
    return carry_out(argc, argv);
  } catch (const UsageError& error) {
    print_message("windtunnel: error: " + std::string(error.what()) +
                  "\nwindtunnel --help shows how it is used");
    return exit_bad_input;
  } catch (const InputError& error) {
    print_message(error.what());
    return exit_bad_input;
  } catch (const EnvironmentError& error) {
    print_message("windtunnel: error: " + std::string(error.what()));
    return exit_environment;
  } catch (const std::system_error& error) {  // of the standard library: folders, threads
    print_message("windtunnel: error: " + std::string(error.what()));
    return exit_environment;
  } catch (const std::bad_alloc&) {
    print_message("windtunnel: error: out of memory");
    return exit_environment;
  } catch (const std::exception& error) {
    print_message("windtunnel: internal error: " + std::string(error.what()) +
                  "\nThis is a bug of windtunnel; please report it together with the scenario.");
    return exit_our_bug;
  }
}

}  // namespace
}  // namespace windtunnel

int main(int argc, char** argv) {
  windtunnel::guard_standard_streams();
  windtunnel::clean_up_on_signals();
  return windtunnel::guarded_main(argc, argv);
}
