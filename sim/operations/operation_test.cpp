#include "operations/operation.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace windtunnel {
namespace {

Operation operation(Label label, double time, Overlap overlap = Overlap::none) {
  Operation result;
  result.label = label;
  result.time = Seconds{time};
  result.overlap = overlap;
  return result;
}

double total(const PassTimes& times) {
  return std::accumulate(times.begin(), times.end(), Seconds{}).value();
}
double of(const PassTimes& times, Part part) {
  return times[static_cast<std::size_t>(part)].value();
}

/// A pass of ZeRO 3: kernels f, gather g, and backward a scatter s.
struct Sharded {
  int layers = 1, prefetch = 1;
  double f = 0, g = 0, s = 0, taken = 0;

  PassOperations pass(bool backward) const {
    PassOperations pass;
    pass.layers = layers;
    pass.prefetch = std::max(1, prefetch);
    pass.taken = taken;
    pass.layer = {
        operation(Label::gather_layer, g, prefetch > 0 ? Overlap::prefetched : Overlap::none),
        operation(Label::attention, f / 4), operation(Label::feed_forward, 3 * f / 4)};
    if (!backward) return pass;
    pass.layer.push_back(
        operation(Label::scatter_layer, s, prefetch > 0 ? Overlap::trailing : Overlap::none));
    pass.after = {operation(Label::scatter_edges, 0)};
    return pass;
  }

  /// docs/model.md, section 6, written out: g + both(g) + (L-2) both(g+s) + both(s) + s.
  double by_formula(bool backward) const {
    const double scatter = backward ? s : 0;
    if (layers == 0) return 0;
    if (prefetch == 0) return layers * (f + g + scatter);
    if (layers == 1) return g + f + scatter;
    const auto both = [&](double c) { return std::max(f + taken * c, c); };
    return g + both(g) + (layers - 2) * both(g + scatter) + both(scatter) + scatter;
  }
};

TEST_CASE("a sharded pass alone takes what the formula of docs/model.md says") {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> time(0, 3);
  for (int drawn = 0; drawn < 2000; ++drawn) {
    const Sharded sharded{static_cast<int>(random() % 9),
                          static_cast<int>(random() % 2),
                          time(random),
                          time(random),
                          time(random),
                          time(random) / 4};
    CAPTURE(sharded.layers);
    for (const bool backward : {false, true}) {
      const PassOperations pass = sharded.pass(backward);
      CHECK(total(times_alone(pass)) ==
            doctest::Approx(sharded.by_formula(backward)).epsilon(1e-12));
      CHECK(of(times_alone(pass), Part::compute) ==
            doctest::Approx(sharded.layers * sharded.f).epsilon(1e-12));
      const auto duration = [&](const PlacedOperation& o) { return duration_of(pass, o); };
      CHECK(time_alone(place_operations(pass), duration).value() ==
            doctest::Approx(sharded.by_formula(backward)).epsilon(1e-12));
    }
  }
}

TEST_CASE("gathering further ahead costs nothing, and hides neither kernels nor collectives") {
  for (const double gather : {0.5, 1.5, 3.0}) {
    for (const bool backward : {false, true}) {
      double before = 1e9;
      for (const int prefetch : {1, 2, 3, 8}) {
        const double now = total(times_alone(Sharded{6, prefetch, 2, gather, 1, 0}.pass(backward)));
        CHECK(now <= before + 1e-12);
        CHECK(now >= 6 * std::max(2.0, gather + (backward ? 1 : 0)) - 1e-12);
        before = now;
      }
    }
  }
}

TEST_CASE(
    "a collective overlapped with a kernel costs what the kernel does not hide, and the next "
    "operation "
    "waits") {
  PassOperations pass;
  pass.layers = 3;
  pass.layer = {operation(Label::attention, 4),
                operation(Label::reduce_activation, 3, Overlap::with_next),
                operation(Label::weight_gradients, 1)};
  pass.after = {operation(Label::embedding, 10)};
  // Three layers of 4 + max(3, 1), and the embedding.
  const PassTimes times = times_alone(pass);
  CHECK(total(times) == doctest::Approx(3 * 7 + 10));
  CHECK(of(times, Part::tensor_comm) == doctest::Approx(3 * 2));
  CHECK(of(times, Part::compute) == doctest::Approx(3 * 5 + 10));

  const PlacedPass placed = place_operations(pass);
  REQUIRE(placed.operations.size() == 10);
  CHECK(placed.operations[1].stream == Stream::tensor);
  CHECK(placed.operations[1].after[0] == 0);  // when the kernel before it has ended
  CHECK(placed.operations[2].after[0] == PlacedOperation::nothing);
  CHECK(placed.operations[3].after[0] == 1);  // the next layer waits for it
  CHECK(placed.operations[9].after[0] == 7);
  CHECK(placed.awaited_at_end == PlacedOperation::nothing);
  pass.after.clear();
  CHECK(place_operations(pass).awaited_at_end == 7);
  CHECK(total(times_alone(pass)) == doctest::Approx(3 * 7));
}

TEST_CASE("layers are counted, and each asks for the one that many layers ahead") {
  const PlacedPass placed = place_operations(Sharded{3, 1, 1, 1, 1, 0}.pass(true));
  std::vector<std::pair<int, int>> gathers;  // layer, and the operation whose end it waits for
  for (const PlacedOperation& o : placed.operations)
    if (o.number == 0) gathers.emplace_back(o.layer, o.after[0]);
  // Two at once; the third when the second kernel of the first layer, the fourth operation, has ended.
  CHECK(gathers == std::vector<std::pair<int, int>>{{1, -1}, {2, -1}, {3, 3}});
}

TEST_CASE("each layer is gathered once before it computes, and scattered once behind it") {
  for (const int prefetch : {0, 1, 2, 9}) {
    int gathered = 0, computed = 0, scattered = 0;
    const Sharded sharded{5, prefetch, 1, 1, 1, 0};
    const PassOperations pass = sharded.pass(true);
    for (const PlacedOperation& o : place_operations(pass).operations) {
      const Label label = pass[o.number].label;
      gathered += label == Label::gather_layer;
      computed += label == Label::feed_forward;
      scattered += label == Label::scatter_layer;
      CHECK(computed <= gathered);
      CHECK(gathered <= computed + 1 + prefetch);
      CHECK(scattered <= computed);
      CHECK((o.stream == Stream::data) <= (prefetch > 0));
    }
    CHECK(gathered == 5);
    CHECK(computed == 5);
    CHECK(scattered == 5);
  }
}

TEST_CASE("an all-reduce sends twice what a gather does") {
  PassOperations pass;
  pass.layers = 5;
  Operation reduce = operation(Label::reduce_activation, 0),
            gather = operation(Label::gather_activation, 0);
  reduce.payload = gather.payload = Bytes{800};
  pass.layer = {reduce, gather};
  pass.before = {gather};
  // A group of four sends 3/4 of the payload per gather: 5 * 3 + 1 halves of 600 bytes.
  CHECK(sent_bytes(pass, Traffic::tensor_activations, {{{4, 1, 1}}}) == Bytes{16 * 600.0});
  CHECK(sent_bytes(pass, Traffic::zero_gather, {{{4, 1, 1}}}) == Bytes{0});
}

}  // namespace
}  // namespace windtunnel
