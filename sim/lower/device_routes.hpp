#pragma once

#include <vector>

#include "plan/plan.hpp"
#include "platform/network.hpp"

namespace windtunnel {

/// The ways between the devices of a plan. Devices are attached to the network once, not once a route.
class DeviceRoutes {
 public:
  /// The network must outlive it.
  DeviceRoutes(const Plan& plan, Network& network) : network_(&network) {
    attached_.reserve(plan.devices.size());
    for (const PlanDevice& device : plan.devices)
      attached_.push_back(network.attach(device.node, device.gpus));
  }

  /// Between devices of different nodes.
  Route between(DeviceId from, DeviceId to) const {
    return network_->route(attached_[from.index()], attached_[to.index()]);
  }

 private:
  Network* network_;
  std::vector<Network::Attachment> attached_;  ///< by device
};

}  // namespace windtunnel
