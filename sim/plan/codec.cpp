#include "plan/codec.hpp"

#include "core/contracts.hpp"

namespace windtunnel {

EncodedCollective Codec::encode_ring(const Compressor& /*compressor*/, const Device& /*device*/,
                                     RingKind /*kind*/, Bytes /*payload*/, Bytes /*element*/,
                                     int /*members*/) const {
  WT_UNREACHABLE();
}

EncodedCollective Codec::encode_matrices(const Compressor& /*compressor*/, const Device& /*device*/,
                                         const std::vector<CodecMatrix>& /*matrices*/,
                                         Bytes /*rest*/) const {
  WT_UNREACHABLE();
}

}  // namespace windtunnel
