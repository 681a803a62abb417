#include "probe_script.hpp"
#include "windtunnel/commands.hpp"
#include "windtunnel/console.hpp"

namespace windtunnel {

/// The program measures nothing itself: GPUs are measured from PyTorch, where they are.
ExitCode probe_command(const CommandLine&) {
  print_result(probe_script);
  return exit_done;
}

}  // namespace windtunnel
