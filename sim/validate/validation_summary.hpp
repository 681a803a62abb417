#pragma once

#include <string>
#include <vector>

#include "validate/validate.hpp"

namespace windtunnel {

enum class Legend { shown, hidden };

/// All sets on one screen: a line each, iteration times first, then collectives, and what the columns mean.
///
///   iteration times, errors in %   rows  mean  worst  bias   bar  inside  fitted
///   amp-t4                        42/47   5.8   28.7  +2.2  28.8      90       0
///   korthikanti-table5                8   2.6    6.5  +0.0  11.3     100       1
std::string validation_summary(const std::vector<ValidatedSet>& sets, Legend legend);

}  // namespace windtunnel
