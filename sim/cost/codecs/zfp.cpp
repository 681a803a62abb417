#include <algorithm>

#include "cost/value_codec.hpp"

namespace windtunnel {
namespace {

constexpr double bits_per_byte = 8;
constexpr double most_bits_per_value = 32;  // zfp's rate for fp32; more would expand

/// Linear in the time per byte between the rates of the table, constant beyond them.
template <class Throughput>
BytesPerSecond interpolated(const std::vector<ZfpSpeed>& table, double rate, const Throughput& of) {
  const auto above = std::find_if(table.begin(), table.end(),
                                  [rate](const ZfpSpeed& speed) { return speed.rate >= rate; });
  if (above == table.begin()) return of(table.front());
  if (above == table.end()) return of(table.back());
  const ZfpSpeed& below = *(above - 1);
  const double share = (rate - below.rate) / (above->rate - below.rate);
  const Seconds a_byte = 1_B / of(below) * (1 - share) + 1_B / of(*above) * share;
  return 1_B / a_byte;
}

/// Fixed bits per value (Lindstrom 2014, doi 10.1109/TVCG.2014.2346458), at the throughput of the device file.
class ZfpCost final : public ValueCodec {
 public:
  ZfpCost()
      : ValueCodec({.name = "zfp",
                    .about = "fixed bits a value; rate",
                    .keys = {{"rate", CodecKey::Type::number, 1, most_bits_per_value}},
                    .origin = CodecOrigin::library}) {}

  std::optional<double> ratio(const Compressor& c, Bytes element) const override {
    return element / 1_B * bits_per_byte / c.setting("rate");
  }

  /// The rates that enclose the one in use.
  std::vector<std::string> device_keys(const Compressor& c,
                                       const CodecSpeeds& speeds) const override {
    const double rate = c.setting("rate");
    std::vector<std::string> keys{"launch"};
    for (std::size_t i = 0; i < speeds.zfp.size(); ++i) {
      const bool starts = i + 1 == speeds.zfp.size() || speeds.zfp[i + 1].rate > rate;
      const bool ends = i == 0 || speeds.zfp[i - 1].rate < rate;
      if (!starts || !ends) continue;
      for (const char* key : {"/encode", "/decode"})
        keys.push_back("zfp/" + std::to_string(i) + key);
    }
    return keys;
  }
  std::optional<std::string> missing_key(const CodecSpeeds& speeds) const override {
    return speeds.zfp.empty() ? std::optional<std::string>("zfp") : std::nullopt;
  }

  CodecTrial trial(const TrialTraffic& traffic) const override {
    const std::string rate = traffic.element > 2_B ? "16" : "8";
    return {"zfp at " + rate + " bits a value", R"("rate":)" + rate};
  }

 protected:
  Seconds encode_time(const Compressor& c, const Device& device, Bytes size,
                      Bytes /*element*/) const override {
    return streaming_time(c, device, size,
                          interpolated(device.codecs->zfp, c.setting("rate"),
                                       [](const ZfpSpeed& s) { return s.encode; }));
  }
  Seconds decode_time(const Compressor& c, const Device& device, Bytes size,
                      Bytes /*element*/) const override {
    return streaming_time(c, device, size,
                          interpolated(device.codecs->zfp, c.setting("rate"),
                                       [](const ZfpSpeed& s) { return s.decode; }));
  }
};

}  // namespace

const Codec& zfp_codec() {
  static const ZfpCost codec;
  return codec;
}

}  // namespace windtunnel
