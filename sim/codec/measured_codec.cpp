#include "codec/measured_codec.hpp"

#include <algorithm>

#include "core/contracts.hpp"

namespace windtunnel {

#define WT_CODEC(name) MeasuredCodec measured_##name();
#include "codec/measured.def"
#undef WT_CODEC

const std::vector<MeasuredCodec>& measured_codecs() {
  static const std::vector<MeasuredCodec> all{
#define WT_CODEC(name) measured_##name(),
#include "codec/measured.def"
#undef WT_CODEC
  };
  return all;
}

const MeasuredCodec& measured_codec(std::string_view name) {
  const auto found =
      std::find_if(measured_codecs().begin(), measured_codecs().end(),
                   [name](const MeasuredCodec& codec) { return codec.name == name; });
  WT_EXPECT(found != measured_codecs().end());
  return *found;
}

}  // namespace windtunnel
