#pragma once

#include "lower/program_builder.hpp"
#include "units/quantity.hpp"

namespace windtunnel {

/// A time that the simulated iteration of the plan never goes below, without simulating it. Every message and collective is
/// taken as if it had its links to itself, and of each device only what no order of events can avoid:
///
///   passes end   P(s) = max( fill(s) + m sum_c (F_c + B_c) + E(s),  P(s+1) + x_b + B_0 )
///   fill(s)           = sum_{i<s} ( F_0(i) + x_f(i) )
///   iteration         = max over devices of  P, gradient reduction, embedding synchronisation, optimizer, gather, overhead
///
/// F, B: passes of a stage's chunk c with their collectives across nodes; x: a message to the neighbour; m microbatches.
/// fill: nothing reaches stage s before one microbatch has passed all stages before it. The second term of P: the last
/// backward pass of a stage is followed by one on each stage before it (drain). E: with pipeline_send "blocking_pairs" the exchanges between
/// a stage's passes (StageExchanges); nothing where messages leave by themselves. A collective begins when the last member
/// comes and takes at least max(in-node part, latency + the longest that one link needs for all its flows); collectives of the
/// same kind that share links end when each link has carried all of theirs. Where the
/// backward pass is split (zero-bubble H1 and V) the drain begins behind the last input gradient. Schedules from files have no
/// drain term: their last passes may be any.
///
/// Admissible because a program is a partial order of fixed durations: with none of them longer, nothing ends later; and
/// contention only lengthens. On the heap engine flows never share links, nor do they here. Checked against the engine on a grid of plans, models and platforms (lower_bound_test.cpp).
Seconds lower_bound(const BuildInputs& inputs);

/// A lower bound that looks at the kernels of one replica alone, in the same formulas, with no message, no collective between nodes and
/// nothing of the end but the optimizer and the overhead: a hundredth of the work of lower_bound() where a plan has many devices.
Seconds kernel_bound(const BuildInputs& inputs);

}  // namespace windtunnel
