#pragma once

#include "plan/compression.hpp"

namespace windtunnel {

/// A ratio that the scenario gives.
inline constexpr CodecKey given_ratio{"ratio", CodecKey::Type::number, 1e-3, 1e6,
                                      CodecKey::Standing::assumption};

/// A codec of form `values`: it has a ratio, and encodes whatever piece it is given. Derived classes say what a piece costs; messages,
/// rings and memory follow.
class ValueCodec : public Codec {
 public:
  using Codec::Codec;

  /// In `chunks` Q pieces, Q times what S / Q bytes take.
  EncodedMessage encode_message(const Compressor& compressor, const Device& device,
                                const CodecMessage& message) const final;
  /// Compressed numbers cannot be added: each hop of a reduce-scatter decodes, adds and encodes again; an all-gather encodes once and
  /// forwards:
  ///   all-reduce: encode n blocks of S/n, decode n-1 blocks one by one and n-1 together
  ///   reduce-scatter: n-1 and n-1;   all-gather: 1, and n-1 together
  EncodedCollective encode_ring(const Compressor& compressor, const Device& device, RingKind kind,
                                Bytes payload, Bytes element, int members) const override;
  /// The encoded message; nothing where there is no such codec.
  Bytes kept(const Compressor& compressor, const CodecMessage& message) const final;

  /// Most need no speed besides those that every device has.
  std::vector<std::string> device_keys(const Compressor& compressor,
                                       const CodecSpeeds& speeds) const override;
  std::optional<std::string> missing_key(const CodecSpeeds& speeds) const override;

 protected:
  virtual Seconds encode_time(const Compressor& compressor, const Device& device, Bytes size,
                              Bytes element) const = 0;
  virtual Seconds decode_time(const Compressor& compressor, const Device& device, Bytes size,
                              Bytes element) const = 0;
  /// Bytes of a message on the wire in addition to its values.
  virtual Bytes header() const { return {}; }

  /// Launch time for `size` bytes in pieces of `compressor`'s buffer.
  static Seconds launch_time(const Compressor& compressor, const Device& device, Bytes size);
  /// Launches, and `size` bytes at `throughput`.
  static Seconds streaming_time(const Compressor& compressor, const Device& device, Bytes size,
                                BytesPerSecond throughput);
};

/// A codec whose collectives exchange encoded parts all at once, not hop by hop: each member sends the others their parts, decodes and
/// adds what it receives, encodes the sum and sends it to all. So a value is encoded twice, whatever the number of members, and as
/// many bytes are sent as in a ring (qgZ of ZeRO++: arXiv:2306.10209, section 3.3; compressed_allreduce of DeepSpeed 0.14,
/// deepspeed/runtime/comm/nccl.py). Of S bytes over n, with ratio r and kernels that run at the memory rate:
///   reduce-scatter: encode S, decode S/r into S/n;   all-gather: encode S/n, decode (n-1)/n S;   all-reduce: both
/// Limits: the two hops of qgZ, in a node and then between nodes, and its reordering, are one hop here.
class ExchangeCodec : public ValueCodec {
 public:
  using ValueCodec::ValueCodec;
  EncodedCollective encode_ring(const Compressor& compressor, const Device& device, RingKind kind,
                                Bytes payload, Bytes element, int members) const final;

 protected:
  /// Reads the values, writes what is sent.
  Seconds encode_time(const Compressor& compressor, const Device& device, Bytes size,
                      Bytes element) const override;
  Seconds decode_time(const Compressor& compressor, const Device& device, Bytes size,
                      Bytes element) const final;
};

}  // namespace windtunnel
