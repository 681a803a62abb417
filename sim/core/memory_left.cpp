#include "core/memory_left.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <limits>
#include <optional>

#include "core/problem.hpp"

namespace windtunnel {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t unlimited = std::numeric_limits<std::uint64_t>::max();
constexpr double worth_asking = 64e6;  ///< bytes; what any machine has

/// The number that a file of the kernel begins with; nothing where it says "max", or is not there.
std::optional<std::uint64_t> number_of_file(const fs::path& file) {
  std::ifstream stream(file);
  std::uint64_t number = 0;
  return stream >> number ? std::optional(number) : std::nullopt;
}

/// The number behind a name at the begin of a line.
std::optional<std::uint64_t> number_of(const std::string& name, const fs::path& file) {
  std::ifstream stream(file);
  std::string key, unit;
  for (std::uint64_t amount = 0; stream >> key >> amount; std::getline(stream, unit))
    if (key == name) return amount;
  return std::nullopt;
}

std::uint64_t free_of_machine() {
  constexpr std::uint64_t bytes_of_kb = 1024;
  const auto available = number_of("MemAvailable:", "/proc/meminfo");
  return available ? *available * bytes_of_kb : unlimited;
}

/// The path of this process's control group in the hierarchy whose line in /proc/self/cgroup has these controllers; version 2 has none.
std::optional<std::string> control_group(const fs::path& root, const std::string& controllers) {
  std::ifstream stream(root / "proc/self/cgroup");
  for (std::string line; std::getline(stream, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second != std::string::npos && line.substr(first + 1, second - first - 1) == controllers)
      return line.substr(second + 1);
  }
  return std::nullopt;
}

/// The names that a version of control groups gives to the same things.
struct GroupFiles {
  const char* mount;
  const char* controllers;
  const char *most, *taken, *cached;
};
constexpr std::array<GroupFiles, 3> group_versions{{
    {"sys/fs/cgroup", "", "memory.max", "memory.current", "inactive_file"},
    {"sys/fs/cgroup/unified", "", "memory.max", "memory.current", "inactive_file"},
    {"sys/fs/cgroup/memory", "memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
     "total_inactive_file"},
}};

std::uint64_t free_of(const fs::path& folder, const GroupFiles& files) {
  const auto most = number_of_file(folder / files.most),
             taken = number_of_file(folder / files.taken);
  if (!most || !taken) return unlimited;
  // Files that the kernel keeps count as taken, but make room when it is needed.
  const std::uint64_t cached = number_of(files.cached, folder / "memory.stat").value_or(0);
  const std::uint64_t held = *taken - std::min(*taken, cached);
  return *most - std::min(*most, held);
}

}  // namespace

std::uint64_t free_of_control_groups(const fs::path& root) {
  std::uint64_t least = unlimited;
  for (const GroupFiles& files : group_versions) {
    const auto group = control_group(root, files.controllers);
    if (!group) continue;
    // A limit may stand at any group around this process; inside a container its own is the root that is mounted.
    const fs::path mount = root / files.mount;
    least = std::min(least, free_of(mount, files));
    fs::path folder = mount;
    for (const fs::path& name : fs::path(*group).relative_path()) {
      folder /= name;
      least = std::min(least, free_of(folder, files));
    }
  }
  return least;
}

namespace {

/// Memory left under a limit of this process. `field` is the column of /proc/self/statm that counts against it.
std::uint64_t left_of(const rlimit& limit, std::size_t field) {
  if (limit.rlim_cur == RLIM_INFINITY) return unlimited;
  std::ifstream stream("/proc/self/statm");
  std::array<std::uint64_t, 7> pages{};
  for (std::uint64_t& each : pages) stream >> each;
  const std::uint64_t taken = pages[field] * static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return limit.rlim_cur - std::min<std::uint64_t>(limit.rlim_cur, taken);
}

std::string size_text(double bytes) {
  constexpr double megabyte = 1e6, gigabyte = 1e9;
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), bytes >= gigabyte ? "%.1f GB" : "%.0f MB",
                bytes / (bytes >= gigabyte ? gigabyte : megabyte));
  return text.data();
}

}  // namespace

std::uint64_t memory_left() {
  constexpr std::size_t total_pages = 0, data_pages = 5;
  rlimit all{}, data{};
  ::getrlimit(RLIMIT_AS, &all);
  ::getrlimit(RLIMIT_DATA, &data);
  return std::min({free_of_machine(), free_of_control_groups("/"), left_of(all, total_pages),
                   left_of(data, data_pages)});
}

void expect_memory_for(double bytes, const std::string& what, const std::string& advice) {
  if (bytes < worth_asking) return;
  const auto left = static_cast<double>(memory_left());
  if (bytes <= left) return;
  throw NotEnoughMemory(what + " would take about " + size_text(bytes) + " of memory, and " +
                        size_text(left) + " are left: " + advice);
}

}  // namespace windtunnel
