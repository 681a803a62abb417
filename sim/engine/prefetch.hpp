#pragma once

namespace windtunnel::detail {

/// Asks the processor to fetch what lies at `address`. To GCC 12 a function that does only this has no effect, and it leaves out the
/// calls of it; the empty statement is an effect.
inline void prefetch(const void* address) {
  __builtin_prefetch(address);
  asm volatile("");
}

}  // namespace windtunnel::detail
