#pragma once

#include <stdexcept>
#include <string>

namespace windtunnel {

/// A broken promise of our own code (never of the user's input): exit code 4.
class ContractViolation : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

namespace detail {
[[noreturn]] void contract_violated(const char* kind, const char* condition, const char* file,
                                    int line);
}  // namespace detail

}  // namespace windtunnel

/// Precondition of a function; throws ContractViolation when it does not hold.
#define WT_EXPECT(condition) \
  ((condition)               \
       ? void(0)             \
       : ::windtunnel::detail::contract_violated("precondition", #condition, __FILE__, __LINE__))
/// Postcondition or invariant; throws ContractViolation when it does not hold.
#define WT_ENSURE(condition) \
  ((condition)               \
       ? void(0)             \
       : ::windtunnel::detail::contract_violated("postcondition", #condition, __FILE__, __LINE__))
/// A place that is never reached: behind a switch that names every enumerator.
#define WT_UNREACHABLE()                                                                    \
  ::windtunnel::detail::contract_violated("expectation", "this is never reached", __FILE__, \
                                          __LINE__)
