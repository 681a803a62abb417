#pragma once

namespace windtunnel {

/// From here on a signal that ends the program (Ctrl-C, kill, a terminal that is closed) removes the files that are half-written
/// first. The program still dies of it: its exit code is no verdict.
void clean_up_on_signals();

}  // namespace windtunnel
