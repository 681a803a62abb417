#include "sweep/results.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "core/contracts.hpp"
#include "core/file_io.hpp"
#include "core/hash.hpp"
#include "core/json_value.hpp"
#include "core/number_in.hpp"
#include "core/open_file.hpp"
#include "core/problem.hpp"
#include "core/staged_files.hpp"
#include "core/terminal_safe.hpp"
#include "core/text_list.hpp"
#include "evidence/evidence.hpp"
#include "evidence/interval.hpp"
#include "evidence/measurement_set.hpp"
#include "report/json_object.hpp"
#include "report/report_json.hpp"
#include "report/report_words.hpp"
#include "report/terminal_text.hpp"
#include "scenario/scenario.hpp"
#include "simulate/objective_value.hpp"
#include "simulate/simulate.hpp"
#include "sweep/sweep_plot.hpp"

namespace windtunnel {
namespace {

namespace fs = std::filesystem;

/// Members of an object on one line, in the order given.
std::string line_text(const JsonValue& object) {
  return listed(object.object(), [](const JsonValue::Member& member) {
    return canonical_text(JsonValue(member.key)) + ": " + canonical_text(member.value);
  });
}

const char* name_of(FailureKind kind) {
  static constexpr std::array names{"bad_input", "unsupported",   "environment",
                                    "crash",     "out_of_memory", "out_of_time"};
  return names.at(static_cast<std::size_t>(kind));
}

std::string failure_text(const ChildFailure& failure) {
  return line_text(
      object_of({{"ok", false}, {"failure", name_of(failure.kind)}, {"error", failure.text}}));
}

/// The problems without places in files: the point is the place.
std::string reason(const InputError& error) {
  std::string text;
  for (const Problem& problem : error.problems()) {
    text += (text.empty() ? "" : "; ") + problem.message;
    if (!problem.pointer.empty()) text += " at " + problem.pointer;
    if (!problem.suggestion.empty()) text += " (" + problem.suggestion + ")";
  }
  return text;
}

/// In the unit of the objective.
double value_by(Objective objective, const Scenario& scenario, const Report& report) {
  return ObjectiveValue(scenario, objective, "/sweep/objective")
      .value(report.iteration_time, shares_of(report.breakdown));
}

/// Of the steps of the whole job.
double cost_of_job(const Scenario& scenario, const Report& report) {
  const double seconds = value_by(Objective::days, scenario, report) * seconds_per_day;
  return value_by(Objective::cost_per_token, scenario, report) * report.tokens_per_s * seconds;
}

constexpr std::string_view checksum_key = ", \"checksum\": \"";
constexpr std::size_t hash_digits = 32;
constexpr std::string_view row_end = "\"}";

/// What is wrong with the figures of a point that was simulated; empty: nothing.
std::string fault_of_figures(const JsonValue& row) {
  for (const char* key : {"samples_per_s", "tokens_per_s", "model_tflops_per_gpu", "mfu",
                          "memory_max_bytes", "iteration_time_s"})
    if (number_of(row.find(key)).value_or(-1) < 0)
      return std::string("its ") + key + " is no figure of a simulation";
  if (number_of(row.find("iteration_time_s")) == 0.0) return "its iteration takes no time";
  const JsonValue* gpus = row.find("gpus");
  if (gpus == nullptr || !gpus->is_integer() || std::get<std::int64_t>(gpus->content) < 1)
    return "its gpus are no number of GPUs";
  const JsonValue* fits = row.find("fits");
  return fits == nullptr || !fits->is_bool() ? "it does not say whether the point fits" : "";
}

std::string fault_of_checksum(const std::string& line, const std::string& sweep_hash) {
  const std::size_t tail = checksum_key.size() + hash_digits + row_end.size();
  if (line.size() <= tail ||
      line.compare(line.size() - tail, checksum_key.size(), checksum_key) != 0)
    return "it has no checksum, so nobody can know whether it was changed";
  return line == with_checksum(line.substr(0, line.size() - tail) + "}", sweep_hash)
             ? ""
             : "its checksum does not match: it was changed after it was written, or is of another "
               "sweep";
}

std::string fault_of_values(const JsonValue& row, const PointValues& values) {
  for (const auto& [pointer, value] : values) {
    const JsonValue* found = row.find(pointer);
    if (found == nullptr || canonical_text(*found) != canonical_text(value))
      return "its " + pointer + " is not what the sweep sets there";
  }
  const std::string id = text_at(row, "id");
  return id.size() == hash_digits && id.find_first_not_of("0123456789abcdef") == std::string::npos
             ? ""
             : "its id is none of a scenario";
}

constexpr double seconds_between_flushes = 1;
constexpr std::size_t largest_part = std::size_t{4} << 30;  ///< bytes

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

std::string host_name() {
  std::array<char, 256> name{};
  if (::gethostname(name.data(), name.size() - 1) != 0 || name[0] == '\0') return "host";
  std::string text = name.data();
  std::ranges::replace(text, '/', '-');
  return text;
}

fs::path folder_of(const fs::path& directory) { return directory / "parts"; }

struct PartFile {
  fs::path path;
  std::uintmax_t size = 0;
};

/// What parts/ holds, in the order of the names.
struct Parts {
  std::vector<PartFile> files;
  std::vector<fs::path> no_files;  ///< pipes, folders and the like that are called as files are
};

Parts parts_in(const fs::path& directory) {
  Parts parts;
  std::error_code error, ignored;
  for (fs::directory_iterator entry(folder_of(directory), error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().extension() != ".jsonl") continue;
    if (entry->is_regular_file(ignored))
      parts.files.push_back({entry->path(), entry->file_size(ignored)});
    else
      parts.no_files.push_back(entry->path());
  }
  if (error && error != std::errc::no_such_file_or_directory)
    throw EnvironmentError("cannot read the folder " + folder_of(directory).string() + ": " +
                           error.message());
  std::ranges::sort(parts.files, {}, &PartFile::path);
  std::ranges::sort(parts.no_files);
  return parts;
}

/// Collects the rows of a sweep from the lines of its part files.
class PartReader {
 public:
  explicit PartReader(const Sweep& sweep) : sweep_(sweep) {}

  void read(const PartFile& file) {
    rows_.num_bytes += file.size;
    const std::string text =
        read_source(file.path, {.largest = largest_part})->text.substr(0, file.size);
    std::size_t begin = 0;
    for (int number = 1; begin < text.size(); ++number) {
      const std::size_t end = text.find('\n', begin);
      if (end == std::string::npos) {
        ++rows_.num_torn;
        return;
      }
      take(text.substr(begin, end - begin), file.path.string() + ":" + std::to_string(number));
      begin = end + 1;
    }
  }

  PartRows rows() && {
    rows_.num_failed = static_cast<std::size_t>(
        std::ranges::count_if(rows_.by_point, [](const auto& entry) { return !entry.second.ok; }));
    return std::move(rows_);
  }

 private:
  void take(const std::string& line, const std::string& place) {
    std::variant<Row, std::string> read = read_row(line, sweep_);
    if (const auto* why = std::get_if<std::string>(&read)) {
      rows_.refused.push_back({place, *why});
      return;
    }
    Row& row = std::get<Row>(read);
    Row& known = rows_.by_point[row.point];
    std::string& known_place = place_of_[row.point];
    const bool is_better =
        known_place.empty() || (row.ok && !known.ok) || (row.ok == known.ok && line < known.line);
    if (row.ok && known.ok && line != known.line)
      rows_.refused.push_back({is_better ? known_place : place,
                               "it says something else than " + (is_better ? place : known_place)});
    if (!is_better) return;
    known = std::move(row);
    known_place = place;
  }

  const Sweep& sweep_;
  PartRows rows_;
  std::map<std::size_t, std::string> place_of_;
};

constexpr const char* schema = "windtunnel/sweep-manifest-v2";
/// Its rows carry no checksums.
constexpr const char* first_schema = "windtunnel/sweep-manifest-v1";

fs::path path_in(const fs::path& directory) { return directory / "manifest.json"; }

[[noreturn]] void refuse(const fs::path& directory, const std::string& why) {
  throw InputError(
      {{{},
        {},
        directory.string() + " holds results of " + why,
        "take another --out, or remove " + directory.string() + " if its results are not needed"}});
}

void compare(const fs::path& directory, const Sweep& sweep, const std::string& version) {
  Problems problems;
  const JsonValue found = parse_json(read_source(path_in(directory)), problems);
  if (text_at(found, "schema") == first_schema)
    refuse(directory,
           "an older windtunnel, whose rows carry no checksums: nobody can know whether they were "
           "changed");
  if (!problems.empty() || !found.is_object() || text_at(found, "schema") != schema)
    refuse(directory, "something else: its manifest.json is none of a sweep");
  if (text_at(found, "sweep_hash") != sweep.hash())
    refuse(directory, "another sweep (\"" + text_at(found, "name") +
                          "\", or this one before the scenario, a file it names or "
                          "validation/residuals.json was changed)");
  if (text_at(found, "version") != version)
    refuse(directory, "another version, " + text_at(found, "version") + "; this is " + version);
}

bool is_there(const fs::path& directory) {
  return file_type_of(path_in(directory)) != fs::file_type::not_found;
}

constexpr std::array figures{"gpus",
                             "iteration_time_s",
                             "iteration_time_low_s",
                             "iteration_time_high_s",
                             "samples_per_s",
                             "tokens_per_s",
                             "model_tflops_per_gpu",
                             "mfu",
                             "memory_max_bytes",
                             "fits",
                             "memory_verdict",
                             "failure",
                             "error"};

/// Text as a terminal may show it; the rest as JSON. A table's program takes text that begins with a mark for a formula, which may
/// read files and open addresses: an apostrophe before it makes it text (OWASP, "CSV Injection").
std::string field_of(const JsonValue* value) {
  constexpr std::string_view marks = "=+-@\t\r";
  if (value == nullptr || value->is_null()) return {};
  if (!value->is_string()) return for_terminal(canonical_text(*value));
  const std::string text = for_terminal(value->string());
  const bool is_marked = text.find_first_of(marks) == 0;
  return (is_marked && !number_in(text) ? "'" : "") + text;
}

/// Both ends of the interval have columns of their own.
const JsonValue* figure_of(const JsonValue& row, const std::string& name) {
  for (const auto& [low, high, key] :
       {std::tuple{"iteration_time_low_s", "iteration_time_high_s", time_interval_key},
        {"speedup_low", "speedup_high", speedup_interval_key}})
    if (name == low || name == high)
      return find_at(row, std::string("/") + key + (name == low ? "/0" : "/1"));
  return row.find(name);
}

/// Two processes that end together may write in either order, so each looks once more. Rows that keep coming are left to those who add them:
/// they merge at their own end.
constexpr int most_rounds = 3;

}  // namespace

RowMaker::RowMaker(const Sweep& sweep, const ChildLimits& limits)
    : sweep_(&sweep), limits_(limits), evidence_(read_evidence(sweep.library())) {}

std::string RowMaker::whole_row(std::size_t point, const std::string& id,
                                const std::string& outcome) const {
  const std::string label = sweep_->points().label(point);
  JsonValue object =
      object_of({{"point", point}, {"id", id}, {"label", only_if(!label.empty(), label)}});
  for (const auto& [pointer, value] : sweep_->points().values(point)) object.set(pointer, value);
  return with_checksum("{" + line_text(object) + ", " + outcome + "}", sweep_->hash());
}

/// Energy depends on what GPUs do in a step; all else on how long it takes.
Report RowMaker::report_of(const Scenario& scenario) const {
  if (sweep_->choices().objective != Objective::energy_per_token)
    return simulate_key_figures(scenario, build(scenario));
  return simulate(scenario).report;
}

std::string RowMaker::figures(const Scenario& as_read) const {
  const ObjectiveValue objective(as_read, sweep_->choices().objective, "/sweep/objective");
  std::optional<Scenario> planned;
  if (sweep_->choices().plan != JobPlan::given) planned = sweep_->planned(as_read);
  const Scenario& scenario = planned ? *planned : as_read;
  const Report report = report_of(scenario);
  WT_ENSURE(report.iteration_time > 0_s);
  std::optional<std::pair<Seconds, Seconds>> interval;
  if (!evidence_.regimes.empty()) {
    const Interval found = interval_from(evidence_, traits_of(scenario), report.iteration_time,
                                         share_outside_kernels(report.breakdown));
    interval.emplace(found.low, found.high);
  }
  JsonValue row = object_of({{"ok", true},
                             {"gpus", report.num_gpus},
                             {"iteration_time_s", report.iteration_time},
                             {"iteration_time_interval_s", interval},
                             {"breakdown_s", breakdown_value(report.breakdown)},
                             {"job", object_of({{"model", scenario.model.name},
                                                {"parameters", total_parameters(scenario.model)},
                                                {"software", scenario.software.name},
                                                {"gpu_family", device_family(scenario.nodes)}})},
                             {"samples_per_s", report.samples_per_s},
                             {"tokens_per_s", report.tokens_per_s},
                             {"model_tflops_per_gpu", report.model_flops_per_gpu / 1_TFLOPS},
                             {"mfu", report.mfu},
                             {"memory_max_bytes", std::round(report.memory.max_total / Bytes{1})},
                             {"fits", report.memory.fits},
                             {"memory_verdict", name_of(report.memory.verdict)}});
  for (const std::string& figure : sweep_->asked_figures())
    if (figure != speedup_key)
      row.set(figure,
              figure == "plan"
                  ? JsonValue(detail::plan_text(scenario.plan.training, scenario.plan.parallel))
              : figure == "cost"
                  ? JsonValue(cost_of_job(scenario, report))
                  : JsonValue(value_by(figure == "days" ? Objective::days : objective.objective(),
                                       scenario, report)));
  return line_text(row);
}

std::string RowMaker::outcome_of(const Scenario& scenario) const {
  if (!limits_.time && !limits_.memory) return figures(scenario);
  const ChildOutcome outcome = run_in_child([&] { return figures(scenario); }, limits_);
  const auto* failure = std::get_if<ChildFailure>(&outcome);
  return failure != nullptr ? failure_text(*failure) : std::get<std::string>(outcome);
}

std::string RowMaker::row(std::size_t point) const {
  std::string id = id_of_unreadable(*sweep_, point), outcome;
  const auto failure = failure_in([&] {
    try {
      const Scenario scenario = sweep_->scenario(point);
      id = scenario.hash;
      outcome = outcome_of(scenario);
    } catch (const UnsupportedError& error) {
      outcome = failure_text({FailureKind::unsupported, reason(error)});
    } catch (const InputError& error) {
      outcome = failure_text({FailureKind::bad_input, reason(error)});
    }
  });
  if (failure) outcome = failure_text(*failure);
  return whole_row(point, id, outcome);
}

std::string RowMaker::failed_row(std::size_t point, const ChildFailure& failure) const {
  return whole_row(point, id_of_unreadable(*sweep_, point), failure_text(failure));
}

std::string id_of_unreadable(const Sweep& sweep, std::size_t point) {
  std::string text = sweep.hash();
  for (const auto& [pointer, value] : sweep.points().values(point))
    text += pointer + "=" + canonical_text(value);
  return fnv1a_128_hex(text);
}

std::optional<Row> parse_row(const std::string& line) {
  Problems problems;
  Row row;
  row.content = parse_json(std::make_shared<const SourceText>(SourceText{"", line}), problems);
  if (!problems.empty() || !row.content.is_object()) return std::nullopt;
  const JsonValue* point = row.content.find("point");
  const JsonValue* ok = row.content.find("ok");
  if (point == nullptr || !point->is_integer() || ok == nullptr || !ok->is_bool())
    return std::nullopt;
  row.point = static_cast<std::size_t>(std::get<std::int64_t>(point->content));
  row.ok = std::get<bool>(ok->content);
  row.line = line;
  return row;
}

std::optional<std::pair<double, double>> interval_of(const JsonValue& row, const char* key) {
  const JsonValue* interval = row.find(key);
  if (interval == nullptr || !interval->is_array() || interval->array().size() != 2)
    return std::nullopt;
  const auto low = number_of(&interval->array()[0]), high = number_of(&interval->array()[1]);
  if (!low || !high) return std::nullopt;
  return std::pair(*low, *high);
}

double figure(const JsonValue& row, const std::string& key) {
  return number_of(row.find(key)).value_or(0);
}

std::string text_at(const JsonValue& object, const std::string& key) {
  const JsonValue* value = object.find(key);
  if (value == nullptr) return "";
  return value->is_string() ? value->string() : canonical_text(*value);
}

const char* memory_mark(const JsonValue& row) {
  return text_at(row, "memory_verdict") == name_of(MemoryVerdict::lower_bound) ? "≥ " : "";
}

bool fits(const JsonValue& row) {
  const JsonValue* value = row.find("fits");
  return value != nullptr && value->is_bool() && std::get<bool>(value->content);
}

double penalty_of(const Sweep& sweep, const JsonValue& row) {
  const Objective objective = sweep.choices().objective;
  if (objective == Objective::tokens_per_second) return -figure(row, "tokens_per_s");
  return figure(row, objective == Objective::time ? "iteration_time_s" : name_of(objective));
}

std::string point_name(const JsonValue& row, const std::vector<std::string>& columns) {
  std::string name = text_at(row, "label");
  if (!name.empty()) return name;
  for (const std::string& column : columns)
    if (row.find(column) != nullptr)
      name += (name.empty() ? "" : ", ") + short_name(column, columns) + " " + text_at(row, column);
  return name;
}

std::string with_checksum(const std::string& row, const std::string& sweep_hash) {
  WT_EXPECT(row.ends_with('}'));
  return row.substr(0, row.size() - 1) + std::string(checksum_key) +
         fnv1a_128_hex(sweep_hash + row) + std::string(row_end);
}

std::string with_members(const std::string& row, const JsonValue& more,
                         const std::string& sweep_hash) {
  return with_checksum(row.substr(0, row.rfind(checksum_key)) + ", " + line_text(more) + "}",
                       sweep_hash);
}

std::variant<Row, std::string> read_row(const std::string& line, const Sweep& sweep) {
  std::optional<Row> row = parse_row(line);
  if (!row) return "it is no row";
  if (row->point >= sweep.points().size()) return "the sweep has no such point";
  std::string fault = fault_of_checksum(line, sweep.hash());
  if (fault.empty()) fault = fault_of_values(row->content, sweep.points().values(row->point));
  if (fault.empty() && row->ok) fault = fault_of_figures(row->content);
  if (fault.empty() && !row->ok && text_at(row->content, "failure").empty())
    fault = "it does not say why its point failed";
  if (!fault.empty()) return fault;
  return std::move(*row);
}

PartWriter::~PartWriter() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void PartWriter::refuse(const char* deed) const {
  throw EnvironmentError(std::string("cannot ") + deed + " " + path_.string() + ": " +
                         std::strerror(errno));
}

void PartWriter::open() {
  std::error_code error;
  fs::create_directories(folder_of(directory_), error);
  std::error_code ignored;  // where the folder is there after all, another worker has made it
  if (error && !fs::is_directory(folder_of(directory_), ignored))
    throw EnvironmentError("cannot make the folder " + folder_of(directory_).string() + ": " +
                           error.message());
  const std::string stem = host_name() + "-" + std::to_string(::getpid()) + "-";
  constexpr mode_t all_may_read_and_write = 0666;  // less the umask
  for (int number = 0; descriptor_ < 0; ++number) {
    path_ = folder_of(directory_) / (stem + std::to_string(number) + ".jsonl");
    descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC,
                         all_may_read_and_write);
    if (descriptor_ < 0 && errno != EEXIST && errno != EINTR) refuse("write");
  }
  last_flush_ = seconds_now();
}

void PartWriter::append(const std::string& row) {
  if (descriptor_ < 0) open();
  const std::string line = row + "\n";
  const off_t whole = ::lseek(descriptor_, 0, SEEK_END);  // bytes of whole rows
  if (!detail::write_whole(descriptor_, line)) {
    const int reason = errno;
    if (::ftruncate(descriptor_, whole) != 0) errno = reason;  // then the reader skips the half
    errno = reason;
    refuse("write");
  }
  if (seconds_now() - last_flush_ > seconds_between_flushes) flush_to_disk();
}

void PartWriter::flush_to_disk() {
  // What is no disk file cannot be flushed, and need not be.
  if (descriptor_ >= 0 && ::fdatasync(descriptor_) != 0 && errno != EINVAL && errno != ENOTSUP)
    refuse("write");
  last_flush_ = seconds_now();
}

PartRows read_parts(const fs::path& directory, const Sweep& sweep) {
  PartReader reader(sweep);
  Parts parts = parts_in(directory);
  for (const PartFile& file : parts.files) reader.read(file);
  PartRows rows = std::move(reader).rows();
  rows.no_files = std::move(parts.no_files);
  return rows;
}

std::uintmax_t size_of_parts(const fs::path& directory) {
  std::uintmax_t size = 0;
  for (const PartFile& file : parts_in(directory).files) size += file.size;
  return size;
}

void open_manifest(const fs::path& directory, const Sweep& sweep, const std::string& version) {
  const JsonValue manifest = object_of({{"schema", schema},
                                        {"name", sweep.name()},
                                        {"sweep_hash", sweep.hash()},
                                        {"version", version},
                                        {"points", sweep.points().size()}});
  if (is_there(directory) ||
      !write_new_file_atomically(path_in(directory), pretty_text(manifest) + "\n"))
    compare(directory, sweep, version);
}

void expect_manifest(const fs::path& directory, const Sweep& sweep, const std::string& version) {
  if (!is_there(directory))
    throw EnvironmentError(directory.string() +
                           " holds no sweep yet: there is no manifest.json in it");
  compare(directory, sweep, version);
}

PartRows with_speedups(PartRows rows, const Sweep& sweep) {
  const std::optional<std::size_t> baseline = sweep.points().baseline();
  const auto found = baseline ? rows.by_point.find(*baseline) : rows.by_point.end();
  if (found == rows.by_point.end() || !found->second.ok) return rows;
  const JsonValue base = found->second.content;
  const auto rate = [](const JsonValue& row) { return figure(row, "tokens_per_s"); };
  if (rate(base) <= 0) return rows;
  // Times of a token: iterations may hold different numbers of them.
  const auto judged = [&](const JsonValue& row) {
    return judged_run(row).scaled(1 / (rate(row) * figure(row, "iteration_time_s")));
  };
  const PairErrors errors = read_evidence(sweep.library()).pairs;
  const JudgedRun judged_base = judged(base);
  for (auto& [point, row] : rows.by_point) {
    if (!row.ok) continue;
    JsonValue more = object_of({{speedup_key, rate(row.content) / rate(base)}});
    if (point != *baseline && rate(row.content) > 0)
      if (const auto ordering = order(judged_base, judged(row.content), errors))
        add_members(more, {{speedup_interval_key, array_of(std::array{ordering->interval.first,
                                                                      ordering->interval.second})},
                           {speedup_verdict_key, name_of(ordering->verdict)}});
    row = *parse_row(with_members(row.line, more, sweep.hash()));
  }
  return rows;
}

std::string results_csv(const PartRows& rows, const std::vector<std::string>& columns,
                        const std::vector<std::string>& asked) {
  std::vector<std::string> fields{"point", "id"};
  const bool has_labels = std::ranges::any_of(
      rows.by_point, [](const auto& each) { return each.second.content.find("label") != nullptr; });
  if (has_labels) fields.emplace_back("label");
  fields.insert(fields.end(), columns.begin(), columns.end());
  fields.emplace_back("ok");
  fields.insert(fields.end(), figures.begin(), figures.end());
  fields.insert(fields.end(), asked.begin(), asked.end());
  if (std::ranges::find(asked, speedup_key) != asked.end())
    fields.insert(fields.end(), {"speedup_low", "speedup_high", speedup_verdict_key});
  const bool has_front = std::ranges::find(asked, "cost") != asked.end();
  if (has_front) fields.emplace_back("on_front");
  std::map<std::size_t, std::string> fronts;  // of points that have days and a cost
  for (const FrontPoint& each : front_of(rows, columns))
    fronts[each.point] = each.priced.on_front ? "true" : "false";
  const std::vector<std::string> header = fields;
  for (std::string& field : fields) field = for_terminal(field);
  std::string text = csv_line(fields);
  for (const auto& [point, row] : rows.by_point) {
    fields.clear();
    for (const std::string& name : header)
      if (name != "on_front") fields.push_back(field_of(figure_of(row.content, name)));
    if (has_front) fields.push_back(fronts[point]);
    text += csv_line(fields);
  }
  return text;
}

PartRows merge_results(const fs::path& directory, const Sweep& sweep) {
  for (int round = 1;; ++round) {
    PartRows rows = with_speedups(read_parts(directory, sweep), sweep);
    StagedFiles files;
    std::string lines;
    for (const auto& [point, row] : rows.by_point) lines += row.line + "\n";
    files.add(directory / "results.jsonl", lines);
    files.add(directory / "results.csv",
              results_csv(rows, sweep.points().columns(), sweep.asked_figures()));
    const std::string picture = sweep_svg(sweep.name(), sweep.points().columns(), rows);
    if (!picture.empty()) files.add(directory / "sweep.svg", picture);
    files.commit();
    std::error_code ignored;
    if (picture.empty()) fs::remove(directory / "sweep.svg", ignored);
    if (round == most_rounds || size_of_parts(directory) == rows.num_bytes) return rows;
  }
}

}  // namespace windtunnel
