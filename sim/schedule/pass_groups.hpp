#pragma once

#include <span>
#include <vector>

#include "plan/schedule.hpp"

namespace windtunnel {

/// Passes between two exchanges (PipelineSend::blocking_pairs); one, but for the pairs of a schedule with several chunks.
using PassGroup = std::span<const Step>;

/// The passes of a stage, which must outlive the groups. With one chunk each pass is a group of its own. With several, a forward and the
/// backward right behind it are one group. Source: forward_backward_pipelining_with_interleaving in megatron/schedules.py, the same
/// loop in Megatron-LM v2.5 (August 2021) and at commit 2514892 (October 2022): every steady iteration, the last included, runs both
/// passes and then calls send_forward_backward_recv_forward_backward once. Where all_warmup_microbatches is set there is no steady
/// iteration.
std::vector<PassGroup> pass_groups(const std::vector<Step>& order, int chunks);

}  // namespace windtunnel
