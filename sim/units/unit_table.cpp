#include "units/unit_table.hpp"

namespace windtunnel::detail {
namespace {

constexpr double bits_per_byte = 8;

/// Prefixes of units: "G" is 10^9, "Gi" 2^30.
std::vector<Unit> decimal_prefixes() {
  return {{"", 1}, {"k", 1e3}, {"M", 1e6}, {"G", 1e9}, {"T", 1e12}, {"P", 1e15}, {"E", 1e18}};
}

std::vector<Unit> binary_prefixes() {
  return {{"Ki", 0x1p10}, {"Mi", 0x1p20}, {"Gi", 0x1p30}, {"Ti", 0x1p40}, {"Pi", 0x1p50}};
}

std::vector<Unit> with_prefixes(const std::vector<Unit>& prefixes, const std::vector<Unit>& units) {
  std::vector<Unit> all;
  for (const Unit& prefix : prefixes)
    for (const Unit& unit : units)
      all.push_back({prefix.name + unit.name, prefix.factor * unit.factor});
  return all;
}

std::vector<Unit> with_all_prefixes(const std::vector<Unit>& units) {
  std::vector<Unit> all = with_prefixes(decimal_prefixes(), units);
  const std::vector<Unit> binary = with_prefixes(binary_prefixes(), units);
  all.insert(all.end(), binary.begin(), binary.end());
  return all;
}

}  // namespace

template <>
const UnitTable& unit_table<Bytes>() {
  static const UnitTable table{"a size", "80 GB", "B, kB, KiB, MB, MiB, GB, GiB, TB, TiB",
                               with_all_prefixes({{"B", 1}}), false};
  return table;
}

template <>
const UnitTable& unit_table<Seconds>() {
  static const UnitTable table{
      "a time",
      "1.5 us",
      "ns, us, ms, s, min, h",
      {{"ns", 1e-9}, {"us", 1e-6}, {"ms", 1e-3}, {"s", 1}, {"min", 60}, {"h", 3600}},
      false};
  return table;
}

template <>
const UnitTable& unit_table<BytesPerSecond>() {
  static const UnitTable table{"a data rate", "400 Gbps", "Gbps, GB/s, Mbps, MB/s, TB/s, GiB/s",
                               with_all_prefixes({{"B/s", 1},
                                                  {"Bps", 1},
                                                  {"b/s", 1 / bits_per_byte},
                                                  {"bps", 1 / bits_per_byte},
                                                  {"bit/s", 1 / bits_per_byte}}),
                               true};
  return table;
}

template <>
const UnitTable& unit_table<FlopsPerSecond>() {
  static const UnitTable table{
      "a rate of operations", "312 TFLOPS", "GFLOPS, TFLOPS, PFLOPS, TFLOP/s",
      with_prefixes(decimal_prefixes(), {{"FLOPS", 1}, {"FLOP/s", 1}}), true};
  return table;
}

const UnitTable& bit_table() {
  static const UnitTable table{
      "a number of bits", "", "",
      with_all_prefixes({{"b", 1 / bits_per_byte}, {"bit", 1 / bits_per_byte}}), false};
  return table;
}

}  // namespace windtunnel::detail
