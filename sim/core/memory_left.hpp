#pragma once

#include <cstdint>
#include <filesystem>
#include <string>

namespace windtunnel {

/// Bytes of memory that this process can still take: the least of what the machine has free, what its control group allows, and
/// its own limits (ulimit -v, -d).
std::uint64_t memory_left();

/// The least that the control groups around this process leave it, of version 1 and 2. `root`: where proc and sys are.
std::uint64_t free_of_control_groups(const std::filesystem::path& root);

/// To be called before `bytes` are taken for `what` ("the timeline of 38,000,000 activities"): NotEnoughMemory with both
/// numbers and `advice` when they are more than is left. Small amounts are not asked for.
void expect_memory_for(double bytes, const std::string& what, const std::string& advice);

}  // namespace windtunnel
