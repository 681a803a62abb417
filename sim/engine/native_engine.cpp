#include "engine/native_engine.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "core/contracts.hpp"
#include "engine/due.hpp"
#include "engine/link_flows.hpp"
#include "engine/lookahead_queue.hpp"
#include "engine/max_min.hpp"
#include "engine/path_rates.hpp"
#include "engine/prefetch.hpp"

// A queue of timers, and of the flows that have their links to themselves: their end is bytes / slowest link. When a flow meets another
// on a link, both are shared from then on, with the bytes they have left, and MaxMin says which of the shared flows ends next. What
// comes and goes at one time is settled together, when the clock is about to move on.
namespace windtunnel::detail {
namespace {

/// Times that should be equal may differ by their rounding, this much relatively, after many sums.
constexpr double clock_rounding = 1e-14;

/// A flow under way.
struct alignas(64) Flow {
  enum class State : std::uint8_t {
    free,    ///< the place is not in use
    alone,   ///< no other flow on its links: its end is an event of the queue
    shared,  ///< MaxMin knows its end
  };
  PathId up, down;
  std::uint64_t token = 0;
  std::uint64_t number = 0;      ///< among all asked for
  BytesPerSecond rate{};         ///< when alone
  Seconds end{};                 ///< when alone
  std::uint32_t generation = 0;  ///< an event of the queue for an older one is void
  State state = State::free;
};

/// Who is on a link.
struct LinkUse {
  static constexpr std::uint32_t nobody = 0xFFFFFFFF;
  std::uint32_t alone = nobody;  ///< the flow that has it to itself
  std::uint32_t num_shared = 0;
};

std::size_t most_links(const Network& network, const PathLinks& links) {
  std::size_t most = 0;
  for (std::size_t i = 0; i < network.paths().size(); ++i)
    most = std::max(most, links.of(PathId{i}).size());
  return 2 * most;  // up and down
}

class NativeEngine final : public Engine {
 public:
  explicit NativeEngine(const Network& network)
      : rates_(network),
        links_(network),
        use_(network.links().size()),
        shared_(network.links(), most_links(network, links_)) {}
  Seconds now() const override { return now_; }
  void after(Seconds delay, std::uint64_t token) override;
  void start_flow(PathId up, PathId down, Bytes bytes, std::uint64_t token) override;
  void prefetch_flow(PathId up, PathId down) const override;
  void run(EventHandler& handler) override;
  std::uint64_t num_activities() const override { return num_timers_ + num_flows_; }
  std::uint64_t num_flows() const override { return num_flows_; }
  void prefetch_first(Due due) const;
  void prefetch_rest(Due due) const;

 private:
  template <class Visit>
  void for_each_link(PathId up, PathId down, const Visit& visit) {
    for (const PathId path : {up, down})
      for (const LinkId link : links_.of(path)) visit(use_[link.index()], link);
  }
  bool meets_others(PathId up, PathId down);
  std::uint32_t add_flow(PathId up, PathId down, std::uint64_t token);
  void share(std::uint32_t index, Bytes bytes);
  void settle_before(Seconds next);
  void play_next_of_queue();
  void end_shared_flow();
  void tell_end(Flow& flow, std::uint32_t index);

  PathRates rates_;
  PathLinks links_;
  std::vector<LinkUse> use_;
  MaxMin shared_;
  LookaheadQueue<Due> queue_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_flows_;
  EventHandler* handler_ = nullptr;
  Seconds now_{};
  Seconds unsettled_since_{};  ///< unless `shared_` is settled
  std::uint64_t num_timers_ = 0;
  std::uint64_t num_flows_ = 0;
};

void NativeEngine::after(Seconds delay, std::uint64_t token) {
  WT_EXPECT(delay >= Seconds{0});
  ++num_timers_;
  queue_.push(now_ + delay, Due::timer(token));
}

void NativeEngine::start_flow(PathId up, PathId down, Bytes bytes, std::uint64_t token) {
  WT_EXPECT(bytes >= Bytes{0});
  ++num_flows_;
  const BytesPerSecond rate = rates_.rate(up, down);
  const bool no_links = rate == BytesPerSecond{std::numeric_limits<double>::infinity()};
  if (bytes == Bytes{0} || no_links) {
    queue_.push(now_, Due::timer(token));
    return;
  }
  const bool meets = meets_others(up, down);
  const std::uint32_t index = add_flow(up, down, token);
  if (meets) {
    share(index, bytes);
    return;
  }
  for_each_link(up, down, [&](LinkUse& use, LinkId) { use.alone = index; });
  Flow& flow = flows_[index];
  flow.state = Flow::State::alone;
  flow.rate = rate;
  flow.end = now_ + bytes / rate;
  queue_.push(flow.end, Due::flow(index, flow.generation));
}

std::uint32_t NativeEngine::add_flow(PathId up, PathId down, std::uint64_t token) {
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
  flow.number = num_flows_;
  return index;
}

/// Whether other flows are under way on the links; those that were alone are shared from now on.
bool NativeEngine::meets_others(PathId up, PathId down) {
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

void NativeEngine::share(std::uint32_t index, Bytes bytes) {
  Flow& flow = flows_[index];
  flow.state = Flow::State::shared;
  for_each_link(flow.up, flow.down, [&](LinkUse& use, LinkId) {
    if (use.alone == index) use.alone = LinkUse::nobody;
    ++use.num_shared;
  });
  if (shared_.settled()) unsettled_since_ = now_;
  shared_.enter(now_, {index, flow.number, bytes}, links_.of(flow.up), links_.of(flow.down));
}

void NativeEngine::settle_before(Seconds next) {
  if (shared_.settled()) return;
  if (next > unsettled_since_ + simultaneous + now_ * clock_rounding) shared_.settle(now_);
}

void NativeEngine::run(EventHandler& handler) {
  handler_ = &handler;
  constexpr Seconds never{std::numeric_limits<double>::infinity()};
  while (true) {
    const Seconds next_due = queue_.empty() ? never : queue_.next_time();
    settle_before(std::min(next_due, shared_.next_end()));
    if (next_due > shared_.next_end()) {
      end_shared_flow();
    } else if (!queue_.empty()) {
      play_next_of_queue();
    } else {
      break;
    }
  }
  handler_ = nullptr;
}

void NativeEngine::play_next_of_queue() {
  const auto event = queue_.pop(*this);
  if (!event.payload.is_flow()) {
    now_ = std::max(now_, event.time);
    handler_->on_event(event.payload.token());
    return;
  }
  const std::uint32_t index = event.payload.flow();
  Flow& flow = flows_[index];
  if (flow.generation != event.payload.generation()) return;
  now_ = std::max(now_, event.time);
  for_each_link(flow.up, flow.down, [&](LinkUse& use, LinkId) {
    if (use.alone == index) use.alone = LinkUse::nobody;
  });
  tell_end(flow, index);
}

void NativeEngine::end_shared_flow() {
  now_ = std::max(now_, shared_.next_end());
  const std::uint32_t index = shared_.next_flow();
  Flow& flow = flows_[index];
  for_each_link(flow.up, flow.down, [](LinkUse& use, LinkId) { --use.num_shared; });
  if (shared_.settled()) unsettled_since_ = now_;
  shared_.leave(now_, index);
  tell_end(flow, index);
}

void NativeEngine::tell_end(Flow& flow, std::uint32_t index) {
  flow.state = Flow::State::free;
  ++flow.generation;
  free_flows_.push_back(index);
  handler_->on_event(flow.token);
}

void NativeEngine::prefetch_flow(PathId up, PathId down) const {
  for (const PathId path : {up, down}) {
    rates_.prefetch(path);
    for (const LinkId link : links_.of(path)) detail::prefetch(&use_[link.index()]);
  }
}

void NativeEngine::prefetch_first(Due due) const {
  handler_->prefetch_first(due.is_flow() ? flows_[due.flow()].token : due.token());
}

void NativeEngine::prefetch_rest(Due due) const {
  if (!due.is_flow()) return handler_->prefetch_rest(due.token());
  const Flow& flow = flows_[due.flow()];
  if (flow.generation != due.generation()) return;
  prefetch_flow(flow.up, flow.down);
  handler_->prefetch_rest(flow.token);
}

}  // namespace

std::unique_ptr<Engine> make_native_engine(const Network& network) {
  return std::make_unique<NativeEngine>(network);
}

}  // namespace windtunnel::detail
