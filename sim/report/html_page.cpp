#include "report/html_page.hpp"

#include <charconv>

#include "report/html_text.hpp"
#include "report/page_assets.hpp"

namespace windtunnel {
namespace {

/// 'sha256-…' as a content policy writes the hash (W3C CSP Level 3, section 2.3.1).
std::string source_of(const detail::Asset& asset) {
  constexpr int hexadecimal = 16;
  std::string bytes;
  for (std::size_t i = 0; i + 1 < asset.sha256.size(); i += 2) {
    unsigned char byte = 0;
    std::from_chars(&asset.sha256[i], &asset.sha256[i] + 2, byte, hexadecimal);
    bytes += static_cast<char>(byte);
  }
  return "'sha256-" + html::base64(bytes) + "'";
}

std::string policy() {
  return "default-src 'none'; style-src " + source_of(detail::page_style) + "; script-src " +
         source_of(detail::page_script) + "; base-uri 'none'; form-action 'none'";
}

std::string head(const HtmlPage& page) {
  std::string text =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"" +
      policy() +
      "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>" +
      html::escaped(page.title) + " · windtunnel " + page.kind + "</title>\n";
  text += "<style>" + std::string(detail::page_style.text) + "</style>\n";
  text += "<script>" + std::string(detail::page_script.text) + "</script>\n</head>\n";
  return text;
}

std::string navigation(const HtmlPage& page) {
  std::string links;
  for (const PagePlace& place : page.places)
    links += "<a href=\"#" + place.id + "\">" + html::escaped(place.title) + "</a>";
  return "<nav aria-label=\"Page\"><b>windtunnel <span>" + page.kind + "</span></b><div>" + links +
         "</div></nav>\n";
}

}  // namespace

void HtmlPage::add(const std::string& id, const std::string& place, const std::string& heading,
                   const std::string& html) {
  if (html.empty()) return;
  if (!place.empty()) places.push_back({id, place});
  body += "<section id=\"" + id + "\">\n<h2>" + html::escaped(heading) + "</h2>\n" + html +
          "</section>\n";
}

std::string html_document(const HtmlPage& page) {
  std::string text = head(page) + "<body class=\"" + page.kind + "\">\n" + navigation(page) +
                     "<main>\n" + page.body + "</main>\n<footer>" + page.footer +
                     "</footer>\n<div id=\"tip\" hidden></div>\n";
  for (const PageData& data : page.data)
    text += "<script type=\"application/json\" id=\"" + data.id + "\">" +
            html::in_script(data.json) + "</script>\n";
  return text + "</body>\n</html>\n";
}

}  // namespace windtunnel
