#include "cost/kernel_cost.hpp"
#include "cost/value_codec.hpp"

namespace windtunnel {
namespace {

/// The sign of each value and one scale, what is lost goes with the next step: 1-bit Adam after its warm-up (Tang et al., ICML 2021,
/// arXiv:2102.02888, section 4), which sends momenta in place of gradients, as many and as often.
class SignCost final : public ExchangeCodec {
 public:
  SignCost()
      : ExchangeCodec({.name = "sign",
                       .about = "the sign of each value and one scale (1-bit Adam); error_feedback",

                       .reach = CodecReach::some_values,
                       .sends_momenta = true}) {}

  std::optional<double> ratio(const Compressor& /*c*/, Bytes element) const override {
    constexpr double bits_of_byte = 8;
    return bits_of_byte * (element / 1_B);
  }

  CodecTrial trial(const TrialTraffic& /*traffic*/) const override {
    return {"signs (1-bit Adam)", ""};
  }

 protected:
  /// With error feedback a residual of 4 bytes a value is read and written again.
  Seconds encode_time(const Compressor& c, const Device& device, Bytes size,
                      Bytes element) const override {
    constexpr Bytes residual{8};
    const Bytes kept = c.error_feedback ? residual * (size / element) : Bytes{0};
    return ExchangeCodec::encode_time(c, device, size, element) + memory_time(kept, device);
  }
  Bytes header() const override { return 4_B; }  // the scale, in fp32
};

}  // namespace

const Codec& sign_codec() {
  static const SignCost codec;
  return codec;
}

}  // namespace windtunnel
