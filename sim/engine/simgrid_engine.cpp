#include "engine/simgrid_engine.hpp"

#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <exception>
#include <limits>
#include <memory>
#include <optional>
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
#include "engine/binding_links.hpp"
#include "engine/link_flows.hpp"
#include "engine/lookahead_queue.hpp"
#include "engine/path_rates.hpp"
#include "engine/prepared_engine.hpp"

// How SimGrid is driven. There are no actors. One model of our own holds a heap of timers, and of
// the flows that have their links to themselves (their end is bytes / slowest link, no solver
// needed). When a flow meets another on a link, both become SimGrid Comms with the bytes they have
// left, and SimGrid shares the links max-min fairly. SimGrid keeps the loop, the clock, the routes
// and the solver. While it has no Comm under way, our heap is played ahead of its clock in one go, up to the next two flows that meet; SimGrid's clock
// follows there before they become Comms. Three times faster than a Comm for each flow, with the same results.
namespace windtunnel::detail {
namespace {

namespace s4u = simgrid::s4u;

/// A Comm's payload is an integer. Bytes and bandwidths are given to SimGrid in units of a
/// millionth of a byte, so that rounding the remaining bytes of a flow costs less than 1e-15 s on a
/// 1 GB/s link.
constexpr double units_per_byte = 1e6;
/// A longer flow is given to SimGrid in parts: 9.2e12 bytes in our units are a signed integer's limit.
constexpr Bytes longest_part{4e12};
/// A flow that ends this soon leaves its links to a newcomer. A thousandth of SimGrid's own
/// precision of time.
constexpr Seconds simultaneous{1e-12};
/// A timer is due when the clock is this close, relatively: the clock advances by rounded
/// differences.
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

/// What is due, in eight bytes: a timer's token, or a flow and its generation.
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

/// Keeps SimGrid's precision of time above the rounding of its clock. SimGrid plays what is due only while the clock is within the
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

/// Our timers inside SimGrid's loop.
class TimerModel final : public simgrid::kernel::resource::Model {
 public:
  class Owner {
   public:
    virtual ~Owner() = default;
    virtual void on_due(Seconds time, Due due) = 0;
    virtual void prefetch_first(Due due) const = 0;
    virtual void prefetch_rest(Due due) const = 0;
    /// Whether SimGrid has nothing under way, and what is due can be played ahead of its clock.
    virtual bool may_run_ahead() const = 0;
    /// The clock has come to where the Comms that wait for it were asked for.
    virtual void start_waiting_comms() = 0;
    /// When they were asked for; nothing when none waits.
    virtual std::optional<Seconds> waiting_since() const = 0;
  };

  TimerModel() : Model("windtunnel_timers") { set_update_algorithm(UpdateAlgo::FULL); }
  void set_owner(Owner& owner) { owner_ = &owner; }
  LookaheadQueue<Due>& queue() { return queue_; }

  double next_occurring_event(double now) override {
    constexpr double nothing = -1;
    if (const auto since = owner_->waiting_since()) return std::max(0.0, since->value() - now);
    double next = queue_.empty() ? nothing : std::max(0.0, queue_.next_time().value() - now);
    if (!owner_->may_run_ahead()) {
      const double step = std::max(0.0, precision_.good_until() - now);
      next = next == nothing ? step : std::min(next, step);
    }
    return next;
  }
  void update_actions_state(double now, double /*delta*/) override {
    Seconds due_until{now + now * clock_rounding};
    precision_.reach(now);
    if (owner_->waiting_since() && *owner_->waiting_since() <= due_until)
      owner_->start_waiting_comms();
    while (!queue_.empty()) {
      if (queue_.next_time() > due_until) {
        if (!owner_->may_run_ahead()) return;
        due_until = queue_.next_time();
      }
      const auto event = queue_.pop(*owner_);
      owner_->on_due(event.time, event.payload);
    }
  }

 private:
  ClockPrecision precision_;
  LookaheadQueue<Due> queue_;
  Owner* owner_ = nullptr;
};

/// A flow under way.
struct alignas(64) Flow {
  enum class State : std::uint8_t {
    free,    ///< the place is not in use
    alone,   ///< no other flow on its links: its end is an event of our queue
    shared,  ///< a SimGrid Comm
  };
  PathId up, down;
  std::uint32_t index = 0;  ///< its place
  std::uint64_t token = 0;
  Bytes unsent{};                ///< shared: what follows the Comm under way
  BytesPerSecond rate{};         ///< when alone
  Seconds end{};                 ///< when alone
  std::uint32_t generation = 0;  ///< an event of our queue for an older one is void
  State state = State::free;
};

class SimGridEngine final : public Engine, public TimerModel::Owner {
 public:
  explicit SimGridEngine(const Network& network);
  ~SimGridEngine() override;
  SimGridEngine(const SimGridEngine&) = delete;
  SimGridEngine& operator=(const SimGridEngine&) = delete;
  Seconds now() const override { return now_; }
  void after(Seconds delay, std::uint64_t token) override;
  void start_flow(PathId up, PathId down, Bytes bytes, std::uint64_t token) override;
  void prefetch_flow(PathId up, PathId down) const override;
  void run(EventHandler& handler) override;
  std::uint64_t num_activities() const override { return num_timers_ + num_flows_; }
  std::uint64_t num_flows() const override { return num_flows_; }
  void on_due(Seconds time, Due due) override;
  void prefetch_first(Due due) const override;
  void prefetch_rest(Due due) const override;
  bool may_run_ahead() const override { return num_comms_ == 0 && waiting_.empty(); }
  void start_waiting_comms() override;
  std::optional<Seconds> waiting_since() const override {
    return waiting_.empty() ? std::nullopt : std::optional(waiting_since_);
  }
  void on_comm_end(std::uint32_t flow);

 private:
  std::uint32_t add_flow(PathId up, PathId down, std::uint64_t token);
  /// Whether other flows are under way on the links; those that were alone are shared from now on.
  bool meet_others(PathId up, PathId down);
  bool meet_others(LinkId link);
  void share(std::uint32_t index, Bytes bytes);
  void ask_for_comm(std::uint32_t index);
  void start_comm(std::uint32_t index);
  void end_flow(std::uint32_t index);
  void tell_handler(std::uint64_t token);

  PathRates rates_;
  PathLinks links_;
  LinkFlows flows_on_;
  std::deque<Flow> flows_;  ///< in place: Comms point to theirs
  std::vector<std::uint32_t> free_flows_;
  std::vector<s4u::Host*> host_of_path_;
  s4u::Engine* simgrid_ = nullptr;
  std::shared_ptr<TimerModel> timers_;
  EventHandler* handler_ = nullptr;
  std::exception_ptr failure_;
  Seconds now_{};
  /// Flows to become Comms as soon as SimGrid's clock is where ours was when they met: `waiting_since_`.
  std::vector<std::uint32_t> waiting_;
  Seconds waiting_since_{};
  std::size_t num_comms_ = 0;  ///< under way in SimGrid
  std::uint64_t num_timers_ = 0;
  std::uint64_t num_flows_ = 0;
};

/// The process's one engine. A global because SimGrid's callbacks are.
SimGridEngine* the_engine = nullptr;
bool engine_was_made = false;

/// A Comm is freed with its last reference, which must not happen while SimGrid reports its end:
/// the references we hold are given back at the next end.
void on_simgrid_completion(const s4u::Activity& activity) {
  // Never destroyed: the last ones stay referenced until the process ends.
  static auto& ended = *new std::vector<s4u::Activity*>;
  for (s4u::Activity* old : ended) old->unref();
  ended.clear();
  const auto* flow = activity.get_data<Flow>();
  if (flow == nullptr) return;
  ended.push_back(const_cast<s4u::Activity*>(&activity));
  if (the_engine != nullptr) the_engine->on_comm_end(flow->index);
}

/// SimGrid's own engine with the links and hosts of a network.
struct SimGridPlatform {
  s4u::Engine* simgrid = nullptr;  ///< never deleted: its clock and signals outlive it anyway
  std::shared_ptr<TimerModel> timers;
  NetworkShape shape;
  std::vector<s4u::Link*> links;
  std::vector<BytesPerSecond> bandwidths;  ///< of the links
  std::vector<s4u::Host*> host_of_path;
};

/// Made ahead of time; a global because SimGrid's engine is.
SimGridPlatform* prepared = nullptr;
pid_t prepared_by = 0;

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

/// A star of hosts, one for each path: from it, and to it, the way is over the path's links.
/// Latencies are zero: ours are paid by the caller, and CM02 would share links in inverse
/// proportion to them.
SimGridPlatform make_platform(const Network& network) {
  SimGridPlatform platform;
  platform.simgrid = make_s4u_engine();
  platform.timers = std::make_shared<TimerModel>();
  platform.simgrid->add_model(platform.timers);
  platform.shape = shape_of(network);
  s4u::NetZone* zone = s4u::create_star_zone("network");
  for (std::size_t i = 0; i < network.links().size(); ++i) {
    const BytesPerSecond bandwidth = network.links()[i].bandwidth;
    platform.bandwidths.push_back(bandwidth);
    platform.links.push_back(
        zone->create_link("link" + std::to_string(i), simgrid_bandwidth(bandwidth))->seal());
  }
  for (std::size_t i = 0; i < platform.shape.paths.size(); ++i) {
    s4u::Host* host = zone->create_host("path" + std::to_string(i), 1.0)->seal();
    std::vector<s4u::LinkInRoute> way;
    for (const LinkId link : platform.shape.paths[i])
      way.emplace_back(platform.links[link.index()]);
    zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, way, true);
    platform.host_of_path.push_back(host);
  }
  zone->seal();
  return platform;
}

/// The platform that was prepared, with the bandwidths of this network; else a new one.
SimGridPlatform platform_for(const Network& network) {
  if (prepared == nullptr) return make_platform(network);
  WT_EXPECT(prepared_by != getpid());
  WT_EXPECT(prepared->shape == shape_of(network));
  for (std::size_t i = 0; i < prepared->links.size(); ++i) {
    const BytesPerSecond bandwidth = network.links()[i].bandwidth;
    if (bandwidth != prepared->bandwidths[i])
      prepared->links[i]->set_bandwidth(simgrid_bandwidth(bandwidth));
  }
  return *prepared;
}

SimGridEngine::SimGridEngine(const Network& network)
    : rates_(network), links_(network), flows_on_(network.links().size()) {
  SimGridPlatform platform = platform_for(network);
  simgrid_ = platform.simgrid;
  host_of_path_ = std::move(platform.host_of_path);
  timers_ = std::move(platform.timers);
  timers_->set_owner(*this);
  s4u::Activity::on_completion_cb(on_simgrid_completion);
}

SimGridEngine::~SimGridEngine() { the_engine = nullptr; }

void SimGridEngine::after(Seconds delay, std::uint64_t token) {
  WT_EXPECT(delay >= Seconds{0});
  ++num_timers_;
  timers_->queue().push(now_ + delay, Due::timer(token));
}

void SimGridEngine::start_flow(PathId up, PathId down, Bytes bytes, std::uint64_t token) {
  WT_EXPECT(bytes >= Bytes{0});
  ++num_flows_;
  const BytesPerSecond rate = rates_.rate(up, down);
  const bool no_links = rate == BytesPerSecond{std::numeric_limits<double>::infinity()};
  if (bytes == Bytes{0} || no_links) {  // SimGrid would never start a Comm of no bytes
    timers_->queue().push(now_, Due::timer(token));
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
  timers_->queue().push(flow.end, Due::flow(index, flow.generation));
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

void SimGridEngine::share(std::uint32_t index, Bytes bytes) {
  flows_[index].state = Flow::State::shared;
  flows_[index].unsent = bytes;
  ask_for_comm(index);
}

/// Comms start at SimGrid's clock, which stands still while events are played ahead of it.
void SimGridEngine::ask_for_comm(std::uint32_t index) {
  const Seconds clock{s4u::Engine::get_clock()};
  if (now_ <= clock + clock * clock_rounding) {
    start_comm(index);
    return;
  }
  waiting_since_ = now_;
  waiting_.push_back(index);
}

void SimGridEngine::start_waiting_comms() {
  for (const std::uint32_t index : std::exchange(waiting_, {})) start_comm(index);
}

void SimGridEngine::start_comm(std::uint32_t index) {
  ++num_comms_;
  Flow& flow = flows_[index];
  const Bytes part = std::min(flow.unsent, longest_part);
  flow.unsent -= part;
  const auto units = static_cast<std::uint64_t>(std::llround(part.value() * units_per_byte));
  s4u::CommPtr comm = s4u::Comm::sendto_init();
  comm->set_payload_size(std::max<std::uint64_t>(units, 1));
  comm->set_data(&flow);
  comm->add_ref();  // given back in on_simgrid_completion
  comm->set_source(host_of_path_[flow.up.index()]);
  comm->set_destination(host_of_path_[flow.down.index()]);  // starts it
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

void SimGridEngine::on_comm_end(std::uint32_t index) {
  --num_comms_;
  now_ = std::max(now_, Seconds{s4u::Engine::get_clock()});
  if (flows_[index].unsent > Bytes{0}) {
    start_comm(index);
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
    timers_->queue().clear();
    waiting_.clear();
  }
}

void SimGridEngine::run(EventHandler& handler) {
  handler_ = &handler;
  simgrid_->run();
  handler_ = nullptr;
  if (failure_) std::rethrow_exception(failure_);
}

}  // namespace

std::unique_ptr<Engine> make_simgrid_engine(const Network& network) {
  WT_EXPECT(!engine_was_made);  // one SimGrid engine in a process, ever
  engine_was_made = true;
  auto engine = std::make_unique<SimGridEngine>(network);
  the_engine = engine.get();
  return engine;
}

}  // namespace windtunnel::detail

namespace windtunnel {

NetworkShape shape_of(const Network& network) {
  return {network.links().size(), binding_links(network)};
}

void prepare_simgrid_engine(const Network& network) {
  WT_EXPECT(!detail::engine_was_made && detail::prepared == nullptr);
  detail::prepared = new detail::SimGridPlatform(detail::make_platform(network));
  detail::prepared_by = getpid();
}

}  // namespace windtunnel
