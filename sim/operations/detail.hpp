#pragma once

namespace windtunnel {

/// What is played as an event of its own.
enum class Detail {
  pass,  ///< passes, and what inside them meets others on the network
  layer,  ///< the layers of sharded passes with their gathers and scatters, whether they meet others or not
};

}  // namespace windtunnel
