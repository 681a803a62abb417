#include "core/terminal_safe.hpp"

#include <doctest/doctest.h>

#include "core/markup_text.hpp"

namespace windtunnel {
namespace {

TEST_CASE("what acts on a terminal is spelt out") {
  CHECK(for_terminal("a\x1b[31mb") == "a\\u001b[31mb");
  CHECK(for_terminal("\x1b]0;title\a") == "\\u001b]0;title\\u0007");
  CHECK(for_terminal("over\rwritten\b\x7f") == "over\\u000dwritten\\u0008\\u007f");
  CHECK(for_terminal("\xC2\x9B"
                     "31m") == "\\u009b31m");  // CSI of C1
  CHECK(for_terminal("\x9B"
                     "31m") == "\\x9b31m");  // the same as one byte
  CHECK(for_terminal("a\xE2\x80\xAE"
                     "b") == "a\\u202eb");  // right-to-left override
  CHECK(for_terminal("a\xE2\x81\xA6"
                     "b") == "a\\u2066b");  // left-to-right isolate
  CHECK(for_terminal("a\xE2\x80\xA8"
                     "b") == "a\\u2028b");  // line separator
  CHECK(for_terminal("\xFF\xFE") == "\\xff\\xfe");
}

TEST_CASE("what is shown stays as it is") {
  const std::string text = "line\n\ttab µs · 模型 ✓ é \xF0\x9F\x9A\x80 \\u001b";
  CHECK(for_terminal(text) == text);
}

TEST_CASE("only our own sequences reach a terminal, and no text can forge their mark") {
  CHECK(for_terminal(own_sequence("[1;31m") + "bad" + own_sequence("[0m")) ==
        "\x1b[1;31mbad\x1b[0m");
  CHECK(for_terminal(own_sequence("[8m") + "hidden").find('\x1b') == std::string::npos);
  CHECK(for_terminal("\x1b[1;31mbad") == "\\u001b[1;31mbad");
  CHECK(for_terminal("\xFF[1;31mbad\xFF[K") == "\\xff[1;31mbad\\xff[K");
}

TEST_CASE("markup has entities, and nothing that XML does not allow") {
  CHECK(markup_text("<a href='x'>&\"") == "&lt;a href=&#39;x&#39;&gt;&amp;&quot;");
  CHECK(markup_text("\x01-\x1b-\b\r\n") == "\\u0001-\\u001b-\\u0008\r\n");
  CHECK(markup_text("a\xE2\x80\xAE<") == "a\\u202e&lt;");  // right-to-left override
  CHECK(markup_text("\xFF\xEF\xBF\xBF") == "\xEF\xBF\xBD\xEF\xBF\xBD");
  CHECK(markup_text("a\tb\nµ模") == "a\tb\nµ模");
}

}  // namespace
}  // namespace windtunnel
