#include "core/text_input.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
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
  const std::filesystem::path opened = is_stdin(file) ? "/dev/stdin" : file;
  std::error_code ignored;
  errno = 0;
  if (std::filesystem::is_directory(opened, ignored)) errno = EISDIR;
  if (errno == 0) file_.open(opened, std::ios::binary);
  if (errno != 0 || !file_)
    throw EnvironmentError("cannot read " + name_ + ": " + std::strerror(errno));
  // Kept, since a pipe cannot be read twice.
  constexpr std::string_view gzip_magic = "\x1f\x8b";
  std::array<char, gzip_magic.size()> first{};
  file_.read(first.data(), first.size());
  peeked_.assign(first.data(), static_cast<std::size_t>(file_.gcount()));
  file_.clear();
  if (peeked_ == gzip_magic) unpacker_ = std::make_unique<Unpacker>();
  kept_ = next_ = end_ = counted_ = buffer_.data();
}

TextInput::TextInput(std::string name, std::string_view text)
    : name_(std::move(name)),
      in_memory_(true),
      kept_(text.data()),
      next_(kept_),
      end_(kept_ + text.size()),
      counted_(kept_) {}

TextInput::~TextInput() = default;

std::string_view TextInput::beginning() {
  if (next_ == end_) read_on();
  return {next_, static_cast<std::size_t>(end_ - next_)};
}

TextInput::Position TextInput::position(const char* of) {
  if (counted_ < kept_) {
    at_ = position_after(at_, counted_, kept_);
    counted_ = kept_;
  }
  return position_after(at_, counted_, of);
}

TextInput::Position TextInput::position_after(Position counted, const char* from,
                                              const char* to) const {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  std::string_view rest(from, static_cast<std::size_t>(to - from));
  if (counted.byte == 0 && rest.starts_with(byte_order_mark)) counted.column = 0;
  counted.byte += rest.size();
  for (std::size_t line_end = rest.find('\n'); line_end != rest.npos; line_end = rest.find('\n')) {
    ++counted.line;
    counted.column = 1;
    rest.remove_prefix(line_end + 1);
  }
  counted.column += std::count_if(rest.begin(), rest.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U;  // no byte inside of a character
  });
  return counted;
}

bool TextInput::read_on() {
  if (in_memory_) return false;
  const std::uint64_t before = position(kept_).byte;
  const std::size_t held = kept().size(), taken = static_cast<std::size_t>(next_ - kept_);
  if (held > most_kept) refuse(too_much_kept, {});
  count_done(before + held);
  if (before + held > most_bytes)
    refuse("the text is longer than the 8 GiB that are read of one", "record fewer steps");
  buffer_.erase(0, buffer_.size() - held);
  buffer_.resize(held + chunk);
  const std::size_t size =
      unpacker_ ? unpack(buffer_.data() + held) : read_file(buffer_.data() + held);
  buffer_.resize(held + size);
  kept_ = counted_ = buffer_.data();
  next_ = kept_ + taken;
  end_ = kept_ + buffer_.size();
  return size > 0;
}

std::size_t TextInput::read_file(char* bytes) {
  const std::size_t first = peeked_.copy(bytes, chunk);
  peeked_.clear();
  file_.read(bytes + first, static_cast<std::streamsize>(chunk - first));
  if (file_.bad()) throw EnvironmentError("cannot read " + name_ + ": " + std::strerror(errno));
  return first + static_cast<std::size_t>(file_.gcount());
}

std::size_t TextInput::read_packed() {
  const std::size_t size = read_file(unpacker_->packed.data());
  unpacker_->taken += size;
  unpacker_->stream.next_in = reinterpret_cast<Bytef*>(unpacker_->packed.data());
  unpacker_->stream.avail_in = static_cast<uInt>(size);
  return size;
}

std::size_t TextInput::unpack(char* bytes) {
  z_stream& stream = unpacker_->stream;
  stream.next_out = reinterpret_cast<Bytef*>(bytes);
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
