#include "plan/compression.hpp"

#include <algorithm>

#include "core/contracts.hpp"

namespace windtunnel {

double Compressor::setting(const std::string& key) const {
  const auto found = settings.find(key);
  WT_EXPECT(found != settings.end());
  return found->second;
}

bool compresses_gradients(const Compression& compression, int stage) {
  if (!compression.data_gradients) return false;
  const CompressedStages& chosen = compression.gradient_stages;
  return chosen.kind != CompressedStages::Kind::listed ||
         std::ranges::find(chosen.listed, stage) != chosen.listed.end();
}

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
