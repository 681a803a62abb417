#pragma once

namespace windtunnel {

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
