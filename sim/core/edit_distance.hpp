#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace windtunnel {

/// Edits (insert, delete, replace, swap neighbours) that turn `a` into `b`; no letter is edited
/// twice ("optimal string alignment"). Three rows of Wagner & Fischer, J. ACM 21(1), 1974, with
/// Damerau's swap.
std::size_t edit_distance(std::string_view a, std::string_view b);

/// What is left of a text without all else: "24" of "h2o-v4".
std::string digits_of(std::string text);

/// The candidate of which `word` can hardly be anything but a misspelling: one edit apart, or two of twelve and more letters, with the same
/// digits, so that "use-flash-attn-v3" is none of "use-flash-attn-v2". Otherwise empty. closest_match() goes farther.
std::string misspelt_match(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace windtunnel
