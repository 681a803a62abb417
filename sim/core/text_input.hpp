#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <string>
#include <string_view>

namespace windtunnel {

/// A text that is read byte by byte from front to end: a text in memory, or a file, which is never held whole and is unpacked on
/// the way where its content is gzip's (whatever its name). It knows where it stands.
class TextInput {
 public:
  /// "-" is standard input. EnvironmentError when the file cannot be read, then or later; InputError where packed bytes
  /// are damaged or cut off.
  explicit TextInput(const std::filesystem::path& file);
  /// The text must outlive this.
  TextInput(std::string name, std::string_view text);
  ~TextInput();
  TextInput(const TextInput&) = delete;
  TextInput& operator=(const TextInput&) = delete;

  struct Position {
    std::uint64_t byte = 0;   ///< of the unpacked text, from 0
    std::int64_t line = 1;    ///< from 1
    std::int64_t column = 1;  ///< from 1, in characters; a byte order mark has no width
  };
  const std::string& name() const { return name_; }
  /// The beginning of the input, without consuming it.
  std::string_view beginning();

  bool at_end() { return next_ == end_ && !read_on(); }
  void take() { ++next_; }
  /// Points at the next byte, until more is read.
  const char* next() const { return next_; }

  /// Releases the text before `from`.
  void keep(const char* from) { kept_ = from; }
  /// Since keep(), and as far as was read ahead.
  std::string_view kept() const { return {kept_, static_cast<std::size_t>(end_ - kept_)}; }
  /// Most bytes that are kept.
  static constexpr std::size_t most_kept = std::size_t{16} << 20;
  static constexpr const char* too_much_kept = "more than 16 MiB without a whole text or number";
  /// Reads further ahead. False: that was all. InputError where more would be kept than may be.
  bool read_on();

  /// Number of bytes before the next one.
  std::uint64_t byte() const { return at_.byte + static_cast<std::uint64_t>(next_ - counted_); }
  /// Position of the next byte, or of one that is kept.
  Position position() { return position(next_); }
  Position position(const char* of);

 private:
  static constexpr std::uint64_t most_bytes = std::uint64_t{8} << 30;  ///< unpacked
  static constexpr std::size_t chunk = std::size_t{1} << 16;           ///< bytes
  struct Unpacker;
  /// Reads up to a chunk.
  std::size_t read_file(char* bytes);
  std::size_t read_packed();
  std::size_t unpack(char* bytes);
  Position position_after(Position counted, const char* from, const char* to) const;
  [[noreturn]] void refuse(const std::string& what, const std::string& advice) const;

  std::string name_;
  std::ifstream file_;
  std::string peeked_;                  ///< of the file, not handed out yet
  std::unique_ptr<Unpacker> unpacker_;  ///< of a packed file
  bool in_memory_ = false;
  std::string buffer_;  ///< of a file: its bytes from kept_ on
  const char *kept_ = nullptr, *next_ = nullptr, *end_ = nullptr;
  const char* counted_ = nullptr;  ///< up to where lines were counted; not behind kept_
  Position at_;                    ///< of counted_
};

}  // namespace windtunnel
