#pragma once

#include <string>

#include "validate/validate.hpp"

namespace windtunnel {

/// One set for people:
///
///   vtrain-a100-multi-node: 54 of 54 points scored
///   Bang et al., vTrain, MICRO 2024, …
///
///   point                       measured   predicted     error
///   3.6b-tp1-dp64-pp1-mb8        3.567 s     3.601 s    +1.0 %
///   39.1b-tp2-dp32-pp8-mb2       21.89 s     14.43 s   -34.1 %  *
///
///   mean absolute error     5.3 %   median 2.9 %, 90th percentile 11.8 %, worst 36.7 %, bias -1.8
///   % bar to clear           16.4 %   one constant efficiency x ideal bubble, fitted on these rows
///   without the 3 largest   3.6 %   picked after looking: not the score; it tells what a few rows
///   weigh
///
///   group   points   mean   bias   …
std::string validation_text(const ValidatedSet& set);

}  // namespace windtunnel
