#pragma once

#include <string_view>

/// The files of sim/report/html/, built into the program.
namespace windtunnel::detail {

/// A text and its SHA-256 in hexadecimal digits, which the page's content policy names.
struct Asset {
  std::string_view text;
  std::string_view sha256;
};

extern const Asset page_style;   ///< of every page
extern const Asset chart_style;  ///< its part for charts, which also stand alone
extern const Asset page_script;

}  // namespace windtunnel::detail
