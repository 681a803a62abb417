#include "report/trace_slices.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <utility>

#include "core/contracts.hpp"
#include "report/trace_names.hpp"
#include "timeline/breakdown.hpp"

namespace windtunnel::detail {
namespace {

/// The slices of one device by stream, not yet on lanes.
using StreamSlices = std::array<std::vector<Slice>, num_streams>;

class SliceCollector {
 public:
  SliceCollector(const Timeline& timeline, const ProgramSet& programs)
      : timeline_(timeline), programs_(programs), devices_(programs.devices.size()) {}

  std::vector<StreamSlices> collect() {
    for (std::uint32_t i = 0; i < timeline_.computes.size(); ++i) add_compute(i);
    for (std::uint32_t i = 0; i < timeline_.waits.size(); ++i) add_wait(i);
    for (std::uint32_t i = 0; i < timeline_.messages.size(); ++i) add_message(i);
    for (std::uint32_t i = 0; i < timeline_.collectives.size(); ++i) add_collective(i);
    return std::move(devices_);
  }

 private:
  void add(DeviceId device, Stream stream, const Slice& slice) {
    if (slice.end > slice.begin)
      devices_[device.index()][static_cast<std::size_t>(stream)].push_back(slice);
  }

  void add_compute(std::uint32_t i) {
    const Span& span = timeline_.computes[i];
    const Slice whole{to_nanoseconds(span.begin), to_nanoseconds(span.end), SliceKind::span, {}, i};
    add(span.device, span.stream, whole);
    if (span.stream == Stream::compute) add_parts(span, whole);
  }

  static Stream stream_of_part(Part part) {
    if (part == Part::tensor_comm || part == Part::expert_comm || part == Part::context_comm)
      return Stream::tensor;
    return part == Part::data_comm ? Stream::data : Stream::compute;
  }

  /// The parts lie one after the other inside the op; the collectives' on their own threads.
  void add_parts(const Span& span, const Slice& whole) {
    const ProgramDevice& device = programs_.devices[span.device.index()];
    const Work& work = programs_.work_of(device, span.op);
    Seconds at = span.begin;
    Slice slice{whole.begin, whole.begin, SliceKind::part, Part::compute, whole.index};
    for (std::size_t i = 0; i < work.parts.size(); ++i) {
      at += work.parts[i];
      const bool last = std::all_of(work.parts.begin() + static_cast<std::ptrdiff_t>(i) + 1,
                                    work.parts.end(), [](Seconds part) { return part == 0_s; });
      slice.part = static_cast<Part>(i);
      slice.begin = std::exchange(
          slice.end, last ? whole.end : std::clamp(to_nanoseconds(at), slice.end, whole.end));
      add(span.device, stream_of_part(slice.part), slice);
    }
  }

  /// Other streams' waits would only repeat what their collectives show.
  void add_wait(std::uint32_t i) {
    const WaitSpan& wait = timeline_.waits[i];
    if (wait.stream != Stream::compute) return;
    const Nanoseconds begin = to_nanoseconds(wait.waiting.begin);
    const Nanoseconds end = to_nanoseconds(wait.waiting.end);
    const WaitForOthers others = wait_for_others(wait.waiting);
    const Nanoseconds entered = to_nanoseconds(others.begin), sent = to_nanoseconds(others.end);
    add(wait.device, wait.stream, {begin, entered, SliceKind::wait, {}, i});
    add(wait.device, wait.stream, {entered, sent, SliceKind::bubble, {}, i});
    add(wait.device, wait.stream, {sent, end, SliceKind::wait, {}, i});
  }

  void add_message(std::uint32_t i) {
    const MessageSpan& message = timeline_.messages[i];
    const Channel& channel = programs_.channels[message.channel.index()];
    const Stream stream = words_of(message.send.traffic).stream;
    const Nanoseconds begin = to_nanoseconds(message.begin);
    const Nanoseconds end = std::max(to_nanoseconds(message.end), begin + shortest_message);
    add(channel.from, stream, {begin, end, SliceKind::send, {}, i});
    add(channel.to, stream, {begin, end, SliceKind::receive, {}, i});
  }

  void add_collective(std::uint32_t i) {
    const CollectiveSpan& span = timeline_.collectives[i];
    const Slice slice{
        to_nanoseconds(span.begin), to_nanoseconds(span.end), SliceKind::collective, {}, i};
    for (const DeviceId member : programs_.collectives[span.collective.index()].members)
      add(member, words_of(span.op.traffic).stream, slice);
  }

  const Timeline& timeline_;
  const ProgramSet& programs_;
  std::vector<StreamSlices> devices_;
};

void sort_slices(std::vector<Slice>& slices) {
  std::ranges::stable_sort(slices, [](const Slice& a, const Slice& b) {
    return std::pair{a.begin, -a.end} < std::pair{b.begin, -b.end};
  });
}

/// Puts each slice on the first lane of its stream that is free; a full set of lanes gets one more.
void spread(std::vector<Slice> slices, std::size_t first_lane, DeviceLanes& lanes) {
  const Stream stream = lanes[first_lane].stream;
  std::vector<std::size_t> own{first_lane};
  for (const Slice& slice : slices) {
    auto lane = std::ranges::find_if(own, [&](std::size_t i) {
      return lanes[i].slices.empty() || lanes[i].slices.back().end <= slice.begin;
    });
    if (lane == own.end()) {
      lane = own.insert(own.end(), lanes.size());
      lanes.push_back({stream, static_cast<int>(own.size()) - 1, {}});
    }
    lanes[*lane].slices.push_back(slice);
  }
}

DeviceLanes lanes_of(StreamSlices& streams) {
  DeviceLanes lanes;
  for (int i = 0; i < num_streams; ++i) lanes.push_back({static_cast<Stream>(i), 0, {}});
  for (std::size_t i = 0; i < num_streams; ++i) {
    sort_slices(streams[i]);
    // A stream plays one op at a time: what is on the compute stream nests by itself.
    if (static_cast<Stream>(i) == Stream::compute)
      lanes[i].slices = std::move(streams[i]);
    else
      spread(std::move(streams[i]), i, lanes);
  }
  return lanes;
}

}  // namespace

Nanoseconds to_nanoseconds(Seconds time) {
  constexpr double limit = 9e18;  // of 64 bits
  const double nanoseconds = time / Seconds{1e-9};
  WT_EXPECT(std::abs(nanoseconds) < limit);
  return std::llround(nanoseconds);
}

std::vector<DeviceLanes> lay_out_slices(const Timeline& timeline, const ProgramSet& programs) {
  std::vector<DeviceLanes> lanes;
  for (StreamSlices& streams : SliceCollector(timeline, programs).collect())
    lanes.push_back(lanes_of(streams));
  return lanes;
}

}  // namespace windtunnel::detail
