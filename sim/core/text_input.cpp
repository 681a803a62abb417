#include "core/text_input.hpp"

#include <zlib.h>

#include <cerrno>
#include <cstring>

#include "core/contracts.hpp"
#include "core/file_io.hpp"
#include "core/output_guard.hpp"
#include "core/problem.hpp"
#include "core/work_note.hpp"

namespace windtunnel {

struct TextInput::Unpacker {
  static constexpr int largest_window = 15;
  static constexpr int with_gzip_header = 16;
  Unpacker() { WT_ENSURE(inflateInit2(&stream, largest_window + with_gzip_header) == Z_OK); }
  ~Unpacker() { inflateEnd(&stream); }
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  z_stream stream{};
  std::array<char, chunk> packed{};
  std::uint64_t taken = 0;  ///< packed bytes read from the file
  bool inside = false;      ///< of a gzip member; a file may hold several
};

TextInput::TextInput(const std::filesystem::path& file)
    : name_(is_stdin(file) ? file_name_of(file) : file.string()) {
  if (!is_stdin(file)) expect_no_output(file);
  std::error_code ignored;
  errno = 0;
  if (std::filesystem::is_directory(file, ignored)) errno = EISDIR;
  if (errno == 0) file_.open(is_stdin(file) ? "/dev/stdin" : file, std::ios::binary);
  if (errno != 0 || !file_)
    throw EnvironmentError("cannot read " + name_ + ": " + std::strerror(errno));
  // Kept, since a pipe cannot be read twice.
  constexpr std::string_view gzip_magic = "\x1f\x8b";
  std::array<char, gzip_magic.size()> first{};
  file_.read(first.data(), first.size());
  peeked_.assign(first.data(), static_cast<std::size_t>(file_.gcount()));
  file_.clear();
  if (peeked_ == gzip_magic) unpacker_ = std::make_unique<Unpacker>();
}

TextInput::TextInput(std::string name, std::string_view text)
    : name_(std::move(name)), rest_(text), in_memory_(true) {}

TextInput::~TextInput() = default;

TextInput::Position TextInput::position() {
  advance();
  return at_;
}

std::string_view TextInput::beginning() {
  if (gptr() == egptr()) underflow();
  return {gptr(), static_cast<std::size_t>(egptr() - gptr())};
}

void TextInput::advance() {
  if (gptr() == nullptr) return;
  while (counted_ < gptr()) {
    const void* found = std::memchr(counted_, '\n', static_cast<std::size_t>(gptr() - counted_));
    const char* const end = found == nullptr ? gptr() : static_cast<const char*>(found) + 1;
    at_.column = found == nullptr ? at_.column + (end - counted_) : 1;
    at_.line += found == nullptr ? 0 : 1;
    counted_ = end;
  }
  at_.byte = before_ + static_cast<std::uint64_t>(gptr() - eback());
}

TextInput::int_type TextInput::underflow() {
  if (gptr() < egptr()) return traits_type::to_int_type(*gptr());
  advance();
  before_ += static_cast<std::uint64_t>(gptr() - eback());
  count_done(before_);
  if (before_ > most_bytes)
    refuse("the text is longer than the 8 GiB that are read of one", "record fewer steps");
  const std::size_t size = fill();
  setg(text_.data(), text_.data(), text_.data() + size);
  counted_ = text_.data();
  return size == 0 ? traits_type::eof() : traits_type::to_int_type(text_[0]);
}

std::size_t TextInput::fill() {
  if (unpacker_) return unpack();
  if (in_memory_) {
    const std::size_t size = rest_.copy(text_.data(), chunk);
    rest_.remove_prefix(size);
    return size;
  }
  return read_file(text_);
}

std::size_t TextInput::read_file(std::array<char, chunk>& bytes) {
  const std::size_t first = peeked_.copy(bytes.data(), chunk);
  peeked_.clear();
  file_.read(bytes.data() + first, static_cast<std::streamsize>(chunk - first));
  if (file_.bad()) throw EnvironmentError("cannot read " + name_ + ": " + std::strerror(errno));
  return first + static_cast<std::size_t>(file_.gcount());
}

std::size_t TextInput::read_packed() {
  const std::size_t size = read_file(unpacker_->packed);
  unpacker_->taken += size;
  unpacker_->stream.next_in = reinterpret_cast<Bytef*>(unpacker_->packed.data());
  unpacker_->stream.avail_in = static_cast<uInt>(size);
  return size;
}

std::size_t TextInput::unpack() {
  z_stream& stream = unpacker_->stream;
  stream.next_out = reinterpret_cast<Bytef*>(text_.data());
  stream.avail_out = static_cast<uInt>(chunk);
  while (stream.avail_out > 0) {
    if (stream.avail_in == 0 && read_packed() == 0) {
      if (unpacker_->inside)
        refuse("the gzip file ends in the middle, after " + std::to_string(unpacker_->taken) +
                   " bytes",
               "it was cut off; copy or record it again");
      break;
    }
    unpacker_->inside = true;
    const int result = inflate(&stream, Z_NO_FLUSH);
    if (result == Z_STREAM_END) {
      unpacker_->inside = false;
      inflateReset(&stream);
    } else if (result != Z_OK && result != Z_BUF_ERROR) {
      refuse("the gzip file is damaged near byte " +
                 std::to_string(unpacker_->taken - stream.avail_in),
             "copy or record it again");
    }
  }
  return chunk - stream.avail_out;
}

void TextInput::refuse(const std::string& what, const std::string& advice) const {
  Problem problem;
  problem.origin.kind = OriginKind::file;
  problem.origin.source = std::make_shared<const SourceText>(SourceText{name_, {}});
  problem.message = what;
  problem.suggestion = advice;
  throw InputError(std::vector<Problem>(1, std::move(problem)));
}

}  // namespace windtunnel
