#pragma once

#include <iosfwd>
#include <optional>
#include <string>

#include "report/summary_text.hpp"
#include "scenario/scenario.hpp"

namespace windtunnel {

enum class RankFormat { text, json };
enum class RankProgressBar { shown, hidden };

/// What the command line of `rank` says.
struct RankRequest {
  int top = 10;
  std::optional<std::size_t> budget;  ///< simulations
  std::size_t jobs = 0;               ///< simulations at the same time; 0: one a core
  RankFormat format = RankFormat::text;
  Colour colour = Colour::never;
  RankProgressBar progress = RankProgressBar::hidden;
};

/// `windtunnel rank`: searches the plans around `base` and writes the best to `out`, progress to `messages`. Returns the exit
/// code: 0, or 1 when no plan can be recommended.
int run_rank(const Scenario& base, const RankRequest& request, std::ostream& out,
             std::ostream& messages);

}  // namespace windtunnel
