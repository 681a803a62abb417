#pragma once

#include <iosfwd>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "evidence/evidence.hpp"
#include "report/progress_line.hpp"
#include "scenario/key_table.hpp"
#include "scenario/scenario.hpp"
#include "search/rank.hpp"
#include "search/rank_document.hpp"
#include "search/search_space.hpp"

namespace windtunnel {

enum class LaunchFormat { none, megatron, deepspeed, torchtitan };

/// Command line of `rank`.
struct RankRequest {
  int top = 10;
  std::optional<std::size_t> budget;  ///< simulations
  std::size_t jobs = 0;               ///< simulations at the same time; 0: one a core
  std::string why;                    ///< a plan to explain; empty: none
  std::string method;  ///< what another method would pick (sim/studies); empty: our own search
  std::vector<std::string> avoid;          ///< names of nodes and switches; empty: none
  std::optional<AvoidedNodes> avoided{};   ///< these as avoid_nodes() found them
  const Scenario* with_nothing_avoided{};  ///< what the result is compared with
  LaunchFormat emit = LaunchFormat::none;
  int plan = 1;                  ///< that `emit` writes, by its number in the table
  bool launch_as_json = false;   ///< of Megatron-LM: the arguments with the plan and the host map
  std::string host_map;          ///< file for the GPU of each rank with `emit`; empty: none
  MeasuredErrors evidence = {};  ///< by which plans are judged; may be empty
  ProgressStyle progress = ProgressStyle::hidden;
};

/// The scenario on other nodes than these, the first that have its GPUs. `names`: nodes ("node3") and switches of the fabric ("leaf1",
/// "group0"), which stand for all nodes below them. InputError, of --avoid, where a name is unknown or too few GPUs are left.
std::pair<Scenario, AvoidedNodes> avoid_nodes(Scenario base, const std::vector<std::string>& names);

/// Options of the search for a request, whose progress is shown on `line`.
RankOptions rank_options(const RankRequest& request, ProgressLine& line);

/// Answer of `rank`.
struct RankAnswer {
  document::Document document;
  bool is_positive =
      true;  ///< false: no plan can be recommended, or the plan in question is rejected
  std::string launch = {};  ///< what `emit` asked for, in the document's place; else empty
};

/// `windtunnel rank`: searches the plans around `base`, progress and notes to `messages`, and describes the best, or why one plan is
/// where it is; with `emit`, what the best plan is launched with (and its host map to a file, where one is named). Throws InputError
/// on a plan that cannot be read, EnvironmentError on a file that cannot be written.
RankAnswer run_rank(const Scenario& base, const RankRequest& request, std::ostream& messages);

/// Gives simulated plans their intervals and, ranked by time, their places. Those that cannot be distinguished from the best
/// (Ordering::is_known()) share the first; of the others, one shares the place of the last that began one, where it cannot be distinguished
/// from that.
void judge_plans(const Scenario& base, const MeasuredErrors& errors, RankResult& result);

/// A plan as the command line writes it, "tensor=8,pipeline=4,micro_batch=2". What it leaves out is as in `base`; data, left
/// out, is the rest of the GPUs. Keys: tensor, pipeline, data, micro_batch, virtual_pipeline, zero_stage, schedule,
/// recompute, sequence_parallel. InputError on what is no such text; whether the plan is legal is lay_out()'s to say.
PlanChoice read_plan_text(const std::string& text, const Scenario& base, const SearchSpace& space);

}  // namespace windtunnel
