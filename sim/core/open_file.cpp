#include "core/open_file.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <string>
#include <utility>

#include "core/problem.hpp"

namespace windtunnel::detail {

OpenFile::OpenFile(const std::filesystem::path& path, int flags, mode_t mode) {
  do descriptor_ = ::open(path.c_str(), flags | O_CLOEXEC, mode);
  while (descriptor_ < 0 && errno == EINTR);
}

ssize_t OpenFile::read(char* buffer, std::size_t size) {
  ssize_t got = 0;
  do got = ::read(descriptor_, buffer, size);
  while (got < 0 && errno == EINTR);
  return got;
}

bool write_whole(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(descriptor, bytes.data(), bytes.size());
    if (written < 0 && errno != EINTR) return false;
    if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

void OpenFile::take_permissions(const struct stat& of_other) {
  constexpr mode_t permissions = 07777;
  constexpr auto same_owner = static_cast<uid_t>(-1);
  const bool has_group = ::fchown(descriptor_, of_other.st_uid, of_other.st_gid) == 0 ||
                         ::fchown(descriptor_, same_owner, of_other.st_gid) == 0;
  // Permissions of another group are not for ours.
  const mode_t withheld = has_group ? 0 : S_IRWXG | S_ISGID;
  [[maybe_unused]] const int refused =
      ::fchmod(descriptor_, of_other.st_mode & permissions & ~withheld);
}

bool OpenFile::flush_to_disk() { return ::fsync(descriptor_) == 0; }

bool OpenFile::close() { return descriptor_ < 0 || ::close(std::exchange(descriptor_, -1)) == 0; }

std::filesystem::path file_behind(const std::filesystem::path& path) {
  namespace fs = std::filesystem;
  constexpr int most_links = 40;  // as Linux follows
  fs::path file = path;
  std::error_code error;
  for (int links = 0; fs::is_symlink(fs::symlink_status(file, error)); ++links) {
    if (links == most_links)
      refuse("write", path, std::make_error_code(std::errc::too_many_symbolic_link_levels));
    const fs::path next = fs::read_symlink(file, error);
    if (error) refuse("write", path, error);
    file = file.parent_path() / next;
  }
  const fs::path folder = file.parent_path().empty() ? fs::path(".") : file.parent_path();
  const fs::path whole = fs::weakly_canonical(fs::absolute(folder), error);
  if (error) refuse("write", path, error);
  return whole / file.filename();
}

std::error_code last_error() { return {errno, std::generic_category()}; }

void refuse(const char* deed, const std::filesystem::path& path, const std::error_code& reason) {
  throw EnvironmentError(std::string("cannot ") + deed + " " + path.string() + ": " +
                         reason.message());
}

}  // namespace windtunnel::detail
