#include "operations/sharded_pass.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>

namespace windtunnel {
namespace {

Seconds alone(ShardedDirection direction, int layers, int prefetch, const ShardedTimes& times) {
  return time_alone(sharded_pass(direction, layers, prefetch),
                    [&](const ShardedOperation& o) { return duration_of(o, times); });
}

/// docs/model.md, section 6, written out: g + beside(g) + (L-2) beside(g+s) + beside(s) + s.
double by_formula(int layers, int prefetch, double f, double g, double s, double iota) {
  if (layers == 0) return 0;
  if (prefetch == 0) return layers * (f + std::max(1.0, iota) * (g + s));
  if (layers == 1) return g + f + s;
  const auto beside = [&](double c) { return std::max(f + iota * std::min(c, f), c); };
  return g + beside(g) + (layers - 2) * beside(g + s) + beside(s) + s;
}

TEST_CASE("a pass alone takes what the formula of docs/model.md says") {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> time(0, 3);
  for (int drawn = 0; drawn < 2000; ++drawn) {
    const int layers = static_cast<int>(random() % 9), prefetch = static_cast<int>(random() % 2);
    ShardedTimes times;
    times.layer = Seconds{time(random)};
    times.gather_layer = Seconds{time(random)};
    times.scatter_layer = Seconds{time(random)};
    times.gather_edges = Seconds{time(random)};
    times.scatter_edges = Seconds{time(random)};
    times.edges = Seconds{time(random)};
    times.interference = time(random);
    times.prefetches = prefetch > 0;
    const double f = times.layer.value(), g = times.gather_layer.value(),
                 s = times.scatter_layer.value(), iota = times.interference;
    CAPTURE(layers);
    CHECK(alone(ShardedDirection::forward, layers, prefetch, times).value() ==
          doctest::Approx((times.gather_edges + times.edges).value() +
                          by_formula(layers, prefetch, f, g, 0, iota))
              .epsilon(1e-12));
    CHECK(alone(ShardedDirection::backward, layers, prefetch, times).value() ==
          doctest::Approx((times.edges + times.scatter_edges).value() +
                          by_formula(layers, prefetch, f, g, s, iota))
              .epsilon(1e-12));
  }
}

TEST_CASE("gathering further ahead costs nothing, and hides neither kernels nor collectives") {
  ShardedTimes times;
  times.layer = Seconds{2};
  times.scatter_layer = Seconds{1};
  for (const double gather : {0.5, 1.5, 3.0}) {
    times.gather_layer = Seconds{gather};
    for (const auto direction : {ShardedDirection::forward, ShardedDirection::backward}) {
      const double scatter = direction == ShardedDirection::backward ? 1 : 0;
      for (const int prefetch : {2, 3, 50}) {
        const Seconds far = alone(direction, 6, prefetch, times);
        CHECK(far <= alone(direction, 6, 1, times));
        CHECK(far.value() >= 6 * (gather + scatter));
        CHECK(far.value() >= gather + 6 * 2 + scatter);
      }
    }
  }
}

TEST_CASE("each layer is gathered once before it computes, and scattered once behind it") {
  for (const int prefetch : {0, 1, 2, 9}) {
    const auto operations = sharded_pass(ShardedDirection::backward, 5, prefetch);
    int gathered = 0, computed = 0, scattered = 0;
    for (const ShardedOperation& operation : operations) {
      gathered += operation.work == ShardedWork::gather_layer;
      computed += operation.work == ShardedWork::layer;
      scattered += operation.work == ShardedWork::scatter_layer;
      CHECK(computed <= gathered);
      CHECK(gathered <= computed + 1 + prefetch);
      CHECK(scattered <= computed);
      CHECK(operation.on_data_stream <= (prefetch > 0));
    }
    CHECK(gathered == 5);
    CHECK(computed == 5);
    CHECK(scattered == 5);
  }
}

}  // namespace
}  // namespace windtunnel
