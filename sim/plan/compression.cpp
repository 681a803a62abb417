#include "plan/compression.hpp"

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

}  // namespace windtunnel
