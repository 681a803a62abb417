#pragma once

namespace windtunnel {

/// From here on a signal that ends the program (Ctrl-C, kill, a terminal that is closed) removes the files that are half-written
/// first. The program still dies of it: its exit code is no verdict.
void clean_up_on_signals();

/// From here on a line on stderr says what is being done whenever the program has been silent for nine seconds:
///
///   windtunnel: still simulating after 18 s (12345678 activities)
///
/// A timer of this process alone; forked children stay silent.
void report_long_work();

/// Something was printed: the silence begins anew.
void note_message() noexcept;

}  // namespace windtunnel
