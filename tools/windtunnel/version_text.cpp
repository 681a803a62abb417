#include "windtunnel/version_text.hpp"

#include "git_hash.hpp"

namespace windtunnel {

std::string version_text() {
  return std::string("windtunnel " WINDTUNNEL_VERSION " (") + git_hash +
         ", SimGrid " WINDTUNNEL_SIMGRID_VERSION ")";
}

}  // namespace windtunnel
