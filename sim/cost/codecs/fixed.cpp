#include "cost/value_codec.hpp"

namespace windtunnel {
namespace {

Seconds time_at(const Compressor& c, const char* rate, Bytes size) {
  return c.settings.contains(rate) ? size / BytesPerSecond{c.setting(rate)} : Seconds{0};
}

/// A ratio at given rates, for what-ifs: a direction whose rate is left out costs nothing.
class FixedCost final : public ValueCodec {
 public:
  FixedCost()
      : ValueCodec(
            {.name = "fixed",
             .about = "a ratio at given rates, for what-ifs; ratio, encode_rate, decode_rate",
             .keys = {given_ratio,
                      {"encode_rate", CodecKey::Type::data_rate},
                      {"decode_rate", CodecKey::Type::data_rate}},
             .origin = CodecOrigin::none}) {}

  std::optional<double> ratio(const Compressor& c, Bytes /*element*/) const override {
    return c.setting("ratio");
  }

  std::vector<std::string> device_keys(const Compressor& /*c*/,
                                       const CodecSpeeds& /*speeds*/) const override {
    return {};
  }

  CodecTrial trial(const TrialTraffic& /*traffic*/) const override {
    return {"half the bytes at no cost", R"("ratio":2)"};
  }

 protected:
  Seconds encode_time(const Compressor& c, const Device& /*device*/, Bytes size,
                      Bytes /*element*/) const override {
    return time_at(c, "encode_rate", size);
  }
  Seconds decode_time(const Compressor& c, const Device& /*device*/, Bytes size,
                      Bytes /*element*/) const override {
    return time_at(c, "decode_rate", size);
  }
};

}  // namespace

const Codec& fixed_codec() {
  static const FixedCost codec;
  return codec;
}

}  // namespace windtunnel
