#pragma once

namespace windtunnel {

/// What is played as an event of its own.
enum class Detail {
  pass,   ///< passes, and what inside them meets others on the network
  layer,  ///< every operation of every pass, layer by layer, whether it meets others or not
};

}  // namespace windtunnel
