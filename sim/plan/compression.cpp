#include "plan/compression.hpp"

#include <algorithm>

namespace windtunnel {

const char* name_of(CodecKind codec) {
  switch (codec) {
    case CodecKind::powersgd:
      return "powersgd";
    case CodecKind::zfp:
      return "zfp";
    case CodecKind::mpc:
      return "mpc";
    case CodecKind::topk:
      return "topk";
    case CodecKind::int8:
      return "int8";
    case CodecKind::fixed:
      return "fixed";
  }
  return "?";
}

bool compresses_gradients(const Compression& compression, int stage) {
  if (!compression.data_gradients) return false;
  const CompressedStages& chosen = compression.gradient_stages;
  return chosen.kind != CompressedStages::Kind::listed ||
         std::find(chosen.listed.begin(), chosen.listed.end(), stage) != chosen.listed.end();
}

}  // namespace windtunnel
