#include "core/file_io.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <limits>
#include <optional>
#include <random>
#include <utility>

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t largest_stream = std::size_t{256} << 20;  // bytes

[[noreturn]] void refuse(const char* deed, const fs::path& path, const std::error_code& reason) {
  throw EnvironmentError(std::string("cannot ") + deed + " " + path.string() + ": " +
                         reason.message());
}

std::error_code last_error() { return {errno, std::generic_category()}; }

/// An open file descriptor, closed at the end of its scope.
class OpenFile {
 public:
  OpenFile(const fs::path& path, int flags) {
    constexpr mode_t all_may_read_and_write = 0666;  // less the umask
    do descriptor_ = ::open(path.c_str(), flags | O_CLOEXEC, all_may_read_and_write);
    while (descriptor_ < 0 && errno == EINTR);
  }
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() { close(); }

  bool is_open() const { return descriptor_ >= 0; }
  /// Bytes read, 0 at the end, -1 on failure.
  ssize_t read(char* buffer, std::size_t size) {
    ssize_t got = 0;
    do got = ::read(descriptor_, buffer, size);
    while (got < 0 && errno == EINTR);
    return got;
  }
  bool write(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), bytes.size());
      if (written < 0 && errno != EINTR) return false;
      if (written > 0) bytes.remove_prefix(static_cast<std::size_t>(written));
    }
    return true;
  }
  bool flush_to_disk() { return ::fsync(descriptor_) == 0; }
  bool close() { return descriptor_ < 0 || ::close(std::exchange(descriptor_, -1)) == 0; }

 private:
  int descriptor_ = -1;
};

/// A name that nobody has, most likely: not this process before, nor one of the same number that was killed in another container.
fs::path temporary_name_beside(const fs::path& path) {
  static std::atomic<unsigned> counter = 0;  // for the threads of this process
  std::random_device random;
  return path.parent_path() / (".windtunnel-" + std::to_string(::getpid()) + "-" +
                               std::to_string(counter++) + "-" + std::to_string(random()) + ".tmp");
}

/// A new file that is gone again at the end of its scope unless it was renamed away.
class TemporaryFile {
 public:
  explicit TemporaryFile(const fs::path& beside) {
    constexpr int most_attempts = 100;
    for (int attempt = 0; attempt < most_attempts; ++attempt) {
      path_ = temporary_name_beside(beside);
      file_.emplace(path_, O_WRONLY | O_CREAT | O_EXCL);
      if (file_->is_open()) return;
      if (errno != EEXIST) refuse("write", beside, last_error());
    }
    refuse("make", path_, std::make_error_code(std::errc::file_exists));
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    std::error_code ignored;
    if (!path_.empty()) fs::remove(path_, ignored);
  }

  OpenFile& file() { return *file_; }
  std::error_code rename_to(const fs::path& path) {
    std::error_code error;
    fs::rename(path_, path, error);
    if (!error) path_.clear();
    return error;
  }

 private:
  fs::path path_;
  std::optional<OpenFile> file_;
};

void write_directly(const fs::path& path, std::string_view bytes) {
  OpenFile file(path, O_WRONLY);
  if (!file.is_open() || !file.write(bytes) || !file.close()) refuse("write", path, last_error());
}

void write_and_rename(const fs::path& path, std::string_view bytes) {
  TemporaryFile temporary(path);
  OpenFile& file = temporary.file();
  if (!file.write(bytes) || !file.flush_to_disk() || !file.close())
    refuse("write", path, last_error());
  if (const std::error_code error = temporary.rename_to(path)) refuse("write", path, error);
}

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
  expect_not_read(path);
  std::error_code error;
  if (!path.parent_path().empty()) fs::create_directories(path.parent_path(), error);
  if (error) refuse("make the folder", path.parent_path(), error);
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status))
    refuse("write", path, std::make_error_code(std::errc::is_a_directory));
  if (fs::exists(status) && !fs::is_regular_file(status)) return write_directly(path, bytes);
  const bool is_link = fs::exists(status) && fs::is_symlink(fs::symlink_status(path, error));
  write_and_rename(is_link ? fs::canonical(path) : path, bytes);
}

std::string gzip(std::string_view bytes) {
  constexpr int largest_window = 15;
  constexpr int with_gzip_header = 16;
  constexpr int default_memory = 8;
  constexpr int unknown_system = 255;
  z_stream stream{};
  int result = deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                            largest_window + with_gzip_header, default_memory, Z_DEFAULT_STRATEGY);
  WT_ENSURE(result == Z_OK);
  gz_header header{};
  header.os = unknown_system;
  deflateSetHeader(&stream, &header);

  std::string packed;
  std::array<char, 1 << 16> buffer;
  do {
    const std::size_t piece = std::min<std::size_t>(bytes.size(), std::numeric_limits<uInt>::max());
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
    stream.avail_in = static_cast<uInt>(piece);
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    result = deflate(&stream, piece == bytes.size() ? Z_FINISH : Z_NO_FLUSH);
    bytes.remove_prefix(piece - stream.avail_in);
    packed.append(buffer.data(), buffer.size() - stream.avail_out);
  } while (result == Z_OK || result == Z_BUF_ERROR);
  deflateEnd(&stream);
  WT_ENSURE(result == Z_STREAM_END);
  return packed;
}

}  // namespace windtunnel
