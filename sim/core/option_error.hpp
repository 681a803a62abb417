#pragma once

#include <string>

#include "core/problem.hpp"

namespace windtunnel {

/// Origin of `text`, given for `option` ("--fit") on the command line.
Origin option_origin(const std::string& option, const std::string& text);

/// Error about `text`, given for `option` ("--fit") on the command line: why it is wrong and what to write instead.
InputError option_error(const std::string& option, const std::string& text, std::string why,
                        std::string suggestion);

}  // namespace windtunnel
