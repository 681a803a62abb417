#include "codec/codec_bench.hpp"

#include <algorithm>
#include <chrono>

#include "codec/measured_codec.hpp"
#include "core/interruption.hpp"

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
    expect_not_interrupted();
    const Seconds encoding = time_of([&] { codec.encode(tensor); });
    expect_not_interrupted();
    const Seconds decoding = time_of([&] { codec.decode(); });
    encode = std::min(encode, encoding);
    decode = std::min(decode, decoding);
    spent += encoding + decoding;
  }
  return {tensor.bytes() / std::max(encode, too_short_to_see),
          tensor.bytes() / std::max(decode, too_short_to_see)};
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
  expect_not_interrupted();
  codec->encode(tensor);
  expect_not_interrupted();
  measurement.compressed = codec->size();
  measurement.ratio = tensor.bytes() / codec->size();
  measurement.cold = measurement.error = error_of(tensor, codec->decode());
  if (starts_warm(choice)) {
    for (int i = 1; i < settling_messages; ++i) {
      expect_not_interrupted();
      codec->encode(tensor);
    }
    measurement.error = error_of(tensor, codec->decode());
  }
  measurement.speed = speed_of(*codec, tensor);
  return measurement;
}

}  // namespace windtunnel
