#pragma once

#include <string>

#include "core/json_value.hpp"
#include "report/explanation.hpp"
#include "report/timeline_data.hpp"

namespace windtunnel {

namespace html {

/// "Why this long?": what the end of the iteration waited for as a bar and in sentences, how much later things could end
/// unnoticed, and what-ifs with the command that repeats each; without what-ifs, the command that makes them. Numbers say
/// where they stand in the page's data "explanation", and the page's self-test compares them; `data` is that: explanation_value() or path_value().
std::string why_section(const Explanation& explanation, const JsonValue& data);

}  // namespace html

/// The page of one simulated iteration: one HTML file that needs no network. Everything but the timeline is there without a
/// script. With what-ifs it is the page of `explain`. The JSON report stands in it, under the id "report", byte for byte except that '<' is
/// escaped; under "explanation" what explanation_value() or, without what-ifs, path_value() says. `scenario`: resolved, as text.
std::string run_page(const Explanation& explanation, const SimulatedIteration& iteration,
                     const std::string& scenario);

}  // namespace windtunnel
