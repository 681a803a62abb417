#include <doctest/doctest.h>

#include "report/html_text.hpp"
#include "report/page_assets.hpp"

namespace windtunnel {
namespace {

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1))
    ++found;
  return found;
}

TEST_CASE("a page is one document whose policy names its one style and its one script") {
  HtmlPage page;
  page.kind = "run";
  page.title = "<a>";
  page.body = "<p>body</p>";
  page.places = {{"x", "X & Y"}};
  page.data = {{"report", R"({"a": "<"})"}};
  const std::string html = html_document(page);
  CHECK(html.starts_with("<!DOCTYPE html>\n"));
  CHECK(html.find("<title>&lt;a&gt; · windtunnel run</title>") != std::string::npos);
  CHECK(html.find("default-src 'none'; style-src 'sha256-") != std::string::npos);
  CHECK(html.find("; base-uri 'none'; form-action 'none'\"") != std::string::npos);
  CHECK(count(html, "<style>") == 1);
  CHECK(count(html, "<script>") == 1);
  CHECK(html.find("<a href=\"#x\">X &amp; Y</a>") != std::string::npos);
  CHECK(html.find("id=\"report\">{\"a\": \"\\u003c\"}</script>") != std::string::npos);
}

TEST_CASE(
    "no rule for a class of texts is one for a whole page, whose body has its kind as class") {
  const std::string style = "\n" + std::string(detail::page_style.text);
  for (const char* kind : {"run", "explain", "compare", "sweep", "validate", "steps", "job"})
    CHECK(style.find(std::string("\n.") + kind + " {") == std::string::npos);
}

TEST_CASE("the built-in texts carry hashes of 256 bits") {
  for (const detail::Asset& asset :
       {detail::page_style, detail::page_script, detail::scatter_style}) {
    CHECK(asset.sha256.size() == 64);
    CHECK(!asset.text.empty());
    CHECK(asset.text.find("</s") == std::string_view::npos);  // nothing that ends its element
  }
}

}  // namespace
}  // namespace windtunnel
