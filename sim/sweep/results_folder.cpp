#include "sweep/results_folder.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <system_error>
#include <utility>
#include <variant>

#include "core/file_io.hpp"
#include "core/open_file.hpp"
#include "core/problem.hpp"
#include "report/json_object.hpp"

namespace windtunnel {
namespace {

namespace fs = std::filesystem;

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

  PartRows rows() && { return std::move(rows_); }

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

}  // namespace windtunnel
