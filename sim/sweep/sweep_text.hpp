#pragma once

#include <filesystem>
#include <string>

#include "sweep/parts.hpp"
#include "sweep/sweep.hpp"

namespace windtunnel {

/// What comes first where points are ordered by the objective: "Most tokens a second", "Least cost of a token".
const char* order_words(Objective objective);

/// What a sweep came to, for people:
///   12 points: 10 done, 2 failed
///   …
std::string sweep_text(const Sweep& sweep, const PartRows& rows,
                       const std::filesystem::path& directory);
/// The same as a JSON document.
std::string sweep_json(const Sweep& sweep, const PartRows& rows,
                       const std::filesystem::path& directory);

/// Which points are the same scenario though their values differ; empty when none are.
std::string same_text(const Sweep& sweep, const PartRows& rows);

/// The points that would be done, a line each, with what is wrong with those that cannot.
std::string points_text(const Sweep& sweep);
std::string points_json(const Sweep& sweep);

}  // namespace windtunnel
