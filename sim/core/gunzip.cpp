#include "core/gunzip.hpp"

#include <zlib.h>

#include <array>
#include <limits>

#include "core/contracts.hpp"

namespace windtunnel {

std::optional<std::string> gunzip(std::string_view bytes, std::size_t most) {
  constexpr int largest_window = 15;
  constexpr int with_gzip_header = 16;
  if (bytes.size() > std::numeric_limits<uInt>::max()) return std::nullopt;
  z_stream stream{};
  int result = inflateInit2(&stream, largest_window + with_gzip_header);
  WT_ENSURE(result == Z_OK);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  std::string text;
  std::array<char, 1 << 16> buffer;
  do {
    stream.next_out = reinterpret_cast<Bytef*>(buffer.data());
    stream.avail_out = static_cast<uInt>(buffer.size());
    result = inflate(&stream, Z_NO_FLUSH);
    text.append(buffer.data(), buffer.size() - stream.avail_out);
  } while (result == Z_OK && text.size() <= most);
  inflateEnd(&stream);
  if (result != Z_STREAM_END || text.size() > most) return std::nullopt;
  return text;
}

}  // namespace windtunnel
