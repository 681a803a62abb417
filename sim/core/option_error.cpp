#include "core/option_error.hpp"

#include <memory>
#include <utility>

namespace windtunnel {

InputError option_error(const std::string& option, const std::string& text, std::string why,
                        std::string suggestion) {
  Problem problem;
  problem.origin.kind = OriginKind::command_line;
  problem.origin.source = std::make_shared<const SourceText>(SourceText{option + " " + text, text});
  problem.message = std::move(why);
  problem.suggestion = std::move(suggestion);
  return InputError(std::vector<Problem>(1, problem));
}

}  // namespace windtunnel
