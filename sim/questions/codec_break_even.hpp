#pragma once

#include <vector>

#include "report/comparison.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

/// The bandwidth of one rank at which compressing a class of traffic neither wins nor loses, for each class that the scenario
/// compresses:  BW = saved / codec.
///   stage messages   saved = S - E, codec = encode + decode. With rates C and a ratio this is
///                    1/C_enc + 1/C_dec = (1 - 1/ratio)/BW; PowerSGD's codec time is a latency, whatever the message weighs.
///   collectives      saved = v (S - E), v = 2 (n-1)/n for an all-reduce, (n-1)/n for its halves; codec = all of a member's work
/// S is the message before and E after encoding, encode and decode what sim/cost/codec_cost.hpp says for the scenario's GPU. Below BW
/// compression wins. For one transfer that waits for its codec and is waited for: latencies, chunks that overlap, and whatever
/// hides behind computing are left to the simulation, which decides (CodecBreakEven::saved_by_job, filled in by compare()).
///
/// `now` is what a rank attains with nothing else on the links: of the slowest pair of stages, or of the collective of the first
/// compressed stage.
std::vector<CodecBreakEven> codec_break_evens(const Scenario& scenario);

}  // namespace windtunnel
