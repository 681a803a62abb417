#include "cost/codec_table.hpp"

#include <algorithm>

#include "core/contracts.hpp"

namespace windtunnel {

#define WT_CODEC(name) const Codec& name##_codec();
#include "cost/codecs.def"
#undef WT_CODEC

const std::vector<const Codec*>& codecs() {
  static const std::vector<const Codec*> all{
#define WT_CODEC(name) &name##_codec(),
#include "cost/codecs.def"
#undef WT_CODEC
  };
  return all;
}

const Codec& codec_named(std::string_view name) {
  const auto found = std::find_if(codecs().begin(), codecs().end(),
                                  [name](const Codec* codec) { return codec->name() == name; });
  WT_EXPECT(found != codecs().end());
  return **found;
}

}  // namespace windtunnel
