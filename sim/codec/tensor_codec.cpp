#include "codec/tensor_codec.hpp"

#include "codec/measured_codec.hpp"
#include "core/problem.hpp"
#include "cost/codec_table.hpp"
#include "report/number_text.hpp"

namespace windtunnel {

const CodecKey* setting_of(const std::string& codec) {
  for (const CodecKey& key : codec_named(codec).traits().keys)
    if (key.standing == CodecKey::Standing::choice) return &key;
  return nullptr;
}

std::string CodecChoice::label() const {
  constexpr int digits = 6;
  const CodecKey* key = setting_of(codec);
  return key == nullptr ? codec : codec + " " + key->name + " " + significant_text(setting, digits);
}

std::unique_ptr<TensorCodec> make_codec(const CodecChoice& choice, std::uint64_t seed) {
  const MeasuredCodec& codec = measured_codec(choice.codec);
  if (codec.missing_package != nullptr)
    throw EnvironmentError("this build has no " + choice.codec + " (install " +
                           codec.missing_package + ", then configure and build again)");
  return codec.make(choice.setting, seed);
}

}  // namespace windtunnel
