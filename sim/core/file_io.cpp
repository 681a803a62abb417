#include "core/file_io.hpp"

#include <fcntl.h>

#include <array>
#include <string>
#include <system_error>

#include "core/open_file.hpp"
#include "core/staged_files.hpp"

namespace windtunnel {
namespace {

namespace fs = std::filesystem;
using detail::last_error;
using detail::OpenFile;
using detail::refuse;

constexpr std::size_t largest_stream = std::size_t{256} << 20;  // bytes

}  // namespace

std::shared_ptr<const SourceText> read_source(const fs::path& path, ReadFor purpose) {
  if (purpose == ReadFor::use) expect_no_output(path);
  OpenFile file(path, O_RDONLY);
  if (!file.is_open()) refuse("read", path, last_error());
  auto source = std::make_shared<SourceText>();
  source->name = path.string();
  std::array<char, 1 << 16> buffer;
  ssize_t got = 0;
  std::error_code ignored;
  const bool has_an_end = fs::is_regular_file(path, ignored);
  while ((got = file.read(buffer.data(), buffer.size())) > 0) {
    source->text.append(buffer.data(), static_cast<std::size_t>(got));
    if (!has_an_end && source->text.size() > largest_stream)
      refuse("read", path, std::make_error_code(std::errc::file_too_large));
  }
  if (got < 0) refuse("read", path, last_error());
  return source;
}

bool is_stdin(const fs::path& path) { return path == "-"; }

std::shared_ptr<const SourceText> read_source_or_stdin(const fs::path& path) {
  if (!is_stdin(path)) return read_source(path);
  static const std::shared_ptr<const SourceText> source = [] {
    auto text = std::make_shared<SourceText>(*read_source("/dev/stdin"));
    text->name = "<stdin>";
    return text;
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

}  // namespace windtunnel
