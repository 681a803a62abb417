#include "core/testing.hpp"

namespace windtunnel {

std::filesystem::path source_dir() { return WINDTUNNEL_SOURCE_DIR; }

}  // namespace windtunnel
