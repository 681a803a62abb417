#pragma once

#include <cstddef>
#include <string>

#include "report/comparison.hpp"

/// How terminal and page put a comparison into words: the same ones, rounded the same way.
namespace windtunnel::detail {

/// "+0.208", "-0.335"; "=" for what rounds to nothing.
std::string signed_text(double number, int decimals);
/// "-7.6 %", or from ten times on "x 12.5"; "=" when it is the same to the last digit shown.
std::string relative_change(double from, double to);
/// "A", "B", …, "Z", "27", …
std::string letter_of(std::size_t run);
/// "faster below 3.48 GB/s (0.0205 of the 170 GB/s of now), slower above"
std::string verdict_of(const BreakEven& found);
/// "saves 3.10 ms an iteration; alone, a transfer gains below 12.5 GB/s a GPU (1.20 ms of codec for 14.3 MiB), now 10.0 GB/s"
std::string effect_of(const CodecBreakEven& codec);
/// "NICs of a node"
const char* meaning_of(NetworkPart part);
/// Whether people need not be told: inside nodes, where no bandwidth makes the runs equal.
bool says_nothing(const BreakEven& found);

}  // namespace windtunnel::detail
