#include "memory/in_flight.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

namespace windtunnel {
namespace {

bool is_backward(const Op& op) {
  return op.phase == Phase::backward || op.phase == Phase::weight_gradient;
}

/// Positions in the stream at which a pair begins and ceases to be held.
struct Span {
  std::size_t first_forward = SIZE_MAX;
  std::size_t last_backward = SIZE_MAX;
};

bool is_pass(const Op& op) {
  return op.kind == OpKind::compute && (op.phase == Phase::forward || is_backward(op));
}

/// By microbatch of the first chunk, of the second, ...: a stage passes each through each of its chunks.
std::vector<Span> held_spans(const std::vector<Op>& ops) {
  std::size_t microbatches = 0, chunks = 0;
  for (const Op& op : ops) {
    if (!is_pass(op)) continue;
    microbatches = std::max<std::size_t>(microbatches, op.microbatch + std::size_t{1});
    chunks = std::max<std::size_t>(chunks, op.chunk + std::size_t{1});
  }
  std::vector<Span> spans(microbatches * chunks);
  for (std::size_t at = 0; at < ops.size(); ++at) {
    const Op& op = ops[at];
    if (!is_pass(op)) continue;
    Span& span = spans[op.chunk * microbatches + op.microbatch];
    if (op.phase == Phase::forward)
      span.first_forward = std::min(span.first_forward, at);
    else
      span.last_backward = at;
  }
  return spans;
}

/// Change of the count at each position: +1 before the op runs, -1 after it.
struct Change {
  int before = 0, after = 0;
};

std::vector<Change> changes_of(const std::vector<Op>& ops) {
  std::vector<Change> changes(ops.size());
  for (const Span& span : held_spans(ops)) {
    if (span.first_forward == SIZE_MAX) continue;
    ++changes[span.first_forward].before;
    if (span.last_backward != SIZE_MAX) --changes[span.last_backward].after;
  }
  return changes;
}

}  // namespace

InFlight count_in_flight(const StageProgram& program) {
  InFlight most;
  int held = 0;
  bool gradients = false;
  for (const Change& change :
       changes_of(program.streams[static_cast<std::size_t>(Stream::compute)])) {
    held += change.before;
    most.all = std::max(most.all, held);
    if (gradients) most.with_gradients = std::max(most.with_gradients, held);
    held += change.after;
    // The first backward pass makes the gradients while it frees its own pair's activations: it
    // never holds both in full, so the count with gradients begins at its end. For 1F1B with m
    // microbatches this gives, k = p - i: after the first backward pass k - 1 are held if m > k,
    // and the next forward pass makes them k again; if m <= k there is no further forward pass and
    // m - 1 remain. Together min(m - 1, k).
    gradients = gradients || change.after < 0;
  }
  // With a single microbatch the only backward pass is the first one: min(max(m - 1, 1), p - i).
  if (gradients) most.with_gradients = std::max(most.with_gradients, 1);
  return most;
}

InFlightOfStages in_flight_microbatches(const std::vector<StageProgram>& programs) {
  InFlightOfStages stages;
  for (const StageProgram& program : programs) {
    const InFlight count = count_in_flight(program);
    stages.all.push_back(count.all);
    stages.with_gradients.push_back(count.with_gradients);
  }
  return stages;
}

InFlight count_in_flight(const std::vector<Step>& order) {
  const bool splits = std::any_of(order.begin(), order.end(), [](const Step& step) {
    return step.phase == Phase::weight_gradient;
  });
  const Phase last = splits ? Phase::weight_gradient : Phase::backward;
  InFlight most;
  int held = 0;
  bool gradients = false;
  for (const Step& step : order) {
    if (step.phase == Phase::forward) ++held;
    most.all = std::max(most.all, held);
    if (gradients) most.with_gradients = std::max(most.with_gradients, held);
    if (step.phase != last) continue;
    --held;
    gradients = true;
  }
  if (gradients) most.with_gradients = std::max(most.with_gradients, 1);
  return most;
}

InFlight estimate_in_flight(const Plan& plan, StageId stage) {
  return count_in_flight(schedule_order(plan, stage));
}

InFlightOfStages estimate_in_flight(const Plan& plan) {
  InFlightOfStages stages;
  for (int s = 0; s < plan.parallel.pipeline; ++s) {
    const InFlight count = estimate_in_flight(plan, StageId{s});
    stages.all.push_back(count.all);
    stages.with_gradients.push_back(count.with_gradients);
  }
  return stages;
}

}  // namespace windtunnel
