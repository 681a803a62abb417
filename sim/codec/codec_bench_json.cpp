#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>

#include "codec/codec_bench.hpp"
#include "codec/measured_codec.hpp"
#include "core/json_build.hpp"
#include "core/json_value.hpp"
#include "cost/codec_table.hpp"
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

/// {"codec": "zfp", "rate": 8}, and the ratio that was measured where a scenario has to assume one: an entry of a scenario's `compression` block.
JsonValue choice_value(const CodecChoice& choice) {
  JsonValue object = object_of({{"codec", text(choice.codec)}});
  if (const CodecKey* key = setting_of(choice.codec)) object.set(key->name, number(choice.setting));
  return object;
}

JsonValue scenario_value(const CodecMeasurement& codec) {
  JsonValue object = choice_value(codec.choice);
  for (const CodecKey& key : codec_named(codec.choice.codec).traits().keys)
    if (key.standing == CodecKey::Standing::assumption)
      object.set(key.name, JsonValue(codec.ratio));
  return object;
}

JsonValue codec_value(const CodecMeasurement& codec) {
  JsonValue object = choice_value(codec.choice);
  object.set("compressed_bytes", number(codec.compressed.value()));
  object.set("ratio", JsonValue(codec.ratio));
  object.set("relative_error", JsonValue(codec.error.relative));
  object.set("largest_error", JsonValue(codec.error.largest));
  if (starts_warm(codec.choice)) object.set("first_relative_error", JsonValue(codec.cold.relative));
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

/// The throughputs as the `codecs` of a device file has them: calls at no cost beside the rates.
JsonValue device_fragment(const CodecReport& report) {
  const std::string source = "measured: windtunnel codec, one CPU core, " + report.tensor.source;
  JsonValue codecs = object_of({{"launch", text("0 us")}});
  codecs.set("source", object_of({{"*", text(source)}}));
  std::vector<CodecMeasurement> measured = report.codecs;
  std::stable_sort(measured.begin(), measured.end(), [](const auto& a, const auto& b) {
    return a.choice.setting < b.choice.setting;
  });
  for (const CodecMeasurement& codec : measured)
    if (const auto add_rates = measured_codec(codec.choice.codec).add_rates)
      add_rates({number(codec.choice.setting), rate_text(codec.speed.encode),
                 rate_text(codec.speed.decode), source},
                codecs);
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
