#include "core/output_guard.hpp"

#include <sys/stat.h>

#include <map>
#include <optional>
#include <string>
#include <utility>

#include "core/open_file.hpp"

namespace windtunnel {
namespace {

namespace fs = std::filesystem;

using FileId = std::pair<dev_t, ino_t>;

/// Identity of a regular file; nothing for terminals and pipes, which one process may well read and write.
std::optional<FileId> id_of(const fs::path& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || !S_ISREG(status.st_mode)) return std::nullopt;
  return FileId{status.st_dev, status.st_ino};
}

struct GuardedOutput {
  fs::path path;
  FileId id;
  fs::path input;  ///< the name it was read by; empty: it was not
};

std::vector<GuardedOutput>& guarded_outputs() {
  static std::vector<GuardedOutput> outputs;
  return outputs;
}

void refuse_if_read(const GuardedOutput& output) {
  if (output.input.empty()) return;
  throw InputError({{{},
                     "",
                     "the output " + output.path.string() + " is the same file as the input " +
                         output.input.string(),
                     "write to another file"}});
}

/// Devices, pipes and folders apart: they are not replaced.
bool is_or_becomes_file(const fs::path& path) {
  std::error_code ignored;
  const fs::file_status status = fs::status(path, ignored);
  return fs::is_regular_file(status) || !fs::exists(status);
}

void expect_different(const std::vector<fs::path>& outputs) {
  std::map<fs::path, fs::path> name_of;
  for (const fs::path& path : outputs) {
    if (!is_or_becomes_file(path)) continue;
    const auto [other, is_new] = name_of.try_emplace(detail::file_behind(path), path);
    if (!is_new) throw same_outputs(other->second, path);
  }
}

}  // namespace

InputError same_outputs(const fs::path& first, const fs::path& second) {
  const std::string names =
      first == second ? first.string() : first.string() + " and " + second.string();
  return InputError({{{}, "", "two outputs are the same file: " + names, "name two files"}});
}

void announce_outputs(const std::vector<fs::path>& outputs) {
  expect_different(outputs);
  guarded_outputs().clear();
  // As it will be written: "missing/../file" is "file", though nobody finds it by that name.
  for (const fs::path& path : outputs)
    if (const auto id = id_of(detail::file_behind(path)))
      guarded_outputs().push_back({path, *id, {}});
}

void expect_no_output(const fs::path& input) {
  if (guarded_outputs().empty()) return;
  const auto id = id_of(input);
  for (GuardedOutput& output : guarded_outputs()) {
    if (id != output.id) continue;
    output.input = input;
    refuse_if_read(output);
  }
}

void expect_not_read(const fs::path& path) {
  for (const GuardedOutput& output : guarded_outputs())
    if (output.path == path) refuse_if_read(output);
  // The old file has been replaced, and another file may get its inode number.
  std::erase_if(guarded_outputs(),
                [&](const GuardedOutput& output) { return output.path == path; });
}

}  // namespace windtunnel
