#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <memory>
#include <simgrid/kernel/resource/Model.hpp>
#include <simgrid/s4u/Comm.hpp>
#include <simgrid/s4u/Engine.hpp>
#include <simgrid/s4u/Host.hpp>
#include <simgrid/s4u/Link.hpp>
#include <simgrid/s4u/NetZone.hpp>
#include <string>
#include <utility>
#include <vector>

#include "core/contracts.hpp"
#include "engine/flow_engine.hpp"
#include "engine/link_flows.hpp"

// This engine drives SimGrid without actors. Our queue holds timers, and the ends of flows that have their links to themselves (bytes /
// slowest link, no solver needed); SimGrid's loop runs it as one of its models. When a flow meets another on a link, both become Comms of
// SimGrid with the bytes they have left, and SimGrid shares the links max-min fairly. While no Comm is under way, the queue is worked off
// ahead of SimGrid's clock in one go, up to the next two flows that meet; the clock follows there before they start. Three times faster
// than giving SimGrid each flow, with the same results.
//
// This file is a module of its own, loaded by the first simgrid engine: libsimgrid and its libraries take 25 ms to load.
namespace windtunnel::detail {
namespace {

namespace s4u = simgrid::s4u;

/// Bytes and bandwidths are given to SimGrid in units of a millionth of a byte, and bytes rounded to whole ones, so that rounding the
/// remaining bytes of a flow costs less than 1e-15 s on a 1 GB/s link.
constexpr double units_per_byte = 1e6;
/// The clock advances by rounded differences.
constexpr double clock_rounding = 1e-15;
/// SimGrid's precision of time, in seconds, until this time; behind it the precision grows with the clock.
constexpr double finest_precision = 1e-9, finest_until = finest_precision / clock_rounding;
constexpr const char* precision_option = "surf/precision";

/// Every SimGrid option we rely on, and why.
std::vector<std::string> simgrid_arguments() {
  return {
      "windtunnel",
      // Plain max-min sharing. The default (LV08) models TCP: 5 % to 30 % off our links, a factor
      // 13 on small messages.
      "--cfg=network/model:CM02",
      // No correction factors: a message takes latency + bytes / bandwidth. CM02's defaults,
      // written down.
      "--cfg=network/bandwidth-factor:1",
      "--cfg=network/latency-factor:1",
      "--cfg=network/weight-S:0",
      // An acknowledgement takes nothing from the opposite direction: RDMA networks are full
      // duplex.
      "--cfg=network/crosstraffic:0",
      // No TCP window (0 does not mean "off" before SimGrid 3.34).
      "--cfg=network/TCP-gamma:1e30",
      // Only what changed is solved again: ten times faster than Full, with the same results.
      "--cfg=network/optim:Lazy",
      // Events closer than a nanosecond are one (finest_precision). The default; smaller could stall the loop at a
      // late clock.
      "--cfg=" + std::string(precision_option) + ":1e-9",
      // SimGrid is silent unless something is wrong (the lines above would be echoed to stderr).
      "--log=root.thresh:warning",
  };
}

/// Keeps SimGrid's precision of time above the rounding of its clock. SimGrid handles what is due only while the clock is within the
/// precision of it, and the clock advances by rounded differences: where a double's neighbour is further away than the precision, an
/// event may be passed over, and its flow would never end.
class ClockPrecision {
 public:
  /// The clock may go so far before `reach` is called.
  double good_until() const { return good_until_; }
  void reach(double clock) {
    if (clock < good_until_) return;
    good_until_ = 2 * clock;
    s4u::Engine::set_config(precision_option, good_until_ * clock_rounding);
  }

 private:
  double good_until_ = finest_until;
};

/// 9.2e12 bytes in SimGrid's units are a signed integer's limit.
constexpr Bytes longest_part{4e12};

/// Work of about five seconds for SimGrid: the sum, over all Comms, of those under way when each starts, since SimGrid goes through the list
/// of all when one ends. Measured on an AMD EPYC: 7 s for 4e8, of exchanges among 64 nodes over one slow link.
constexpr std::uint64_t most_work = 300'000'000;

class SimGridEngine;

/// The queue of the engine, as SimGrid's loop sees it.
class QueueModel final : public simgrid::kernel::resource::Model {
 public:
  explicit QueueModel(SimGridEngine& engine) : Model("windtunnel_events"), engine_(engine) {
    set_update_algorithm(UpdateAlgo::FULL);
  }
  double next_occurring_event(double now) override;
  void update_actions_state(double now, double delta) override;

 private:
  SimGridEngine& engine_;
  ClockPrecision precision_;
};

/// A flow under way; shared ones are SimGrid's.
struct Flow : FlowUnderWay {
  Bytes unsent{};  ///< shared: what follows the part under way
};

/// SimGrid's engine, with the links that can limit a flow. Made when flows first meet: the names of hosts and links take long.
struct SimGridNetwork {
  SimGridNetwork(const Network& network, std::shared_ptr<QueueModel> queue);
  s4u::Engine* engine;  ///< never deleted: its clock and signals outlive it anyway
  std::vector<s4u::Host*> host_of_path;
};

/// The one of this process, while it lives: SimGrid's callbacks are global.
SimGridEngine* the_engine = nullptr;

class SimGridEngine final : public FlowEngine<SimGridEngine, Flow> {
 public:
  explicit SimGridEngine(const Network& network)
      : FlowEngine(network), network_(network), flows_on_(network.links().size()) {
    static bool was_made = false;
    WT_EXPECT(!was_made);  // SimGrid's clock is never reset: one in a process, ever
    was_made = true;
    the_engine = this;
  }

  ~SimGridEngine() override {
    for (s4u::Activity* const last : ended_) last->unref();
    the_engine = nullptr;
  }

  SimGridEngine(const SimGridEngine&) = delete;
  SimGridEngine& operator=(const SimGridEngine&) = delete;
  std::string_view name() const override { return "simgrid"; }
  void run(EventHandler& handler) override {
    handler_ = &handler;
    reach(0);
    if (!waiting_.empty() || num_parts_ > 0) simgrid().engine->run();
    handler_ = nullptr;
    if (failure_) std::rethrow_exception(failure_);
  }

  /// Time from `clock` to the next event of the queue; negative if there is none.
  double time_to_next(double clock) const {
    constexpr double nothing = -1;
    if (!waiting_.empty()) return std::max(0.0, waiting_since_.value() - clock);
    return queue_.empty() ? nothing : std::max(0.0, queue_.next_time().value() - clock);
  }

  /// SimGrid's clock has come to `clock`: handles the events that are due.
  void reach(double clock) {
    Seconds due_until{clock + clock * clock_rounding};
    if (!waiting_.empty() && waiting_since_ <= due_until)
      for (const std::uint32_t index : std::exchange(waiting_, {})) start_part(index);
    while (!queue_.empty()) {
      if (queue_.next_time() > due_until) {
        if (!may_run_ahead()) return;
        due_until = queue_.next_time();
      }
      const auto event = queue_.pop();
      on_due(event.time, event.payload);
    }
  }

  /// A Comm is freed with its last reference, which must not happen while SimGrid reports its end: ours are given back at the next end.
  void on_completion(const s4u::Activity& activity) {
    for (s4u::Activity* const old : std::exchange(ended_, {})) old->unref();
    const auto data = reinterpret_cast<std::uintptr_t>(activity.get_data<void>());
    WT_EXPECT(data > 0);
    ended_.push_back(const_cast<s4u::Activity*>(&activity));
    const auto index = static_cast<std::uint32_t>(data - 1);
    --num_parts_;
    now_ = std::max(now_, Seconds{s4u::Engine::get_clock()});
    if (flows_[index].unsent > Bytes{0}) {
      start_part(index);
    } else {
      end_flow(index);
    }
  }

  bool has_parts() const { return num_parts_ > 0; }

 private:
  friend FlowEngine;
  bool meet_others(PathId up, PathId down) {
    bool met = false;
    for (const PathId path : {up, down})
      for (const LinkId link : paths_.links(path))
        if (meet_others(link)) met = true;
    return met;
  }

  bool meet_others(LinkId link) {
    bool met = false;
    for (const std::uint32_t index : flows_on_.on(link)) {
      Flow& flow = flows_[index];
      if (flow.state == Flow::State::alone) {
        const Seconds left = flow.end - now_;
        if (left <= simultaneous) continue;
        ++flow.generation;
        share(index, left * flow.rate);
      }
      met = true;
    }
    return met;
  }

  void enter_links(std::uint32_t index, bool) {
    const Flow& flow = flows_[index];
    for (const PathId path : {flow.up, flow.down})
      for (const LinkId link : paths_.links(path)) flows_on_.enter(link, index);
  }

  /// SimGrid starts flows at its clock, which stands still while events are handled ahead of it.
  void share(std::uint32_t index, Bytes bytes) {
    flows_[index].state = Flow::State::shared;
    flows_[index].unsent = bytes;
    const double clock = simgrid_ == nullptr ? 0 : s4u::Engine::get_clock();
    if (now_.value() <= clock + clock * clock_rounding) {
      start_part(index);
      return;
    }
    waiting_since_ = now_;
    waiting_.push_back(index);
  }

  /// Moves the next part of the flow's bytes, all of them unless there are very many.
  void start_part(std::uint32_t index) {
    ++num_parts_;
    work_ += num_parts_;
    if (work_ > most_work)
      fail(std::make_exception_ptr(TooManySharedFlows("too many flows share links for SimGrid")));
    Flow& flow = flows_[index];
    const Bytes part = std::min(flow.unsent, longest_part);
    flow.unsent -= part;
    const auto units = static_cast<std::uint64_t>(std::llround(part.value() * units_per_byte));
    SimGridNetwork& network = simgrid();
    const s4u::CommPtr comm = s4u::Comm::sendto_init();
    comm->set_payload_size(std::max<std::uint64_t>(units, 1));
    comm->set_data(reinterpret_cast<void*>(std::uintptr_t{index} + 1));  // 0 is none
    comm->add_ref();  // given back in on_completion
    comm->set_source(network.host_of_path[flow.up.index()]);
    comm->set_destination(network.host_of_path[flow.down.index()]);  // starts it
  }

  SimGridNetwork& simgrid() {
    if (simgrid_ == nullptr)
      simgrid_ = std::make_unique<SimGridNetwork>(network_, std::make_shared<QueueModel>(*this));
    return *simgrid_;
  }

  /// True if SimGrid has nothing under way, so that queued events can be handled ahead of its clock.
  bool may_run_ahead() const { return num_parts_ == 0 && waiting_.empty(); }
  void on_due(Seconds time, DueEvent due) {
    if (!due.is_flow()) {
      now_ = std::max(now_, time);
      tell_handler(due.token);
    } else if (flows_[due.flow].generation == due.generation) {
      now_ = std::max(now_, time);
      end_flow(due.flow);
    }
  }

  void end_flow(std::uint32_t index) {
    const Flow& flow = flows_[index];
    for (const PathId path : {flow.up, flow.down})
      for (const LinkId link : paths_.links(path)) flows_on_.leave(link, index);
    free_flow(index);
    tell_handler(flow.token);
  }

  /// An exception must not cross SimGrid's loop: it is kept, no further event is handled, and run() throws
  /// it.
  void tell_handler(std::uint64_t token) {
    if (failure_) return;
    try {
      handler_->on_event(token);
    } catch (...) {
      fail(std::current_exception());
    }
  }

  /// No further event is handled, and run() throws this.
  void fail(std::exception_ptr failure) {
    if (!failure_) failure_ = std::move(failure);
    queue_.clear();
    waiting_.clear();
  }

  const Network& network_;
  std::unique_ptr<SimGridNetwork> simgrid_;
  LinkFlows flows_on_;
  std::exception_ptr failure_;
  /// Flows that SimGrid will start as soon as its clock is where ours was when they met: `waiting_since_`.
  std::vector<std::uint32_t> waiting_;
  Seconds waiting_since_{};
  std::size_t num_parts_ = 0;  ///< Comms under way
  std::uint64_t work_ = 0;     ///< the sum of num_parts_ over all that were started
  std::vector<s4u::Activity*> ended_;
};

s4u::Engine* make_s4u_engine() {
  static std::vector<std::string> arguments = simgrid_arguments();  // SimGrid keeps pointers
  static std::vector<char*> argv;
  argv.reserve(arguments.size() + 1);
  for (std::string& argument : arguments) argv.push_back(argument.data());
  argv.push_back(nullptr);
  static int argc = static_cast<int>(arguments.size());
  // SimGrid takes Ctrl-C for itself, and ends with exit code 1, which is a verdict here.
  struct sigaction before {};
  sigaction(SIGINT, nullptr, &before);
  auto* const engine = new s4u::Engine(&argc, argv.data());
  sigaction(SIGINT, &before, nullptr);
  return engine;
}

double simgrid_bandwidth(BytesPerSecond bandwidth) { return bandwidth.value() * units_per_byte; }

/// A star of hosts, one for each path: from it, and to it, the route is over the path's links. Latencies are zero: ours are paid by the
/// caller, and CM02 would share links in inverse proportion to them.
SimGridNetwork::SimGridNetwork(const Network& network, std::shared_ptr<QueueModel> queue)
    : engine(make_s4u_engine()) {
  engine->add_model(std::move(queue));
  s4u::Activity::on_completion_cb([](const s4u::Activity& activity) {
    if (the_engine != nullptr) the_engine->on_completion(activity);
  });
  s4u::NetZone* const zone = s4u::create_star_zone("network");
  std::vector<s4u::Link*> links;
  for (const Link& link : network.links())
    links.push_back(
        zone->create_link("link" + std::to_string(links.size()), simgrid_bandwidth(link.bandwidth))
            ->seal());
  for (const std::vector<LinkId>& path : binding_links(network)) {
    s4u::Host* host = zone->create_host("path" + std::to_string(host_of_path.size()), 1.0)->seal();
    std::vector<s4u::LinkInRoute> links_of_route;
    for (const LinkId link : path) links_of_route.emplace_back(links[link.index()]);
    zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, links_of_route, true);
    host_of_path.push_back(host);
  }
  zone->seal();
}

double QueueModel::next_occurring_event(double now) {
  const double next = engine_.time_to_next(now);
  if (!engine_.has_parts()) return next;
  const double step = std::max(0.0, precision_.good_until() - now);
  return next < 0 ? step : std::min(next, step);
}

void QueueModel::update_actions_state(double now, double /*delta*/) {
  precision_.reach(now);
  engine_.reach(now);
}

}  // namespace
}  // namespace windtunnel::detail

extern "C" __attribute__((visibility("default"))) windtunnel::Engine*
windtunnel_make_simgrid_engine(const windtunnel::Network& network) {
  return new windtunnel::detail::SimGridEngine(network);
}
