#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "engine/flow_engine.hpp"
#include "engine/max_min.hpp"

// A queue of timers, and of the flows that have their links to themselves: their end is bytes / slowest link. When a flow meets another
// on a link, both are shared from then on, with the bytes they have left, and MaxMin says which of the shared flows ends next. What
// comes and goes at one time is settled together, when the clock is about to move on.
namespace windtunnel::detail {
namespace {

/// Times that should be equal may differ by their rounding, this much relatively, after many sums.
constexpr double clock_rounding = 1e-14;

/// A flow under way; shared ones are MaxMin's.
struct alignas(64) Flow : FlowUnderWay {
  std::uint64_t number = 0;  ///< among all asked for
};

/// The flows on a link.
struct LinkUse {
  static constexpr std::uint32_t nobody = 0xFFFFFFFF;
  std::uint32_t alone = nobody;  ///< the flow that has it to itself
  std::uint32_t num_shared = 0;
};

class NativeEngine final : public FlowEngine<NativeEngine, Flow> {
 public:
  explicit NativeEngine(const Network& network)
      : FlowEngine(network),
        use_(network.links().size()),
        shared_(network.links(), paths_.most_links()) {}
  std::string_view name() const override { return "native"; }
  void run(EventHandler& handler) override {
    handler_ = &handler;
    constexpr Seconds never{std::numeric_limits<double>::infinity()};
    while (true) {
      const Seconds next_due = queue_.empty() ? never : queue_.next_time();
      settle_before(std::min(next_due, shared_.next_end()));
      if (next_due > shared_.next_end()) {
        end_shared_flow();
      } else if (!queue_.empty()) {
        handle_next_event();
      } else {
        break;
      }
    }
    handler_ = nullptr;
  }

 private:
  friend FlowEngine;
  template <class Visit>
  void for_each_link(PathId up, PathId down, const Visit& visit) {
    for (const PathId path : {up, down})
      for (const LinkId link : paths_.links(path)) visit(use_[link.index()], link);
  }

  bool meet_others(PathId up, PathId down) {
    bool met = false;
    for_each_link(up, down, [&](LinkUse& use, LinkId) {
      if (use.alone != LinkUse::nobody) {
        Flow& flow = flows_[use.alone];
        const Seconds left = flow.end - now_;
        if (left > simultaneous) {
          ++flow.generation;
          share(use.alone, left * flow.rate);
        }
      }
      if (use.num_shared > 0) met = true;
    });
    return met;
  }

  void enter_links(std::uint32_t index, bool alone) {
    Flow& flow = flows_[index];
    flow.number = num_flows();
    if (alone) for_each_link(flow.up, flow.down, [&](LinkUse& use, LinkId) { use.alone = index; });
  }

  void share(std::uint32_t index, Bytes bytes) {
    Flow& flow = flows_[index];
    flow.state = Flow::State::shared;
    for_each_link(flow.up, flow.down, [&](LinkUse& use, LinkId) {
      if (use.alone == index) use.alone = LinkUse::nobody;
      ++use.num_shared;
    });
    if (shared_.settled()) unsettled_since_ = now_;
    shared_.enter(now_, {index, flow.number, bytes}, paths_.links(flow.up),
                  paths_.links(flow.down));
  }

  void settle_before(Seconds next) {
    if (shared_.settled()) return;
    if (next > unsettled_since_ + simultaneous + now_ * clock_rounding) shared_.settle(now_);
  }

  void handle_next_event() {
    const auto event = queue_.pop();
    if (!event.payload.is_flow()) {
      now_ = std::max(now_, event.time);
      handler_->on_event(event.payload.token);
      return;
    }
    const std::uint32_t index = event.payload.flow;
    Flow& flow = flows_[index];
    if (flow.generation != event.payload.generation) return;
    now_ = std::max(now_, event.time);
    for_each_link(flow.up, flow.down, [&](LinkUse& use, LinkId) {
      if (use.alone == index) use.alone = LinkUse::nobody;
    });
    tell_end(index);
  }

  void end_shared_flow() {
    now_ = std::max(now_, shared_.next_end());
    const std::uint32_t index = shared_.next_flow();
    Flow& flow = flows_[index];
    for_each_link(flow.up, flow.down, [](LinkUse& use, LinkId) { --use.num_shared; });
    if (shared_.settled()) unsettled_since_ = now_;
    shared_.leave(now_, index);
    tell_end(index);
  }

  void tell_end(std::uint32_t index) {
    free_flow(index);
    handler_->on_event(flows_[index].token);
  }

  std::vector<LinkUse> use_;
  MaxMin shared_;
  Seconds unsettled_since_{};  ///< unless `shared_` is settled
};

}  // namespace
}  // namespace windtunnel::detail

namespace windtunnel {

std::unique_ptr<Engine> make_native_engine(const Network& network) {
  return std::make_unique<detail::NativeEngine>(network);
}

}  // namespace windtunnel
