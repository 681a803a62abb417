#include "core/hash.hpp"

namespace windtunnel {
namespace {

__extension__ using Word128 = unsigned __int128;

constexpr Word128 offset_basis =
    (Word128{0x6c62272e07bb0142ULL} << 64) | Word128{0x62b821756295c58dULL};
constexpr Word128 prime = (Word128{1} << 88) | Word128{0x13b};

}  // namespace

std::string fnv1a_128_hex(std::string_view bytes) {
  Word128 hash = offset_basis;
  for (const char byte : bytes) {
    hash ^= static_cast<unsigned char>(byte);
    hash *= prime;
  }
  std::string digits(32, '0');
  for (auto digit = digits.rbegin(); digit != digits.rend(); ++digit, hash >>= 4)
    *digit = "0123456789abcdef"[static_cast<unsigned>(hash & 15)];
  return digits;
}

}  // namespace windtunnel
