#include "cost/codec_cost.hpp"

#include <algorithm>

#include "core/contracts.hpp"

namespace windtunnel {

EncodedMessage encode_message(const Compressor& c, const Device& device, const CodecMessage& m) {
  WT_EXPECT(!missing_speed(c, device) && m.size > Bytes{0});
  return c.codec->encode_message(c, device, m);
}

EncodedCollective encode_ring(const Compressor& c, const Device& device, RingKind kind,
                              Bytes payload, Bytes element, int members) {
  WT_EXPECT(members > 0 && !missing_speed(c, device));
  if (members == 1 || !is_compressed(c, payload / members)) return {payload, {}, {}, {}, {}};
  return c.codec->encode_ring(c, device, kind, payload, element, members);
}

EncodedCollective encode_powersgd(const Compressor& c, const Device& device,
                                  const std::vector<CodecMatrix>& matrices, Bytes rest) {
  WT_EXPECT(!missing_speed(c, device));
  return c.codec->encode_matrices(c, device, matrices, rest);
}

EncodedMessage in_chunks(const EncodedMessage& message, int chunks, Seconds wire) {
  WT_EXPECT(chunks > 0);
  const Seconds codec = message.encode + message.decode;
  if (chunks == 1 || codec == Seconds{0}) return message;
  const Seconds longest = std::max({message.encode, wire, message.decode});
  const Seconds whole = longest + (codec + wire - longest) / static_cast<double>(chunks);
  const double exposed = (whole - wire) / codec;
  EncodedMessage overlapped = message;
  overlapped.encode = message.encode * exposed;
  overlapped.decode = message.decode * exposed;
  return overlapped;
}

std::optional<std::string> missing_speed(const Compressor& c, const Device& device) {
  if (c.codec->traits().origin == CodecOrigin::none) return std::nullopt;
  const std::optional<std::string> key =
      device.codecs ? c.codec->missing_key(*device.codecs) : "launch";
  if (!key) return std::nullopt;
  return "device " + device.name + " has no codecs/" + *key + ", which " + c.codec->name() +
         " needs";
}

}  // namespace windtunnel
