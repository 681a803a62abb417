#pragma once

#include <filesystem>
#include <functional>
#include <iosfwd>
#include <string_view>
#include <vector>

namespace windtunnel {

/// Files that appear together, each of them whole: a reader, now or after a crash, sees none of them or all, but for the instant
/// in which they get their names. Each is written next to its place under a temporary name, flushed to disk, and renamed with
/// the others. Missing folders are made. A link is followed, also one to what is not there yet; what is no regular file (/dev/stdout, a pipe) is written to
/// directly. What was not committed is removed, by an exception as by a signal (remove_staged_files).
class StagedFiles {
 public:
  StagedFiles() = default;
  ~StagedFiles();
  StagedFiles(const StagedFiles&) = delete;
  StagedFiles& operator=(const StagedFiles&) = delete;

  /// EnvironmentError when it cannot be written, InputError when it was read as an input or is the same file as one before it.
  void add(const std::filesystem::path& path, std::string_view text);
  /// The same of a text that is never held whole. A name that ends in .gz is packed.
  void add_streamed(const std::filesystem::path& path,
                    const std::function<void(std::ostream&)>& write);
  /// Gives the files their names. EnvironmentError when one of them cannot have its name; then the names lead to what they led to before, as
  /// far as the file system can link files. A file that is replaced leaves its permissions to its successor.
  void commit();
  /// The same for one file, whose name must be free; false, and nothing is changed, when it is taken.
  bool commit_new();

 private:
  struct Staged {
    std::filesystem::path temporary, path;
    std::filesystem::path name;           ///< of `path`, as it was given: a link, another spelling
    bool is_new = false;                  ///< nothing was called `path` before
    std::filesystem::path replaced = {};  ///< a second name of what was; empty: it has none
  };
  void place(Staged& file);
  static void take_back(Staged& file) noexcept;
  void stage(const std::filesystem::path& path, const std::function<void(std::ostream&)>& write,
             bool packed);

  std::vector<Staged> staged_;
};

/// Removes the temporary files of this process, for the handler of a signal that ends it: async-signal-safe.
void remove_staged_files() noexcept;

}  // namespace windtunnel
