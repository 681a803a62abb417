#include "engine/simgrid_engine.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstdint>
#include <exception>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/contracts.hpp"
#include "core/problem.hpp"
#include "engine/binding_links.hpp"
#include "engine/flow_engine.hpp"
#include "engine/simgrid_loop.hpp"

// How SimGrid is driven. There are no actors. A queue of our own holds timers, and the ends of flows that have their links to
// themselves (bytes / slowest link, no solver needed). When a flow meets another on a link, both are given to SimGrid with the bytes they
// have left, and SimGrid shares the links max-min fairly. While it has no flow under way, our queue is played ahead of its clock in one go,
// up to the next two flows that meet; SimGrid's clock follows there before it starts them. Three times faster than giving SimGrid each
// flow, with the same results. A run in which no flows meet never loads SimGrid.
namespace windtunnel::detail {
namespace {

/// A timer is due when the clock is this close, relatively: the clock advances by rounded
/// differences.
constexpr double clock_rounding = 1e-15;

/// A flow under way; shared ones are SimGrid's.
struct alignas(64) Flow : FlowUnderWay {
  Bytes unsent{};  ///< shared: what follows the part under way
};

class SimGridEngine final : public FlowEngine<SimGridEngine, Flow>, public SimGridLoop::Companion {
 public:
  explicit SimGridEngine(const Network& network);
  ~SimGridEngine() override {
    if (simgrid_ != nullptr) simgrid_->set_companion(nullptr);
  }
  SimGridEngine(const SimGridEngine&) = delete;
  SimGridEngine& operator=(const SimGridEngine&) = delete;
  void run(EventHandler& handler) override;
  double time_to_next(double clock) override;
  void reach(double clock) override;
  void on_flow_end(std::uint32_t flow) override;

 private:
  friend FlowEngine;
  bool meet_others(PathId up, PathId down);
  bool meet_others(LinkId link);
  void enter_links(std::uint32_t index, bool alone);
  void share(std::uint32_t index, Bytes bytes);
  void prefetch_link(LinkId link) const { flows_on_.prefetch(link); }
  void start_part(std::uint32_t index);
  void start_waiting();
  /// Whether SimGrid has nothing under way, and what is due can be played ahead of its clock.
  bool may_run_ahead() const { return num_parts_ == 0 && waiting_.empty(); }
  SimGridLoop& simgrid();
  void on_due(Seconds time, Due due);
  void end_flow(std::uint32_t index);
  void tell_handler(std::uint64_t token);

  const SimGridNetwork network_;
  LinkFlows flows_on_;
  SimGridLoop* simgrid_ = nullptr;  ///< once flows have met
  std::exception_ptr failure_;
  /// Flows that SimGrid will start as soon as its clock is where ours was when they met: `waiting_since_`.
  std::vector<std::uint32_t> waiting_;
  Seconds waiting_since_{};
  std::size_t num_parts_ = 0;  ///< under way in SimGrid
};

bool engine_was_made = false;

struct Module {
  void* handle = nullptr;
  std::string error;  ///< why there is none
};

/// Loads the module, with nothing in the place of ns-3 where the build could make stand-ins. A SimGrid that finds too little in them gets ns-3.
Module open_module() {
  constexpr int flags = RTLD_LAZY | RTLD_LOCAL;
  void* const stand_ins = dlopen(ns3_stand_ins, flags);
  void* handle = dlopen(simgrid_module, flags);
  if (handle == nullptr && stand_ins != nullptr) {
    dlclose(stand_ins);
    handle = dlopen(simgrid_module, flags);
  }
  if (handle == nullptr) return {nullptr, dlerror()};
  return {handle, {}};
}

/// The module, loaded by whoever asks first; other threads wait for that.
const Module& module() {
  static const Module loaded = open_module();
  return loaded;
}

SimGridLoop* load_simgrid(const SimGridNetwork& network) {
  const Module& loaded = module();
  if (loaded.handle == nullptr) throw EnvironmentError("cannot load SimGrid: " + loaded.error);
  void* const make = dlsym(loaded.handle, make_simgrid_loop_symbol);
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
    : FlowEngine(network), network_(simgrid_network(network)), flows_on_(network.links().size()) {}

SimGridLoop& SimGridEngine::simgrid() {
  if (simgrid_ == nullptr) {
    simgrid_ = load_simgrid(network_);
    simgrid_->set_companion(this);
  }
  return *simgrid_;
}

void SimGridEngine::enter_links(std::uint32_t index, bool) {
  const Flow& flow = flows_[index];
  for (const PathId path : {flow.up, flow.down})
    for (const LinkId link : links_.of(path)) flows_on_.enter(link, index);
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
  const Flow& flow = flows_[index];
  for (const PathId path : {flow.up, flow.down})
    for (const LinkId link : links_.of(path)) flows_on_.leave(link, index);
  free_flow(index);
  tell_handler(flow.token);
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

void preload_simgrid() { detail::module(); }

}  // namespace windtunnel
