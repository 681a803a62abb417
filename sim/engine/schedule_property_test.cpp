// Properties of every schedule, also of those that nobody would write: drawn by rapidcheck, checked, and simulated.
#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>
#include <string>
#include <tuple>

#include "engine/program_simulator.hpp"
#include "engine/testing.hpp"
#include "plan/schedule.hpp"
#include "schedule/pipeline_program.hpp"
#include "schedule/schedule_check.hpp"

namespace windtunnel {
namespace {

/// A pass and the stage it runs on.
using Pass = std::tuple<std::size_t, Phase, std::uint16_t, std::uint32_t>;

Pass pass_of(std::size_t stage, const Step& step) {
  return {stage, step.phase, step.chunk, step.microbatch};
}
Step step_of(const Pass& pass) { return {std::get<1>(pass), std::get<2>(pass), std::get<3>(pass)}; }

/// Inputs of a pass, written here once more, independently of the check.
std::vector<Pass> inputs_of(const Pass& pass, const OrderShape& shape) {
  const auto [stage, phase, chunk, microbatch] = pass;
  const int part = chunk * shape.stages + static_cast<int>(stage);
  const auto on_part = [&, i = microbatch](Phase p, int other) {
    return Pass{static_cast<std::size_t>(other % shape.stages), p,
                static_cast<std::uint16_t>(other / shape.stages), i};
  };
  std::vector<Pass> inputs;
  if (phase == Phase::forward && part > 0) inputs.push_back(on_part(Phase::forward, part - 1));
  if (phase == Phase::backward) {
    inputs.push_back(on_part(Phase::forward, part));
    if (part + 1 < shape.stages * shape.chunks)
      inputs.push_back(on_part(Phase::backward, part + 1));
  }
  if (phase == Phase::weight_gradient) inputs.push_back(on_part(Phase::backward, part));
  return inputs;
}

enum class Split { no, yes };

std::vector<Pass> passes_of(const OrderShape& shape, Split split) {
  std::vector<Pass> passes;
  for (std::size_t stage = 0; stage < static_cast<std::size_t>(shape.stages); ++stage)
    for (const Phase phase : {Phase::forward, Phase::backward, Phase::weight_gradient})
      for (int chunk = 0; chunk < shape.chunks; ++chunk)
        for (int i = 0; i < shape.microbatches; ++i)
          if (phase != Phase::weight_gradient || split == Split::yes)
            passes.emplace_back(stage, phase, static_cast<std::uint16_t>(chunk),
                                static_cast<std::uint32_t>(i));
  return passes;
}

OrderShape draw_shape() {
  OrderShape shape;
  shape.stages = *rc::gen::inRange(1, 6);
  shape.microbatches = *rc::gen::inRange(1, 6);
  shape.chunks = shape.stages > 1 ? *rc::gen::inRange(1, 4) : 1;
  return shape;
}

Split draw_split() { return *rc::gen::arbitrary<bool>() ? Split::yes : Split::no; }

/// Any order of events that respects inputs gives each stage a legal order, and every legal schedule is such an order.
ScheduleOrders draw_legal(const OrderShape& shape, Split split) {
  ScheduleOrders orders{"drawn", shape, {}};
  orders.of_stage.resize(static_cast<std::size_t>(shape.stages));
  std::vector<Pass> left = passes_of(shape, split);
  std::set<Pass> done;
  while (!left.empty()) {
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < left.size(); ++i) {
      const std::vector<Pass> inputs = inputs_of(left[i], shape);
      if (std::all_of(inputs.begin(), inputs.end(),
                      [&](const Pass& input) { return done.count(input) == 1; }))
        ready.push_back(i);
    }
    const std::size_t chosen = ready[*rc::gen::inRange<std::size_t>(0, ready.size())];
    orders.of_stage[std::get<0>(left[chosen])].push_back(step_of(left[chosen]));
    done.insert(left[chosen]);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(chosen));
  }
  return orders;
}

/// Durations in a drawn world.
struct DrawnTimes {
  Seconds forward{}, input_gradient{}, weight_gradient{}, latency{};
  Seconds backward() const { return input_gradient + weight_gradient; }
};

DrawnTimes draw_times() {
  const auto time = [] { return 1_ms * static_cast<double>(*rc::gen::inRange(1, 20)); };
  return {time(), time(), time(), 1_ms * static_cast<double>(*rc::gen::inRange(0, 10))};
}

/// Equal stages; messages that do not share anything.
ProgramSet programs_of(const ScheduleOrders& orders, const DrawnTimes& world) {
  PipelineShape shape;
  shape.stages = orders.shape.stages;
  shape.microbatches = orders.shape.microbatches;
  shape.chunks = orders.shape.chunks;
  ProgramSet set;
  for (std::size_t chunk = 1; chunk <= static_cast<std::size_t>(shape.chunks); ++chunk) {
    for (const Seconds time :
         {world.forward, world.backward(), world.input_gradient, world.weight_gradient,
          world.backward(), world.forward, world.input_gradient, world.weight_gradient})
      set.work.push_back(testing::work(time));
    set.work.resize(chunk * num_chunk_rows);
  }
  set.work.insert(set.work.end(), num_device_rows, Work{});
  set.message_bytes.assign(num_message_rows, 1_B);
  testing::add_stages(
      set, shape, [&](StageId stage) { return orders.of_stage[stage.index()]; },
      BytesPerSecond{1e30}, world.latency);
  return set;
}

struct Span {
  Seconds begin{}, end{};
};

/// Notes when each pass ran.
class PassListener final : public SimulationListener {
 public:
  void on_compute(DeviceId device, Stream, const Op& op, const Work&, Seconds begin,
                  Seconds end) override {
    if (op.phase != Phase::forward && op.phase != Phase::backward &&
        op.phase != Phase::weight_gradient)
      return;
    const Pass pass = pass_of(device.index(), {op.phase, op.chunk, op.microbatch});
    RC_ASSERT(spans.emplace(pass, Span{begin, end}).second);
  }
  std::map<Pass, Span> spans;
};

std::map<Pass, Span> spans_of(const ScheduleOrders& orders, const DrawnTimes& world) {
  PassListener listener;
  const auto engine = make_heap_engine(Network{});
  simulate_programs(programs_of(orders, world), *engine, &listener);
  return listener.spans;
}

std::string text_of(const ScheduleOrders& orders) {
  std::string text;
  for (const std::vector<Step>& order : orders.of_stage) {
    for (const Step& step : order) text += token_of(step) + " ";
    text += "\n";
  }
  return text;
}

/// Sums of milliseconds in any order.
constexpr double rounding = 1e-12;

TEST_CASE("any legal schedule is accepted and finishes, every pass once") {
  CHECK(rc::check([] {
    const OrderShape shape = draw_shape();
    const Split split = draw_split();
    const ScheduleOrders orders = draw_legal(shape, split);
    RC_LOG() << text_of(orders);
    RC_ASSERT(check_schedule(orders).empty());
    RC_ASSERT(spans_of(orders, draw_times()).size() == passes_of(shape, split).size());
  }));
}

TEST_CASE("the time spent computing does not depend on the schedule") {
  CHECK(rc::check([] {
    const OrderShape shape = draw_shape();
    const DrawnTimes world = draw_times();
    const auto total = [&](Split split) {
      double seconds = 0;
      for (const auto& [pass, span] : spans_of(draw_legal(shape, split), world))
        seconds += (span.end - span.begin) / 1_s;
      return seconds;
    };
    // Every microbatch through every part, forward and back.
    const double expected =
        (world.forward + world.backward()) / 1_s * shape.stages * shape.microbatches * shape.chunks;
    RC_ASSERT(std::abs(total(Split::no) - expected) < rounding * 1e3);
    RC_ASSERT(std::abs(total(Split::yes) - expected) < rounding * 1e3);
  }));
}

TEST_CASE("no device computes two passes at once, and each in the order that is written") {
  CHECK(rc::check([] {
    const ScheduleOrders orders = draw_legal(draw_shape(), draw_split());
    RC_LOG() << text_of(orders);
    const std::map<Pass, Span> spans = spans_of(orders, draw_times());
    for (std::size_t stage = 0; stage < orders.of_stage.size(); ++stage) {
      Seconds free{};
      for (const Step& step : orders.of_stage[stage]) {
        const Span& span = spans.at(pass_of(stage, step));
        RC_ASSERT(span.begin >= free);
        free = span.end;
      }
    }
  }));
}

TEST_CASE("nothing starts before its inputs are there, messages included") {
  CHECK(rc::check([] {
    const ScheduleOrders orders = draw_legal(draw_shape(), draw_split());
    RC_LOG() << text_of(orders);
    const DrawnTimes world = draw_times();
    const std::map<Pass, Span> spans = spans_of(orders, world);
    for (const auto& [pass, span] : spans) {
      for (const Pass& input : inputs_of(pass, orders.shape)) {
        const bool other_stage = std::get<0>(input) != std::get<0>(pass);
        const Seconds there = spans.at(input).end + (other_stage ? world.latency : Seconds{0});
        RC_ASSERT(span.begin >= there - 1_s * rounding);
      }
    }
  }));
}

TEST_CASE("without communication the engine and the check agree on the length of a schedule") {
  CHECK(rc::check([] {
    const Split split = draw_split();
    const ScheduleOrders orders = draw_legal(draw_shape(), split);
    RC_LOG() << text_of(orders);
    // The check's own lengths: F 1, B 2, or B 1 and W 1.
    const DrawnTimes world{1_ms, 1_ms, 1_ms, Seconds{0}};
    Seconds end{};
    for (const auto& [pass, span] : spans_of(orders, world)) end = std::max(end, span.end);
    RC_ASSERT(std::abs(end / 1_ms - time_schedule(orders).end) < 1e-9);
  }));
}

/// The passes that need `pass`, directly or not, but for the written order of its own stage.
std::set<Pass> consequences_of(const Pass& pass, const ScheduleOrders& orders) {
  std::map<Pass, std::vector<Pass>> next;
  for (std::size_t stage = 0; stage < orders.of_stage.size(); ++stage) {
    const std::vector<Step>& order = orders.of_stage[stage];
    for (std::size_t i = 0; i < order.size(); ++i) {
      const Pass here = pass_of(stage, order[i]);
      if (i > 0 && stage != std::get<0>(pass)) next[pass_of(stage, order[i - 1])].push_back(here);
      for (const Pass& input : inputs_of(here, orders.shape)) next[input].push_back(here);
    }
  }
  std::set<Pass> found;
  std::vector<Pass> front{pass};
  while (!front.empty()) {
    const Pass from = front.back();
    front.pop_back();
    for (const Pass& to : next[from])
      if (found.insert(to).second) front.push_back(to);
  }
  return found;
}

/// Moves one pass before another of its stage that it needs.
ScheduleOrders with_one_dependency_reversed(ScheduleOrders orders) {
  const auto stage = *rc::gen::inRange<std::size_t>(0, orders.of_stage.size());
  std::vector<Step>& order = orders.of_stage[stage];
  const auto first = *rc::gen::inRange<std::size_t>(0, order.size());
  const std::set<Pass> later = consequences_of(pass_of(stage, order[first]), orders);
  std::vector<std::size_t> movable;
  for (std::size_t i = first + 1; i < order.size(); ++i)
    if (later.count(pass_of(stage, order[i])) == 1) movable.push_back(i);
  RC_PRE(!movable.empty());
  const std::size_t moved = movable[*rc::gen::inRange<std::size_t>(0, movable.size())];
  const auto begin = order.begin();
  std::rotate(begin + static_cast<std::ptrdiff_t>(first),
              begin + static_cast<std::ptrdiff_t>(moved),
              begin + static_cast<std::ptrdiff_t>(moved) + 1);
  return orders;
}

/// True if a pass stands before its input from the same stage.
bool has_turned_stage(const ScheduleOrders& orders) {
  for (std::size_t stage = 0; stage < orders.of_stage.size(); ++stage) {
    std::set<Pass> done;
    for (const Step& step : orders.of_stage[stage]) {
      const Pass pass = pass_of(stage, step);
      for (const Pass& input : inputs_of(pass, orders.shape))
        if (std::get<0>(input) == stage && done.count(input) == 0) return true;
      done.insert(pass);
    }
  }
  return false;
}

TEST_CASE(
    "a schedule with one dependency reversed is refused with the cycle, and does not finish") {
  CHECK(rc::check([] {
    const ScheduleOrders orders =
        with_one_dependency_reversed(draw_legal(draw_shape(), draw_split()));
    RC_LOG() << text_of(orders);
    const std::vector<ScheduleFault> faults = check_schedule(orders);
    RC_ASSERT(!faults.empty());
    for (const ScheduleFault& fault : faults) {
      // "…: stage 1 B0 waits for …, which comes after stage 1 B0": it ends where it begins.
      const std::string& message = fault.message;
      RC_LOG() << message << "\n";
      const std::string head = "the schedule never finishes: ";
      RC_ASSERT(message.starts_with(head));
      const std::size_t waits = message.find(" waits for ");
      RC_ASSERT(waits != std::string::npos);
      RC_ASSERT(message.ends_with(" " + message.substr(head.size(), waits - head.size())));
      RC_ASSERT(message.find(" comes after ") != std::string::npos);
    }
    bool finishes = true;
    try {
      spans_of(orders, draw_times());
    } catch (const DeadlockError&) {
      finishes = false;
    }
    // The engine knows no inputs from the same device: there it computes what the check must refuse.
    if (!has_turned_stage(orders)) RC_ASSERT(!finishes);
  }));
}

}  // namespace
}  // namespace windtunnel
