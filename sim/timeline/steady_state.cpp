#include "timeline/steady_state.hpp"

#include <boost/pending/disjoint_sets.hpp>
#include <cmath>

#include "engine/link_flows.hpp"

namespace windtunnel {
namespace {

/// Rows of times for each device and chunk, and for each channel and chunk.
constexpr std::size_t passes = 3;      // forward, backward, weight gradient
constexpr std::size_t directions = 2;  // activation, gradient

std::optional<std::size_t> pass_row(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return 0;
    case Phase::backward:
      return 1;
    case Phase::weight_gradient:
      return 2;
    default:
      return std::nullopt;
  }
}

std::size_t num_rows(const ProgramSet& programs, const SteadyShape& shape) {
  const auto chunks = static_cast<std::size_t>(shape.chunks);
  return chunks * (passes * programs.devices.size() + directions * programs.channels.size());
}

/// One device of the pipeline that each belongs to: of those that channels join.
std::vector<std::size_t> pipelines_of(const ProgramSet& programs) {
  const std::size_t num_devices = programs.devices.size();
  boost::disjoint_sets_with_storage<> joined(num_devices);
  for (const Channel& channel : programs.channels)
    joined.union_set(channel.from.index(), channel.to.index());
  std::vector<std::size_t> pipelines(num_devices);
  for (std::size_t device = 0; device < num_devices; ++device)
    pipelines[device] = joined.find_set(device);
  return pipelines;
}

}  // namespace

std::size_t SteadyStateListener::num_times(const ProgramSet& programs, const SteadyShape& shape) {
  return num_rows(programs, shape) * static_cast<std::size_t>(shape.microbatches);
}

SteadyStateListener::SteadyStateListener(const ProgramSet& programs, const Network& network,
                                         const BreakdownListener& breakdowns, SteadyShape shape)
    : programs_(&programs),
      breakdowns_(&breakdowns),
      links_of_path_(binding_links(network)),
      shape_(shape),
      times_(num_times(programs, shape), never),
      so_far_(place_of_breakdown(programs.devices.size(), first_kept())),
      links_(network.links().size()),
      pipeline_of_(pipelines_of(programs)) {}

void SteadyStateListener::on_compute(DeviceId device, Stream stream, const Op& op, const Work&,
                                     Seconds, Seconds end) {
  const std::optional<std::size_t> row = pass_row(op.phase);
  if (!row || stream != Stream::compute) return;
  const auto chunks = static_cast<std::size_t>(shape_.chunks);
  time((device.index() * chunks + op.chunk) * passes + *row, op.microbatch) = end;
  const auto microbatch = static_cast<int>(op.microbatch);
  if (op.phase == Phase::forward && op.chunk == 0 && microbatch >= first_kept() &&
      microbatch < first_draining())
    so_far_[place_of_breakdown(device.index(), microbatch)] = breakdowns_->of(device);
}

std::size_t SteadyStateListener::place_of_breakdown(std::size_t device, int microbatch) const {
  return device * static_cast<std::size_t>(first_draining() - first_kept()) +
         static_cast<std::size_t>(microbatch - first_kept());
}

/// From the end of one forward pass to that of the one a period later.
Breakdown SteadyStateListener::breakdown_of_period(std::size_t device, int period) const {
  const auto is_here = [&](int microbatch) {
    const std::size_t row = device * static_cast<std::size_t>(shape_.chunks) * passes;
    return !std::isnan(times_[row * static_cast<std::size_t>(shape_.microbatches) +
                              static_cast<std::size_t>(microbatch)]
                           .value());
  };
  int last = first_draining() - 1;
  while (last - period > first_kept() && !is_here(last)) --last;
  Breakdown of_period = so_far_[place_of_breakdown(device, last)];
  const Breakdown& before = so_far_[place_of_breakdown(device, last - period)];
  for (std::size_t line = 0; line < of_period.seconds.size(); ++line)
    of_period.seconds[line] -= before.seconds[line];
  return of_period;
}

void SteadyStateListener::on_message(ChannelId id, const Op& send, Bytes, Seconds, Seconds begin,
                                     Seconds end) {
  const auto chunks = static_cast<std::size_t>(shape_.chunks);
  const std::size_t direction = send.phase == Phase::activation ? 0 : 1;
  const std::size_t first = programs_->devices.size() * chunks * passes;
  time(first + (id.index() * chunks + send.chunk) * directions + direction, send.microbatch) = end;
  const Channel& channel = programs_->channels[id.index()];
  if (channel.in_node) return;
  const Seconds start = begin + channel.latency;
  const std::size_t pipeline = pipeline_of_[channel.from.index()];
  occupy(channel.up, pipeline, start, end);
  occupy(channel.down, pipeline, start, end);
}

/// Messages come in the order of their end, so one that met any earlier one met the last.
void SteadyStateListener::occupy(PathId path, std::size_t pipeline, Seconds begin, Seconds end) {
  for (const LinkId id : links_of_path_[path.index()]) {
    OccupiedLink& link = links_[id.index()];
    if (link.pipeline == none) link.pipeline = pipeline;
    if (link.pipeline != pipeline) link.pipeline = several;
    link.has_meetings = link.has_meetings || begin < link.busy_until;
    messages_met_ = messages_met_ || link.has_meetings;
    link.busy_until = end;
  }
}

std::optional<SteadyState> SteadyStateListener::find(int longest) const {
  const auto pipelines_meet = [](const OccupiedLink& link) {
    return link.has_meetings && link.pipeline == several;
  };
  if (times_.empty() || std::ranges::any_of(links_, pipelines_meet)) return std::nullopt;
  const auto at = [&](int microbatch) {  // the first device's first forward pass
    return times_[static_cast<std::size_t>(microbatch)];
  };
  int last = first_draining() - 1;
  while (last > 0 && std::isnan(at(last).value())) --last;  // of another way through the model
  for (int period = shape_.step; period <= longest; period += shape_.step) {
    if (last - period - window() < 0) break;
    const Seconds duration = at(last) - at(last - period);
    if (!repeats(period, duration)) continue;
    SteadyState steady{period, duration, {}, messages_met_};
    for (std::size_t device = 0; device < programs_->devices.size(); ++device)
      steady.breakdowns.push_back(breakdown_of_period(device, period));
    return steady;
  }
  return std::nullopt;
}

/// True if every row's last steady microbatches come `duration` after those one period before.
bool SteadyStateListener::repeats(int period, Seconds duration) const {
  constexpr double rounding =
      1e-12;  // of the time since the start: thousands of additions of 1e-16
  const auto m = static_cast<std::size_t>(shape_.microbatches);
  const auto end = static_cast<std::size_t>(first_draining());
  const std::size_t begin = end - static_cast<std::size_t>(window());
  const auto back = static_cast<std::size_t>(period);
  for (std::size_t row = 0; row < times_.size(); row += m) {
    for (std::size_t i = begin; i < end; ++i) {
      const Seconds now = times_[row + i], before = times_[row + i - back];
      if (std::isnan(now.value()) && std::isnan(before.value())) continue;  // no such pass here
      const Seconds off = now - before - duration;
      if (!(std::abs(off.value()) <= rounding * now.value())) return false;
    }
  }
  return true;
}

Seconds& SteadyStateListener::time(std::size_t row, std::uint32_t microbatch) {
  return times_[row * static_cast<std::size_t>(shape_.microbatches) + microbatch];
}

}  // namespace windtunnel
