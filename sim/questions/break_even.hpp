#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "core/json_value.hpp"
#include "report/comparison.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

/// Part of an iteration's time that rounding can make of nothing.
inline constexpr double equal_within = 1e-9;

/// Assumed speeds of codecs in the device's file, at the slow end of their range: half the rates, twice the launches, and five times the
/// column step of powersgd, 50 us for one of 10 (the released code of Optimus-CC launches 5 to 7 kernels a column where one would do).
CodecSpeeds slow_codecs(CodecSpeeds speeds);

/// Options for simulating resolved scenarios for their times alone.
struct TimedSimulations {
  std::string what_for;  ///< of the message where one fails
  std::size_t at_once = 1;
  std::uint64_t seed = 0;
  bool has_slow_codecs = false;
};
/// The iteration time of each. Throws what a simulation failed with.
std::vector<Seconds> iteration_times(const std::vector<JsonValue>& resolved, const Library& library,
                                     const TimedSimulations& how);

/// A resolved scenario with the bandwidth of one part of its network multiplied by `factor`, itself a scenario that can be
/// read. Between nodes: NICs, measured matrices and single links, and with the NICs the uplinks of leaf switches. Inside
/// nodes: collectives and copies. Latencies stay.
JsonValue with_scaled_network(JsonValue resolved, NetworkPart part, double factor);

/// That bandwidth as the scenario has it. Between nodes: all NICs of the first node, one way, as far as they are attained.
/// Inside nodes: one GPU to another.
BytesPerSecond network_bandwidth(const Scenario& scenario, NetworkPart part);

/// Question of which of two scenarios is faster, over the bandwidth of their network.
struct BreakEvenQuestion {
  std::string what;         ///< what `second` has and `first` has not
  JsonValue first, second;  ///< resolved scenarios
  NetworkPart part = NetworkPart::between_nodes;
  BytesPerSecond bandwidth_now{};
};

/// The range of factors that is searched, and how finely.
struct BreakEvenSearch {
  double lowest = 1.0 / 64, highest = 64;
  double tolerance = 0.005;  ///< of the factor
  std::size_t at_once =
      1;  ///< simulations that run at the same time; changes nothing but the time it takes
};

/// The factors at which the sign of T(second) - T(first) changes, by bisection of ln(factor). Where the difference changes its sign more than once between the ends of the range, one of the places is found; where
/// it has the same sign at both ends, none is. Differences below 1e-9 of the time count as none. All questions
/// advance together, so that each round's simulations can run at the same time.
std::vector<BreakEven> find_break_evens(const std::vector<BreakEvenQuestion>& questions,
                                        const Library& library, const BreakEvenSearch& search,
                                        std::uint64_t seed = 0);

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
