#pragma once

#include "engine/engine.hpp"
#include "engine/event_queue.hpp"
#include "engine/path_rates.hpp"

namespace windtunnel::detail {

/// A binary heap of events in which each flow has its links to itself: time = bytes / slowest link.
class HeapEngine final : public Engine {
 public:
  explicit HeapEngine(const Network& network) : rates_(network) {}
  Seconds now() const override { return now_; }
  void after(Seconds delay, std::uint64_t token) override;
  void start_flow(PathId up, PathId down, Bytes bytes, std::uint64_t token) override;
  void run(EventHandler& handler) override;
  std::uint64_t num_activities() const override { return queue_.num_pushed(); }
  std::uint64_t num_flows() const override { return num_flows_; }

 private:
  PathRates rates_;
  EventQueue<std::uint64_t> queue_;
  Seconds now_{};
  std::uint64_t num_flows_ = 0;
};

}  // namespace windtunnel::detail
