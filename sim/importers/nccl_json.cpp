#include <filesystem>
#include <map>
#include <optional>

#include "core/object_reader.hpp"
#include "importers/nccl_run.hpp"

namespace windtunnel {
namespace {

constexpr double most = 1e18;  ///< of any number
constexpr int most_ranks = 1'000'000;

/// One of "out_of_place" and "in_place"; nothing when it was not run.
std::optional<NcclLine> read_way(ObjectReader& result, const char* key, double bytes) {
  auto way = result.optional_child(key);
  if (!way) return std::nullopt;
  NcclLine line;
  line.bytes = bytes;
  line.origin = way->value().origin;
  if (way->has("cpu_time") && !way->has("time")) {
    way->problem("cpu_time",
                 "cpu_time is the time until the call returns, not until the GPUs are done",
                 "run nccl-tests without -C");
    return line;
  }
  line.time_us = way->required_number("time", 1e-6, most);
  line.algbw = way->required_number("alg_bw", 0, most);
  line.busbw = way->required_number("bus_bw", 0, most);
  line.wrong = way->optional_number("nwrong", 0, 0, most);
  return line;
}

std::vector<NcclLine> read_results(ObjectReader& root, NcclRun& run) {
  std::vector<NcclLine> lines;
  JsonValue* results = root.require("results", "the list of nccl-tests -J");
  if (results == nullptr) return lines;
  if (!results->is_array() || results->array().empty()) {
    root.problem("results", "no results: the file may be of a run that was stopped");
    return lines;
  }
  for (std::size_t i = 0; i < results->array().size(); ++i) {
    ObjectReader result(results->array()[i], "/results/" + std::to_string(i), root.problems());
    const double bytes = result.required_number("size", 0, most);
    if (bytes == 0) {
      ++run.num_empty;
      continue;
    }
    auto line = read_way(result, "out_of_place", bytes);
    if (!line) {
      line = read_way(result, "in_place", bytes);
      ++run.num_in_place;
    }
    if (!line) {
      result.problem("out_of_place", "neither out_of_place nor in_place has a time");
      continue;
    }
    lines.push_back(*line);
  }
  return lines;
}

/// Without MPI the file lists its first device only; the configuration says how many there were.
void read_ranks(ObjectReader& root, NcclRun& run) {
  auto config = root.optional_child("config");
  if (!config) {
    root.problem("config", "config is missing, so the number of GPUs is not known");
    return;
  }
  const int listed_threads = config->required_int("nthreads", 1, most_ranks);
  const int gpus = config->required_int("ngpus", 1, most_ranks);
  JsonValue* devices = config->take("devices");
  if (devices == nullptr) devices = root.take("devices");
  std::map<std::string, int> processes;
  if (devices != nullptr && devices->is_array())
    for (std::size_t i = 0; i < devices->array().size(); ++i) {
      ObjectReader device(devices->array()[i], "/devices/" + std::to_string(i), root.problems());
      ++processes[device.required_string("hostname")];
      const std::string gpu = device.optional_string("device_info", "");
      if (!gpu.empty()) add_gpu(gpu, device.value().find("device_info")->origin, run);
    }
  // With MPI, each process reports its first device.
  int num_processes = 0;
  for (const auto& [host, count] : processes) num_processes += count;
  run.hosts_known = num_processes > 0;
  run.ranks = std::max(1, num_processes) * listed_threads * gpus;
  run.nodes = std::max<int>(1, static_cast<int>(processes.size()));
  for (const auto& [host, count] : processes)
    if (count * run.nodes != num_processes)
      root.problem("config", "nodes have different numbers of processes: " + host + " has " +
                                 std::to_string(count) + " of " + std::to_string(num_processes));
}

}  // namespace

NcclRun read_nccl_json(JsonValue& document, Problems& problems) {
  ObjectReader root(document, {}, problems);
  NcclRun run;
  const std::vector<NcclLine> lines = read_results(root, run);
  read_ranks(root, run);
  std::string program;
  Origin place = document.origin;
  if (JsonValue* arguments = root.take("args"); arguments != nullptr && arguments->is_array() &&
                                                !arguments->array().empty() &&
                                                arguments->array().front().is_string()) {
    place = arguments->array().front().origin;
    program = std::filesystem::path(arguments->array().front().string()).filename().string();
  }
  if (problems.empty()) add_lines(lines, program, place, run, problems);
  return run;
}

}  // namespace windtunnel
