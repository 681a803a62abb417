#include <signal.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <simgrid/kernel/resource/Model.hpp>
#include <simgrid/kernel/routing/NetZoneImpl.hpp>
#include <simgrid/s4u/Engine.hpp>
#include <simgrid/s4u/Host.hpp>
#include <simgrid/s4u/Link.hpp>
#include <simgrid/s4u/NetZone.hpp>
#include <string>
#include <vector>

#include "engine/simgrid_loop.hpp"
#include "engine/simgrid_network_model.hpp"

namespace windtunnel::detail {
namespace {

namespace s4u = simgrid::s4u;
namespace resource = simgrid::kernel::resource;

/// Bytes and bandwidths are given to SimGrid in units of a millionth of a byte, and bytes rounded to whole ones, so that rounding the
/// remaining bytes of a flow costs less than 1e-15 s on a 1 GB/s link.
constexpr double units_per_byte = 1e6;
constexpr double unlimited_rate = -1;
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

/// The companion's events inside SimGrid's loop.
class CompanionModel final : public resource::Model {
 public:
  explicit CompanionModel(const std::size_t& num_flows)
      : Model("windtunnel_events"), num_flows_(num_flows) {
    set_update_algorithm(UpdateAlgo::FULL);
  }
  void set_companion(SimGridLoop::Companion* companion) { companion_ = companion; }

  double next_occurring_event(double now) override {
    const double next = companion_->time_to_next(now);
    if (num_flows_ == 0) return next;
    const double step = std::max(0.0, precision_.good_until() - now);
    return next < 0 ? step : std::min(next, step);
  }
  void update_actions_state(double now, double /*delta*/) override {
    precision_.reach(now);
    companion_->reach(now);
  }

 private:
  const std::size_t& num_flows_;
  ClockPrecision precision_;
  SimGridLoop::Companion* companion_ = nullptr;
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

class Loop;
/// The one of this process. A global because SimGrid's callbacks are, and so that it can be reached until the process ends.
Loop* the_loop = nullptr;

class Loop final : public SimGridLoop {
 public:
  explicit Loop(const SimGridNetwork& network);
  double clock() const override { return s4u::Engine::get_clock(); }
  void set_bandwidth(LinkId link, BytesPerSecond bandwidth) override {
    links_[link.index()]->set_bandwidth(simgrid_bandwidth(bandwidth));
  }
  void set_companion(Companion* companion) override {
    companion_ = companion;
    events_->set_companion(companion);
  }
  void start_flow(std::uint32_t flow, PathId up, PathId down, Bytes bytes) override;
  void run() override { simgrid_->run(); }

  void end_flows();

 private:
  s4u::Engine* simgrid_ =
      make_s4u_engine();  ///< never deleted: its clock and signals outlive it anyway
  std::vector<s4u::Link*> links_;
  std::vector<s4u::Host*> host_of_path_;
  std::size_t num_flows_ = 0;  ///< under way
  std::shared_ptr<CompanionModel> events_ = std::make_shared<CompanionModel>(num_flows_);
  Companion* companion_ = nullptr;
  resource::NetworkModel* network_model_ = nullptr;
};

/// A star of hosts, one for each path: from it, and to it, the way is over the path's links.
/// Latencies are zero: ours are paid by the caller, and CM02 would share links in inverse
/// proportion to them.
Loop::Loop(const SimGridNetwork& network) {
  simgrid_->add_model(events_);
  s4u::NetZone* zone = s4u::create_star_zone("network");
  for (const BytesPerSecond bandwidth : network.bandwidths)
    links_.push_back(
        zone->create_link("link" + std::to_string(links_.size()), simgrid_bandwidth(bandwidth))
            ->seal());
  for (const std::vector<LinkId>& path : network.paths) {
    s4u::Host* host = zone->create_host("path" + std::to_string(host_of_path_.size()), 1.0)->seal();
    std::vector<s4u::LinkInRoute> way;
    for (const LinkId link : path) way.emplace_back(links_[link.index()]);
    zone->add_route(host->get_netpoint(), nullptr, nullptr, nullptr, way, true);
    host_of_path_.push_back(host);
  }
  zone->seal();
  network_model_ = zone->get_impl()->get_network_model().get();
  s4u::Engine::on_time_advance_cb([](double /*step*/) { the_loop->end_flows(); });
}

/// A flow is an action of the network model. A Comm about it would take SimGrid as much time again: it keeps those under way in one list,
/// and goes through all of it whenever one ends.
void Loop::start_flow(std::uint32_t flow, PathId up, PathId down, Bytes bytes) {
  ++num_flows_;
  const double units = std::max(std::round(bytes.value() * units_per_byte), 1.0);
  resource::Action* const action = network_model_->communicate(
      host_of_path_[up.index()], host_of_path_[down.index()], units, unlimited_rate);
  set_flow(*action, flow);
}

/// Called when SimGrid's clock has advanced, before SimGrid drops the actions that ended and belong to no activity.
void Loop::end_flows() {
  while (resource::Action* const action = network_model_->extract_done_action()) {
    --num_flows_;
    if (companion_ != nullptr) companion_->on_flow_end(flow_of(*action));
    action->unref();
  }
}

}  // namespace
}  // namespace windtunnel::detail

extern "C" __attribute__((visibility("default"))) windtunnel::detail::SimGridLoop*
windtunnel_make_simgrid_loop(const windtunnel::detail::SimGridNetwork& network) {
  using namespace windtunnel::detail;
  the_loop = new Loop(network);  // never destroyed: SimGrid's callbacks outlive everything
  return the_loop;
}
