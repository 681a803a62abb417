#pragma once

#include <cstdint>
#include <limits>
#include <vector>

#include "core/contracts.hpp"
#include "engine/engine.hpp"
#include "engine/event_queue.hpp"
#include "engine/link_flows.hpp"
#include "units/quantity.hpp"

namespace windtunnel::detail {

/// A flow that ends this soon leaves its links to a newcomer. A thousandth of SimGrid's own precision of time.
inline constexpr Seconds simultaneous{1e-12};

/// An event of the queue: the end of a timer, or of a flow that has its links to itself.
struct DueEvent {
  static constexpr std::uint32_t no_flow = 0xFFFFFFFF;
  std::uint64_t token = 0;                       ///< of a timer
  std::uint32_t flow = no_flow, generation = 0;  ///< of a flow
  bool is_flow() const { return flow != no_flow; }
};

/// A flow under way, as engines that share links know it.
struct FlowUnderWay {
  enum class State : std::uint8_t {
    free,    ///< the place is not in use
    alone,   ///< no other flow on its links: its end is an event of the queue
    shared,  ///< who shares out links knows its end
  };
  PathId up, down;
  std::uint64_t token = 0;
  BytesPerSecond rate{};         ///< when alone
  Seconds end{};                 ///< when alone
  std::uint32_t generation = 0;  ///< an event of the queue for an older one is void
  State state = State::free;
};

/// An engine with a queue of timers and of the flows that have their links to themselves: their end is bytes / slowest link. `Sharing`
/// derives from it and says what happens where flows meet:
///  - bool meet_others(up, down): whether other flows are under way on the links; it shares those that were alone
///  - void enter_links(index, alone): a new flow is on its links
///  - void share(index, bytes): it is shared from now on, with the bytes it has left
/// Its functions are called without going through a table: they are on the path of every event.
template <class Sharing, class Flow>
class FlowEngine : public Engine {
 public:
  Seconds now() const override { return now_; }
  std::uint64_t num_activities() const override { return num_timers_ + num_flows_; }
  std::uint64_t num_flows() const override { return num_flows_; }

  void after(Seconds delay, std::uint64_t token) override {
    WT_EXPECT(delay >= Seconds{0});
    ++num_timers_;
    queue_.push(now_ + delay, {token});
  }

  void start_flow(PathId up, PathId down, Bytes bytes, std::uint64_t token) override {
    WT_EXPECT(bytes >= Bytes{0});
    ++num_flows_;
    const BytesPerSecond rate = paths_.rate(up, down);
    const bool no_links = rate == BytesPerSecond{std::numeric_limits<double>::infinity()};
    if (bytes == Bytes{0} || no_links) {  // ends at once; no engine shares nothing out
      queue_.push(now_, {token});
      return;
    }
    const bool meets = sharing().meet_others(up, down);
    const std::uint32_t index = place_flow(up, down, token);
    sharing().enter_links(index, !meets);
    if (meets) {
      sharing().share(index, bytes);
      return;
    }
    Flow& flow = flows_[index];
    flow.state = Flow::State::alone;
    flow.rate = rate;
    flow.end = now_ + bytes / rate;
    queue_.push(flow.end, {.flow = index, .generation = flow.generation});
  }

 protected:
  explicit FlowEngine(const Network& network) : paths_(network, binding_links(network)) {}

  /// Its place can be taken, and events of the queue for it are void.
  void free_flow(std::uint32_t index) {
    Flow& flow = flows_[index];
    flow.state = Flow::State::free;
    ++flow.generation;
    free_flows_.push_back(index);
  }

  PathTable paths_;
  EventQueue<DueEvent> queue_;
  std::vector<Flow> flows_;
  EventHandler* handler_ = nullptr;
  Seconds now_{};

 private:
  Sharing& sharing() { return static_cast<Sharing&>(*this); }
  const Sharing& sharing() const { return static_cast<const Sharing&>(*this); }

  std::uint32_t place_flow(PathId up, PathId down, std::uint64_t token) {
    if (free_flows_.empty()) {
      free_flows_.push_back(static_cast<std::uint32_t>(flows_.size()));
      flows_.emplace_back();
    }
    const std::uint32_t index = free_flows_.back();
    free_flows_.pop_back();
    Flow& flow = flows_[index];
    flow.up = up;
    flow.down = down;
    flow.token = token;
    return index;
  }

  std::vector<std::uint32_t> free_flows_;
  std::uint64_t num_timers_ = 0;
  std::uint64_t num_flows_ = 0;
};

}  // namespace windtunnel::detail
