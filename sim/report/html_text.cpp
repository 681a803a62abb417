#include "report/html_text.hpp"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <cstddef>

#include "core/markup_text.hpp"
#include "report/number_text.hpp"
#include "report/page_assets.hpp"

namespace windtunnel::html {
std::string escaped(std::string_view text) { return markup_text(text); }

std::string element(std::string_view name, std::string_view attributes, std::string_view html) {
  std::string text = "<";
  text += name;
  if (!attributes.empty()) (text += ' ') += attributes;
  ((text += '>') += html) += "</";
  return (text += name) += '>';
}

std::string number(const Exact& exact, std::string_view text) {
  const auto attribute = [](const std::string& name, const std::string& value) {
    return " data-" + name + "=\"" + escaped(value) + "\"";
  };
  std::string attributes = exact.data == "report" ? "" : attribute("of", exact.data);
  attributes += attribute("at", exact.pointer);
  if (!exact.base.empty())
    attributes += attribute(exact.change == Change::difference ? "minus" : "per", exact.base);
  if (!exact.unit.empty()) attributes += attribute("unit", exact.unit);
  return element("span", attributes.substr(1), escaped(text));
}

std::string number(const std::string& pointer, std::string_view text, const std::string& unit) {
  return number(Exact{pointer, unit}, text);
}

std::string quiet(std::string_view html) { return element("p", "class=\"quiet\"", html) + "\n"; }

std::string subsection(std::string_view heading, std::string_view note, const std::string& html) {
  if (html.empty()) return "";
  return element("h3", "", heading) + "\n" + (note.empty() ? "" : quiet(note)) + html;
}

std::string list(std::string_view kind, const std::string& items) {
  if (items.empty()) return "";
  return element("ul", "class=\"" + std::string(kind) + "\"", "\n" + items) + "\n";
}

std::string reason_item(std::string_view kind, const std::string& title, const std::string& html) {
  return element("li", "", element("b", "", swatch(kind) + title) + html) + "\n";
}

std::string details(std::string_view summary, std::string_view html) {
  return "<details>" + element("summary", "", summary) + "\n" + std::string(html) + "</details>\n";
}

std::string scenario_details(std::string_view summary, std::string_view text) {
  return details(summary, element("pre", "tabindex=\"0\"", escaped(text)));
}

std::string verdict(std::string_view kind, std::string_view mark, std::string_view text) {
  return element("p", "class=\"verdict " + std::string(kind) + "\"",
                 (mark.empty() ? "" : element("b", "", escaped(mark)) + " ") + escaped(text)) +
         "\n";
}

std::string warnings(const std::vector<std::string>& texts) {
  std::string html;
  for (const std::string& warning : texts) html += verdict("doubtful", "!", warning);
  return html;
}

std::string badge(std::string_view source) {
  return element("span", "class=\"badge e-" + escaped(source) + "\"", escaped(source));
}

std::string card(std::string_view label, const std::string& html, const std::string& note) {
  return "<div class=\"card\"><span class=\"label\">" + escaped(label) + "</span><b>" + html +
         "</b>" + (note.empty() ? "" : "<span class=\"note\">" + note + "</span>") + "</div>\n";
}

std::string hero(std::string_view name, const std::string& html, const std::string& cards) {
  return "<header class=\"hero\">\n<div>\n" + element("p", "class=\"kicker\"", escaped(name)) +
         "\n" + html + "</div>\n<div class=\"cards\">\n" + cards + "</div>\n</header>\n";
}

std::string table(const Table& table) {
  const auto cell = [&](const char* name, std::size_t column, const std::string& html) {
    const char letter = table.columns[std::min(column, table.columns.size() - 1)];
    return element(name, letter == 'l' ? "" : letter == 'w' ? "class=\"w\"" : "class=\"n\"", html);
  };
  std::string text = "<div class=\"scroll\" tabindex=\"0\" role=\"region\" aria-label=\"" +
                     escaped(table.caption) + "\"><table" +
                     (table.kind.empty() ? "" : " class=\"" + table.kind + "\"") + ">\n<thead><tr>";
  for (std::size_t i = 0; i < table.head.size(); ++i) text += cell("th", i, table.head[i]);
  text += "</tr></thead>\n<tbody>\n";
  for (const std::vector<std::string>& row : table.rows) {
    text += "<tr>";
    for (std::size_t i = 0; i < row.size(); ++i) text += cell("td", i, row[i]);
    text += "</tr>\n";
  }
  return text + "</tbody></table></div>\n";
}

std::string stacked_bar(const std::vector<Piece>& pieces, std::string_view label,
                        std::optional<double> mark) {
  constexpr double width = 1000;
  constexpr int height = 10, digits = 2;
  std::string svg =
      "<svg class=\"stack\" viewBox=\"0 0 1000 10\" preserveAspectRatio=\"none\" role=\"img\" "
      "aria-label=\"" +
      escaped(label) + "\">";
  double at = 0;
  for (const Piece& piece : pieces) {
    svg += "<rect class=\"f-" + piece.kind + "\" x=\"" + fixed_text(at * width, digits) +
           "\" width=\"" + fixed_text(piece.share * width, digits) + "\" height=\"" +
           std::to_string(height) + "\"><title>" + escaped(piece.title) + "</title></rect>";
    at += piece.share;
  }
  if (mark)
    svg += "<line class=\"limit\" x1=\"" + fixed_text(*mark * width, digits) + "\" x2=\"" +
           fixed_text(*mark * width, digits) + "\" y1=\"0\" y2=\"" + std::to_string(height) +
           "\"/>";
  return svg + "</svg>";
}

std::string signed_bar(double value, double largest, std::string_view negative,
                       std::string_view positive, std::string_view title) {
  constexpr double half = 0.5;
  const double share = largest > 0 ? std::min(1.0, std::abs(value) / largest) * half : 0;
  const Piece empty{half, "idle", ""}, rest{half - share, "idle", ""},
      part{share, std::string(value < 0 ? negative : positive), std::string(title)};
  std::vector<Piece> pieces;
  for (const Piece* piece :
       value < 0 ? std::array{&rest, &part, &empty} : std::array{&empty, &part, &rest})
    pieces.push_back(*piece);
  return stacked_bar(pieces, title);
}

std::string axis(double most, MarkText text) {
  constexpr double percent = 100, near_end = 0.94, rounding = 1e-9;
  if (!(most > 0)) return "";
  std::string svg = "<svg class=\"axis\" height=\"24\" aria-hidden=\"true\">";
  std::vector<double> marks = axis_from_zero({most}).marks;
  std::erase_if(marks, [most](double mark) { return mark > most * (1 + rounding); });
  const std::vector<std::string> texts = mark_texts(marks, text, false);
  for (std::size_t i = 0; i < marks.size(); ++i) {
    const double place = marks[i] / most;
    const std::string x = fixed_text(std::min(1.0, place) * percent, 2) + "%";
    svg += "<line x1=\"" + x + "\" x2=\"" + x + "\" y1=\"0\" y2=\"6\"/><text x=\"" + x +
           "\" y=\"19\" text-anchor=\"" +
           (i == 0              ? "start"
            : place >= near_end ? "end"
                                : "middle") +
           "\">" + escaped(texts[i]) + "</text>";
  }
  return svg + "</svg>";
}

std::string bar_chart(std::string_view caption, std::vector<std::vector<std::string>> rows,
                      const std::string& axis) {
  rows.push_back({"", axis, ""});
  return table({std::string(caption), {"", "", ""}, std::move(rows), "llr", "chart"});
}

std::string swatch(std::string_view kind) {
  return "<i class=\"sw b-" + std::string(kind) + "\"></i>";
}

std::string legend(const std::vector<std::pair<std::string, std::string>>& colours) {
  std::string html;
  for (const auto& [kind, text] : colours)
    html += "<span>" + swatch(kind) + escaped(text) + "</span> ";
  return "<p class=\"legend\">" + html + "</p>\n";
}

std::string base64(std::string_view bytes) {
  constexpr std::string_view letters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  constexpr std::size_t group = 3;  // bytes that make four letters of six bits
  std::string text;
  text.reserve((bytes.size() + 2) / group * 4);
  for (std::size_t i = 0; i < bytes.size(); i += group) {
    const std::size_t count = std::min(group, bytes.size() - i);
    std::uint32_t bits = 0;
    for (std::size_t k = 0; k < group; ++k)
      bits = bits << 8U | (k < count ? static_cast<unsigned char>(bytes[i + k]) : 0U);
    for (std::size_t k = 0; k < 4; ++k)
      text += k <= count ? letters[bits >> (18U - 6U * k) & 63U] : '=';
  }
  return text;
}

std::string in_script(std::string_view json) {
  // '<' stands only inside the strings of a JSON text.
  std::string safe;
  safe.reserve(json.size());
  for (const char letter : json)
    if (letter == '<')
      safe += "\\u003c";
    else
      safe += letter;
  return safe;
}

}  // namespace windtunnel::html

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

}  // namespace

void HtmlPage::add(const std::string& id, const std::string& place, const std::string& heading,
                   const std::string& html) {
  if (html.empty()) return;
  if (!place.empty()) places.push_back({id, place});
  body += "<section id=\"" + id + "\">\n<h2>" + html::escaped(heading) + "</h2>\n" + html +
          "</section>\n";
}

std::string html_document(const HtmlPage& page) {
  std::string links;
  for (const PagePlace& place : page.places)
    links += "<a href=\"#" + place.id + "\">" + html::escaped(place.title) + "</a>";
  std::string text =
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src " +
      source_of(detail::page_style) + "; script-src " + source_of(detail::page_script) +
      "; base-uri 'none'; form-action 'none'\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta name=\"color-scheme\" content=\"light dark\">\n<title>" +
      html::escaped(page.title) + " · windtunnel " + page.kind + "</title>\n<style>" +
      std::string(detail::page_style.text) + "</style>\n<script>" +
      std::string(detail::page_script.text) + "</script>\n</head>\n<body class=\"" + page.kind +
      "\">\n<nav aria-label=\"Page\"><b>windtunnel <span>" + page.kind + "</span></b><div>" +
      links + "</div></nav>\n<main>\n" + page.body + "</main>\n<footer>" + page.footer +
      "</footer>\n<div id=\"tip\" hidden></div>\n";
  for (const PageData& data : page.data)
    text += "<script type=\"application/json\" id=\"" + data.id + "\">" +
            html::in_script(data.json) + "</script>\n";
  return text + "</body>\n</html>\n";
}

}  // namespace windtunnel
