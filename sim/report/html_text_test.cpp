#include "report/html_text.hpp"

#include <doctest/doctest.h>

#include "core/testing.hpp"
#include "report/page_assets.hpp"

namespace windtunnel::html {
namespace {

TEST_CASE("text in a page cannot become markup or end an attribute") {
  CHECK(escaped("a<b>&\"c\"'d'") == "a&lt;b&gt;&amp;&quot;c&quot;&#39;d&#39;");
  CHECK(escaped("tensor 8 × pipeline 16") == "tensor 8 × pipeline 16");
}

TEST_CASE("a number says where the exact one stands") {
  CHECK(number("/mfu", "37.8 %") == "<span data-at=\"/mfu\">37.8 %</span>");
  CHECK(number("/a", "1.25", "GiB") == "<span data-at=\"/a\" data-unit=\"GiB\">1.25</span>");
}

TEST_CASE("base64 as in RFC 4648, section 10") {
  CHECK(base64("") == "");
  CHECK(base64("f") == "Zg==");
  CHECK(base64("fo") == "Zm8=");
  CHECK(base64("foo") == "Zm9v");
  CHECK(base64("foob") == "Zm9vYg==");
  CHECK(base64("fooba") == "Zm9vYmE=");
  CHECK(base64("foobar") == "Zm9vYmFy");
  CHECK(base64("\xff\xfe") == "//4=");
}

TEST_CASE("JSON in a script element cannot end it") {
  CHECK(in_script(R"({"a": "</script><!--"})") == R"({"a": "\u003c/script>\u003c!--"})");
}

TEST_CASE("the pieces of a bar lie side by side") {
  // Half of the width, then a quarter from there on.
  const std::string bar = stacked_bar({{0.5, "compute", "a"}, {0.25, "codec", "b"}}, "bar");
  CHECK(bar.find(R"(class="f-compute" x="0.00" width="500.00")") != std::string::npos);
  CHECK(bar.find(R"(class="f-codec" x="500.00" width="250.00")") != std::string::npos);
  CHECK(bar.find("style=") == std::string::npos);  // the page's policy allows none
}

TEST_CASE("columns of a table after the texts are numbers") {
  Table of{"about", {"name", "value"}, {{"a", "1"}}};
  const std::string text = table(of);
  CHECK(text.find("<td>a</td><td class=\"n\">1</td>") != std::string::npos);
  CHECK(text.find("aria-label=\"about\"") != std::string::npos);
}

}  // namespace
}  // namespace windtunnel::html

namespace windtunnel {
namespace {

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
       {detail::page_style, detail::page_script, detail::chart_style}) {
    CHECK(asset.sha256.size() == 64);
    CHECK(!asset.text.empty());
    CHECK(asset.text.find("</s") == std::string_view::npos);  // nothing that ends its element
  }
}

}  // namespace
}  // namespace windtunnel
