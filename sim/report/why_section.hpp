#pragma once

#include <string>

#include "report/explanation.hpp"

namespace windtunnel::html {

/// "Why this long?": what the end of the iteration waited for as a bar and in sentences, how much later things could end
/// unnoticed, and what-ifs with the command that repeats each; without what-ifs, the command that makes them. Numbers say
/// where they stand in the page's explanation (data-why), and the page's self-test compares them.
std::string why_section(const Explanation& explanation);

}  // namespace windtunnel::html
