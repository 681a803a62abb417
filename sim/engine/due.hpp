#pragma once

#include <cstdint>

#include "core/contracts.hpp"
#include "units/quantity.hpp"

namespace windtunnel::detail {

/// A flow that ends this soon leaves its links to a newcomer. A thousandth of SimGrid's own precision of time.
inline constexpr Seconds simultaneous{1e-12};

/// A due event in eight bytes: a timer's token, or a flow and its generation.
class Due {
 public:
  Due() = default;
  static Due timer(std::uint64_t token) {
    WT_EXPECT((token & flow_bit) == 0);
    return Due(token);
  }
  static Due flow(std::uint32_t index, std::uint32_t generation) {
    WT_EXPECT(index < max_flows);
    return Due(flow_bit | std::uint64_t{index} << generation_bits | generation);
  }
  bool is_flow() const { return (bits_ & flow_bit) != 0; }
  std::uint64_t token() const { return bits_; }
  std::uint32_t flow() const {
    return static_cast<std::uint32_t>((bits_ & ~flow_bit) >> generation_bits);
  }
  std::uint32_t generation() const { return static_cast<std::uint32_t>(bits_); }

 private:
  static constexpr unsigned generation_bits = 32;
  static constexpr std::uint64_t flow_bit = std::uint64_t{1} << 63;
  static constexpr std::uint32_t max_flows = std::uint32_t{1} << 31;
  explicit Due(std::uint64_t bits) : bits_(bits) {}
  std::uint64_t bits_ = 0;
};

}  // namespace windtunnel::detail
