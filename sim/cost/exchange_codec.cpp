#include "cost/exchange_codec.hpp"

#include "cost/kernel_cost.hpp"

namespace windtunnel {

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
