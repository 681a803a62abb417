#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace windtunnel {

/// Bytes of the UTF-8 character that starts at `text[at]`; 0 when there is no valid one (RFC 3629:
/// overlong forms, surrogates and values beyond U+10FFFF are not valid).
std::size_t utf8_length_at(std::string_view text, std::size_t at);

/// With its ASCII letters in lower case.
std::string lower_case(std::string_view text);

/// Characters in `text`, each byte that is not UTF-8 counting as one.
int utf8_count(std::string_view text);

}  // namespace windtunnel
