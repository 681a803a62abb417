#include <cmath>
#include <cstdint>
#include <map>
#include <utility>

#include "codec/codec_bench.hpp"
#include "core/json_value.hpp"
#include "report/number_text.hpp"

namespace windtunnel {
namespace {

using Members = std::vector<std::pair<const char*, JsonValue>>;

JsonValue object_of(Members members) {
  JsonValue object(JsonValue::Object{});
  for (auto& [key, value] : members) object.set(key, std::move(value));
  return object;
}

JsonValue text(std::string words) { return JsonValue(std::move(words)); }

/// A whole number as one.
JsonValue number(double value) {
  constexpr double exact_below = 9007199254740992.0;  // 2^53
  return std::trunc(value) == value && std::abs(value) < exact_below
             ? JsonValue(static_cast<std::int64_t>(value))
             : JsonValue(value);
}

JsonValue number(std::size_t value) { return JsonValue(static_cast<std::int64_t>(value)); }

template <class List, class ToValue>
JsonValue array_of(const List& list, ToValue to_value) {
  JsonValue::Array array;
  for (const auto& item : list) array.push_back(to_value(item));
  return JsonValue(std::move(array));
}

/// {"codec": "zfp", "rate": 8}, and for mpc the ratio that was measured: an entry of a scenario's `compression` block.
JsonValue choice_value(const CodecChoice& choice) {
  JsonValue object = object_of({{"codec", text(choice.codec)}});
  const std::string setting = setting_of(choice.codec);
  if (!setting.empty()) object.set(setting, number(choice.setting));
  return object;
}

JsonValue scenario_value(const CodecMeasurement& codec) {
  JsonValue object = choice_value(codec.choice);
  if (codec.choice.codec == "mpc") object.set("ratio", JsonValue(codec.ratio));
  return object;
}

JsonValue codec_value(const CodecMeasurement& codec) {
  JsonValue object = choice_value(codec.choice);
  object.set("compressed_bytes", number(codec.compressed.value()));
  object.set("ratio", JsonValue(codec.ratio));
  object.set("relative_error", JsonValue(codec.error.relative));
  object.set("largest_error", JsonValue(codec.error.largest));
  if (codec.choice.codec == "powersgd")
    object.set("first_relative_error", JsonValue(codec.cold.relative));
  object.set("scenario", scenario_value(codec));
  return object;
}

JsonValue feedback_value(const FeedbackMeasurement& feedback) {
  JsonValue object = choice_value(feedback.choice);
  object.set("error_without", JsonValue(feedback.without.sum_error));
  object.set("error_with", JsonValue(feedback.with.sum_error));
  object.set("residual", JsonValue(feedback.with.residual));
  object.set("telescoping", JsonValue(feedback.with.telescoping));
  return object;
}

std::string rate_text(BytesPerSecond rate) {
  constexpr int digits = 3;
  return significant_text(rate / 1_GBps, digits) + " GB/s";
}

JsonValue speed_value(const CodecMeasurement& codec) {
  JsonValue object = choice_value(codec.choice);
  object.set("encode_bytes_per_s", JsonValue(codec.speed.encode.value()));
  object.set("decode_bytes_per_s", JsonValue(codec.speed.decode.value()));
  return object;
}

/// The throughputs as the `codecs` of a device file has them: zfp by rising rate, calls at no cost beside the rates.
JsonValue device_fragment(const CodecReport& report) {
  const std::string source = "measured: windtunnel codec, one CPU core, " + report.tensor.source;
  JsonValue codecs = object_of({{"launch", text("0 us")}});
  std::map<double, JsonValue> zfp;
  for (const CodecMeasurement& codec : report.codecs) {
    const JsonValue encode = text(rate_text(codec.speed.encode));
    const JsonValue decode = text(rate_text(codec.speed.decode));
    if (codec.choice.codec == "zfp")
      zfp[codec.choice.setting] = object_of({{"rate", number(codec.choice.setting)},
                                             {"encode", encode},
                                             {"decode", decode},
                                             {"source", text(source)}});
    if (codec.choice.codec == "topk") codecs.set("selection", encode);
    if (codec.choice.codec != "mpc") continue;
    codecs.set("mpc_encode", encode);
    codecs.set("mpc_decode", decode);
  }
  codecs.set("source", object_of({{"*", text(source)}}));
  if (!zfp.empty())
    codecs.set("zfp", array_of(zfp, [](const auto& entry) { return entry.second; }));
  return object_of({{"codecs", std::move(codecs)}});
}

JsonValue tensor_value(const Tensor& tensor) {
  const TensorScale scale = scale_of(tensor);
  return object_of({{"source", text(tensor.source)},
                    {"element", text(name_of(tensor.element))},
                    {"rows", number(tensor.rows)},
                    {"columns", number(tensor.columns)},
                    {"bytes", number(tensor.bytes().value())},
                    {"rms", JsonValue(scale.rms)},
                    {"largest", JsonValue(scale.largest)}});
}

}  // namespace

std::string codec_json(const CodecReport& report) {
  JsonValue object = object_of({{"schema", text("windtunnel/codec-v1")},
                                {"version", text(WINDTUNNEL_VERSION)},
                                {"seed", number(static_cast<std::size_t>(report.seed))},
                                {"tensor", tensor_value(report.tensor)},
                                {"codecs", array_of(report.codecs, codec_value)}});
  if (report.feedback_messages > 0)
    object.set("error_feedback",
               object_of({{"messages", number(double(report.feedback_messages))},
                          {"codecs", array_of(report.feedback, feedback_value)}}));
  object.set("wall", object_of({{"cores", number(1.0)},
                                {"speeds", array_of(report.codecs, speed_value)},
                                {"device_fragment", device_fragment(report)}}));
  return pretty_text(object) + "\n";
}

}  // namespace windtunnel
