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

/// A due event in eight bytes: a timer's token, or a flow and its generation.
class Due {
 public:
  Due() = default;
  static Due timer(std::uint64_t token) {
    WT_EXPECT((token & flow_bit) == 0);
    return Due(token);
  }
  static Due flow(std::uint32_t index, std::uint32_t generation) {
    WT_EXPECT(index < max_flows);
    return Due(flow_bit | std::uint64_t{index} << generation_bits | generation);
  }
  bool is_flow() const { return (bits_ & flow_bit) != 0; }
  std::uint64_t token() const { return bits_; }
  std::uint32_t flow() const {
    return static_cast<std::uint32_t>((bits_ & ~flow_bit) >> generation_bits);
  }
  std::uint32_t generation() const { return static_cast<std::uint32_t>(bits_); }

 private:
  static constexpr unsigned generation_bits = 32;
  static constexpr std::uint64_t flow_bit = std::uint64_t{1} << 63;
  static constexpr std::uint32_t max_flows = std::uint32_t{1} << 31;
  explicit Due(std::uint64_t bits) : bits_(bits) {}
  std::uint64_t bits_ = 0;
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
    queue_.push(now_ + delay, Due::timer(token));
  }

  void start_flow(PathId up, PathId down, Bytes bytes, std::uint64_t token) override {
    WT_EXPECT(bytes >= Bytes{0});
    ++num_flows_;
    const BytesPerSecond rate = rates_.rate(up, down);
    const bool no_links = rate == BytesPerSecond{std::numeric_limits<double>::infinity()};
    if (bytes == Bytes{0} || no_links) {  // ends at once; no engine shares nothing out
      queue_.push(now_, Due::timer(token));
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
    queue_.push(flow.end, Due::flow(index, flow.generation));
  }

 protected:
  explicit FlowEngine(const Network& network) : rates_(network), links_(network) {}

  /// The next event of the queue. What those after it will need is fetched from memory meanwhile: with tens of thousands of devices it
  /// lies in no cache.
  auto pop_due() {
    const auto token_of = [this](Due due) {
      return due.is_flow() ? flows_[due.flow()].token : due.token();
    };
    return queue_.pop([&](Due due) { handler_->prefetch_first(token_of(due)); },
                      [&](Due due) {
                        const bool is_void =
                            due.is_flow() && flows_[due.flow()].generation != due.generation();
                        if (!is_void) handler_->prefetch_rest(token_of(due));
                      });
  }

  /// Its place can be taken, and events of the queue for it are void.
  void free_flow(std::uint32_t index) {
    Flow& flow = flows_[index];
    flow.state = Flow::State::free;
    ++flow.generation;
    free_flows_.push_back(index);
  }

  PathRates rates_;
  PathLinks links_;
  EventQueue<Due> queue_;
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
