#pragma once

#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/json_value.hpp"
#include "report/chart.hpp"
#include "report/summary_text.hpp"

/// A result described once. Its numbers are a JSON document; around them stand labels, notes, tables and charts, which refer to
/// the numbers by their JSON pointers. The text for terminals, the JSON and the page are written from this one tree:
///
///   JsonValue data = object_of({{"name", "gpt"}, {"days", object_of({{"median", 41.8}})}});
///   Figure{"days", figure(data, "/days/median", amount_text), "of 1,000 draws"}
///
///   text:  "  days   41.8   of 1,000 draws"
///   JSON:  {"name": "gpt", "days": {"median": 41.8}}
///   page:  a card with <span data-at="/days/median">41.8</span>, which the page's self-test compares with its JSON
namespace windtunnel::document {

/// Text with figures in it, of which pages keep the pointers.
class Words {
 public:
  Words() = default;
  Words(const char* text) : Words(std::string(text), "") {}
  Words(std::string text) : Words(std::move(text), "") {}
  /// A figure, unless the pointer is empty.
  Words(std::string text, const std::string& pointer);

  bool empty() const { return text_.empty(); }
  const std::string& text() const { return text_; }
  const std::string& html() const { return html_; }
  friend Words operator+(Words one, const Words& other) {
    one.text_ += other.text_;
    one.html_ += other.html_;
    return one;
  }

 private:
  std::string text_, html_;
};

/// The number at `pointer` as `format` prints it; empty where the data have none.
Words figure(const JsonValue& data, const std::string& pointer, std::string (*format)(double));

/// A figure with its label: a line of text; on the page a card where it heads the document, else a row of a table.
struct Figure {
  std::string label;
  Words value;  ///< empty: the figure is left out
  Words note = {};
};
using Figures = std::vector<Figure>;

using TableRow = std::vector<Words>;
/// Rows of cells, the first row the heading. `columns` are those of a text table (TextColumn), and L and R for columns that only the page
/// has room for.
struct Table {
  std::string columns;
  std::vector<TableRow> rows;
  std::string shared = {};  ///< said once of all rows below the table: "context 4 · recompute none"
};

/// A table whose rows are shares of a whole: bars next to them in the text, on the page one bar above them with their colours.
struct Bars {
  struct Bar {
    double share = 0;
    std::string kind;  ///< class of its colour on the page
  };
  Table table;
  std::vector<Bar> bars;  ///< one for each row below the heading
};

/// A long text, as a file, folded away.
struct Details {
  std::string summary, text;
};

/// A sentence behind the mark that says how good the news is: "✓" good, "✗" bad, any other doubtful.
struct Verdict {
  const char* mark;
  Words words;
};

/// `Words`: a paragraph; an empty one is a blank line of the text. Charts and details are on the page only.
using Part = std::variant<Words, Figures, Table, Bars, Verdict, Chart, Details>;

struct Section {
  std::string id, place;    ///< on the page, and in its navigation
  std::string title;        ///< empty: the page has `place` in its stead, the text a blank line
  std::vector<Part> parts;  ///< none: the section is left out
};

/// The result of a command, from which text_of(), json_of() and page_of() make the three outputs. `data` holds every exact number; all other
/// members are presentation and refer to those numbers, so the outputs cannot disagree. The command's own layer makes it (rank_document(),
/// job_document(), …) and the command line prints it.
struct Document {
  JsonValue data;
  std::string kind;            ///< of page: "job"
  std::string name;            ///< of what was asked
  std::vector<Words> opening;  ///< sentences: the first next to the name, the others below
  std::string answer;          ///< label of the figure that the page shows large
  Figures figures;
  std::vector<Section> sections;
  std::string command;  ///< that prints the same numbers: "windtunnel job --json"
  std::vector<std::string> warnings = {};  ///< below the figures
  Figures cards = {};  ///< figures of the page's head that the text has in its sections
};

std::string text_of(const Document& document, Colour colour = Colour::never);
std::string json_of(const Document& document);
std::string page_of(const Document& document);

}  // namespace windtunnel::document
