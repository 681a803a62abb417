#include "core/file_io.hpp"

#include <fcntl.h>

#include <array>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>
#include <system_error>

#include "core/open_file.hpp"
#include "core/staged_files.hpp"
#include "core/terminal_safe.hpp"
#include "core/work_note.hpp"

namespace windtunnel {
namespace {

namespace fs = std::filesystem;
using detail::last_error;
using detail::OpenFile;
using detail::refuse;

/// True if `path` is a link out of its folder: who named it did not name what it leads to. Links of the system are trusted.
bool leads_elsewhere(const fs::path& path) {
  std::error_code error;
  if (!fs::is_symlink(fs::symlink_status(path, error)) || path.string().starts_with("/dev/") ||
      path.string().starts_with("/proc/"))
    return false;
  const fs::path folder = path.parent_path().empty() ? fs::path(".") : path.parent_path();
  return fs::canonical(path, error).parent_path() != fs::canonical(folder, error);
}

/// 0 of what has no size, such as a pipe.
std::uintmax_t size_if_known(const fs::path& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return 0;
  const std::uintmax_t size = fs::file_size(path, error);
  return error ? 0 : size;
}

void expect_not_larger(const std::string& name, std::uintmax_t size, const Reading& reading) {
  if (size > reading.largest)
    throw FileTooLargeError(
        {{{},
          "",
          "cannot read " + name + ": it is larger than " + std::to_string(reading.largest >> 20U) +
              " MiB, the most that is read of it" + reading.remark,
          ""}});
}

/// "reading scenario.json". A note of work must live for ever; there are no more of these than files. Threads read files too.
const char* reading_note(const std::string& name) {
  static std::mutex mutex;
  static std::set<std::string> notes;
  const std::lock_guard lock(mutex);
  return notes.insert("reading " + for_terminal(name)).first->c_str();
}

/// The whole of `path`, which messages call `name`.
std::shared_ptr<const SourceText> read_whole(const fs::path& path, const std::string& name,
                                             const Reading& reading) {
  if (reading.purpose == ReadFor::use) expect_no_output(path);
  OpenFile file(path, O_RDONLY);
  if (!file.is_open()) refuse("read", name, last_error());
  auto source = std::make_shared<SourceText>();
  source->name = name;
  if (leads_elsewhere(path)) source->quoting = Quoting::link_elsewhere;
  expect_not_larger(name, size_if_known(path), reading);
  std::array<char, 1 << 16> buffer;
  ssize_t got = 0;
  while ((got = file.read(buffer.data(), buffer.size())) > 0) {
    source->text.append(buffer.data(), static_cast<std::size_t>(got));
    expect_not_larger(name, source->text.size(), reading);
    count_done(source->text.size());
  }
  if (got < 0) refuse("read", name, last_error());
  return source;
}

}  // namespace

std::shared_ptr<const SourceText> read_source(const fs::path& path, const Reading& reading) {
  const WorkNoteScope waiting(reading_note(file_name_of(path)), "bytes");
  return read_whole(path, path.string(), reading);
}

fs::file_type file_type_of(const fs::path& path) {
  std::error_code error;
  const fs::file_type type = fs::status(path, error).type();
  if (type == fs::file_type::not_found) return type;
  if (error) refuse("read", path, error);
  return type;
}

bool is_stdin(const fs::path& path) { return path == "-"; }

std::shared_ptr<const SourceText> read_source_or_stdin(const fs::path& path) {
  if (!is_stdin(path)) return read_source(path);
  static const std::shared_ptr<const SourceText> source = [] {
    const WorkNoteScope waiting("reading standard input", "bytes");
    return read_whole("/dev/stdin", file_name_of("-"), {});
  }();
  return source;
}

std::string file_name_of(const fs::path& path) {
  return is_stdin(path) ? "<stdin>" : path.filename().string();
}

std::string name_of_source(const fs::path& path) {
  return is_stdin(path) ? "stdin" : path.stem().string();
}

void write_file_atomically(const fs::path& path, std::string_view bytes) {
  StagedFiles file;
  file.add(path, bytes);
  file.commit();
}

bool write_new_file_atomically(const fs::path& path, std::string_view bytes) {
  StagedFiles file;
  file.add(path, bytes);
  return file.commit_new();
}

}  // namespace windtunnel
