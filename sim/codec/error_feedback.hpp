#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "codec/tensor_codec.hpp"

namespace windtunnel {

/// Error compensation: a sender keeps what its codec lost and adds it to the next message. Karimireddy et al. 2019 (arXiv:1901.09847) call it
/// error feedback; Optimus-CC (arXiv:2301.09830) does it from one microbatch to the next and calls it lazy error propagation.
enum class ErrorFeedback { off, on };

/// Result of sending a sequence of messages m_1 … m_N.
///
/// With feedback the sender holds a residual e, at first 0, and sends c_t = m_t + e; d_t is what arrives, and e = c_t - d_t from then
/// on. Summed over all messages the residuals cancel but for the last: sum d_t = sum m_t - e_N. Without, e is not added and
/// the errors add up.
struct FeedbackResult {
  double sum_error = 0;  ///< Frobenius norm of (sum d_t - sum m_t) over that of sum m_t
  double residual = 0;   ///< norm of e_N over that of sum m_t; 0 without feedback
  /// Largest |sum d_t - (sum m_t - e_N)| of a number, over what float32 allows it: u sum_t (|c_t| + |e_t|), u = 2^-24, since c_t
  /// and e_t are each rounded once by at most u of their magnitude; sums are kept in float64, whose rounding is smaller by 2^-29.
  /// At most 1 if the identity holds; 0 without feedback.
  double telescoping = 0;
};

/// Sends `count` messages of one shape through the codec; `message(t)` is the t-th, t from 0.
FeedbackResult send_with(ErrorFeedback feedback, TensorCodec& codec, int count,
                         const std::function<Tensor(int)>& message);

}  // namespace windtunnel
