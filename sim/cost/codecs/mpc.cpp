#include "cost/value_codec.hpp"

namespace windtunnel {
namespace {

/// Lossless; its ratio is an input (Yang et al. 2015, doi 10.1109/CLUSTER.2015.59).
class MpcCost final : public ValueCodec {
 public:
  MpcCost()
      : ValueCodec({.name = "mpc",
                    .about = "lossless; its ratio is an input",
                    .keys = {given_ratio},
                    .origin = CodecOrigin::library}) {}

  std::optional<double> ratio(const Compressor& c, Bytes /*element*/) const override {
    return c.setting("ratio");
  }

  std::vector<std::string> device_keys(const Compressor& /*c*/,
                                       const CodecSpeeds& /*speeds*/) const override {
    return {"launch", "mpc_encode", "mpc_decode"};
  }
  std::optional<std::string> missing_key(const CodecSpeeds& speeds) const override {
    return speeds.mpc_encode ? std::nullopt : std::optional<std::string>("mpc_encode");
  }

  /// The ratio that the shipped scenarios of hybrid compression assume for activations and gradients.
  CodecTrial trial(const TrialTraffic& /*traffic*/) const override {
    return {"mpc, if it makes them 1.2 times smaller", R"("ratio":1.2)"};
  }

 protected:
  Seconds encode_time(const Compressor& c, const Device& device, Bytes size,
                      Bytes /*element*/) const override {
    return streaming_time(c, device, size, *device.codecs->mpc_encode);
  }
  Seconds decode_time(const Compressor& c, const Device& device, Bytes size,
                      Bytes /*element*/) const override {
    return streaming_time(c, device, size, *device.codecs->mpc_decode);
  }
};

}  // namespace

const Codec& mpc_codec() {
  static const MpcCost codec;
  return codec;
}

}  // namespace windtunnel
