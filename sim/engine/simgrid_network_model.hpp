#pragma once

#include <simgrid/version.h>

#include <cstdint>
#include <simgrid/kernel/resource/Action.hpp>
#include <simgrid/kernel/resource/Model.hpp>
#include <simgrid/kernel/resource/NetworkModelIntf.hpp>
#include <string>
#include <vector>

static_assert(SIMGRID_VERSION == 33200,
              "the class below must be that of SimGrid's src/kernel/resource/NetworkModel.hpp");

namespace simgrid::kernel::resource {

/// SimGrid's model of a network, which shares links among actions. A copy of a declaration that SimGrid does not install
/// (docs/decisions/simgrid-actions.md): its virtual functions in SimGrid's order, up to the one we call.
class XBT_PUBLIC NetworkModel : public Model, public NetworkModelIntf {
 public:
  ~NetworkModel() override;  // SimGrid's
  virtual StandardLinkImpl* create_link(const std::string& name,
                                        const std::vector<double>& bandwidths) = 0;
  virtual StandardLinkImpl* create_wifi_link(const std::string& name,
                                             const std::vector<double>& bandwidths) = 0;
  /// Starts moving `size` over the links between two hosts, at `rate` at most unless that is negative.
  virtual Action* communicate(s4u::Host* from, s4u::Host* to, double size, double rate) = 0;
};

}  // namespace simgrid::kernel::resource

namespace windtunnel::detail {

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"  // removed from SimGrid 3.34
/// An action keeps the flow that it moves.
inline void set_flow(simgrid::kernel::resource::Action& action, std::uint32_t flow) {
  action.set_data(reinterpret_cast<void*>(std::uintptr_t{flow}));
}
inline std::uint32_t flow_of(const simgrid::kernel::resource::Action& action) {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(action.get_data()));
}
#pragma GCC diagnostic pop

}  // namespace windtunnel::detail
