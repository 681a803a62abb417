#include "cost/kernel_cost.hpp"
#include "cost/value_codec.hpp"

namespace windtunnel {
namespace {

/// One byte per value and one scale per message. Encoding and decoding run at the memory rate: encoding reads the message twice and writes
/// what is sent, decoding reads that and writes the message.
class Int8Cost final : public ValueCodec {
 public:
  Int8Cost() : ValueCodec({.name = "int8", .about = "one byte a value and one scale"}) {}

  std::optional<double> ratio(const Compressor& /*c*/, Bytes element) const override {
    return element / 1_B;
  }

  CodecTrial trial(const TrialTraffic& /*traffic*/) const override { return {"int8", ""}; }

 protected:
  Seconds encode_time(const Compressor& c, const Device& device, Bytes size,
                      Bytes element) const override {
    return memory_time(size * 2 + size / *ratio(c, element), device) + launch_time(c, device, size);
  }
  Seconds decode_time(const Compressor& c, const Device& device, Bytes size,
                      Bytes element) const override {
    return memory_time(size + size / *ratio(c, element), device) + launch_time(c, device, size);
  }
  Bytes header() const override { return 4_B; }  // the scale, in fp32
};

}  // namespace

const Codec& int8_codec() {
  static const Int8Cost codec;
  return codec;
}

}  // namespace windtunnel
