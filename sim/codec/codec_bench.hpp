#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codec/error_feedback.hpp"
#include "codec/tensor.hpp"
#include "codec/tensor_codec.hpp"
#include "report/document.hpp"

namespace windtunnel {

/// Measured speed of a codec on one core of this machine, in bytes of the uncompressed message: real time, differs from run to run.
struct CodecSpeed {
  BytesPerSecond encode{}, decode{};
};

/// Measured result of one codec on one tensor.
struct CodecMeasurement {
  CodecChoice choice;
  Bytes compressed{};
  double ratio = 0;   ///< bytes of the message, in its own type, over bytes sent
  TensorError error;  ///< with a warm start: once that has settled on the tensor
  TensorError cold;   ///< of the first message; as `error` without a warm start
  CodecSpeed speed;
};

/// Messages of the same tensor that a codec with a warm start gets before its error is taken: in training it starts from a message
/// much like this one, so what it does to a run's own sequence lies between its first error and this.
inline constexpr int settling_messages = 10;

/// True if each message of the codec starts from the state that the one before it left (PowerSGD's factors).
bool starts_warm(const CodecChoice& choice);

/// Encodes and decodes the tensor and compares. The measurement is exact and repeats, but for the speed: the fastest of at least
/// three runs and at least 20 ms.
CodecMeasurement measure_codec(const CodecChoice& choice, const Tensor& tensor, std::uint64_t seed);

/// A codec's sums of repeated messages without and with error feedback.
struct FeedbackMeasurement {
  CodecChoice choice;
  FeedbackResult without, with;
};

/// All that one call of `windtunnel codec` finds out.
struct CodecReport {
  Tensor tensor;
  std::uint64_t seed = 0;
  std::vector<CodecMeasurement> codecs;
  int feedback_messages = 0;  ///< 0: not asked for
  std::vector<FeedbackMeasurement> feedback;
};

/// The tables for people:
///
///   synthetic gradient: 1024 x 1024 float32, 4.00 MiB, rms 0.001, largest 0.0051
///
///   codec              ratio      error    largest     encode     decode
///   powersgd rank 16   32.00   4.21e-01   3.30e-01   1.3 GB/s   2.0 GB/s
///
/// {"schema": "windtunnel/codec-v1", "tensor": {…}, "codecs": [{"codec", "rank", "compressed_bytes", "ratio", "relative_error",
///  "largest_error", "first_relative_error", "scenario": {…}}…], "error_feedback": {…}, "wall": {"cores": 1, "speeds": […],
///  "device_fragment": {"codecs": {…}}}}
/// The same tensor and seed give the same document, `wall` apart.
document::Document codec_document(const CodecReport& report);

}  // namespace windtunnel
