#include "evidence/measurement_set.hpp"

#include <algorithm>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include "core/file_io.hpp"
#include "core/json_build.hpp"
#include "core/number_in.hpp"
#include "core/object_reader.hpp"
#include "core/text_list.hpp"

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

namespace fs = std::filesystem;
namespace {

constexpr const char* set_schema = "windtunnel/measurements-v1";

/// Member `key` as an object; an empty one where it is absent or wrong.
JsonValue object_member(ObjectReader& reader, std::string_view key) {
  const JsonValue* value = reader.take(key);
  if (value == nullptr || value->is_null()) return empty_object();
  if (value->is_object()) return *value;
  reader.problem(key, "\"" + std::string(key) + "\" is " + value->kind_name() + ", not an object",
                 "write the keys of a scenario in braces");
  return empty_object();
}

void read_schema(ObjectReader& reader) {
  if (!reader.has("schema")) {
    if (reader.has("parallel"))
      return reader.problem("schema", "this is a scenario, not a measurement set",
                            "windtunnel run reads it");
    return reader.problem("schema", "a measurement set says its schema",
                          std::string("add \"schema\": \"") + set_schema + "\"");
  }
  const std::string schema = reader.required_string("schema");
  if (schema != set_schema)
    reader.problem("schema",
                   "this is not a measurement set that this version reads: \"" + schema + "\"",
                   std::string("write \"") + set_schema + "\"");
}

/// The members of `measured` that are compared with predictions. The others stay as they are.
void read_measured(ObjectReader& reader, MeasurementPoint& point) {
  point.iteration_time = read_measured_time(reader, "iteration_time_s");
  constexpr double most_per_s = 1e15;
  point.tokens_per_s_per_gpu = read_measured_number(reader, "tokens_per_s_per_gpu", most_per_s);
  point.samples_per_s = read_measured_number(reader, "samples_per_s", most_per_s);
  point.memory = read_measured_memory(reader);
  point.timers = read_measured_timers(reader);
  point.out_of_memory = reader.optional_bool("out_of_memory", false);
  point.failed = reader.optional_bool("failed", false);
  if (!reader.has("fits")) return;
  const bool fits = reader.optional_bool("fits", false);
  if (fits && (point.out_of_memory || point.failed))
    reader.problem("fits", "a run that fits did not end out of memory or for an unknown reason",
                   "leave one out");
  if (!fits && (point.failed || point.has_time()))
    reader.problem("fits", "a run that does not fit has no time, and ended for a known reason",
                   "leave one out");
  point.fits = fits;
  point.out_of_memory = point.out_of_memory || !fits;
}

/// Accepts keys of the set's authors in addition to ours, unless they look like misspelt ones.
void reject_misspelt_keys(ObjectReader& reader, const std::vector<std::string>& ours) {
  if (!reader.value().is_object()) return;
  for (const JsonValue::Member& member : reader.value().object()) {
    if (std::ranges::find(ours, member.key) != ours.end()) continue;
    const std::string nearest = closest_match(member.key, ours);
    const bool is_longer = nearest.starts_with(member.key) || member.key.starts_with(nearest);
    if (!nearest.empty() && !is_longer && !reader.has(nearest))
      reader.problem(member.key, "unknown key \"" + member.key + "\"",
                     "did you mean \"" + nearest + "\"?");
  }
}

/// The container of a row, if it names a release such as "26.04" or "26.04.01"; else empty.
std::string container_release(const JsonValue& row) {
  const JsonValue* container = row.find("container");
  if (container == nullptr || !container->is_string()) return {};
  std::string shape;
  for (const char c : container->string()) shape += c >= '0' && c <= '9' ? '9' : c;
  return shape == "99.99" || shape == "99.99.9" || shape == "99.99.99" ? container->string() : "";
}

MeasurementPoint read_point(JsonValue& value, const std::string& pointer, MeasurementKind kind,
                            Problems& problems) {
  ObjectReader reader(value, pointer, problems);
  MeasurementPoint point;
  point.id = reader.required_string("id");
  point.group = reader.optional_string("group", "");
  point.scenario = object_member(reader, "scenario");
  if (kind == MeasurementKind::collective) point.collective = read_collective_run(reader);
  if (const JsonValue* measured = reader.require("measured")) {
    point.measured = *measured;
    ObjectReader child = reader.child("measured");
    read_measured(child, point);
    reject_misspelt_keys(
        child, {"iteration_time_s", "tokens_per_s_per_gpu", "samples_per_s", "nvidia_smi_gib",
                "max_allocated_mib_by_rank", "max_reserved_mib_by_rank", "max_memory_usage_gb",
                "max_reserved_gib", "memory_reading", "megatron_timers_ms", "out_of_memory",
                "failed", "fits", "time_s"});
  }
  point.release = container_release(value);
  reject_misspelt_keys(reader, {"id", "group", "scenario", "note", "collective", "gpus", "nodes",
                                "bytes", "measured"});
  return point;
}

void read_points(ObjectReader& reader, MeasurementSet& set) {
  JsonValue* points = reader.require("points");
  if (points == nullptr) return;
  if (!points->is_array())
    return reader.problem("points", "is " + points->kind_name() + ", not an array");
  if (points->array().empty()) reader.problem("points", "a set without points proves nothing");
  std::set<std::string> ids;
  for (std::size_t i = 0; i < points->array().size(); ++i) {
    JsonValue& value = points->array()[i];
    const std::string pointer = reader.pointer() + "/points/" + std::to_string(i);
    set.points.push_back(read_point(value, pointer, set.kind, reader.problems()));
    if (!ids.insert(set.points.back().id).second)
      reader.problems().add(
          {value.origin, pointer, "two points have the id \"" + set.points.back().id + "\"", {}});
  }
}

/// Whole training runs, which tools/published_runs.py compares.
constexpr const char* runs_file = "runs.json";

/// Every .json file in `folder` and below but the residuals and the runs, sorted.
std::vector<fs::path> all_sets(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error))
    if (entry->path().extension() == ".json" && entry->path() != folder / residuals_file &&
        entry->path() != folder / runs_file)
      files.push_back(entry->path());
  if (error) throw EnvironmentError("cannot read " + folder.string() + ": " + error.message());
  std::ranges::sort(files);
  return files;
}

/// The name that a set goes by in messages.
std::string joined_name(const fs::path& file, const fs::path& folder) {
  std::string name = fs::path(file).replace_extension().lexically_relative(folder).generic_string();
  std::ranges::replace(name, '/', '-');
  return name;
}

/// True if a set is called `name`: "vtrain/a100-multi-node", "vtrain-a100-multi-node", "a100-multi-node",
/// or, with all sets of the folder, "vtrain".
bool is_called(const fs::path& file, const fs::path& folder, const std::string& name) {
  const fs::path relative = fs::path(file).replace_extension().lexically_relative(folder);
  return name == relative.generic_string() || name == joined_name(file, folder) ||
         name == relative.filename() || name == relative.parent_path().generic_string();
}

[[noreturn]] void throw_unknown_set(const std::string& name, const std::vector<fs::path>& known,
                                    const fs::path& folder) {
  std::vector<std::string> names;
  for (const fs::path& file : known) names.push_back(joined_name(file, folder));
  const std::string nearest = closest_match(name, names);
  throw InputError({{{},
                     {},
                     "no measurement set \"" + name + "\"",
                     !nearest.empty() ? "did you mean \"" + nearest + "\"?"
                     : names.empty()  ? "there is none"
                                      : "there is " + listed(names)}});
}

}  // namespace

MeasurementSet read_measurement_set(const fs::path& file) {
  Problems problems;
  JsonValue value = parse_json(read_source(file), problems);
  problems.throw_if_any();
  return read_measurement_set(std::move(value), file.parent_path());
}

MeasurementSet read_measurement_set(JsonValue value, const fs::path& folder) {
  Problems problems;
  MeasurementSet set;
  set.folder = folder;
  {
    ObjectReader reader(value, {}, problems);
    read_schema(reader);
    if (!reader.has("points"))
      problems.throw_if_any();  // of another kind of file nothing more is worth saying
    set.name = reader.required_string("name");
    set.kind = reader.required_enum<MeasurementKind>("kind");
    ObjectReader source = reader.child("source");
    set.citation = source.required_text("citation");
    set.licence = source.required_text("licence");
    source.reject_unknown_keys();
    set.note = reader.optional_text("note", "");
    if (reader.take("never_fitted") != nullptr)
      set.never_fitted = reader.optional_bool("never_fitted", false);
    set.base = object_member(reader, "base");
    read_points(reader, set);
    reader.reject_unknown_keys();
  }
  problems.throw_if_any();
  return set;
}

std::string why_not_predicted(const MeasurementPoint& point) {
  return point.failed ? "the run failed and nobody knows why: never scored" : "";
}

std::string why_not_scored(const MeasurementSet& set, const MeasurementPoint& point) {
  if (set.kind == MeasurementKind::collective) return "a collective is no iteration";
  if (const std::string why = why_not_predicted(point); !why.empty()) return why;
  if (point.out_of_memory) return "the run ended out of memory: no time to compare";
  if (!point.has_time() && point.ran()) return "it ran, and its time was not measured";
  if (!point.has_time()) return "no iteration time or throughput was measured";
  return {};
}

IterationWork iteration_work(const Scenario& scenario) {
  const double samples = scenario.plan.training.global_batch;
  return {samples,
          samples * static_cast<double>(scenario.model.sequence) / scenario.plan.num_ranks()};
}

std::optional<Seconds> measured_time(const MeasurementPoint& point, const IterationWork& work) {
  if (point.iteration_time) return point.iteration_time;
  if (point.tokens_per_s_per_gpu) return Seconds{work.tokens_of_gpu / *point.tokens_per_s_per_gpu};
  if (point.samples_per_s) return Seconds{work.samples / *point.samples_per_s};
  return std::nullopt;
}

JsonValue scenario_of(const MeasurementSet& set, const MeasurementPoint& point) {
  JsonValue scenario = set.base;
  merge_json(scenario, point.scenario);
  if (const JsonValue* software = scenario.find("software");
      !point.release.empty() && software != nullptr && software->is_string()) {
    const std::string of_release = software->string() + "@" + point.release;
    scenario.set("software", JsonValue(of_release));
  }
  if (scenario.find("name") == nullptr) scenario.set("name", JsonValue(point.id));
  return scenario;
}

std::vector<fs::path> find_measurement_sets(const std::vector<std::string>& asked,
                                            const fs::path& folder) {
  if (asked.empty()) return all_sets(folder);
  std::vector<fs::path> files;
  const auto add_once = [&](const fs::path& file) {  // or its rows would count twice
    const auto is_same = [&](const fs::path& other) {
      std::error_code unreadable;  // whose reader says so
      return fs::equivalent(file, other, unreadable);
    };
    if (std::ranges::none_of(files, is_same)) files.push_back(file);
  };
  for (const std::string& name : asked) {
    if (file_type_of(name) == fs::file_type::regular) {
      add_once(name);
      continue;
    }
    if (name.ends_with(".json")) read_source(name);  // says why it cannot be read
    std::vector<fs::path> called, known = all_sets(folder);
    std::ranges::copy_if(known, std::back_inserter(called),
                         [&](const fs::path& file) { return is_called(file, folder, name); });
    if (called.empty()) throw_unknown_set(name, known, folder);
    std::ranges::for_each(called, add_once);
  }
  return files;
}

}  // namespace windtunnel
