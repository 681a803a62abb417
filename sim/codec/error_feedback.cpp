#include "codec/error_feedback.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

#include "core/contracts.hpp"
#include "core/interruption.hpp"

namespace windtunnel {
namespace {

constexpr double rounding = 0x1p-24;  ///< u of float32
constexpr double float64_slack =
    1 + 1e-6;  ///< of the bound: second-order terms and the sums' own rounding
constexpr double smallest_rounding = 0x1p-149;  ///< what float32 rounds to below its normal numbers

/// Sums over the messages so far, number by number.
struct Sums {
  explicit Sums(std::size_t size) : sent(size), arrived(size), allowed(size) {}
  std::vector<double> sent, arrived, allowed;
};

double norm(const std::vector<double>& numbers) {
  double squares = 0;
  for (const double number : numbers) squares += number * number;
  return std::sqrt(squares);
}

FeedbackResult result_of(const Sums& sums, const std::vector<float>& residual,
                         ErrorFeedback feedback) {
  FeedbackResult result;
  const std::size_t size = sums.sent.size();
  std::vector<double> difference(size), held(size);
  for (std::size_t i = 0; i < size; ++i) {
    difference[i] = sums.arrived[i] - sums.sent[i];
    held[i] = residual[i];
    if (feedback == ErrorFeedback::on)
      result.telescoping =
          std::max(result.telescoping, std::abs(difference[i] + held[i]) / sums.allowed[i]);
  }
  const double whole = norm(sums.sent);
  if (whole == 0) return result;
  result.sum_error = norm(difference) / whole;
  result.residual = norm(held) / whole;
  return result;
}

}  // namespace

FeedbackResult send_with(ErrorFeedback feedback, TensorCodec& codec, int count,
                         const std::function<Tensor(int)>& message) {
  WT_EXPECT(count > 0);
  std::vector<float> residual;
  Sums sums(0);
  for (int t = 0; t < count; ++t) {
    Tensor carried = message(t);
    if (t == 0) {
      residual.assign(carried.size(), 0);
      sums = Sums(carried.size());
    }
    WT_EXPECT(carried.size() == residual.size());
    for (std::size_t i = 0; i < residual.size(); ++i) {
      sums.sent[i] += carried.values[i];
      carried.values[i] += residual[i];
    }
    expect_not_interrupted();
    codec.encode(carried);
    const std::vector<float>& arrived = codec.decode();
    expect_finite(carried, arrived);
    for (std::size_t i = 0; i < residual.size(); ++i) {
      sums.arrived[i] += arrived[i];
      if (feedback == ErrorFeedback::off) continue;
      residual[i] = carried.values[i] - arrived[i];
      sums.allowed[i] += (std::abs(double{carried.values[i]}) + std::abs(double{residual[i]})) *
                             rounding * float64_slack +
                         smallest_rounding;
    }
  }
  return result_of(sums, residual, feedback);
}

}  // namespace windtunnel
