#include <algorithm>
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

ExitCode carry_out(int argc, const char* const* argv) {
  const CommandLine line = parse_command_line(argc, argv);
  announce_outputs(named_outputs(line));
  fit_text(line);
  if (line.verbosity == Verbosity::normal) report_long_work();
  if (line.command == "version") {
    print_result(line, version_text() + "\n");
    return exit_done;
  }
  return command_named(line.command).carry_out(line);
}

/// Runs the program, and turns what is thrown into a message and an exit code.
ExitCode guarded_main(int argc, const char* const* argv) {
  try {
    return carry_out(argc, argv);
  } catch (const UsageError& error) {
    const std::string first = argc > 1 ? argv[1] : "";
    const bool is_command =
        first != "help" && std::ranges::find(commands(), first, &Command::name) != commands().end();
    print_message("windtunnel: error: " + std::string(error.what()) + "\nwindtunnel " +
                  (is_command ? first + " " : "") + "--help shows how it is used");
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
