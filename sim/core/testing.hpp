#pragma once

#include <stdlib.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <system_error>

#include "core/file_io.hpp"

namespace windtunnel {

/// The root of the source tree, for tests and benchmarks that read shipped files.
std::filesystem::path source_dir();

inline bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

inline std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

/// A folder of one test's own, empty at first and gone afterwards: tests run at the same time, so no two may name the same one.
class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "windtunnel-test-XXXXXX").string();
    if (::mkdtemp(name.data()) == nullptr)
      throw std::system_error(errno, std::generic_category(), "cannot make " + name);
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;  // A destructor has nobody to tell.
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::filesystem::path& path() const { return path_; }
  /// Writes a file of the folder; its path.
  std::filesystem::path write(const std::string& name, std::string_view text) const {
    write_file_atomically(path_ / name, text);
    return path_ / name;
  }
  /// Number of files and folders in it.
  long entries() const {
    return std::distance(std::filesystem::directory_iterator(path_),
                         std::filesystem::directory_iterator{});
  }

 private:
  std::filesystem::path path_;
};

}  // namespace windtunnel
