#include "studies/method_command.hpp"

#include <ostream>

#include "core/json_value.hpp"
#include "studies/method_choice.hpp"

namespace windtunnel {

int run_method(const Scenario& base, const RankRequest& request, std::ostream& out,
               std::ostream& messages) {
  ProgressLine line(messages, request.progress);
  const Baseline method = find_baseline(request.method).value();
  const MethodChoice choice = choose_by(method, base, rank_options(request, line));
  if (request.format == RankFormat::json)
    out << pretty_text(method_value(choice)) << "\n";
  else
    out << method_text(base, choice, request.colour);
  return choice.picks.empty() || !choice.picks.front().fits ? 1 : 0;
}

}  // namespace windtunnel
