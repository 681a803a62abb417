#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>

#include "codec/codec_bench.hpp"
#include "codec/measured_codec.hpp"
#include "core/json_build.hpp"
#include "cost/codec_table.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

/// A whole number as one.
JsonValue number(double value) {
  constexpr double exact_below = 9007199254740992.0;  // 2^53
  return std::trunc(value) == value && std::abs(value) < exact_below
             ? JsonValue(static_cast<std::int64_t>(value))
             : JsonValue(value);
}

/// {"codec": "zfp", "rate": 8}, and the ratio that was measured where a scenario has to assume one: an entry of a scenario's `compression` block.
JsonValue choice_value(const CodecChoice& choice) {
  JsonValue object = object_of({{"codec", choice.codec}});
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
  add_members(object,
              {{"compressed_bytes", number(codec.compressed.value())},
               {"ratio", codec.ratio},
               {"relative_error", codec.error.relative},
               {"largest_error", codec.error.largest},
               {"first_relative_error",
                starts_warm(codec.choice) ? std::optional(codec.cold.relative) : std::nullopt},
               {"scenario", scenario_value(codec)}});
  return object;
}

JsonValue feedback_value(const FeedbackMeasurement& feedback) {
  JsonValue object = choice_value(feedback.choice);
  add_members(object, {{"error_without", feedback.without.sum_error},
                       {"error_with", feedback.with.sum_error},
                       {"residual", feedback.with.residual},
                       {"telescoping", feedback.with.telescoping}});
  return object;
}

std::string rate_text(BytesPerSecond rate) {
  constexpr int digits = 3;
  return significant_text(rate / 1_GBps, digits) + " GB/s";
}

JsonValue speed_value(const CodecMeasurement& codec) {
  JsonValue object = choice_value(codec.choice);
  add_members(object, {{"encode_bytes_per_s", codec.speed.encode.value()},
                       {"decode_bytes_per_s", codec.speed.decode.value()}});
  return object;
}

/// The throughputs as the `codecs` of a device file has them: calls at no cost beside the rates.
JsonValue device_fragment(const CodecReport& report) {
  const std::string source = "measured: windtunnel codec, one CPU core, " + report.tensor.source;
  JsonValue codecs = object_of({{"launch", "0 us"}});
  codecs.set("source", object_of({{"*", source}}));
  std::vector<CodecMeasurement> measured = report.codecs;
  std::stable_sort(measured.begin(), measured.end(), [](const auto& a, const auto& b) {
    return a.choice.setting < b.choice.setting;
  });
  for (const CodecMeasurement& codec : measured)
    if (const auto add_rates = measured_codec(codec.choice.codec).add_rates)
      add_rates({number(codec.choice.setting), rate_text(codec.speed.encode),
                 rate_text(codec.speed.decode), source},
                codecs);
  return object_of({{"codecs", codecs}});
}

JsonValue codec_data(const CodecReport& report) {
  const Tensor& tensor = report.tensor;
  const TensorScale scale = scale_of(tensor);
  std::optional<JsonValue> feedback;
  if (report.feedback_messages > 0)
    feedback = object_of({{"messages", report.feedback_messages},
                          {"codecs", array_of(report.feedback, feedback_value)}});
  return object_of({{"schema", "windtunnel/codec-v1"},
                    {"version", WINDTUNNEL_VERSION},
                    {"seed", report.seed},
                    {"tensor", object_of({{"source", tensor.source},
                                          {"element", name_of(tensor.element)},
                                          {"rows", tensor.rows},
                                          {"columns", tensor.columns},
                                          {"bytes", number(tensor.bytes().value())},
                                          {"rms", scale.rms},
                                          {"largest", scale.largest}})},
                    {"codecs", array_of(report.codecs, codec_value)},
                    {"error_feedback", feedback},
                    {"wall", object_of({{"cores", 1},
                                        {"speeds", array_of(report.codecs, speed_value)},
                                        {"device_fragment", device_fragment(report)}})}});
}

/// "4.21e-01": three digits of an error, whatever its size.
std::string error_text(double error) { return significant_text(error, 3); }

}  // namespace

document::Document codec_document(const CodecReport& report) {
  const Tensor& tensor = report.tensor;
  const TensorScale scale = scale_of(tensor);
  document::Table codecs{"lrrr??r?rr",
                         {{"codec", "ratio", "error", "first", "largest", "encode", "decode"}}};
  for (const CodecMeasurement& codec : report.codecs)
    codecs.rows.push_back({codec.choice.label(), fixed_text(codec.ratio, 2),
                           error_text(codec.error.relative),
                           starts_warm(codec.choice) ? error_text(codec.cold.relative) : "",
                           error_text(codec.error.largest), to_text(codec.speed.encode),
                           to_text(codec.speed.decode)});
  document::Table feedback{"lrrrr?", {{"codec", "without", "with", "residual", "telescoping"}}};
  for (const FeedbackMeasurement& codec : report.feedback)
    feedback.rows.push_back({codec.choice.label(), error_text(codec.without.sum_error),
                             error_text(codec.with.sum_error), error_text(codec.with.residual),
                             error_text(codec.with.telescoping)});
  document::Section sums{"feedback", "Error feedback", "", {}};
  if (report.feedback_messages > 0) {
    sums.title = "Sum of " + std::to_string(report.feedback_messages) +
                 " messages: error without and with error feedback";
    sums.parts = {
        feedback,
        "telescoping: what the residual does not explain, over what float32 rounding allows"};
  }
  return {codec_data(report),
          "codec",
          tensor.source,
          {std::to_string(tensor.rows) + " x " + std::to_string(tensor.columns) + " " +
           name_of(tensor.element) + ", " + to_text(tensor.bytes()) + ", rms " +
           significant_text(scale.rms, 3) + ", largest " + significant_text(scale.largest, 3)},
          "",
          {},
          {{"codecs",
            "Codecs",
            "One message",
            {codecs,
             "error: relative, Frobenius; first: PowerSGD's first message; largest: over the "
             "largest number",
             "encode, decode: real time on one core of this machine, not on a GPU"}},
           sums},
          "windtunnel codec --json"};
}

}  // namespace windtunnel
