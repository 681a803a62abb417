#include "codec/codec_bench.hpp"

#include <algorithm>
#include <chrono>

#include "codec/measured_codec.hpp"
#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

constexpr int least_runs = 3;
constexpr double least_seconds = 0.02;

template <class Work>
Seconds time_of(Work work) {
  using Clock = std::chrono::steady_clock;
  const Clock::time_point begin = Clock::now();
  work();
  return Seconds{std::chrono::duration<double>(Clock::now() - begin).count()};
}

CodecSpeed speed_of(TensorCodec& codec, const Tensor& tensor) {
  constexpr Seconds too_short_to_see = 1e-9 * 1_s;
  Seconds encode = 1e9 * 1_s, decode = encode, spent{};
  for (int run = 0; run < least_runs || spent < least_seconds * 1_s; ++run) {
    const Seconds encoding = time_of([&] { codec.encode(tensor); });
    const Seconds decoding = time_of([&] { codec.decode(); });
    encode = std::min(encode, encoding);
    decode = std::min(decode, decoding);
    spent += encoding + decoding;
  }
  return {tensor.bytes() / std::max(encode, too_short_to_see),
          tensor.bytes() / std::max(decode, too_short_to_see)};
}

/// "4.21e-01": three digits of an error, whatever its size.
std::string error_text(double error) { return error == 0 ? "0" : significant_text(error, 3); }

std::string row(const std::vector<std::string>& cells) {
  constexpr int label_width = 22, cell_width = 12;
  std::string line = "  " + left_aligned(cells.front(), label_width);
  for (std::size_t i = 1; i < cells.size(); ++i) line += right_aligned(cells[i], cell_width);
  line.erase(line.find_last_not_of(' ') + 1);
  return line + "\n";
}

std::string heading(const CodecReport& report) {
  const Tensor& tensor = report.tensor;
  const TensorScale scale = scale_of(tensor);
  return tensor.source + ": " + std::to_string(tensor.rows) + " x " +
         std::to_string(tensor.columns) + " " + name_of(tensor.element) + ", " +
         to_text(tensor.bytes()) + ", rms " + significant_text(scale.rms, 3) + ", largest " +
         significant_text(scale.largest, 3) + "\n";
}

std::string table(const CodecReport& report) {
  std::string text =
      "\n" + row({"codec", "ratio", "error", "first", "largest", "encode", "decode"});
  for (const CodecMeasurement& codec : report.codecs)
    text += row({codec.choice.label(), fixed_text(codec.ratio, 2), error_text(codec.error.relative),
                 starts_warm(codec.choice) ? error_text(codec.cold.relative) : "",
                 error_text(codec.error.largest), to_text(codec.speed.encode),
                 to_text(codec.speed.decode)});
  return text;
}

std::string feedback(const CodecReport& report) {
  if (report.feedback_messages == 0) return "";
  std::string text = "\nSum of " + std::to_string(report.feedback_messages) +
                     " messages: error without and with error feedback\n";
  text += row({"codec", "without", "with", "residual", "telescoping"});
  for (const FeedbackMeasurement& codec : report.feedback)
    text += row({codec.choice.label(), error_text(codec.without.sum_error),
                 error_text(codec.with.sum_error), error_text(codec.with.residual),
                 error_text(codec.with.telescoping)});
  return text;
}

}  // namespace

bool starts_warm(const CodecChoice& choice) {
  return measured_codec(choice.codec).start == MeasuredCodec::Start::warm;
}

CodecMeasurement measure_codec(const CodecChoice& choice, const Tensor& tensor,
                               std::uint64_t seed) {
  const std::unique_ptr<TensorCodec> codec = make_codec(choice, seed);
  CodecMeasurement measurement;
  measurement.choice = choice;
  codec->encode(tensor);
  measurement.compressed = codec->size();
  measurement.ratio = tensor.bytes() / codec->size();
  measurement.cold = measurement.error = error_of(tensor, codec->decode());
  if (starts_warm(choice)) {
    for (int i = 1; i < settling_messages; ++i) codec->encode(tensor);
    measurement.error = error_of(tensor, codec->decode());
  }
  measurement.speed = speed_of(*codec, tensor);
  return measurement;
}

std::string codec_text(const CodecReport& report) {
  std::string text =
      heading(report) + table(report) + feedback(report) +
      "\n  error: relative, Frobenius; first: PowerSGD's first message; largest: over "
      "the largest number\n  encode, decode: real time on one core of this machine, "
      "not on a GPU\n";
  if (report.feedback_messages > 0)
    text +=
        "  telescoping: what the residual does not explain, over what float32 rounding allows\n";
  return text;
}

}  // namespace windtunnel
