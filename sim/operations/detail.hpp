#pragma once

namespace windtunnel {

/// Level of detail that is played as events of their own.
enum class Detail {
  pass,   ///< passes, and what inside them meets others on the network
  layer,  ///< every operation of every pass, layer by layer, whether it meets others or not
};

}  // namespace windtunnel
