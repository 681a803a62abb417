#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "codec/codec_bench.hpp"
#include "codec/measured_codec.hpp"
#include "core/json_build.hpp"
#include "cost/codec_table.hpp"
#include "report/chart.hpp"
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

/// The throughputs as the `codecs` of a device file has them: calls at no cost apart from the rates.
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

std::string ratio_text(double ratio) { return fixed_text(ratio, 2); }
std::string speed_text(double bytes_per_s) { return to_text(BytesPerSecond{bytes_per_s}); }

/// Chart of saving against error; a lossless codec has no place on an axis of errors.
std::vector<document::Part> error_chart(const std::vector<CodecMeasurement>& codecs) {
  Chart chart{"Relative error over compression ratio", Chart::Shape::dots, {}, {}};
  std::vector<double> ratios, errors;
  for (const CodecMeasurement& codec : codecs) {
    if (codec.error.relative <= 0) continue;
    chart.points.push_back({codec.ratio, codec.error.relative, codec.choice.label()});
    ratios.push_back(codec.ratio);
    errors.push_back(codec.error.relative);
  }
  if (chart.points.empty()) return {};
  chart.x = logarithmic_axis(ratios);
  chart.y = logarithmic_axis(errors);
  chart.x.title = "bytes of the message over bytes sent";
  chart.y.title = "relative error";
  chart.x.text = chart.y.text = number_mark;
  return {chart};
}

}  // namespace

document::Document codec_document(const CodecReport& report) {
  const Tensor& tensor = report.tensor;
  JsonValue data = codec_data(report);
  const auto cell = [&data](const std::string& list, std::size_t place, const char* key,
                            std::string (*format)(double)) {
    return document::figure(data, list + "/" + std::to_string(place) + "/" + key, format);
  };
  document::Table codecs{"lrrr??r?rr",
                         {{"codec", "ratio", "error", "first", "largest", "encode", "decode"}}};
  for (std::size_t i = 0; i < report.codecs.size(); ++i)
    codecs.rows.push_back({report.codecs[i].choice.label(), cell("/codecs", i, "ratio", ratio_text),
                           cell("/codecs", i, "relative_error", error_text),
                           cell("/codecs", i, "first_relative_error", error_text),
                           cell("/codecs", i, "largest_error", error_text),
                           cell("/wall/speeds", i, "encode_bytes_per_s", speed_text),
                           cell("/wall/speeds", i, "decode_bytes_per_s", speed_text)});
  std::vector<document::Part> message = error_chart(report.codecs);
  message.insert(message.end(),
                 {codecs,
                  "error: relative, Frobenius; first: PowerSGD's first message; largest: over the "
                  "largest number",
                  "encode, decode: real time on one core of this machine, not on a GPU"});
  document::Section sums{"feedback", "Error feedback", "", {}};
  if (report.feedback_messages > 0) {
    document::Table feedback{"lrrrr?", {{"codec", "without", "with", "residual", "telescoping"}}};
    for (std::size_t i = 0; i < report.feedback.size(); ++i) {
      document::TableRow row{report.feedback[i].choice.label()};
      for (const char* key : {"error_without", "error_with", "residual", "telescoping"})
        row.push_back(cell("/error_feedback/codecs", i, key, error_text));
      feedback.rows.push_back(std::move(row));
    }
    sums.title = "Sum of " + std::to_string(report.feedback_messages) +
                 " messages: error without and with error feedback";
    sums.parts = {
        feedback,
        "telescoping: what the residual does not explain, over what float32 rounding allows"};
  }
  const std::string opening = std::to_string(tensor.rows) + " x " + std::to_string(tensor.columns) +
                              " " + name_of(tensor.element) + ", " + to_text(tensor.bytes()) +
                              ", rms " + document::figure(data, "/tensor/rms", error_text).text() +
                              ", largest " +
                              document::figure(data, "/tensor/largest", error_text).text();
  return {std::move(data),
          "codec",
          tensor.source,
          {opening},
          "",
          {},
          {{"codecs", "Codecs", "One message", std::move(message)}, sums},
          "windtunnel codec --json"};
}

}  // namespace windtunnel
