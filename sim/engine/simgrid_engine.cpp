#include "engine/simgrid_engine.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/contracts.hpp"
#include "core/problem.hpp"
#include "engine/binding_links.hpp"
#include "engine/due.hpp"
#include "engine/link_flows.hpp"
#include "engine/lookahead_queue.hpp"
#include "engine/path_rates.hpp"
#include "engine/simgrid_loop.hpp"

// How SimGrid is driven. There are no actors. A queue of our own holds timers, and the ends of flows that have their links to
// themselves (bytes / slowest link, no solver needed). When a flow meets another on a link, both are given to SimGrid with the bytes they
// have left, and SimGrid shares the links max-min fairly. While it has no flow under way, our queue is played ahead of its clock in one go,
// up to the next two flows that meet; SimGrid's clock follows there before it starts them. Three times faster than a Comm for each
// flow, with the same results. A run in which no flows meet never loads SimGrid.
namespace windtunnel::detail {
namespace {

/// A timer is due when the clock is this close, relatively: the clock advances by rounded
/// differences.
constexpr double clock_rounding = 1e-15;

/// A flow under way.
struct alignas(64) Flow {
  enum class State : std::uint8_t {
    free,    ///< the place is not in use
    alone,   ///< no other flow on its links: its end is an event of our queue
    shared,  ///< SimGrid's
  };
  PathId up, down;
  std::uint32_t index = 0;  ///< its place
  std::uint64_t token = 0;
  Bytes unsent{};                ///< shared: what follows the part under way
  BytesPerSecond rate{};         ///< when alone
  Seconds end{};                 ///< when alone
  std::uint32_t generation = 0;  ///< an event of our queue for an older one is void
  State state = State::free;
};

class SimGridEngine final : public Engine, public SimGridLoop::Companion {
 public:
  explicit SimGridEngine(const Network& network);
  ~SimGridEngine() override {
    if (simgrid_ != nullptr) simgrid_->set_companion(nullptr);
  }
  SimGridEngine(const SimGridEngine&) = delete;
  SimGridEngine& operator=(const SimGridEngine&) = delete;
  Seconds now() const override { return now_; }
  void after(Seconds delay, std::uint64_t token) override;
  void start_flow(PathId up, PathId down, Bytes bytes, std::uint64_t token) override;
  void prefetch_flow(PathId up, PathId down) const override;
  void run(EventHandler& handler) override;
  std::uint64_t num_activities() const override { return num_timers_ + num_flows_; }
  std::uint64_t num_flows() const override { return num_flows_; }
  double time_to_next(double clock) override;
  void reach(double clock) override;
  void on_flow_end(std::uint32_t flow) override;
  /// For the queue: what is coming.
  void prefetch_first(Due due) const;
  void prefetch_rest(Due due) const;

 private:
  std::uint32_t add_flow(PathId up, PathId down, std::uint64_t token);
  /// Whether other flows are under way on the links; those that were alone are shared from now on.
  bool meet_others(PathId up, PathId down);
  bool meet_others(LinkId link);
  void share(std::uint32_t index, Bytes bytes);
  void start_part(std::uint32_t index);
  void start_waiting();
  /// Whether SimGrid has nothing under way, and what is due can be played ahead of its clock.
  bool may_run_ahead() const { return num_parts_ == 0 && waiting_.empty(); }
  SimGridLoop& simgrid();
  void on_due(Seconds time, Due due);
  void end_flow(std::uint32_t index);
  void tell_handler(std::uint64_t token);

  const SimGridNetwork network_;
  PathRates rates_;
  PathLinks links_;
  LinkFlows flows_on_;
  LookaheadQueue<Due> queue_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> free_flows_;
  SimGridLoop* simgrid_ = nullptr;  ///< once flows have met
  EventHandler* handler_ = nullptr;
  std::exception_ptr failure_;
  Seconds now_{};
  /// Flows that SimGrid will start as soon as its clock is where ours was when they met: `waiting_since_`.
  std::vector<std::uint32_t> waiting_;
  Seconds waiting_since_{};
  std::size_t num_parts_ = 0;  ///< under way in SimGrid
  std::uint64_t num_timers_ = 0;
  std::uint64_t num_flows_ = 0;
};

bool engine_was_made = false;

void* open_module() { return dlopen(simgrid_module, RTLD_LAZY | RTLD_LOCAL); }

SimGridLoop* load_simgrid(const SimGridNetwork& network) {
  void* const module = open_module();
  void* const make = module == nullptr ? nullptr : dlsym(module, make_simgrid_loop_symbol);
  if (make == nullptr) throw EnvironmentError(std::string("cannot load SimGrid: ") + dlerror());
  return reinterpret_cast<MakeSimGridLoop>(make)(network);
}

SimGridNetwork simgrid_network(const Network& network) {
  SimGridNetwork copy;
  for (const Link& link : network.links()) copy.bandwidths.push_back(link.bandwidth);
  copy.paths = binding_links(network);
  return copy;
}

SimGridEngine::SimGridEngine(const Network& network)
    : network_(simgrid_network(network)),
      rates_(network),
      links_(network),
      flows_on_(network.links().size()) {}

SimGridLoop& SimGridEngine::simgrid() {
  if (simgrid_ == nullptr) {
    simgrid_ = load_simgrid(network_);
    simgrid_->set_companion(this);
  }
  return *simgrid_;
}

void SimGridEngine::after(Seconds delay, std::uint64_t token) {
  WT_EXPECT(delay >= Seconds{0});
  ++num_timers_;
  queue_.push(now_ + delay, Due::timer(token));
}

void SimGridEngine::start_flow(PathId up, PathId down, Bytes bytes, std::uint64_t token) {
  WT_EXPECT(bytes >= Bytes{0});
  ++num_flows_;
  const BytesPerSecond rate = rates_.rate(up, down);
  const bool no_links = rate == BytesPerSecond{std::numeric_limits<double>::infinity()};
  if (bytes == Bytes{0} || no_links) {  // SimGrid would never start a Comm of no bytes
    queue_.push(now_, Due::timer(token));
    return;
  }
  const bool meets_others = meet_others(up, down);
  const std::uint32_t index = add_flow(up, down, token);
  if (meets_others) {
    share(index, bytes);
    return;
  }
  Flow& flow = flows_[index];
  flow.state = Flow::State::alone;
  flow.rate = rate;
  flow.end = now_ + bytes / rate;
  queue_.push(flow.end, Due::flow(index, flow.generation));
}

void SimGridEngine::prefetch_flow(PathId up, PathId down) const {
  for (const PathId path : {up, down}) {
    rates_.prefetch(path);
    for (const LinkId link : links_.of(path)) flows_on_.prefetch(link);
  }
}

std::uint32_t SimGridEngine::add_flow(PathId up, PathId down, std::uint64_t token) {
  if (free_flows_.empty()) {
    free_flows_.push_back(static_cast<std::uint32_t>(flows_.size()));
    flows_.emplace_back();
  }
  const std::uint32_t index = free_flows_.back();
  free_flows_.pop_back();
  Flow& flow = flows_[index];
  flow.index = index;
  flow.up = up;
  flow.down = down;
  flow.token = token;
  for (const PathId path : {up, down})
    for (const LinkId link : links_.of(path)) flows_on_.enter(link, index);
  return index;
}

bool SimGridEngine::meet_others(PathId up, PathId down) {
  bool met = false;
  for (const PathId path : {up, down})
    for (const LinkId link : links_.of(path))
      if (meet_others(link)) met = true;
  return met;
}

bool SimGridEngine::meet_others(LinkId link) {
  bool met = false;
  flows_on_.for_each(link, [&](std::uint32_t index) {
    Flow& flow = flows_[index];
    if (flow.state == Flow::State::alone) {
      const Seconds left = flow.end - now_;
      if (left <= simultaneous) return;
      ++flow.generation;
      share(index, left * flow.rate);
    }
    met = true;
  });
  return met;
}

/// SimGrid starts flows at its clock, which stands still while events are played ahead of it.
void SimGridEngine::share(std::uint32_t index, Bytes bytes) {
  flows_[index].state = Flow::State::shared;
  flows_[index].unsent = bytes;
  const double clock = simgrid_ == nullptr ? 0 : simgrid_->clock();
  if (now_.value() <= clock + clock * clock_rounding) {
    start_part(index);
    return;
  }
  waiting_since_ = now_;
  waiting_.push_back(index);
}

void SimGridEngine::start_waiting() {
  for (const std::uint32_t index : std::exchange(waiting_, {})) start_part(index);
}

void SimGridEngine::start_part(std::uint32_t index) {
  ++num_parts_;
  Flow& flow = flows_[index];
  const Bytes part = std::min(flow.unsent, SimGridLoop::longest_part);
  flow.unsent -= part;
  simgrid().start_flow(index, flow.up, flow.down, part);
}

double SimGridEngine::time_to_next(double clock) {
  constexpr double nothing = -1;
  if (!waiting_.empty()) return std::max(0.0, waiting_since_.value() - clock);
  return queue_.empty() ? nothing : std::max(0.0, queue_.next_time().value() - clock);
}

void SimGridEngine::reach(double clock) {
  Seconds due_until{clock + clock * clock_rounding};
  if (!waiting_.empty() && waiting_since_ <= due_until) start_waiting();
  while (!queue_.empty()) {
    if (queue_.next_time() > due_until) {
      if (!may_run_ahead()) return;
      due_until = queue_.next_time();
    }
    const auto event = queue_.pop(*this);
    on_due(event.time, event.payload);
  }
}

void SimGridEngine::on_due(Seconds time, Due due) {
  if (!due.is_flow()) {
    now_ = std::max(now_, time);
    tell_handler(due.token());
  } else if (flows_[due.flow()].generation == due.generation()) {
    now_ = std::max(now_, time);
    end_flow(due.flow());
  }
}

void SimGridEngine::on_flow_end(std::uint32_t index) {
  --num_parts_;
  now_ = std::max(now_, Seconds{simgrid_->clock()});
  if (flows_[index].unsent > Bytes{0}) {
    start_part(index);
  } else {
    end_flow(index);
  }
}

void SimGridEngine::end_flow(std::uint32_t index) {
  Flow& flow = flows_[index];
  for (const PathId path : {flow.up, flow.down})
    for (const LinkId link : links_.of(path)) flows_on_.leave(link, index);
  flow.state = Flow::State::free;
  ++flow.generation;
  free_flows_.push_back(index);
  tell_handler(flow.token);
}

void SimGridEngine::prefetch_first(Due due) const {
  handler_->prefetch_first(due.is_flow() ? flows_[due.flow()].token : due.token());
}

void SimGridEngine::prefetch_rest(Due due) const {
  if (!due.is_flow()) return handler_->prefetch_rest(due.token());
  const Flow& flow = flows_[due.flow()];
  if (flow.generation != due.generation()) return;
  prefetch_flow(flow.up, flow.down);
  handler_->prefetch_rest(flow.token);
}

/// An exception must not cross SimGrid's loop: it is kept, nothing more is played, and run() throws
/// it.
void SimGridEngine::tell_handler(std::uint64_t token) {
  if (failure_) return;
  try {
    handler_->on_event(token);
  } catch (...) {
    failure_ = std::current_exception();
    queue_.clear();
    waiting_.clear();
  }
}

void SimGridEngine::run(EventHandler& handler) {
  handler_ = &handler;
  if (simgrid_ == nullptr) reach(0);
  if (simgrid_ != nullptr || !waiting_.empty()) simgrid().run();
  handler_ = nullptr;
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace

std::unique_ptr<Engine> make_simgrid_engine(const Network& network) {
  WT_EXPECT(!engine_was_made);  // one SimGrid engine in a process, ever
  engine_was_made = true;
  return std::make_unique<SimGridEngine>(network);
}

}  // namespace windtunnel::detail

namespace windtunnel {

void preload_simgrid() { detail::open_module(); }

}  // namespace windtunnel
