#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>

#include "core/output_guard.hpp"
#include "core/problem.hpp"

namespace windtunnel {

/// The whole of a file, named as the path was written; EnvironmentError with the reason when it
/// cannot be read, InputError when it is an announced output. What is no regular file (/dev/stdin, a pipe) is read to its end, but to 256 MiB at
/// most: /dev/zero has no end.
std::shared_ptr<const SourceText> read_source(const std::filesystem::path& path,
                                              ReadFor purpose = ReadFor::use);

/// Writes `bytes` to `path` so that no reader, now or after a crash, sees half of them: a temporary
/// file in the same folder is written, flushed to disk and renamed. Missing folders are made. A
/// link is followed; what is no regular file (/dev/stdout, a pipe) is written to directly.
/// EnvironmentError on failure, the temporary file removed.
void write_file_atomically(const std::filesystem::path& path, std::string_view bytes);

/// `bytes` in gzip format (RFC 1952), the same for the same input: no name, no time.
std::string gzip(std::string_view bytes);

}  // namespace windtunnel
