#include "sweep/results.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <optional>
#include <string_view>
#include <system_error>
#include <tuple>
#include <utility>
#include <variant>

#include "core/file_io.hpp"
#include "core/number_in.hpp"
#include "core/open_file.hpp"
#include "core/problem.hpp"
#include "core/staged_files.hpp"
#include "core/terminal_safe.hpp"
#include "evidence/evidence.hpp"
#include "evidence/measurement_set.hpp"
#include "report/json_object.hpp"
#include "report/terminal_text.hpp"
#include "sweep/sweep_plot.hpp"

namespace windtunnel {
namespace {

namespace fs = std::filesystem;

constexpr double seconds_between_flushes = 1;
constexpr std::size_t largest_part = std::size_t{4} << 30;  ///< bytes

double seconds_now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

fs::path folder_of(const fs::path& directory) { return directory / "parts"; }

struct PartFile {
  fs::path path;
  std::uintmax_t size = 0;
};

/// Content of parts/, in the order of the names.
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

}  // namespace

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
  std::array<char, 256> name{};
  const bool is_named = ::gethostname(name.data(), name.size() - 1) == 0 && name[0] != '\0';
  std::string host = is_named ? name.data() : "host";
  std::ranges::replace(host, '/', '-');
  const std::string stem = host + "-" + std::to_string(::getpid()) + "-";
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
  // Only disk files can be flushed, and only they need to be.
  if (descriptor_ >= 0 && ::fdatasync(descriptor_) != 0 && errno != EINVAL && errno != ENOTSUP)
    refuse("write");
  last_flush_ = seconds_now();
}

PartRows read_parts(const fs::path& directory, const Sweep& sweep) {
  PartRows rows;
  std::map<std::size_t, std::string> place_of;  // of the row of each point
  const auto take = [&](const std::string& line, const std::string& place) {
    std::variant<Row, std::string> read = read_row(line, sweep);
    if (const auto* why = std::get_if<std::string>(&read))
      return rows.refused.push_back({place, *why});
    Row& row = std::get<Row>(read);
    Row& known = rows.by_point[row.point];
    std::string& known_place = place_of[row.point];
    const bool is_better =
        known_place.empty() || (row.ok && !known.ok) || (row.ok == known.ok && line < known.line);
    if (row.ok && known.ok && line != known.line)
      rows.refused.push_back({is_better ? known_place : place,
                              "it says something else than " + (is_better ? place : known_place)});
    if (!is_better) return;
    known = std::move(row);
    known_place = place;
  };
  Parts parts = parts_in(directory);
  rows.no_files = std::move(parts.no_files);
  for (const PartFile& file : parts.files) {
    rows.num_bytes += file.size;
    const std::string text =
        read_source(file.path, {.largest = largest_part})->text.substr(0, file.size);
    for (std::size_t begin = 0, end = 0, number = 1; begin < text.size(); begin = end + 1) {
      end = text.find('\n', begin);
      if (end == std::string::npos) {
        ++rows.num_torn;
        break;
      }
      take(text.substr(begin, end - begin), file.path.string() + ":" + std::to_string(number++));
    }
  }
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

namespace {

constexpr std::array<const char*, 13> figures{
    {"gpus", "iteration_time_s", "iteration_time_low_s", "iteration_time_high_s", "samples_per_s",
     "tokens_per_s", "model_tflops_per_gpu", "mfu", "memory_max_bytes", "fits", "memory_verdict",
     "failure", "error"}};

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

std::vector<FrontPoint> front_of(const PartRows& rows, const std::vector<std::string>& columns) {
  std::vector<FrontPoint> points;
  std::vector<PricedPoint> priced;
  for (const auto& [number, row] : rows.by_point) {
    if (!row.ok || !fits(row.content)) continue;
    const auto days = number_of(row.content.find("days"));
    const auto cost = number_of(row.content.find("cost"));
    if (!days || !cost) continue;
    priced.push_back({point_name(row.content, columns), *days, *cost});
    points.push_back({number, {}});
  }
  mark_pareto_front(priced);
  for (std::size_t i = 0; i < points.size(); ++i) points[i].priced = std::move(priced[i]);
  return points;
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

PartRows merge_results(const std::filesystem::path& directory, const Sweep& sweep) {
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
    if (picture.empty()) std::filesystem::remove(directory / "sweep.svg", ignored);
    if (round == most_rounds || size_of_parts(directory) == rows.num_bytes) return rows;
  }
}

}  // namespace windtunnel
