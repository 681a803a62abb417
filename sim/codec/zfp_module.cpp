#include "codec/zfp_module.hpp"

#include <zfp.h>

#include <memory>

namespace windtunnel::detail {
namespace {

struct StreamCloser {
  void operator()(zfp_stream* stream) const { zfp_stream_close(stream); }
  void operator()(zfp_field* field) const { zfp_field_free(field); }
  void operator()(bitstream* bits) const { stream_close(bits); }
};
using Stream = std::unique_ptr<zfp_stream, StreamCloser>;
using Field = std::unique_ptr<zfp_field, StreamCloser>;
using Bits = std::unique_ptr<bitstream, StreamCloser>;

/// zfp's three objects for a list of numbers at a fixed rate.
struct Session {
  Session(float* numbers, std::size_t count, double rate)
      : field(zfp_field_1d(numbers, zfp_type_float, count)), stream(zfp_stream_open(nullptr)) {
    zfp_stream_set_rate(stream.get(), rate, zfp_type_float, 1, zfp_false);
  }
  std::size_t most_bytes() const { return zfp_stream_maximum_size(stream.get(), field.get()); }
  void use(std::vector<std::uint64_t>& buffer) {
    bits.reset(stream_open(buffer.data(), buffer.size() * sizeof(std::uint64_t)));
    zfp_stream_set_bit_stream(stream.get(), bits.get());
    zfp_stream_rewind(stream.get());
  }

  Field field;
  Stream stream;
  Bits bits;
};

std::size_t encode(const std::vector<float>& numbers, double rate,
                   std::vector<std::uint64_t>& buffer) {
  // zfp's interface takes what it only reads as if it wrote it.
  Session session(const_cast<float*>(numbers.data()), numbers.size(), rate);  // NOLINT
  const std::size_t words = session.most_bytes() / sizeof(std::uint64_t) + 1;
  if (buffer.size() < words) buffer.resize(words);
  session.use(buffer);
  return zfp_compress(session.stream.get(), session.field.get());
}

bool decode(std::vector<std::uint64_t>& buffer, double rate, std::vector<float>& numbers) {
  Session session(numbers.data(), numbers.size(), rate);
  session.use(buffer);
  return zfp_decompress(session.stream.get(), session.field.get()) > 0;
}

}  // namespace
}  // namespace windtunnel::detail

extern "C" __attribute__((visibility("default")))
const windtunnel::detail::ZfpModule windtunnel_zfp;
const windtunnel::detail::ZfpModule windtunnel_zfp{windtunnel::detail::encode,
                                                   windtunnel::detail::decode};
