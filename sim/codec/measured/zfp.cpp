#include "codec/measured_codec.hpp"
#ifdef WINDTUNNEL_WITH_ZFP
#include <zfp.h>

#include "core/contracts.hpp"
#endif

namespace windtunnel {
namespace {

#ifdef WINDTUNNEL_WITH_ZFP

constexpr const char* missing_package = nullptr;

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

/// zfp with a fixed number of bits a value (Lindstrom, IEEE TVCG 20(12), 2014, doi 10.1109/TVCG.2014.2346458), on the message
/// as a flat list of float32 numbers, as a communication library sees it: blocks of 4 numbers of 4 * rate bits. Rates are
/// multiples of 1/4 bit, from 2.25 (9 bits of exponent a block); others become the next.
class ZfpCodec final : public TensorCodec {
 public:
  explicit ZfpCodec(double rate) : rate_(rate) {}

  void encode(const Tensor& tensor) override;
  Bytes size() const override { return Bytes{static_cast<double>(size_)}; }
  const std::vector<float>& decode() override;

 private:
  double rate_;
  std::size_t count_ = 0, size_ = 0;
  std::vector<std::uint64_t> buffer_;
  std::vector<float> decoded_;
};

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

std::unique_ptr<TensorCodec> make(double rate, std::uint64_t /*seed*/) {
  return std::make_unique<ZfpCodec>(rate);
}

#else

constexpr const char* missing_package = "libzfp-dev";
constexpr std::unique_ptr<TensorCodec> (*make)(double, std::uint64_t) = nullptr;

#endif

void add_rates(const MeasuredRates& rates, JsonValue& codecs) {
  if (codecs.find("zfp") == nullptr) codecs.set("zfp", JsonValue(JsonValue::Array{}));
  JsonValue entry(JsonValue::Object{});
  entry.set("rate", rates.setting);
  entry.set("encode", JsonValue(rates.encode));
  entry.set("decode", JsonValue(rates.decode));
  entry.set("source", JsonValue(rates.source));
  codecs.find("zfp")->array().push_back(std::move(entry));
}

}  // namespace

MeasuredCodec measured_zfp() {
  return {.name = "zfp",
          .settings = {8, 16, 24},
          .option_text = "Bits a value of zfp (default 8, 16, 24); may be repeated",
          .option_type = "BITS",
          .missing_package = missing_package,
          .make = make,
          .add_rates = add_rates};
}

}  // namespace windtunnel
