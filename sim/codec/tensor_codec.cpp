#include "codec/tensor_codec.hpp"

#include "codec/mpc_codec.hpp"
#include "codec/power_sgd.hpp"
#include "codec/simple_codecs.hpp"
#include "core/contracts.hpp"
#include "core/problem.hpp"
#include "report/number_text.hpp"
#ifdef WINDTUNNEL_WITH_ZFP
#include "codec/zfp_codec.hpp"
#endif

namespace windtunnel {
namespace {

std::unique_ptr<TensorCodec> make_zfp([[maybe_unused]] double rate) {
#ifdef WINDTUNNEL_WITH_ZFP
  return std::make_unique<ZfpCodec>(rate);
#else
  throw EnvironmentError(
      "this build has no zfp (install libzfp-dev, then configure and build again)");
#endif
}

}  // namespace

bool has_zfp() {
#ifdef WINDTUNNEL_WITH_ZFP
  return true;
#else
  return false;
#endif
}

std::string setting_of(const std::string& codec) {
  if (codec == "powersgd") return "rank";
  if (codec == "zfp") return "rate";
  if (codec == "topk") return "density";
  return {};
}

std::string CodecChoice::label() const {
  constexpr int digits = 6;
  const std::string name = setting_of(codec);
  return name.empty() ? codec : codec + " " + name + " " + significant_text(setting, digits);
}

std::unique_ptr<TensorCodec> make_codec(const CodecChoice& choice, std::uint64_t seed) {
  if (choice.codec == "powersgd")
    return std::make_unique<PowerSgd>(static_cast<int>(choice.setting), seed);
  if (choice.codec == "zfp") return make_zfp(choice.setting);
  if (choice.codec == "topk") return std::make_unique<TopkCodec>(choice.setting);
  if (choice.codec == "mpc") return std::make_unique<MpcCodec>();
  WT_EXPECT(choice.codec == "int8");
  return std::make_unique<Int8Codec>();
}

}  // namespace windtunnel
