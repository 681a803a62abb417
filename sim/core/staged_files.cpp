#include "core/staged_files.hpp"

#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <ostream>
#include <random>
#include <streambuf>
#include <string>
#include <system_error>

#include "core/contracts.hpp"
#include "core/gzip.hpp"
#include "core/open_file.hpp"
#include "core/output_guard.hpp"

namespace windtunnel {
namespace {

namespace fs = std::filesystem;
using detail::file_behind;
using detail::last_error;
using detail::OpenFile;
using detail::refuse;

/// A temporary file, known to the handler of signals for as long as it is there. Entries are never freed: a handler may be looking.
struct TemporaryName {
  std::string text;
  std::atomic<pid_t> owner = 0;  ///< the process that wrote the file; 0: it is gone
  TemporaryName* next = nullptr;
};
std::atomic<TemporaryName*> temporary_names = nullptr;

void remember(const fs::path& temporary) {
  auto* name = new TemporaryName{temporary.string(), ::getpid(), temporary_names.load()};
  while (!temporary_names.compare_exchange_weak(name->next, name)) continue;
}

void forget(const fs::path& temporary) {
  for (TemporaryName* name = temporary_names; name != nullptr; name = name->next)
    if (name->owner == ::getpid() && name->text == temporary) name->owner = 0;
}

/// A name that nobody has, most likely: not this process before, nor one of the same number that was killed in another container.
fs::path temporary_name_next_to(const fs::path& path) {
  static std::atomic<unsigned> counter = 0;  // for the threads of this process
  std::random_device random;
  return path.parent_path() / (".windtunnel-" + std::to_string(::getpid()) + "-" +
                               std::to_string(counter++) + "-" + std::to_string(random()) + ".tmp");
}

/// Opens a new file next to `target`, known to remove_staged_files(), with the permissions of what is there; its name. Messages speak of `path`.
fs::path open_temporary(std::optional<OpenFile>& file, const fs::path& path,
                        const fs::path& target) {
  constexpr int most_attempts = 100;
  struct stat replaced {};
  const bool replaces = ::stat(target.c_str(), &replaced) == 0;
  for (int attempt = 0; attempt < most_attempts; ++attempt) {
    const fs::path temporary = temporary_name_next_to(target);
    remember(temporary);
    constexpr int flags = O_WRONLY | O_CREAT | O_EXCL;
    if (replaces)
      file.emplace(temporary, flags, S_IRUSR | S_IWUSR);
    else
      file.emplace(temporary, flags);
    if (file->is_open()) {
      if (replaces) file->take_permissions(replaced);
      return temporary;
    }
    const std::error_code error = last_error();
    forget(temporary);
    if (error != std::errc::file_exists) refuse("write", path, error);
  }
  refuse("make a temporary file beside", path, std::make_error_code(std::errc::file_exists));
}

void remove_temporary(const fs::path& temporary) {
  std::error_code ignored;
  fs::remove(temporary, ignored);
  forget(temporary);
}

/// A second name of what is called `path`, known to remove_staged_files(); empty where there is nothing, or no second name can be had.
fs::path link_next_to(const fs::path& path) {
  const fs::path temporary = temporary_name_next_to(path);
  remember(temporary);
  if (::link(path.c_str(), temporary.c_str()) == 0) return temporary;
  forget(temporary);
  return {};
}

/// While it lives, no signal ends this process between two renames.
class BlockedSignals {
 public:
  BlockedSignals() {
    sigset_t all;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before_);
  }
  ~BlockedSignals() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  BlockedSignals(const BlockedSignals&) = delete;
  BlockedSignals& operator=(const BlockedSignals&) = delete;

 private:
  sigset_t before_{};
};

/// Writes to an open file, packed or as it is.
class FileStream final : public std::streambuf {
 public:
  FileStream(OpenFile& file, bool packed) : file_(file) {
    if (packed) packer_.emplace([this](std::string_view bytes) { write(bytes); });
    setp(buffer_.data(), buffer_.data() + buffer_.size());
  }
  /// All of it; false when some of it could not be written, and errno says why.
  bool finish() {
    sync();
    if (packer_) packer_->finish();
    errno = error_;
    return error_ == 0;
  }

 protected:
  int sync() override {
    const std::string_view text(pbase(), static_cast<std::size_t>(pptr() - pbase()));
    if (packer_)
      packer_->pack(text);
    else
      write(text);
    setp(buffer_.data(), buffer_.data() + buffer_.size());
    return error_ == 0 ? 0 : -1;
  }
  int_type overflow(int_type letter) override {
    if (sync() != 0) return traits_type::eof();
    if (!traits_type::eq_int_type(letter, traits_type::eof()))
      sputc(traits_type::to_char_type(letter));
    return traits_type::not_eof(letter);
  }

 private:
  void write(std::string_view bytes) {
    if (error_ == 0 && !file_.write(bytes)) error_ = errno;
  }

  OpenFile& file_;
  std::optional<GzipPacker> packer_;
  std::array<char, 1 << 16> buffer_{};
  int error_ = 0;
};

/// True if all was written.
bool write_all(OpenFile& file, const std::function<void(std::ostream&)>& write, bool packed) {
  FileStream stream(file, packed);
  std::ostream out(&stream);
  write(out);
  return stream.finish();
}

}  // namespace

StagedFiles::~StagedFiles() {
  for (const Staged& file : staged_) remove_temporary(file.temporary);
}

void StagedFiles::add(const fs::path& path, std::string_view text) {
  stage(
      path, [text](std::ostream& out) { out << text; }, false);
}

void StagedFiles::add_streamed(const fs::path& path,
                               const std::function<void(std::ostream&)>& write) {
  stage(path, write, path.extension() == ".gz");
}

void StagedFiles::stage(const fs::path& path, const std::function<void(std::ostream&)>& write,
                        bool packed) {
  expect_not_read(path);
  std::error_code error;
  const fs::file_status status = fs::status(path, error);
  if (fs::is_directory(status))
    refuse("write", path, std::make_error_code(std::errc::is_a_directory));
  if (fs::exists(status) && !fs::is_regular_file(status)) {
    OpenFile file(path, O_WRONLY);
    if (!file.is_open() || !write_all(file, write, packed) || !file.close())
      refuse("write", path, last_error());
    return;
  }
  const fs::path target = file_behind(path);
  for (const Staged& other : staged_)
    if (other.path == target) throw same_outputs(other.name, path);
  fs::create_directories(target.parent_path(), error);
  if (error) refuse("make the folder", path.parent_path(), error);
  std::optional<OpenFile> file;
  staged_.push_back({open_temporary(file, path, target), target, path});
  if (!write_all(*file, write, packed) || !file->flush_to_disk() || !file->close())
    refuse("write", path, last_error());
}

void StagedFiles::commit() {
  const BlockedSignals blocked;
  std::size_t placed = 0;
  try {
    for (; placed < staged_.size(); ++placed) place(staged_[placed]);
  } catch (const EnvironmentError&) {
    while (placed > 0) take_back(staged_[--placed]);
    throw;
  }
  for (const Staged& file : staged_) {
    if (!file.replaced.empty()) remove_temporary(file.replaced);
    forget(file.temporary);
  }
  staged_.clear();
}

void StagedFiles::place(Staged& file) {
  // A single file is whole or absent without it.
  std::error_code error;
  file.is_new = !fs::exists(fs::symlink_status(file.path, error));
  if (staged_.size() > 1 && !file.is_new) file.replaced = link_next_to(file.path);
  fs::rename(file.temporary, file.path, error);
  if (!error) return;
  if (!file.replaced.empty()) remove_temporary(file.replaced);
  refuse("write", file.name, error);
}

void StagedFiles::take_back(Staged& file) noexcept {
  std::error_code ignored;
  if (file.is_new) fs::rename(file.path, file.temporary, ignored);
  if (file.replaced.empty()) return;
  fs::rename(file.replaced, file.path, ignored);
  forget(file.replaced);
}

bool StagedFiles::commit_new() {
  WT_EXPECT(staged_.size() == 1);
  const Staged& file = staged_.front();
  const char* const from = file.temporary.c_str();
  const char* const to = file.path.c_str();
  int reason = ::link(from, to) == 0 ? 0 : errno;
  if (reason != 0 && reason != EEXIST)  // some file systems have no links
    reason = ::renameat2(AT_FDCWD, from, AT_FDCWD, to, RENAME_NOREPLACE) == 0 ? 0 : errno;
  if (reason == EEXIST) return false;
  if (reason != 0) refuse("write", file.name, {reason, std::generic_category()});
  remove_temporary(file.temporary);
  staged_.clear();
  return true;
}

void remove_staged_files() noexcept {
  for (const TemporaryName* name = temporary_names; name != nullptr; name = name->next)
    if (name->owner == ::getpid()) ::unlink(name->text.c_str());
}

}  // namespace windtunnel
