#include "search/placement_why.hpp"

#include <utility>

#include "report/number_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

using Kind = PlacementTerm::Kind;

std::string subject(const PlacementTerm& term, const PlacementObjective& objective) {
  const std::string stage = "stage " + std::to_string(term.stage);
  switch (term.kind) {
    case Kind::passes:
      return stage;
    case Kind::messages:
      return stage + "→" + std::to_string(objective.target(term.stage, term.channel));
    case Kind::ring:
      return "the gradient ring of " + stage;
    case Kind::embedding:
      break;
  }
  return "the synchronisation of embeddings";
}

std::string rate_text(BytesPerSecond rate) { return fixed_text(rate / 1_GBps, 1) + " GB/s"; }

std::string text_of(const PlacementTerm& term, const PlacementObjective& before,
                    const PlacementObjective& after) {
  const std::string who = subject(term, before);
  const std::string was = to_text(before.time_of(term)), is = to_text(after.time_of(term));
  if (term.kind == Kind::passes)
    return who + " moves to GPUs that take " + is + " a microbatch, from " + was;
  const auto old_link = before.slowest_link(term), new_link = after.slowest_link(term);
  if (!(old_link.bandwidth < new_link.bandwidth))  // links as slow, but with less on them
    return who + " takes " + is + " instead of " + was;
  return who + " leaves the " + rate_text(old_link.bandwidth) + " link " + old_link.link +
         (new_link.link.empty() ? " and stays inside nodes"
                                : "; its slowest is now " + rate_text(new_link.bandwidth));
}

}  // namespace

std::string why_better(const PlacementObjective& before, const PlacementObjective& after) {
  const std::vector<PlacementTerm> terms = before.terms();
  const auto loss = [&](const PlacementTerm& term) {
    return std::pair{after.value_with(term, before) - after.value(),
                     before.time_of(term) - after.time_of(term)};
  };
  const PlacementTerm* most = &terms.front();
  auto most_loss = loss(*most);
  for (const PlacementTerm& term : terms) {
    const auto of_term = loss(term);
    if (of_term > most_loss) most = &term, most_loss = of_term;
  }
  return text_of(*most, before, after);
}

}  // namespace windtunnel
