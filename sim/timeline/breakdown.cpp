#include "timeline/breakdown.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

enum class Awaited {
  own_work,     ///< on another stream
  other_stage,  ///< of the pipeline
  peers,        ///< which hold the same stage
};

Awaited awaited_with(Phase cause) {
  switch (cause) {
    case Phase::activation:
    case Phase::gradient:
    case Phase::embedding_sync:
      return Awaited::other_stage;
    case Phase::tensor_reduce:
    case Phase::context_exchange:
    case Phase::gradient_reduce:
    case Phase::parameter_gather:
    case Phase::expert_exchange:
      return Awaited::peers;
    case Phase::forward:
    case Phase::backward:
    case Phase::weight_gradient:
    case Phase::optimizer:
    case Phase::encode:
    case Phase::decode:
    case Phase::overhead:
      return Awaited::own_work;
  }
  return Awaited::own_work;
}

}  // namespace

/// Lines have the names of the parts that they are.
Line line_of(Part part) {
  static constexpr auto lines = [] {
    EnumArray<Part, Line> by_part{};
    for (const Part each : enumerators<Part>())
      by_part[each] = enumerator_named<Line>(name_of(each)).value();
    return by_part;
  }();
  return lines[part];
}

Line line_of(Phase cause) {
  switch (cause) {
    case Phase::activation:
    case Phase::gradient:
      return Line::pipeline_comm;
    case Phase::gradient_reduce:
    case Phase::parameter_gather:
      return Line::data_comm;
    case Phase::embedding_sync:
      return Line::embedding_sync;
    case Phase::context_exchange:
      return Line::context_comm;
    case Phase::tensor_reduce:
      return Line::tensor_comm;
    case Phase::expert_exchange:
      return Line::expert_comm;
    case Phase::encode:
    case Phase::decode:
      return Line::codec;
    case Phase::forward:
    case Phase::backward:
    case Phase::weight_gradient:
      return Line::compute;
    case Phase::optimizer:
      return Line::optimizer;
    case Phase::overhead:
      return Line::other;
  }
  return Line::other;
}

WaitForOthers wait_for_others(const Waiting& waiting) {
  const Seconds sent = std::clamp(waiting.sent, waiting.begin, waiting.end);
  switch (awaited_with(waiting.cause)) {
    case Awaited::own_work:
      return {waiting.begin, waiting.begin};
    case Awaited::other_stage:
      return {waiting.begin, sent, Line::pipeline_bubble};
    case Awaited::peers:
      return {std::clamp(waiting.entered, waiting.begin, sent), sent};
  }
  WT_UNREACHABLE();
}

Seconds Breakdown::total() const {
  return std::accumulate(seconds.begin(), seconds.end(), Seconds{});
}

void BreakdownListener::on_compute(DeviceId device, Stream stream, const Op&, const Work& work,
                                   Seconds begin, Seconds end) {
  // The parts add up to the span; the last one ends with it, whatever was rounded.
  const auto last = std::find_if(work.parts.rbegin(), work.parts.rend(),
                                 [](Seconds part) { return part > Seconds{}; });
  const auto num_before = static_cast<std::size_t>(std::max(work.parts.rend() - last, 1L) - 1);
  Seconds at = begin;
  for (std::size_t i = 0; i < num_before; ++i) {
    const Seconds next = std::min(end, at + work.parts[i]);
    count(device, stream, line_of(static_cast<Part>(i)), at, next);
    at = next;
  }
  count(device, stream, line_of(static_cast<Part>(num_before)), at, end);
}

void BreakdownListener::on_wait(DeviceId device, Stream stream, const Op&, const Waiting& waiting) {
  const WaitForOthers others = wait_for_others(waiting);
  const Line line = line_of(waiting.cause);
  count(device, stream, line, waiting.begin, others.begin);
  count(device, stream, others.line, others.begin, others.end);
  count(device, stream, line, others.end, waiting.end);
}

void BreakdownListener::on_device_end(DeviceId device, Seconds end) {
  DeviceState& state = devices_[device.index()];
  std::vector<Piece> beyond = std::move(state.beyond);
  std::stable_sort(beyond.begin(), beyond.end(),
                   [](const Piece& a, const Piece& b) { return a.begin < b.begin; });
  for (const Piece& piece : beyond) {
    count(device, Stream::compute, Line::other, state.counted, piece.begin);
    count(device, Stream::compute, piece.line, std::max(piece.begin, state.counted), piece.end);
  }
  count(device, Stream::compute, Line::other, state.counted, end);
}

void BreakdownListener::count(DeviceId device, Stream stream, Line line, Seconds begin,
                              Seconds end) {
  if (end <= begin) return;
  DeviceState& state = devices_[device.index()];
  if (stream != Stream::compute) {
    state.beyond.push_back({line, begin, end});
    return;
  }
  state.breakdown.add(line, end - begin);
  state.counted = end;
  state.beyond.clear();  // calls come in order of their end: it all ended before
}

}  // namespace windtunnel
