#pragma once

#include <string>
#include <vector>

#include "validate/validate.hpp"

namespace windtunnel {

/// The page of `validate --report`: how far off, predicted against measured with the line on which predictions are right, the
/// worst rows by name, the score of every set, and what could not be predicted. The document of `validate --json` stands in
/// it under the id "report".
std::string validation_page(const std::vector<ValidatedSet>& sets);

}  // namespace windtunnel
