#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

/// Pieces of HTML. Whatever is called `html` is inserted as it is, whatever is called `text` is escaped.
namespace windtunnel::html {

/// `text` with the characters that mean something in HTML replaced, quotes included.
std::string escaped(std::string_view text);

/// <name attributes>html</name>
std::string element(std::string_view name, std::string_view attributes, std::string_view html);

/// A number as text, with the place of the exact one in the page's JSON data: the page's self-test compares them.
/// `unit` is for texts that carry none ("GiB" in a table of GiB).
std::string number(std::string_view pointer, std::string_view text, std::string_view unit = "");

/// A section of the page with a heading that its navigation links to.
struct Section {
  std::string id, title, html;
};
std::string section(const Section& section);

/// A table: `head` and the cells of `rows` are HTML. The first `num_texts` columns are left-aligned, the rest are numbers.
struct Table {
  std::string caption;  ///< text, for those who do not see it
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
  std::size_t num_texts = 1;
  std::string kind = "";  ///< class
};
std::string table(const Table& table);

/// One piece of a stacked bar.
struct Piece {
  double share = 0;   ///< of the bar's width
  std::string kind;   ///< class of its colour, as "compute"
  std::string title;  ///< text shown when the pointer rests on it
};
/// Pieces side by side, as SVG that fills the width it is given.
std::string stacked_bar(const std::vector<Piece>& pieces, std::string_view label);

/// A small square in the colour of `kind`.
std::string swatch(std::string_view kind);

/// Base64 (RFC 4648, section 4), with padding.
std::string base64(std::string_view bytes);

/// A JSON text that cannot end the script element it stands in.
std::string in_script(std::string_view json);

}  // namespace windtunnel::html
