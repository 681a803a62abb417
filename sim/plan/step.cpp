#include "plan/step.hpp"

namespace windtunnel {

const char* name_of(Phase phase) {
  switch (phase) {
    case Phase::forward:
      return "forward";
    case Phase::backward:
      return "backward";
    case Phase::weight_gradient:
      return "weight gradient";
    case Phase::optimizer:
      return "optimizer";
    case Phase::activation:
      return "activation";
    case Phase::gradient:
      return "gradient";
    case Phase::tensor_reduce:
      return "tensor all-reduce";
    case Phase::context_exchange:
      return "context exchange";
    case Phase::gradient_reduce:
      return "gradient all-reduce";
    case Phase::embedding_sync:
      return "embedding all-reduce";
    case Phase::parameter_gather:
      return "parameter all-gather";
    case Phase::encode:
      return "encode";
    case Phase::decode:
      return "decode";
    case Phase::overhead:
      return "overhead";
    case Phase::expert_exchange:
      return "expert exchange";
  }
  return "?";
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
