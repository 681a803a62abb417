#pragma once

#include "cost/value_codec.hpp"

namespace windtunnel {

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
