#include <doctest/doctest.h>

#include <cmath>

#include "codec/codec_bench.hpp"
#include "codec/measured_codec.hpp"
#include "codec/synthetic.hpp"
#include "codec/tensor_codec.hpp"
#include "core/problem.hpp"

namespace windtunnel {
namespace {

Tensor matrix(std::size_t rows, std::size_t columns, std::vector<float> values) {
  Tensor tensor;
  tensor.source = "test";
  tensor.rows = rows;
  tensor.columns = columns;
  tensor.values = std::move(values);
  return tensor;
}

Tensor random_matrix(std::size_t rows, std::size_t columns, std::uint64_t seed = 1) {
  return matrix(rows, columns, normal_numbers(rows * columns, seed));
}

/// A sum of `rank` outer products of random vectors.
Tensor low_rank(std::size_t rows, std::size_t columns, std::size_t rank) {
  Tensor tensor = matrix(rows, columns, std::vector<float>(rows * columns));
  for (std::size_t r = 0; r < rank; ++r) {
    const std::vector<float> u = normal_numbers(rows, 10 + r), v = normal_numbers(columns, 20 + r);
    for (std::size_t i = 0; i < rows; ++i)
      for (std::size_t j = 0; j < columns; ++j) tensor.values[i * columns + j] += u[i] * v[j];
  }
  return tensor;
}

struct Outcome {
  Bytes size{};
  std::vector<float> values;
};

Outcome through(const CodecChoice& choice, const Tensor& tensor, int messages = 1) {
  const auto codec = make_codec(choice, 0);
  for (int i = 0; i < messages; ++i) codec->encode(tensor);
  return {codec->size(), codec->decode()};
}

double error_through(const CodecChoice& choice, const Tensor& tensor, int messages = 1) {
  return error_of(tensor, through(choice, tensor, messages).values).relative;
}

TEST_CASE("PowerSGD sends P and Q in float32") {
  // A microbatch of Optimus-CC's 2.5B model on one of 8 GPUs, a quarter as high: 256 x 1920 at rank 16: (256 + 1920) * 16 * 4 B.
  CHECK(through({"powersgd", 16}, random_matrix(256, 1920)).size == 139264_B);
}

TEST_CASE("PowerSGD restores a matrix of its rank with the first message") {
  // M Q spans the columns of M whatever Q, so that P Q' = P P' M = M, to float32 rounding of a few operations.
  CHECK(error_through({"powersgd", 3}, low_rank(40, 30, 3)) < 1e-5);
  CHECK(error_through({"powersgd", 2}, low_rank(40, 30, 3)) > 0.05);
}

TEST_CASE("PowerSGD settles on the best approximation of its rank") {
  // The best rank-2 approximation of diag(4, 3, 2, 1) leaves 2 and 1: error sqrt(5) / sqrt(30) = 0.40825 (Eckart and Young).
  // A message shrinks the rest by (2/3)^2; (4/9)^20 = 9e-8.
  const Tensor tensor = matrix(4, 4, {4, 0, 0, 0, 0, 3, 0, 0, 0, 0, 2, 0, 0, 0, 0, 1});
  CHECK(error_through({"powersgd", 2}, tensor, 20) ==
        doctest::Approx(std::sqrt(5.0 / 30)).epsilon(1e-4));
  CHECK(error_through({"powersgd", 2}, tensor, 1) > error_through({"powersgd", 2}, tensor, 20));
}

TEST_CASE("PowerSGD takes no higher rank than the matrix has, and zeros as they are") {
  CHECK(through({"powersgd", 64}, random_matrix(3, 5)).size == Bytes{(3 + 5) * 3 * 4});
  CHECK(error_through({"powersgd", 64}, random_matrix(3, 5)) < 1e-5);
  const Tensor zeros = matrix(4, 4, std::vector<float>(16, 0));
  CHECK(through({"powersgd", 2}, zeros).values == zeros.values);
}

TEST_CASE("PowerSGD takes numbers of any size for what they are") {
  // M scaled by a power of two has the same P, and a Q scaled as M is: the same error to the last bit, at 1e18 and 1e-22, whose
  // squares are no float32 numbers, as at 1.
  const Tensor tensor = low_rank(40, 30, 3);
  for (const int rank : {2, 3}) {
    const double error = error_through({"powersgd", static_cast<double>(rank)}, tensor, 3);
    for (const int exponent : {-75, 60, 75, 115}) {
      CAPTURE(exponent);
      Tensor scaled = tensor;
      for (float& value : scaled.values) value = std::ldexp(value, exponent);
      CHECK(error_through({"powersgd", static_cast<double>(rank)}, scaled, 3) == error);
    }
  }
}

TEST_CASE("numbers that leave the range of float32 in a codec are refused") {
  // P' M adds up 64 numbers of 3e38: 8 * 3e38 is more than 3.4e38.
  const Tensor tensor = matrix(64, 64, std::vector<float>(64 * 64, 3e38F));
  CHECK_THROWS_AS(error_through({"powersgd", 1}, tensor), InputError);
  CHECK(error_through({"int8", 0}, tensor) < 1e-6);
}

TEST_CASE("int8 takes numbers whose inverse is no float32 number") {
  // 127 / 1e-38 is infinite in float32. 5e-39 is 63.5 steps, and arrives as 64 of them: half a step off, and at most 9e-6 of that
  // for the step itself, 7.9e-41 in multiples of 1.4e-45.
  const Tensor tensor = matrix(1, 3, {1e-38F, -1e-38F, 5e-39F});
  CHECK(error_of(tensor, through({"int8", 0}, tensor).values).largest <= 0.5 / 127 + 9e-6);
}

TEST_CASE("zfp takes its rate in bits a value, and errs less with more of them") {
  if (measured_codec("zfp").missing_package != nullptr) return;
  const Tensor tensor = random_matrix(64, 64);
  CHECK(through({"zfp", 8}, tensor).size == tensor.bytes() / 4);
  CHECK(through({"zfp", 16}, tensor).size == tensor.bytes() / 2);
  const double coarse = error_through({"zfp", 8}, tensor),
               fine = error_through({"zfp", 16}, tensor);
  CHECK(coarse < 0.2);
  CHECK(fine < coarse / 100);  // 8 more bit planes: 2^-8
  CHECK(fine > 0);
}

TEST_CASE("MPC's stages leave two words of a chunk of ones") {
  // 1.0 is 0x3F800000: bits 23 to 29. Differences: the word itself, then 1023 zeros. Transposed: words 2 to 8 (31 - 29 to 31 - 23)
  // have one bit, the same. Differences again: word 2 is that bit, word 9 its negative. 1024 bits say so: 128 + 2 * 4 bytes.
  CHECK(through({"mpc", 0}, matrix(32, 32, std::vector<float>(1024, 1))).size == 136_B);
  Tensor halves =
      matrix(32, 32, std::vector<float>(1024, 1));  // 0x3C00: bits 10 to 13, in words of 2 bytes
  halves.element = ElementType::float16;
  CHECK(through({"mpc", 0}, halves).size == 132_B);
}

TEST_CASE("MPC loses nothing, whatever the numbers and however many") {
  for (const std::size_t count : {1U, 31U, 1024U, 1025U, 5000U}) {
    const Tensor tensor = random_matrix(1, count, count);
    CHECK(through({"mpc", 0}, tensor).values == tensor.values);
  }
  Tensor halves = random_matrix(1, 3000);
  for (float& value : halves.values)
    value = std::round(value * 64) / 64;  // float16 holds these exactly
  halves.element = ElementType::float16;
  CHECK(through({"mpc", 0}, halves).values == halves.values);
}

TEST_CASE("MPC shortens what resembles its neighbours and little else") {
  std::vector<float> ramp(4096);
  for (std::size_t i = 0; i < ramp.size(); ++i) ramp[i] = 1 + static_cast<float>(i) / 8192;
  const Tensor smooth = matrix(64, 64, ramp), noise = random_matrix(64, 64);
  CHECK(smooth.bytes() / through({"mpc", 0}, smooth).size > 8);
  const double ratio = noise.bytes() / through({"mpc", 0}, noise).size;
  CHECK(ratio > 1);
  CHECK(ratio < 1.2);
}

TEST_CASE("int8 errs by at most half a step") {
  const Tensor tensor = random_matrix(50, 50);
  const Outcome outcome = through({"int8", 0}, tensor);
  CHECK(outcome.size == 2504_B);
  // Steps of max / 127; the rest is float32 rounding of a product.
  CHECK(error_of(tensor, outcome.values).largest <= 0.5 / 127 * (1 + 1e-4));
  CHECK(error_of(tensor, outcome.values).largest > 0.4 / 127);
}

TEST_CASE("topk keeps the largest magnitudes, of equal ones the first") {
  Tensor tensor = matrix(2, 4, {1, -5, 2, 0, 4, -2, 0.5F, 2});
  const Outcome outcome = through({"topk", 0.375}, tensor);  // 3 of 8
  CHECK(outcome.values == std::vector<float>{0, -5, 2, 0, 4, 0, 0, 0});
  CHECK(outcome.size == 24_B);  // each 4 bytes of number and 4 of place
  CHECK(through({"topk", 1}, tensor).values == tensor.values);
  CHECK(through({"topk", 0.3}, tensor).size == 24_B);  // 2.4 numbers are 3
  tensor.element = ElementType::float16;
  CHECK(through({"topk", 0.375}, tensor).size == 18_B);
}

TEST_CASE("synthetic tensors repeat, differ by seed, and are what they are called") {
  const Tensor gradient = synthetic_tensor(SyntheticKind::gradient, 96, 64, 3);
  CHECK(gradient.values == synthetic_tensor(SyntheticKind::gradient, 96, 64, 3).values);
  CHECK(gradient.values != synthetic_tensor(SyntheticKind::gradient, 96, 64, 4).values);
  CHECK(scale_of(gradient).rms == doctest::Approx(1e-3).epsilon(1e-6));
  // Noise of 0.3 times the signal is left when all 32 directions are sent: 0.3 / sqrt(1.09) = 0.287 at most.
  CHECK(error_through({"powersgd", 32}, gradient, 10) < 0.287);
  CHECK(error_through({"powersgd", 32}, random_matrix(96, 64), 10) > 0.287);
  // One of an activation's 64 columns is 20 times as large: the largest number is far beyond what a normal tensor has.
  const TensorScale activation = scale_of(synthetic_tensor(SyntheticKind::activation, 96, 64, 3));
  CHECK(activation.largest / activation.rms > 10);
  const TensorScale normal = scale_of(random_matrix(96, 64));
  CHECK(normal.largest / normal.rms < 6);
  CHECK(normal.rms == doctest::Approx(1).epsilon(0.05));
}

TEST_CASE("a measurement says ratio and errors, PowerSGD's first one apart") {
  const Tensor tensor = synthetic_tensor(SyntheticKind::gradient, 64, 64, 0);
  const CodecMeasurement low = measure_codec({"powersgd", 4}, tensor, 0);
  CHECK(low.ratio == 8.0);  // 64 * 64 over (64 + 64) * 4
  CHECK(low.cold.relative > low.error.relative);
  CHECK(low.speed.encode > BytesPerSecond{0});
  CHECK(low.speed.decode > BytesPerSecond{0});
  const CodecMeasurement exact = measure_codec({"mpc", 0}, tensor, 0);
  CHECK(exact.error.relative == 0);
  CHECK(exact.cold.largest == 0);
}

}  // namespace
}  // namespace windtunnel
