#pragma once

#include <string>

namespace windtunnel {

/// "windtunnel 0.1.0 (450d878eb7de, SimGrid 3.32.0)": the commit it was built from, "unknown" outside a git checkout.
std::string version_text();

}  // namespace windtunnel
