#pragma once

#include <string>
#include <string_view>

namespace windtunnel {

/// `text` for HTML and SVG: characters that mean something there are replaced, quotes included; what would act on a terminal or turn
/// the order of a line is spelt out as for_terminal() does it; and U+FFFD stands for what XML allows in no way at all (bytes that
/// are not UTF-8). A picture stays well-formed whatever it is named.
std::string markup_text(std::string_view text);

}  // namespace windtunnel
