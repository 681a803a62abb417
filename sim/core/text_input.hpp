#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <streambuf>
#include <string>
#include <string_view>

namespace windtunnel {

/// A text that is read from front to end and never held whole: a file, unpacked on the way where
/// its content is gzip's (whatever its name), or a text in memory. It knows where it stands.
class TextInput final : public std::streambuf {
 public:
  /// "-" is standard input. EnvironmentError when the file cannot be read, then or later; InputError where packed bytes
  /// are damaged or cut off.
  explicit TextInput(const std::filesystem::path& file);
  TextInput(std::string name, std::string_view text);
  ~TextInput() override;
  TextInput(const TextInput&) = delete;
  TextInput& operator=(const TextInput&) = delete;

  struct Position {
    std::uint64_t byte = 0;  ///< of the unpacked text, from 0
    std::int64_t line = 1;
    std::int64_t column = 1;  ///< in bytes
  };
  /// Of the next byte that is not read yet.
  Position position();
  const std::string& name() const { return name_; }
  /// What comes first, without taking it.
  std::string_view beginning();

 protected:
  int_type underflow() override;

 private:
  static constexpr std::uint64_t most_bytes = std::uint64_t{8} << 30;  ///< unpacked
  static constexpr std::size_t chunk = std::size_t{1} << 16;           ///< bytes
  struct Unpacker;
  std::size_t fill();
  std::size_t read_file(std::array<char, chunk>& bytes);
  std::size_t read_packed();
  std::size_t unpack();
  /// Counts lines up to the next byte.
  void advance();
  [[noreturn]] void refuse(const std::string& what, const std::string& advice) const;

  std::string name_;
  std::ifstream file_;
  std::string peeked_;                  ///< of the file, not handed out yet
  std::string_view rest_;               ///< of a text in memory
  std::unique_ptr<Unpacker> unpacker_;  ///< of a packed file
  bool in_memory_ = false;
  std::array<char, chunk> text_{};
  std::uint64_t before_ = 0;  ///< bytes of the chunks before this
  const char* counted_ = nullptr;
  Position at_;
};

}  // namespace windtunnel
