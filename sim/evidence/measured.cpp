#include "evidence/measured.hpp"

#include "core/number_in.hpp"

namespace windtunnel {
namespace {

constexpr double longest_time_s = 1e9;
constexpr double most_memory_gib = 1e6;  ///< of GB, too
constexpr double most_bytes = 1e15;
constexpr int most_measured_ranks = 10'000'000;

/// The members of object `key`, each a number above zero.
std::map<std::string, double> read_numbers(ObjectReader& reader, std::string_view key) {
  std::map<std::string, double> numbers;
  if (!reader.has(key)) return numbers;
  ObjectReader child = reader.child(key);
  if (!child.value().is_object()) return numbers;
  for (const JsonValue::Member& member : child.value().object()) {
    const double number = child.required_number(member.key, 0, longest_time_s);
    if (number <= 0) child.problem(member.key, "a measurement is above zero");
    numbers[member.key] = number;
  }
  return numbers;
}

std::map<int, Bytes> read_memory_by_rank(ObjectReader& reader, std::string_view key) {
  std::map<int, Bytes> memory;
  for (const auto& [name, mib] : read_numbers(reader, key)) {
    const int rank = number_in<int>(name).value_or(-1);
    if (rank < 0 || rank >= most_measured_ranks)
      reader.problem(key, "\"" + name + "\" is no rank", "write \"0\", \"1\", ...");
    else
      memory[rank] = mib * 1_MiB;
  }
  return memory;
}

}  // namespace

std::optional<double> read_measured_number(ObjectReader& measured, std::string_view key,
                                           double most, const char* what) {
  if (!measured.has(key)) return std::nullopt;
  const double number = measured.required_number(key, 0, most);
  if (number <= 0) measured.problem(key, std::string(what) + " is above zero");
  return number;
}

std::optional<Seconds> read_measured_time(ObjectReader& measured, std::string_view key) {
  const auto seconds = read_measured_number(measured, key, longest_time_s, "a measured time");
  return seconds ? std::optional(Seconds{*seconds}) : std::nullopt;
}

MeasuredMemory read_measured_memory(ObjectReader& measured) {
  MeasuredMemory memory;
  if (measured.has("nvidia_smi_gib"))
    memory.nvidia_smi = measured.required_number("nvidia_smi_gib", 0, most_memory_gib) * 1_GiB;
  memory.allocated = read_memory_by_rank(measured, "max_allocated_mib_by_rank");
  memory.reserved = read_memory_by_rank(measured, "max_reserved_mib_by_rank");
  if (const auto gib = read_measured_number(measured, "max_memory_usage_gb", most_memory_gib))
    memory.allocated.try_emplace(0, *gib * 1_GiB);
  if (const auto gib = read_measured_number(measured, "max_reserved_gib", most_memory_gib))
    memory.most_reserved = *gib * 1_GiB;
  if (measured.has("memory_reading"))
    memory.reading = measured.required_enum<MemoryReading>("memory_reading");
  return memory;
}

std::map<std::string, Seconds> read_measured_timers(ObjectReader& measured) {
  std::map<std::string, Seconds> timers;
  for (const auto& [name, milliseconds] : read_numbers(measured, "megatron_timers_ms"))
    timers[name] = Seconds{milliseconds / 1000};
  return timers;
}

CollectiveRun read_collective_run(ObjectReader& point) {
  CollectiveRun run;
  run.operation = point.required_enum<CollectiveOperation>("collective");
  run.gpus = point.required_int("gpus", 1, most_measured_ranks);
  run.nodes = point.required_int("nodes", 1, most_measured_ranks);
  run.payload = Bytes{point.required_number("bytes", 1, most_bytes)};
  if (point.has("nccl_algo"))
    run.algorithm = point.required_enum<std::string>(
        "nccl_algo", {{"Ring", "ring"}, {"Tree", "tree"}, {"NVLSTree", "nvls_tree"}});
  if (point.has("measured")) {
    ObjectReader measured = point.child("measured");
    if (const auto time = read_measured_time(measured, "time_s")) run.measured = *time;
  }
  if (run.measured <= Seconds{0}) point.problem("measured", "a collective has a time_s");
  return run;
}

}  // namespace windtunnel
