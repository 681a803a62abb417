#pragma once

#include <sys/stat.h>
#include <sys/types.h>

#include <cstddef>
#include <filesystem>
#include <string_view>
#include <system_error>

namespace windtunnel::detail {

/// Writes all of it, however many calls it takes; false, with the reason in errno, where that fails.
bool write_whole(int descriptor, std::string_view bytes);

/// An open file descriptor, closed at the end of its scope.
class OpenFile {
 public:
  /// `flags` and `mode` of open(2), from which the umask is taken off; check is_open().
  OpenFile(const std::filesystem::path& path, int flags, mode_t mode = all_may_read_and_write);
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { close(); }

  bool is_open() const { return descriptor_ >= 0; }
  /// Bytes read, 0 at the end, -1 on failure.
  ssize_t read(char* buffer, std::size_t size);
  bool write(std::string_view bytes) { return write_whole(descriptor_, bytes); }
  /// Gives it the owner, as far as this process may, and the permissions of another file.
  void take_permissions(const struct stat& of_other);
  bool flush_to_disk();
  bool close();

 private:
  static constexpr mode_t all_may_read_and_write = 0666;

  int descriptor_ = -1;
};

/// errno.
std::error_code last_error();

/// The file that writing to `path` makes or changes: links are followed, also to what is not there yet. Throws EnvironmentError where they
/// lead nowhere.
std::filesystem::path file_behind(const std::filesystem::path& path);

/// Throws EnvironmentError: "cannot write a.json: No space left on device".
[[noreturn]] void refuse(const char* deed, const std::filesystem::path& path,
                         const std::error_code& reason);

}  // namespace windtunnel::detail
