#include "core/contracts.hpp"
#include "cost/kernel_cost.hpp"
#include "cost/value_codec.hpp"

namespace windtunnel {
namespace {

constexpr Bytes index_size{4};  // of a value
constexpr double least_density = 1e-9;

/// The largest values and where they stand: the share `density` of them, each with 4 bytes of index.
class TopkCost final : public ValueCodec {
 public:
  TopkCost()
      : ValueCodec({.name = "topk",
                    .about = "the largest values and their places; density, error_feedback",
                    .keys = {{"density", CodecKey::Type::number, least_density, 1}},
                    .reach = CodecReach::some_values}) {}

  std::optional<double> ratio(const Compressor& c, Bytes element) const override {
    return element / (c.setting("density") * (element + index_size));
  }

  /// No fixed positions to add at: an all-reduce gathers every member's values, S/ratio from each, at all.
  EncodedCollective encode_ring(const Compressor& c, const Device& device, RingKind kind,
                                Bytes payload, Bytes element, int members) const override {
    WT_EXPECT(kind != RingKind::all_gather);
    const double n = members;
    const bool to_all = kind == RingKind::all_reduce;
    EncodedCollective encoded{payload / *ratio(c, element), {}, {}, {}, {}};
    encoded.encode = encode_time(c, device, payload, element);
    encoded.decode = decode_time(c, device, to_all ? payload : payload / n, element) * (n - 1);
    // All values of the other n-1 members to everybody: as many bytes as an all-reduce of n/2 times as much.
    if (to_all) encoded.payload *= n / 2;
    return encoded;
  }

  std::vector<std::string> device_keys(const Compressor& /*c*/,
                                       const CodecSpeeds& /*speeds*/) const override {
    return {"launch", "selection"};
  }
  std::optional<std::string> missing_key(const CodecSpeeds& speeds) const override {
    return speeds.selection ? std::nullopt : std::optional<std::string>("selection");
  }

  /// The density that `windtunnel codec` measures by default.
  CodecTrial trial(const TrialTraffic& /*traffic*/) const override {
    return {"the largest hundredth of the values (topk)", R"("density":0.01)"};
  }

 protected:
  Seconds encode_time(const Compressor& c, const Device& device, Bytes size,
                      Bytes /*element*/) const override {
    return streaming_time(c, device, size, *device.codecs->selection);
  }
  /// Fills the message, then reads, adds and writes the values sent.
  Seconds decode_time(const Compressor& c, const Device& device, Bytes size,
                      Bytes element) const override {
    return memory_time(size + size / *ratio(c, element) * 3, device) + launch_time(c, device, size);
  }
};

}  // namespace

const Codec& topk_codec() {
  static const TopkCost codec;
  return codec;
}

}  // namespace windtunnel
