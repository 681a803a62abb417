#include "core/gzip.hpp"

#include <zlib.h>

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "core/contracts.hpp"

namespace windtunnel {

struct GzipPacker::Stream {
  Stream() {
    constexpr int largest_window = 15;
    constexpr int with_gzip_header = 16;
    constexpr int default_memory = 8;
    constexpr int unknown_system = 255;
    WT_ENSURE(deflateInit2(&state, Z_DEFAULT_COMPRESSION, Z_DEFLATED,
                           largest_window + with_gzip_header, default_memory,
                           Z_DEFAULT_STRATEGY) == Z_OK);
    header.os = unknown_system;
    deflateSetHeader(&state, &header);
  }
  ~Stream() { deflateEnd(&state); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// Takes what is given to it and hands out what comes of it.
  int run(int flush, const Take& take) {
    int result = Z_OK;
    do {
      state.next_out = reinterpret_cast<Bytef*>(packed.data());
      state.avail_out = static_cast<uInt>(packed.size());
      result = deflate(&state, flush);
      take({packed.data(), packed.size() - state.avail_out});
    } while (state.avail_out == 0);
    return result;
  }

  z_stream state{};
  gz_header header{};
  std::array<char, 1 << 16> packed{};
};

GzipPacker::GzipPacker(Take take) : stream_(std::make_unique<Stream>()), take_(std::move(take)) {}

GzipPacker::~GzipPacker() = default;

void GzipPacker::pack(std::string_view text) {
  while (!text.empty()) {
    const std::size_t piece = std::min<std::size_t>(text.size(), std::numeric_limits<uInt>::max());
    stream_->state.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
    stream_->state.avail_in = static_cast<uInt>(piece);
    stream_->run(Z_NO_FLUSH, take_);
    text.remove_prefix(piece);
  }
}

void GzipPacker::finish() {
  const int result = stream_->run(Z_FINISH, take_);
  WT_ENSURE(result == Z_STREAM_END);
}

std::string gzip(std::string_view text) {
  std::string packed;
  GzipPacker packer([&packed](std::string_view piece) { packed += piece; });
  packer.pack(text);
  packer.finish();
  return packed;
}

}  // namespace windtunnel
