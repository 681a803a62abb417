#include "sweep/sweep_command.hpp"

#include <doctest/doctest.h>

#include <map>
#include <string>

namespace windtunnel {
namespace {

Shard shard_in(const std::map<std::string, std::string>& environment) {
  return shard_from_environment([&](const std::string& name) {
    const auto found = environment.find(name);
    return found == environment.end() ? std::string{} : found->second;
  });
}

TEST_CASE("parts counted from 0 and parts counted from 1 both give every point once") {
  for (const int first : {0, 1}) {
    int times[10] = {};
    for (int i = first; i < first + 3; ++i) {
      const auto shard = parse_shard(std::to_string(i) + "/3");
      REQUIRE(shard);
      for (std::size_t point = 0; point < 10; ++point) times[point] += shard->holds(point) ? 1 : 0;
    }
    for (const int count : times) CHECK(count == 1);
  }
}

TEST_CASE("what is no part is none") {
  for (const char* text : {"", "3", "/", "1/", "/2", "4/3", "0/0", "-1/3", "1/3x", "1.5/3"})
    CHECK_FALSE(parse_shard(text).has_value());
}

TEST_CASE("without a parallel job the part is the whole") {
  const Shard shard = shard_in({{"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}});  // a batch script
  CHECK(shard.count == 1);
  CHECK(shard.origin.empty());
}

TEST_CASE("a task of an array counts from its first, in its steps") {
  // --array=10-22:4 has the tasks 10, 14, 18, 22
  const Shard shard = shard_in({{"SLURM_ARRAY_TASK_ID", "18"},
                                {"SLURM_ARRAY_TASK_COUNT", "4"},
                                {"SLURM_ARRAY_TASK_MIN", "10"},
                                {"SLURM_ARRAY_TASK_STEP", "4"},
                                {"SLURM_PROCID", "0"},
                                {"SLURM_NTASKS", "1"}});
  CHECK(shard.index == 2);
  CHECK(shard.count == 4);
}

TEST_CASE("an srun step inside an array task shares that task's part") {
  const Shard shard = shard_in({{"SLURM_ARRAY_TASK_ID", "1"},
                                {"SLURM_ARRAY_TASK_COUNT", "3"},
                                {"SLURM_PROCID", "2"},
                                {"SLURM_STEP_NUM_TASKS", "4"}});
  CHECK(shard.index == 1 * 4 + 2);
  CHECK(shard.count == 3 * 4);
}

TEST_CASE("numbers of processes that no machine has are no parts") {
  // Their product is 2^64, which is 0 in 64 bits.
  const Shard shard = shard_in({{"SLURM_ARRAY_TASK_ID", "0"},
                                {"SLURM_ARRAY_TASK_COUNT", "4294967296"},
                                {"SLURM_PROCID", "0"},
                                {"SLURM_STEP_NUM_TASKS", "4294967296"}});
  CHECK(shard.count == 1);
  CHECK(shard.holds(7));
  CHECK_FALSE(parse_shard("1/18446744073709551615").has_value());
}

TEST_CASE("ranks of Open MPI, of PMI and of an srun step are parts") {
  CHECK(shard_in({{"OMPI_COMM_WORLD_RANK", "3"}, {"OMPI_COMM_WORLD_SIZE", "5"}}).index == 3);
  CHECK(shard_in({{"PMI_RANK", "1"}, {"PMI_SIZE", "2"}}).count == 2);
  CHECK(shard_in({{"SLURM_PROCID", "1"}, {"SLURM_STEP_NUM_TASKS", "2"}}).index == 1);
}

}  // namespace
}  // namespace windtunnel
