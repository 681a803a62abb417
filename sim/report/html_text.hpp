#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "report/chart.hpp"

/// Pieces of HTML. Whatever is called `html` is inserted as it is, whatever is called `text` is escaped.
namespace windtunnel::html {

/// markup_text() under the name it has on every line of a page.
std::string escaped(std::string_view text);

/// <name attributes>html</name>
std::string element(std::string_view name, std::string_view attributes, std::string_view html);

/// Operation that makes a printed number out of two exact ones.
enum class Change {
  difference,  ///< the one less the other
  relative,    ///< the one over the other, less 1
};
/// Place of a text's exact number in the page's JSON data: the page's self-test compares them.
struct Exact {
  std::string pointer,
      unit = {};                ///< the unit is for texts that carry none ("GiB" in a table of GiB)
  std::string data = "report";  ///< id of the data
  std::string base = {};        ///< pointer to what it is a change from; else empty
  Change change = Change::difference;
};
std::string number(const Exact& exact, std::string_view text);
/// The same of a number in the data "report".
std::string number(const std::string& pointer, std::string_view text, const std::string& unit = "");

/// A paragraph in small grey letters.
std::string quiet(std::string_view html);
/// A part of a section: its heading, a grey sentence unless it is empty, and `html`; empty where there is none of that.
std::string subsection(std::string_view heading, std::string_view note, const std::string& html);
/// `items`, each in <li>, as a list of that class; empty where there are none.
std::string list(std::string_view kind, const std::string& items);
/// An item of a list of reasons: a title behind the colour of `kind`, and what stands below it.
std::string reason_item(std::string_view kind, const std::string& title, const std::string& html);
/// Content that opens when its summary is pressed.
std::string details(std::string_view summary, std::string_view html);
/// The scenario of a run or sweep, folded away.
std::string scenario_details(std::string_view summary, std::string_view text);
/// A sentence on a ground of that kind: good, doubtful or bad; behind its mark, unless that is empty.
std::string verdict(std::string_view kind, std::string_view mark, std::string_view text);
/// A line for each, with a mark.
std::string warnings(const std::vector<std::string>& texts);
/// The source of an input, in its colour: "fitted".
std::string badge(std::string_view source);

/// A figure in a box of its own: a label, the figure and a note, the latter two HTML.
std::string card(std::string_view label, const std::string& html, const std::string& note = "");

/// The first screen of a page: what it is about, the answer, and figures in cards next to it, both HTML.
std::string hero(std::string_view name, const std::string& html, const std::string& cards);

/// A table: `head` and the cells of `rows` are HTML. `columns` has a letter for each column, l for texts, w for long ones, r for numbers; the last
/// letter holds for all further columns.
struct Table {
  std::string caption;  ///< text, for those who do not see it
  std::vector<std::string> head;
  std::vector<std::vector<std::string>> rows;
  std::string columns = "lr";
  std::string kind = "";  ///< class
};
std::string table(const Table& table);

/// One piece of a stacked bar.
struct Piece {
  double share = 0;   ///< of the bar's width
  std::string kind;   ///< class of its colour, as "compute"
  std::string title;  ///< text shown when the pointer rests on it
};
/// Pieces side by side, as SVG that fills the width it is given; with a line across at `mark`, a share of that width.
std::string stacked_bar(const std::vector<Piece>& pieces, std::string_view label,
                        std::optional<double> mark = std::nullopt);
/// A bar from the middle, to the left where `value` is negative, half the width long where it is as large as `largest`. The kinds are the
/// colours of the two sides.
std::string signed_bar(double value, double largest, std::string_view negative,
                       std::string_view positive, std::string_view title);
/// Marks at round numbers from 0 to `most`, with their texts, as SVG that fills the width it is given: the axis of bars above it.
std::string axis(double most, MarkText text);

/// Bars under each other with their axis below: rows of label, bar and number, as HTML.
std::string bar_chart(std::string_view caption, std::vector<std::vector<std::string>> rows,
                      const std::string& axis);

/// A small square in the colour of `kind`.
std::string swatch(std::string_view kind);
/// Legend for the colours of pieces: (kind, text) of each.
std::string legend(const std::vector<std::pair<std::string, std::string>>& colours);

/// Base64 (RFC 4648, section 4), with padding.
std::string base64(std::string_view bytes);

/// A JSON text that cannot end the script element it stands in.
std::string in_script(std::string_view json);

}  // namespace windtunnel::html

namespace windtunnel {

/// Data that the page's script reads: `<script type="application/json" id=ID>`.
struct PageData {
  std::string id;
  std::string json;
};

/// One link of the navigation.
struct PagePlace {
  std::string id, title;
};

/// Contents of a page. The template, style and script are the same for every kind.
struct HtmlPage {
  std::string kind;   ///< "run", "compare", "sweep" or "validate"
  std::string title;  ///< text: what it is about
  std::string body;   ///< HTML: everything that must be there without a script
  std::vector<PagePlace> places = {};
  std::vector<PageData> data = {};
  std::string footer = {};  ///< HTML

  /// Adds a section to the body, and its link to the navigation, none where `place` is empty; nothing where there is no `html`.
  void add(const std::string& id, const std::string& place, const std::string& heading,
           const std::string& html);
};

/// The page as one file: no address of any kind in it, and a content policy that allows nothing but its own style and
/// script, each by its hash.
std::string html_document(const HtmlPage& page);

}  // namespace windtunnel
