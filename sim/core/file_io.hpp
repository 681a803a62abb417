#pragma once

#include <cstddef>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "core/output_guard.hpp"
#include "core/problem.hpp"

namespace windtunnel {

/// Most bytes of a file, and of what has no end (/dev/stdin, a pipe), that are read as a whole.
inline constexpr std::size_t largest_file = std::size_t{256} << 20;

/// Options for reading a file.
struct Reading {
  ReadFor purpose = ReadFor::use;
  std::size_t largest = largest_file;
  const char* remark = "";  ///< to `largest`, for the message, such as " (2^27 numbers)"
};

/// A file with more in it than is read.
class FileTooLargeError final : public InputError {
 public:
  using InputError::InputError;
};

/// The whole of a file, named as the path was written; EnvironmentError with the reason when it cannot be read,
/// FileTooLargeError when it is larger than it may be, InputError when it is an announced output.
std::shared_ptr<const SourceText> read_source(const std::filesystem::path& path,
                                              const Reading& reading = {});

/// The kind of file that `path` leads to, not_found included; EnvironmentError when that cannot be told.
std::filesystem::file_type file_type_of(const std::filesystem::path& path);

/// True for "-", which stands for standard input where a command takes a file.
bool is_stdin(const std::filesystem::path& path);

/// read_source(), or all of standard input where `path` is "-": named "<stdin>", read once and kept, since it cannot be read again.
std::shared_ptr<const SourceText> read_source_or_stdin(const std::filesystem::path& path);

/// The file's name without its folder, or "<stdin>".
std::string file_name_of(const std::filesystem::path& path);
/// Default name of a scenario or schedule: the file's name without its extension, or "stdin".
std::string name_of_source(const std::filesystem::path& path);

/// Writes one file as StagedFiles does, whole or not at all.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);
/// The same where there is no such file yet; of several processes that try, one succeeds. False: somebody else did.
bool write_new_file_atomically(const std::filesystem::path& path, std::string_view bytes);

}  // namespace windtunnel
