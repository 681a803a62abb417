#include "cost/value_codec.hpp"

namespace windtunnel {
namespace {

constexpr Bytes scale{4};  // fp32
constexpr double most_block = 1 << 20;

/// Blocks of values at few bits, each with a scale: weights in 8 bits and gradients in 4 as ZeRO++ has them (qwZ and qgZ: Wang et al.,
/// arXiv:2306.10209, sections 3.1 and 3.3), or FP8 with a scale a block.
class QuantizedCost final : public ExchangeCodec {
 public:
  QuantizedCost()
      : ExchangeCodec({.name = "quantized",
                       .about = "blocks of values at few bits and a scale; bits, block",
                       .keys = {{"bits", CodecKey::Type::whole_number, 1, 8},
                                {"block", CodecKey::Type::whole_number, 1, most_block}}}) {}

  std::optional<double> ratio(const Compressor& c, Bytes element) const override {
    constexpr double bits_of_byte = 8;
    return element / (1_B * (c.setting("bits") / bits_of_byte) + scale / c.setting("block"));
  }

  CodecTrial trial(const TrialTraffic& traffic) const override {
    return traffic.kind == TrialTraffic::Kind::replica_gradients
               ? CodecTrial{"blocks of 256 values at 4 bits", R"("bits":4,"block":256)"}
               : CodecTrial{"blocks of 256 values at 8 bits", R"("bits":8,"block":256)"};
  }
};

}  // namespace

const Codec& quantized_codec() {
  static const QuantizedCost codec;
  return codec;
}

}  // namespace windtunnel
