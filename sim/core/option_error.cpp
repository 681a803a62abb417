#include "core/option_error.hpp"

#include <memory>
#include <utility>

namespace windtunnel {

Origin option_origin(const std::string& option, const std::string& text) {
  Origin origin;
  origin.kind = OriginKind::command_line;
  origin.source = std::make_shared<const SourceText>(SourceText{option + " " + text, text});
  return origin;
}

InputError option_error(const std::string& option, const std::string& text, std::string why,
                        std::string suggestion) {
  return InputError({{option_origin(option, text), {}, std::move(why), std::move(suggestion)}});
}

}  // namespace windtunnel
