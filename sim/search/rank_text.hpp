#pragma once

#include <string>

#include "report/summary_text.hpp"
#include "search/rank.hpp"

namespace windtunnel {

/// The table of the best plans, at most 100 characters wide where the numbers allow it. Keys of which one value was tried
/// have no column.
///
///   gpt-39b on 512 GPUs of a100-80gb-4hdr with megatron-deepspeed-2021
///
///   #  tensor  pipeline  data  microbatch     time  samples/s    memory  what takes the time
///   1       8         4    16           4  14.65 s      104.8  61.2 GiB  compute 84 %, pipeline bubble 8 %
///   2       8         8     8           4  14.86 s      103.4  48.0 GiB  compute 82 %, pipeline bubble 11 %
///
///   144 plans considered: 24 cannot be laid out, 31 do not fit in memory, 20 of the rest simulated
///   ✓ nothing better is left: no other plan takes less than 15.9 s
std::string rank_text(const Scenario& base, const RankResult& result,
                      Colour colour = Colour::never);

}  // namespace windtunnel
