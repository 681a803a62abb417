#include "studies/method_command.hpp"

#include "studies/method_choice.hpp"

namespace windtunnel {

RankAnswer run_method(const Scenario& base, const RankRequest& request, std::ostream& messages) {
  ProgressLine line(messages, request.progress);
  const Baseline method = find_baseline(request.method).value();
  const MethodChoice choice = choose_by(method, base, rank_options(request, line));
  return {method_document(base, choice), !choice.picks.empty() && choice.picks.front().fits};
}

}  // namespace windtunnel
