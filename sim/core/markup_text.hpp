#pragma once

#include <string>
#include <string_view>

namespace windtunnel {

/// `text` for HTML and SVG: characters that mean something there are replaced, quotes included, and U+FFFD stands for what XML
/// allows in no way at all (control characters, bytes that are not UTF-8), so that a picture stays well-formed whatever it is
/// named.
std::string markup_text(std::string_view text);

}  // namespace windtunnel
