#pragma once

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

#include "simulate/forked.hpp"
#include "simulate/tasks.hpp"

namespace windtunnel::testing {

#if defined(__has_feature)
inline constexpr bool has_address_sanitizer = __has_feature(address_sanitizer);
#elif defined(__SANITIZE_ADDRESS__)
inline constexpr bool has_address_sanitizer = true;
#else
inline constexpr bool has_address_sanitizer = false;
#endif

/// work(0) to work(count-1), each in a child of its own: a process has one SimGrid engine. With AddressSanitizer one after the other, since a
/// child that is forked while another thread allocates waits for the sanitizer's allocator for ever.
inline std::vector<ChildOutcome> run_forked(std::size_t count, std::size_t at_once,
                                            const std::function<std::string(std::size_t)>& work) {
  std::vector<ChildOutcome> outcomes(count);
  run_on_threads(count, has_address_sanitizer ? 1 : at_once,
                 [&](std::size_t i) { outcomes[i] = run_in_child([&] { return work(i); }); }, {});
  return outcomes;
}

}  // namespace windtunnel::testing
