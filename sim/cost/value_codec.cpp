#include "cost/value_codec.hpp"

#include <cmath>

#include "cost/kernel_cost.hpp"

namespace windtunnel {
namespace {

double pieces_of(const Compressor& compressor, Bytes size) {
  if (compressor.buffer == Bytes{0} || size <= compressor.buffer) return 1;
  return std::ceil(size / compressor.buffer);
}

}  // namespace

EncodedMessage ValueCodec::encode_message(const Compressor& c, const Device& device,
                                          const CodecMessage& m) const {
  const double chunks = c.chunks;
  const Bytes piece = m.size / chunks;
  return {(piece / *ratio(c, m.element) + header()) * chunks, Bytes{0},
          encode_time(c, device, piece, m.element) * chunks,
          decode_time(c, device, piece, m.element) * chunks};
}

EncodedCollective ValueCodec::encode_ring(const Compressor& c, const Device& device, RingKind kind,
                                          Bytes payload, Bytes element, int members) const {
  const double n = members;
  const Bytes block = payload / n;
  const bool reduces = kind != RingKind::all_gather, gathers = kind != RingKind::reduce_scatter;
  const double encoded_blocks = (reduces ? n - 1 : 0) + (gathers ? 1 : 0);
  EncodedCollective encoded{payload / *ratio(c, element), {}, {}, {}, {}};
  encoded.encode = encode_time(c, device, block, element) * encoded_blocks;
  if (reduces) encoded.decode += decode_time(c, device, block, element) * (n - 1);
  if (gathers) encoded.decode += decode_time(c, device, block * (n - 1), element);
  return encoded;
}

Bytes ValueCodec::kept(const Compressor& c, const CodecMessage& message) const {
  return traits().origin == CodecOrigin::none ? Bytes{0}
                                              : message.size / *ratio(c, message.element);
}

std::vector<std::string> ValueCodec::device_keys(const Compressor& /*compressor*/,
                                                 const CodecSpeeds& /*speeds*/) const {
  return {"launch"};
}

std::optional<std::string> ValueCodec::missing_key(const CodecSpeeds& /*speeds*/) const {
  return std::nullopt;
}

Seconds ValueCodec::launch_time(const Compressor& compressor, const Device& device, Bytes size) {
  return device.codecs->launch * pieces_of(compressor, size);
}

Seconds ValueCodec::streaming_time(const Compressor& compressor, const Device& device, Bytes size,
                                   BytesPerSecond throughput) {
  return launch_time(compressor, device, size) + size / throughput;
}

EncodedCollective ExchangeCodec::encode_ring(const Compressor& c, const Device& device,
                                             RingKind kind, Bytes payload, Bytes element,
                                             int members) const {
  const double n = members, ratio_of_values = *ratio(c, element);
  const Bytes part = payload / n;
  EncodedCollective encoded{payload / ratio_of_values, {}, {}, {}, {}};
  if (kind != RingKind::all_gather) {
    encoded.encode += encode_time(c, device, payload, element);
    encoded.decode +=
        memory_time(payload / ratio_of_values + part, device) + launch_time(c, device, payload);
  }
  if (kind != RingKind::reduce_scatter) {
    encoded.encode += encode_time(c, device, part, element);
    encoded.decode += decode_time(c, device, part * (n - 1), element);
  }
  return encoded;
}

Seconds ExchangeCodec::encode_time(const Compressor& c, const Device& device, Bytes size,
                                   Bytes element) const {
  return memory_time(size + size / *ratio(c, element), device) + launch_time(c, device, size);
}

Seconds ExchangeCodec::decode_time(const Compressor& c, const Device& device, Bytes size,
                                   Bytes element) const {
  return ExchangeCodec::encode_time(c, device, size, element);
}

}  // namespace windtunnel
