#include <doctest/doctest.h>

#include <cmath>

#include "core/philox.hpp"
#include "noise/step_noise.hpp"

namespace windtunnel {
namespace {

// Known answers of Random123 1.09, tests/kat_vectors: philox4x32 10.
static_assert(philox({0, 0, 0, 0}, {0, 0}) ==
              PhiloxCounter{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
static_assert(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}) ==
              PhiloxCounter{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});

TEST_CASE("normal draws have mean 0, variance 1 and the tails of the normal distribution") {
  const NoiseDraws draws(3);
  constexpr int count = 100'000;
  double sum = 0, squares = 0;
  int beyond_two = 0;
  for (int i = 0; i < count; ++i) {
    const double drawn = draws.normal(NoiseKind::pass, {7, 1, static_cast<std::uint32_t>(i)});
    sum += drawn;
    squares += drawn * drawn;
    beyond_two += std::abs(drawn) > 2 ? 1 : 0;
  }
  // Standard errors: 0.003 of the mean, 0.0045 of the variance, 0.0007 of the share, which is 0.0455. Four of them are allowed.
  CHECK(std::abs(sum / count) < 0.013);
  CHECK(squares / count == doctest::Approx(1).epsilon(0.018));
  CHECK(static_cast<double>(beyond_two) / count == doctest::Approx(0.0455).epsilon(0.06));
}

TEST_CASE("a draw depends on seed, kind and place, and on nothing else") {
  const NoiseDraws draws(3);
  const double drawn = draws.uniform(NoiseKind::pass, {1, 2, 3});
  CHECK(NoiseDraws(3).uniform(NoiseKind::pass, {1, 2, 3}) == drawn);
  CHECK(NoiseDraws(4).uniform(NoiseKind::pass, {1, 2, 3}) != drawn);
  CHECK(draws.uniform(NoiseKind::latency, {1, 2, 3}) != drawn);
  CHECK(draws.uniform(NoiseKind::pass, {2, 2, 3}) != drawn);
  CHECK(draws.uniform(NoiseKind::pass, {1, 3, 3}) != drawn);
  CHECK(draws.uniform(NoiseKind::pass, {1, 2, 4}) != drawn);
}

}  // namespace
}  // namespace windtunnel
