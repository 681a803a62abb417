// Lazy error propagation in numbers: what arrives adds up to what was sent, less what is still held.
#include "codec/error_feedback.hpp"

#include <doctest/doctest.h>

#include "codec/measured_codec.hpp"
#include "codec/synthetic.hpp"
#include "codec/tensor_codec.hpp"

namespace windtunnel {
namespace {

constexpr int num_messages = 20;
constexpr std::size_t rows = 48, columns = 32;

Tensor matrix_of(std::vector<float> values) {
  Tensor tensor;
  tensor.rows = rows;
  tensor.columns = columns;
  tensor.values = std::move(values);
  return tensor;
}

/// A new random matrix each time, of mean 0.5: the sum grows faster than the noise.
Tensor random_message(int t) {
  std::vector<float> values = normal_numbers(rows * columns, static_cast<std::uint64_t>(t));
  for (float& value : values) value += 0.5F;
  return matrix_of(std::move(values));
}

/// A new matrix of rank 2 each time.
Tensor low_rank_message(int t) {
  const auto seed = static_cast<std::uint64_t>(4 * t);
  std::vector<float> values(rows * columns);
  for (const std::uint64_t r : {0U, 1U}) {
    const std::vector<float> u = normal_numbers(rows, seed + r),
                             v = normal_numbers(columns, seed + 2 + r);
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j) values[i * columns + j] += u[i] * v[j];
  }
  return matrix_of(std::move(values));
}

Tensor same_message(int) { return random_message(7); }

std::vector<CodecChoice> lossy_codecs() {
  std::vector<CodecChoice> codecs{{"powersgd", 4}, {"topk", 0.1}, {"int8", 0}};
  if (measured_codec("zfp").missing_package == nullptr) codecs.push_back({"zfp", 8});
  return codecs;
}

FeedbackResult send(const CodecChoice& choice, ErrorFeedback feedback,
                    const std::function<Tensor(int)>& message, int count = num_messages) {
  return send_with(feedback, *make_codec(choice, 0), count, message);
}

TEST_CASE("with feedback the sum of what arrives lacks the last residual and nothing else") {
  for (const CodecChoice& codec : lossy_codecs())
    for (const auto& message : {random_message, low_rank_message}) {
      CAPTURE(codec.label());
      const FeedbackResult with = send(codec, ErrorFeedback::on, message);
      // The bound of the header, which float32 arithmetic cannot exceed.
      CHECK(with.telescoping <= 1);
      CHECK(with.telescoping > 0);  // there was rounding: it was measured at all
      CHECK(with.sum_error == doctest::Approx(with.residual).epsilon(1e-4));
    }
}

TEST_CASE("with feedback the sum is nearer to the true one than without") {
  for (const CodecChoice& codec : lossy_codecs()) {
    CAPTURE(codec.label());
    CHECK(send(codec, ErrorFeedback::on, random_message).sum_error <
          send(codec, ErrorFeedback::off, random_message).sum_error);
  }
}

TEST_CASE("without feedback the errors of equal messages add up, with it they do not") {
  // topk sends the same numbers of the same message every time: the sum's relative error is that of one message, for any count.
  const CodecChoice topk{"topk", 0.1};
  const double once = send(topk, ErrorFeedback::off, same_message, 1).sum_error;
  CHECK(once > 0.5);
  CHECK(send(topk, ErrorFeedback::off, same_message).sum_error ==
        doctest::Approx(once).epsilon(1e-6));
  CHECK(send(topk, ErrorFeedback::off, same_message, 80).sum_error ==
        doctest::Approx(once).epsilon(1e-6));
  // With feedback what is held stays bounded while the sum grows: four times the messages, less than half of the error.
  const double at_20 = send(topk, ErrorFeedback::on, same_message).sum_error;
  const double at_80 = send(topk, ErrorFeedback::on, same_message, 80).sum_error;
  CHECK(at_20 < once);
  CHECK(at_80 < at_20 / 2);
}

TEST_CASE("a codec that loses nothing holds nothing") {
  for (const ErrorFeedback feedback : {ErrorFeedback::off, ErrorFeedback::on}) {
    const FeedbackResult result = send({"mpc", 0}, feedback, random_message);
    CHECK(result.sum_error == 0);
    CHECK(result.residual == 0);
    CHECK(result.telescoping == 0);
  }
}

TEST_CASE("messages of a rank that PowerSGD can send need no feedback") {
  CHECK(send({"powersgd", 2}, ErrorFeedback::off, low_rank_message).sum_error < 1e-5);
  CHECK(send({"powersgd", 1}, ErrorFeedback::off, low_rank_message).sum_error > 0.1);
}

}  // namespace
}  // namespace windtunnel
