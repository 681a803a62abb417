#pragma once

#include <iosfwd>
#include <string>
#include <utility>
#include <vector>

#include "report/progress_line.hpp"
#include "report/summary_text.hpp"
#include "scenario/scenario.hpp"
#include "validate/validate.hpp"

namespace windtunnel {

/// Amount of detail in the text.
enum class ValidateDetail {
  table,    ///< a line for each set
  summary,  ///< the same, and what the columns mean
  rows,     ///< every point of every set, and all that is scored
};

/// Command line of `validate`.
struct ValidateRequest {
  std::vector<std::string> sets;  ///< paths or names; empty: all of the library's validation/
  std::vector<std::string>
      fail_above;  ///< "mape=0.06": the verdict is negative when a set's metric is above
  std::vector<std::pair<std::string, std::string>>
      overrides;            ///< --set, over the scenario of every point
  std::size_t threads = 0;  ///< predictions at the same time; 0: one a core
  std::string svg;          ///< file that takes the scatter plot; empty: none
  std::string report;       ///< file that takes the page; empty: none
  std::string
      residuals;  ///< residuals' file whose errors of differences become those of the sets; empty: none
  ResultFormat format = ResultFormat::text;
  ValidateDetail detail = ValidateDetail::summary;
  ProgressStyle progress =
      ProgressStyle::hidden;  ///< a counter on `messages` after a second; for terminals only
};

/// `windtunnel validate`: predicts the sets and writes tables or one JSON document to `out`,
/// progress and verdicts to `messages`. Returns the exit code: 0, or 1 when a set is above a limit,
/// has points that failed, or has nothing scored. Throws InputError on unknown sets and metrics,
/// EnvironmentError on files that cannot be read.
int run_validate(const ValidateRequest& request, const Library& library, std::ostream& out,
                 std::ostream& messages);

/// A limit of --fail-above.
struct ScoreLimit {
  std::string metric;
  double limit = 0;
};

/// "mape=0.06" to its parts; InputError on an unknown metric or what is no number.
ScoreLimit parse_score_limit(const std::string& text);

/// The lines that say which limits and expectations the sets miss; empty when the verdict is
/// positive.
std::vector<std::string> negative_verdicts(const std::vector<ValidatedSet>& sets,
                                           const std::vector<ScoreLimit>& limits);

}  // namespace windtunnel
