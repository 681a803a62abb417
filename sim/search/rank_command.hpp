#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "evidence/evidence.hpp"
#include "report/progress_line.hpp"
#include "report/summary_text.hpp"
#include "scenario/key_table.hpp"
#include "scenario/scenario.hpp"
#include "search/plan_enumerator.hpp"
#include "search/rank.hpp"

namespace windtunnel {

enum class RankFormat { text, json };
enum class LaunchFormat { none, megatron, deepspeed, torchtitan };

/// Command line of `rank`.
struct RankRequest {
  int top = 10;
  std::optional<std::size_t> budget;  ///< simulations
  std::size_t jobs = 0;               ///< simulations at the same time; 0: one a core
  std::string why;                    ///< a plan to explain; empty: none
  std::string method;  ///< what another method would pick (sim/studies); empty: our own search
  LaunchFormat emit = LaunchFormat::none;
  std::string host_map;          ///< file for the GPU of each rank with `emit`; empty: none
  MeasuredErrors evidence = {};  ///< by which plans are judged; may be empty
  RankFormat format = RankFormat::text;
  Colour colour = Colour::never;
  ProgressStyle progress = ProgressStyle::hidden;
};

/// What the request asks of the search, its progress shown on `line`.
RankOptions rank_options(const RankRequest& request, ProgressLine& line);

/// `windtunnel rank`: searches the plans around `base` and writes the best to `out`, progress to `messages`: the table, or what
/// the best plan is launched with (and its host map to a file, where one is named), or why one plan is where it is. Returns the exit code: 0, or 1
/// when no plan can be recommended or the plan in question is rejected. Throws InputError on a plan that cannot be read,
/// EnvironmentError on a file that cannot be written.
int run_rank(const Scenario& base, const RankRequest& request, std::ostream& out,
             std::ostream& messages);

/// Value of a key of plans as JSON: a number, a truth value or a word.
JsonValue plan_value(const Key& key, int value);

/// Gives simulated plans their intervals and, ranked by time, their places. Those that cannot be told apart from the best
/// (Ordering::is_known()) share the first; of the others, one shares the place of the last that began one, where it cannot be told apart
/// from that.
void judge_plans(const Scenario& base, const MeasuredErrors& errors, RankResult& result);

/// The table of the best plans, at most 100 characters wide where the numbers allow it. Keys of which one value was tried
/// have no column.
///
///   gpt-39b on 512 GPUs of a100-80gb-4hdr with megatron-deepspeed-2021
///
///   #  tensor  pipeline  data  microbatch     time  samples/s    memory  what takes the time
///   1a      8         4    16           4  14.65 s      104.8  61.2 GiB  compute 84 %, pipeline bubble 8 %
///   1b      8         8     8           4  14.86 s      103.4  48.0 GiB  compute 82 %, pipeline bubble 11 %
///
///   144 plans considered: 24 cannot be laid out, 31 do not fit in memory, 20 of the rest simulated
///   ~ plans 1a and 1b cannot be told apart: …
///   ✓ by the model, the table is proven: no other plan is faster than one in it (gap 0.0 %)
std::string rank_text(const Scenario& base, const RankResult& result,
                      Colour colour = Colour::never);

/// A plan as the command line writes it, "tensor=8,pipeline=4,micro_batch=2". What it leaves out is as in `base`; data, left
/// out, is the rest of the GPUs. Keys: tensor, pipeline, data, micro_batch, virtual_pipeline, zero_stage, schedule,
/// recompute, sequence_parallel. InputError on what is no such text; whether the plan is legal is lay_out()'s to say.
PlanChoice read_plan_text(const std::string& text, const Scenario& base, const SearchSpace& space);

/// The result as one JSON document, windtunnel/rank-v1, with a line end.
std::string rank_json(const Scenario& base, const RankResult& result);

/// The best plan with its launch arguments and the GPU of each rank, "node:gpu": windtunnel/launch-v1.
std::string launch_json(const Scenario& base, const RankedPlan& plan, const Plan& laid_out);

}  // namespace windtunnel
