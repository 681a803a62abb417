#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace windtunnel::detail {

/// Runs zfp, at a fixed number of bits a value. It is in a module of its own (zfp_module.cpp), loaded when a tensor is first compressed: loading zfp
/// and the OpenMP library it is linked with would make up a tenth of the time of a short command.
struct ZfpModule {
  /// Fills `buffer`, which grows as needed, and returns the bytes that were written.
  std::size_t (*encode)(const std::vector<float>& numbers, double rate,
                        std::vector<std::uint64_t>& buffer);
  /// Reads into all of `numbers`; false when the buffer holds nothing.
  bool (*decode)(std::vector<std::uint64_t>& buffer, double rate, std::vector<float>& numbers);
};

inline constexpr const char* zfp_module_symbol = "windtunnel_zfp";
/// Found next to the program or in its library folder, by the run path it was linked with.
inline constexpr const char* zfp_module = "windtunnel-zfp.so";

}  // namespace windtunnel::detail
