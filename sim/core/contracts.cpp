#include "core/contracts.hpp"

namespace windtunnel::detail {

void contract_violated(const char* kind, const char* condition, const char* file, int line) {
  throw ContractViolation(std::string(file) + ":" + std::to_string(line) + ": " + kind +
                          " does not hold: " + condition);
}

}  // namespace windtunnel::detail
