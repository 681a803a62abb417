#include "operations/overlapped.hpp"

#include <doctest/doctest.h>

namespace windtunnel {
namespace {

Operation exchange(Label label, Seconds time) {
  Operation operation = collective(label, 1_MB);
  operation.time = time;
  return operation;
}

/// One layer with experts, in microseconds; exchanges take `each`.
struct Layer {
  explicit Layer(Seconds each, int layers = 1) {
    forward.layer = {kernel(Label::attention, 10_us),        kernel(Label::routing, 2_us),
                     exchange(Label::dispatch_tokens, each), kernel(Label::experts, 8_us),
                     exchange(Label::combine_tokens, each),  kernel(Label::merging, 1_us)};
    inputs.layer = {kernel(Label::merging, 1_us), exchange(Label::dispatch_tokens, each),
                    kernel(Label::experts, 8_us), exchange(Label::combine_tokens, each),
                    kernel(Label::routing, 2_us), kernel(Label::attention, 10_us)};
    weights.layer = {kernel(Label::weight_gradients, 0_us), kernel(Label::weight_gradients, 4_us),
                     kernel(Label::weight_gradients, 0_us), kernel(Label::weight_gradients, 5_us)};
    for (PassOperations* pass : {&forward, &inputs, &weights}) pass->layers = layers;
  }
  ForwardBackwardPair passes() const { return {forward, inputs, weights}; }

  PassOperations forward, inputs, weights;
};

Seconds sum_of(const PassTimes& times) {
  Seconds sum{};
  for (const Seconds time : times) sum += time;
  return sum;
}

double duration(const PassOperations& block) {
  Seconds sum{};
  for (const PassTimes& times : times_of_block(block)) sum += sum_of(times);
  return sum / 1_us;
}

double at(const PassOperations& block, PassOfBlock of, Part part) {
  return times_of_block(block)[static_cast<std::size_t>(of)][static_cast<std::size_t>(part)] / 1_us;
}

TEST_CASE("exchanges of two passes hide behind each other's kernels") {
  // Merging B 0-1, its exchange 1-7; attention and routing F 1-13, dispatch 13-19; experts B 13-21, their exchange 21-27; experts W
  // 21-25; experts F 25-33, combine 33-39; routing and attention B 33-45, W 45-50; merging F 50-51. Kernels alone: 51.
  const PassOperations block = overlapped(Layer(6_us).passes(), 1);
  CHECK(duration(block) == doctest::Approx(51));
  CHECK(at(block, PassOfBlock::forward, Part::compute) == doctest::Approx(21));
  CHECK(at(block, PassOfBlock::input_gradient, Part::compute) == doctest::Approx(21));
  CHECK(at(block, PassOfBlock::weight_gradient, Part::compute) == doctest::Approx(9));
  CHECK(at(block, PassOfBlock::forward, Part::expert_comm) == 0);
}

TEST_CASE("of long exchanges the first and the last kernel overlap with none") {
  // Merging B 0-1, exchanges 1-31, 31-61, 61-91 and 91-121, merging F 121-122. Experts B wait from 13 to 31, experts F from 43 to
  // 61, routing B from 69 to 91, merging F from 108 to 121.
  const PassOperations block = overlapped(Layer(30_us).passes(), 1);
  CHECK(duration(block) == doctest::Approx(122));
  CHECK(at(block, PassOfBlock::input_gradient, Part::expert_comm) == doctest::Approx(40));
  CHECK(at(block, PassOfBlock::forward, Part::expert_comm) == doctest::Approx(31));
}

TEST_CASE("kernels overlapped with exchanges have fewer multiprocessors") {
  CHECK(duration(overlapped(Layer(6_us).passes(), 2)) == doctest::Approx(102));
  Layer dense(0_us);  // without experts nothing takes multiprocessors away
  for (PassOperations* pass : {&dense.forward, &dense.inputs})
    std::erase_if(pass->layer,
                  [](const Operation& o) { return is_collective(row_of(o.label).kind); });
  CHECK(duration(overlapped(dense.passes(), 2)) == doctest::Approx(51));
}

TEST_CASE("two passes at once take no less than their kernels or exchanges and no more than both") {
  for (const int ahead : {1, 2, 5})
    for (const int back : {1, 3, 4})
      for (const double each : {1.0, 6.0, 9.0, 20.0}) {
        const Layer forward(1_us * each, ahead), backward(1_us * each, back);
        const PassOperations block =
            overlapped({forward.forward, backward.inputs, backward.weights}, 1);
        const double kernels = 21 * ahead + 30 * back, exchanges = 2 * each * (ahead + back);
        const double slack = 1 + 1e-12;
        CHECK(duration(block) * slack >= std::max(kernels, exchanges));
        CHECK(duration(block) <= (kernels + exchanges) * slack);
        CHECK(block.size() ==
              6U * static_cast<unsigned>(ahead) + 10U * static_cast<unsigned>(back));
      }
}

TEST_CASE("embedding and head stay at the ends of their pass") {
  Layer layer(6_us);
  layer.forward.before = {kernel(Label::launch_floor, 3_us), kernel(Label::embedding, 2_us)};
  layer.inputs.before = {kernel(Label::head, 3_us)};
  layer.weights.before = {kernel(Label::weight_gradients, 1_us)};
  const PassOperations block = overlapped(layer.passes(), 1);
  CHECK(block.before[0].label == Label::head);
  CHECK(block.before[1].label == Label::merging);
  // A block has a launch floor of its own.
  CHECK(duration(block) == doctest::Approx(57));
}

}  // namespace
}  // namespace windtunnel
