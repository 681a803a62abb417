#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "codec/tensor_codec.hpp"
#include "core/json_value.hpp"

namespace windtunnel {

/// Measured rates of a codec at one setting, as a device file writes them.
struct MeasuredRates {
  JsonValue setting;
  std::string encode, decode, source;
};

/// A codec that can be run on real numbers: one file of sim/codec/measured/ each, and one line of sim/codec/measured.def. Its setting is
/// the first key of its entry in sim/cost/codecs/ that is a choice.
struct MeasuredCodec {
  /// State that a message starts from: none, or that of the messages before it.
  enum class Start {
    cold,
    warm,  ///< it starts from what the message before left
  };
  const char* name;  ///< in scenarios
  std::vector<double>
      settings;  ///< that are measured unless others are asked for; {0} where there is none to choose
  const char* option_text = "";  ///< of the command line's option for the setting
  const char* option_type = "";
  Start start = Start::cold;
  const char* missing_package = nullptr;  ///< without which this build cannot run the codec
  std::unique_ptr<TensorCodec> (*make)(double setting, std::uint64_t seed) = nullptr;
  /// Adds what was measured to the `codecs` of a device file, where they have a place for it. Called by rising setting.
  void (*add_rates)(const MeasuredRates& rates, JsonValue& codecs) = nullptr;
};

/// All of them, in the order of sim/codec/measured.def.
const std::vector<MeasuredCodec>& measured_codecs();

/// The codec of this name, which must exist.
const MeasuredCodec& measured_codec(std::string_view name);

}  // namespace windtunnel
