#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "report/progress_line.hpp"
#include "report/summary_text.hpp"
#include "scenario/scenario.hpp"
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
  std::string host_map;  ///< file for the GPU of each rank with `emit`; empty: none
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

}  // namespace windtunnel
