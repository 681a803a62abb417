#pragma once

#include <memory>
#include <string>
#include <vector>

#include "codec/tensor.hpp"
#include "plan/compression.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// A codec of real numbers, which holds the message it encoded last.
class TensorCodec {
 public:
  virtual ~TensorCodec() = default;
  TensorCodec() = default;
  TensorCodec(const TensorCodec&) = delete;
  TensorCodec& operator=(const TensorCodec&) = delete;

  /// Encodes the next message. PowerSGD starts from the factors of the one before, which must have had the same shape.
  virtual void encode(const Tensor& tensor) = 0;
  /// The encoded message's size on the wire.
  virtual Bytes size() const = 0;
  /// The receiver's values, row after row; valid until the next call.
  virtual const std::vector<float>& decode() = 0;
};

/// A codec and its setting, as an entry of a scenario's `compression` block names them.
struct CodecChoice {
  std::string codec;   ///< a name of measured_codecs()
  double setting = 0;  ///< rank, rate or density; 0 for the codecs that have none

  /// "powersgd rank 16", "mpc".
  std::string label() const;
};

/// The key of the codec's setting, nothing where there is none: `rank` of powersgd, `rate` of zfp, `density` of topk.
const CodecKey* setting_of(const std::string& codec);

/// EnvironmentError for a codec that this build cannot run.
std::unique_ptr<TensorCodec> make_codec(const CodecChoice& choice, std::uint64_t seed);

}  // namespace windtunnel
