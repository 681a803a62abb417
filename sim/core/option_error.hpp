#pragma once

#include <string>

#include "core/problem.hpp"

namespace windtunnel {

/// Where `text` stands, given for `option` ("--fit") on the command line.
Origin option_origin(const std::string& option, const std::string& text);

/// What is wrong with `text`, given for `option` ("--fit") on the command line, and what to write.
InputError option_error(const std::string& option, const std::string& text, std::string why,
                        std::string suggestion);

}  // namespace windtunnel
