#pragma once

#include <string>

#include "platform/platform.hpp"
#include "workload/transformer.hpp"

namespace windtunnel {

/// The most GPUs that simgrid_platform() writes: it writes a route for each pair of them.
inline constexpr int most_simgrid_hosts = 512;

/// The machine of a job on the first `nodes` nodes, at most most_simgrid_hosts GPUs, as a platform file for SimGrid 3.32 (simgrid.dtd 4.1).
/// A host stands for each GPU, "node3-gpu5", at the rate of its long matrix products in `precision`; between GPUs of a node
/// stands what a message from one to another attains, which no two of them share. Between nodes stand the links that
/// Network has. A latency is a link that nothing shares. SimGrid simulates it as Windtunnel does with
/// --cfg=network/model:CM02 --cfg=network/weight-S:0 --cfg=network/crosstraffic:0 --cfg=network/TCP-gamma:1e30, but shares links in inverse
/// proportion to latencies where these differ.
std::string simgrid_platform(const Platform& platform, int nodes, Precision precision);

}  // namespace windtunnel
