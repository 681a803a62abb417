#pragma once

#include <cstdint>
#include <vector>

#include "engine/program_simulator.hpp"

namespace windtunnel {

/// One thing a stream did.
struct Span {
  DeviceId device;
  Stream stream = Stream::compute;
  Op op;
  Seconds begin{}, end{};
};

/// One message between devices.
struct MessageSpan {
  ChannelId channel;
  Op send;
  Bytes bytes{};
  Seconds posted{}, begin{}, end{};
};

/// One collective, for all of its members.
struct CollectiveSpan {
  CollectiveId collective;
  Op op;
  Seconds begin{}, end{};
};

/// A wait that took time.
struct WaitSpan {
  DeviceId device;
  Stream stream = Stream::compute;
  Op op;
  Waiting waiting;
};

/// Everything that happened in one iteration, in order of its end.
struct Timeline {
  std::vector<Span> computes;
  std::vector<WaitSpan> waits;
  std::vector<MessageSpan> messages;
  std::vector<CollectiveSpan> collectives;
  Seconds end{};
};

/// Records the timeline while a program is simulated.
class TimelineListener final : public SimulationListener {
 public:
  void on_compute(DeviceId, Stream, const Op&, const Work&, Seconds begin, Seconds end) override;
  void on_wait(DeviceId, Stream, const Op&, const Waiting&) override;
  void on_message(ChannelId, const Op& send, Bytes, Seconds posted, Seconds begin,
                  Seconds end) override;
  void on_collective(CollectiveId, const Op&, Seconds begin, Seconds end) override;
  Timeline& timeline() { return timeline_; }

 private:
  Timeline timeline_;
};

/// Passes every call on to two listeners.
class ListenerPair final : public SimulationListener {
 public:
  ListenerPair(SimulationListener& a, SimulationListener& b) : first_(&a), second_(&b) {}
  void on_compute(DeviceId, Stream, const Op&, const Work&, Seconds begin, Seconds end) override;
  void on_wait(DeviceId, Stream, const Op&, const Waiting&) override;
  void on_message(ChannelId, const Op& send, Bytes, Seconds posted, Seconds begin,
                  Seconds end) override;
  void on_collective(CollectiveId, const Op&, Seconds begin, Seconds end) override;
  void on_device_end(DeviceId, Seconds end) override;

 private:
  SimulationListener* first_;
  SimulationListener* second_;
};

}  // namespace windtunnel
