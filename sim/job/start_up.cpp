#include "job/start_up.hpp"

#include <array>
#include <cstddef>

namespace windtunnel {
namespace {

struct Measured {
  double nodes, seconds;
};

/// Initialisation to start of training, means of three runs each: NVIDIA's GPT-3 175B submissions to MLPerf Training 3.1 on
/// one site (Eos, DGX H100, NeMo 23.09). Includes the warm-up that NeMo does before the clock starts.
constexpr std::array<Measured, 7> measured{{{64, 169.1},
                                            {96, 169.1},
                                            {512, 188.2},
                                            {768, 228.9},
                                            {1024, 291.3},
                                            {1280, 382.5},
                                            {1344, 392.1}}};

}  // namespace

const char* const start_up_source =
    "measured: MLPerf Training 3.1, GPT-3 on DGX H100, 64 to 1,344 nodes of one site; a straight "
    "line beyond";

Seconds measured_start_up(int nodes) {
  const double at = nodes;
  if (at <= measured.front().nodes) return Seconds{measured.front().seconds};
  std::size_t i = 1;
  while (i + 1 < measured.size() && measured[i].nodes < at) ++i;
  // The last two points are 64 nodes apart: beyond them, the line from 768 nodes on is steadier.
  constexpr std::size_t steady = 3;
  const Measured from = at > measured.back().nodes ? measured[steady] : measured[i - 1];
  const Measured to = measured[i];
  return Seconds{from.seconds +
                 (to.seconds - from.seconds) * (at - from.nodes) / (to.nodes - from.nodes)};
}

}  // namespace windtunnel
