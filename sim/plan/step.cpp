#include "plan/step.hpp"

#include <array>

#include "core/enum_names.hpp"

namespace windtunnel {

const char* name_of(Phase phase) {
  constexpr std::array names{"forward",
                             "backward",
                             "weight gradient",
                             "optimizer",
                             "activation",
                             "gradient",
                             "tensor all-reduce",
                             "context exchange",
                             "gradient all-reduce",
                             "embedding all-reduce",
                             "parameter all-gather",
                             "encode",
                             "decode",
                             "overhead",
                             "expert exchange"};
  static_assert(names.size() == enumerators<Phase>().size());
  return names.at(static_cast<std::size_t>(phase));
}

std::size_t end_of_block(const std::vector<Step>& order, std::size_t first) {
  std::size_t end = first + 1;
  while (end < order.size() && order[end].joined) ++end;
  return end;
}

std::string token_of(const Step& step) {
  const char* const letter = step.phase == Phase::forward    ? "F"
                             : step.phase == Phase::backward ? "B"
                                                             : "W";
  const std::string token = letter + std::to_string(step.microbatch);
  return step.chunk == 0 ? token : token + "." + std::to_string(step.chunk);
}

}  // namespace windtunnel
