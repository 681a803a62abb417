#include "timeline/timeline.hpp"

#include <algorithm>

namespace windtunnel {

void TimelineListener::on_compute(DeviceId device, Stream stream, const Op& op, const Work&,
                                  Seconds begin, Seconds end) {
  timeline_.computes.push_back({device, stream, op, begin, end});
  timeline_.end = std::max(timeline_.end, end);
}

void TimelineListener::on_wait(DeviceId device, Stream stream, const Op& op,
                               const Waiting& waiting) {
  if (waiting.end > waiting.begin) timeline_.waits.push_back({device, stream, op, waiting});
  timeline_.end = std::max(timeline_.end, waiting.end);
}

void TimelineListener::on_message(ChannelId channel, const Op& send, Bytes bytes, Seconds posted,
                                  Seconds begin, Seconds end) {
  timeline_.messages.push_back({channel, send, bytes, posted, begin, end});
  timeline_.end = std::max(timeline_.end, end);
}

void TimelineListener::on_collective(CollectiveId collective, const Op& op, Seconds begin,
                                     Seconds end) {
  timeline_.collectives.push_back({collective, op, begin, end});
  timeline_.end = std::max(timeline_.end, end);
}

void ListenerPair::on_compute(DeviceId device, Stream stream, const Op& op, const Work& work,
                              Seconds begin, Seconds end) {
  first_->on_compute(device, stream, op, work, begin, end);
  second_->on_compute(device, stream, op, work, begin, end);
}

void ListenerPair::on_wait(DeviceId device, Stream stream, const Op& op, const Waiting& waiting) {
  first_->on_wait(device, stream, op, waiting);
  second_->on_wait(device, stream, op, waiting);
}

void ListenerPair::on_message(ChannelId channel, const Op& send, Bytes bytes, Seconds posted,
                              Seconds begin, Seconds end) {
  first_->on_message(channel, send, bytes, posted, begin, end);
  second_->on_message(channel, send, bytes, posted, begin, end);
}

void ListenerPair::on_collective(CollectiveId collective, const Op& op, Seconds begin,
                                 Seconds end) {
  first_->on_collective(collective, op, begin, end);
  second_->on_collective(collective, op, begin, end);
}

void ListenerPair::on_device_end(DeviceId device, Seconds end) {
  first_->on_device_end(device, end);
  second_->on_device_end(device, end);
}

}  // namespace windtunnel
