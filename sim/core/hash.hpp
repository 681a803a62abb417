#pragma once

#include <string>
#include <string_view>

namespace windtunnel {

/// The FNV-1a hash of `bytes`, 128 bits as 32 lower-case hexadecimal digits. Names scenarios; no
/// protection against someone who wants a collision. Constants: Fowler, Noll, Vo & Eastlake,
/// draft-eastlake-fnv, section 5.
std::string fnv1a_128_hex(std::string_view bytes);

}  // namespace windtunnel
