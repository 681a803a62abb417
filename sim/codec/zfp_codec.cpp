#include "codec/zfp_codec.hpp"

#include <zfp.h>

#include <memory>

#include "core/contracts.hpp"

namespace windtunnel {
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
  void use(void* buffer, std::size_t bytes) {
    bits.reset(stream_open(buffer, bytes));
    zfp_stream_set_bit_stream(stream.get(), bits.get());
    zfp_stream_rewind(stream.get());
  }

  Field field;
  Stream stream;
  Bits bits;
};

}  // namespace

void ZfpCodec::encode(const Tensor& tensor) {
  count_ = tensor.size();
  // zfp's interface takes what it only reads as if it wrote it.
  Session session(const_cast<float*>(tensor.values.data()), count_, rate_);  // NOLINT
  const std::size_t words = session.most_bytes() / sizeof(std::uint64_t) + 1;
  if (buffer_.size() < words) buffer_.resize(words);
  session.use(buffer_.data(), buffer_.size() * sizeof(std::uint64_t));
  size_ = zfp_compress(session.stream.get(), session.field.get());
  WT_ENSURE(size_ > 0);
}

const std::vector<float>& ZfpCodec::decode() {
  decoded_.resize(count_);
  Session session(decoded_.data(), count_, rate_);
  session.use(buffer_.data(), buffer_.size() * sizeof(std::uint64_t));
  const std::size_t read = zfp_decompress(session.stream.get(), session.field.get());
  WT_ENSURE(read > 0);
  return decoded_;
}

}  // namespace windtunnel
