#include "core/memory_left.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <filesystem>
#include <limits>

#include "core/problem.hpp"
#include "core/testing.hpp"

namespace windtunnel {
namespace {

namespace fs = std::filesystem;

/// A made-up machine: what its proc and sys say.
class Machine {
 public:
  void write(const std::string& name, const std::string& text) {
    fs::create_directories((folder_.path() / name).parent_path());
    folder_.write(name, text);
  }
  std::uint64_t free() const { return free_of_control_groups(folder_.path()); }

 private:
  TemporaryFolder folder_;
};

TEST_CASE("without a control group nothing is limited") {
  Machine machine;
  CHECK(machine.free() == std::numeric_limits<std::uint64_t>::max());
  machine.write("proc/self/cgroup", "0::/user\n");
  machine.write("sys/fs/cgroup/user/memory.max", "max\n");
  machine.write("sys/fs/cgroup/user/memory.current", "5\n");
  CHECK(machine.free() == std::numeric_limits<std::uint64_t>::max());
}

TEST_CASE("the tightest group around a process counts, and cached files make room") {
  Machine machine;
  machine.write("proc/self/cgroup", "0::/job/step\n");
  machine.write("sys/fs/cgroup/job/memory.max", "1000\n");
  machine.write("sys/fs/cgroup/job/memory.current", "700\n");
  machine.write("sys/fs/cgroup/job/memory.stat", "anon 600\ninactive_file 100\n");
  machine.write("sys/fs/cgroup/job/step/memory.max", "max\n");
  machine.write("sys/fs/cgroup/job/step/memory.current", "700\n");
  CHECK(machine.free() == 400);
  machine.write("sys/fs/cgroup/job/step/memory.max", "800\n");
  CHECK(machine.free() == 100);
}

TEST_CASE("version 1 says the same in other words, next to a version 2 without limits") {
  Machine machine;
  machine.write("proc/self/cgroup", "4:memory:/slurm/job\n1:cpu:/\n0::/\n");
  machine.write("sys/fs/cgroup/memory/slurm/memory.limit_in_bytes", "2000\n");
  machine.write("sys/fs/cgroup/memory/slurm/memory.usage_in_bytes", "1500\n");
  machine.write("sys/fs/cgroup/memory/slurm/memory.stat", "total_inactive_file 250\n");
  CHECK(machine.free() == 750);
  machine.write("sys/fs/cgroup/memory/memory.limit_in_bytes",
                "600\n");  // as a container sees its own
  machine.write("sys/fs/cgroup/memory/memory.usage_in_bytes", "500\n");
  CHECK(machine.free() == 100);
}

TEST_CASE("what is more than is left is refused with both numbers") {
  CHECK_NOTHROW(expect_memory_for(1000, "a page", "none"));
  CHECK_THROWS_AS(expect_memory_for(1e18, "a universe", "take less"), const NotEnoughMemory&);
}

}  // namespace
}  // namespace windtunnel
