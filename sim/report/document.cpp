#include "report/document.hpp"

#include <algorithm>
#include <cctype>

#include "report/html_text.hpp"
#include "report/number_text.hpp"
#include "report/report_words.hpp"
#include "report/terminal_text.hpp"

namespace windtunnel::document {
namespace {

using html::escaped;

/// Label, value and note of each figure that has a value.
Table table_of(const Figures& figures) {
  Table table{"lrw", {}};
  for (const Figure& each : figures)
    if (!each.value.empty()) table.rows.push_back({each.label, each.value, each.note});
  return table;
}

/// Tone of the sentence behind a mark, and its class on pages.
detail::VerdictMark marked_as(const char* mark) {
  if (std::string_view(mark) == "✓") return {mark, detail::Tone::good, "good"};
  if (std::string_view(mark) == "✗") return {mark, detail::Tone::bad, "bad"};
  return {mark, detail::Tone::doubtful, "doubtful"};
}

struct AsText {
  detail::Painter paint;

  /// A table and the bars next to it, the heading in its tone.
  std::string table_text(const Table& table, const std::vector<Bars::Bar>& bars) const {
    constexpr int widest_bar = 30;
    const auto is_for_pages = [](const TextColumn& column) {
      return std::isupper(column.letter) != 0;
    };
    std::vector<TextColumn> columns = text_columns(table.columns);
    std::vector<TextRow> rows(table.rows.size());
    for (std::size_t i = 0; i < rows.size(); ++i)
      for (std::size_t column = 0; column < table.rows[i].size(); ++column)
        if (!is_for_pages(columns[std::min(column, columns.size() - 1)]))
          rows[i].push_back(table.rows[i][column].text());
    std::erase_if(columns, is_for_pages);
    TableLines lines = table_lines(columns, rows);
    if (const int room = bar_room(lines.width, widest_bar); room > 0)
      for (std::size_t i = 0; i < bars.size(); ++i)
        lines.rows[i + 1] =
            left_aligned(lines.rows[i + 1], lines.width) + "  " + bar_text(bars[i].share, room);
    std::string text;
    for (const std::string& row : lines.rows)
      for (const std::string& line : detail::lines_of(row)) {
        const std::string shown_line = std::string(detail::indent) + line;
        const bool is_heading = &row == &lines.rows.front();
        text += (is_heading ? paint(detail::Tone::heading, shown_line) : shown_line) + "\n";
      }
    return text + lines.notes(table.shared);
  }
  std::string operator()(const Words& words) const {
    return words.empty() ? "\n" : detail::paragraph(words.text());
  }
  std::string operator()(const Figures& figures) const {
    return AsText{detail::Painter(Colour::never)}(table_of(figures));
  }
  std::string operator()(const Table& table) const { return table_text(table, {}); }
  std::string operator()(const Bars& bars) const { return table_text(bars.table, bars.bars); }
  std::string operator()(const Verdict& verdict) const {
    return detail::marked(verdict.mark, verdict.words.text(), marked_as(verdict.mark).tone, paint);
  }
  std::string operator()(const Chart&) const { return ""; }
  std::string operator()(const Details&) const { return ""; }
};

struct AsHtml {
  std::string title;  ///< of the section

  html::Table cells(const Table& table) const {
    html::Table of{title, {}, {}, ""};
    for (const TextColumn& column : text_columns(table.columns))
      of.columns += column.letter == 'r' || column.letter == 'R' ? 'r'
                    : column.letter == 'w'                       ? 'w'
                                                                 : 'l';
    for (const std::vector<Words>& words : table.rows) {
      std::vector<std::string>& row = of.rows.emplace_back();
      for (const Words& cell : words)
        row.push_back(cell.text().starts_with("  ")  // below another
                          ? html::element("span", "class=\"part\"", cell.html())
                          : cell.html());
    }
    return of;
  }
  std::string with_heading(html::Table of) const {
    of.head = of.rows.front();
    of.rows.erase(of.rows.begin());
    return html::table(of);
  }
  std::string operator()(const Words& words) const {
    return words.empty() ? "" : html::quiet(words.html());
  }
  std::string operator()(const Figures& figures) const {
    return html::table(cells(table_of(figures)));
  }
  std::string operator()(const Table& table) const {
    return with_heading(cells(table)) +
           (table.shared.empty() ? "" : html::quiet(escaped("all of them: " + table.shared)));
  }
  std::string operator()(const Bars& bars) const {
    html::Table of = cells(bars.table);
    std::vector<html::Piece> pieces;
    for (std::size_t i = 0; i < bars.bars.size(); ++i) {
      const std::vector<Words>& row = bars.table.rows[i + 1];
      const std::string& kind = bars.bars[i].kind;
      pieces.push_back({bars.bars[i].share, kind, row[0].text() + " " + row[1].text()});
      of.rows[i + 1].front().insert(0, html::swatch(kind));
    }
    return html::stacked_bar(pieces, title) + with_heading(std::move(of));
  }
  std::string operator()(const Verdict& verdict) const {
    return std::string("<p class=\"verdict ") + marked_as(verdict.mark).kind + "\"><b>" +
           escaped(verdict.mark) + "</b> " + verdict.words.html() + "</p>\n";
  }
  std::string operator()(const Chart& chart) const { return chart_svg(chart); }
  std::string operator()(const Details& details) const {
    return html::scenario_details(details.summary, details.text);
  }
};

std::string hero(const Document& document) {
  std::string head, cards, lines;
  for (const Words& line : document.opening)
    if (document.answer.empty() && head.empty() && !line.empty())
      head = html::element("h1", "", line.html()) + "\n";
    else
      lines += (lines.empty() ? "" : "<br>") + line.html();
  Figures figures = document.figures;
  figures.insert(figures.end(), document.cards.begin(), document.cards.end());
  for (const Figure& each : figures) {
    if (each.value.empty()) continue;
    if (each.label == document.answer)
      head = "<h1><span class=\"big\">" + each.value.html() + "</span> " + escaped(each.label) +
             "</h1>\n<p class=\"interval\"><span>" + each.note.html() + "</span></p>\n";
    else
      cards += html::card(each.label, each.value.html(), each.note.html());
  }
  return html::hero(
      document.name,
      head + html::warnings(document.warnings) + "<p class=\"job\">" + lines + "</p>\n", cards);
}

}  // namespace

Words::Words(std::string text, const std::string& pointer)
    : text_(std::move(text)),
      html_(pointer.empty() ? escaped(text_) : html::number(pointer, text_)) {}

Words figure(const JsonValue& data, const std::string& pointer, std::string (*format)(double)) {
  const std::optional<double> number = number_of(find_at(data, pointer));
  return number ? Words(format(*number), pointer) : Words();
}

std::string text_of(const Document& document, Colour colour) {
  const AsText as_text{detail::Painter(colour)};
  std::string text = as_text.paint(detail::Tone::heading, document.name);
  for (const Words& line : document.opening)
    if (&line == &document.opening.front())
      text += line.empty() ? "\n\n" : ": " + line.text() + "\n";
    else
      text += "  " + line.text() + "\n";
  if (const std::string figures = as_text(document.figures); !figures.empty())
    text += "\n" + figures;
  for (const std::string& warning : document.warnings)
    text += (&warning == &document.warnings.front() ? "\n" : "") + as_text(Verdict{"!", warning});
  for (const Section& section : document.sections) {
    std::string parts;
    for (const Part& part : section.parts) parts += std::visit(as_text, part);
    if (!parts.empty())
      text += "\n" + as_text.paint(detail::Tone::heading, section.title) +
              (section.title.empty() ? "" : "\n") + parts;
  }
  return text;
}

std::string json_of(const Document& document) { return pretty_text(document.data) + "\n"; }

std::string page_of(const Document& document) {
  HtmlPage page{
      document.kind,
      document.name,
      hero(document),
      {},
      {{"report", json_of(document)}},
      "windtunnel " WINDTUNNEL_VERSION " · " + document.command + " prints the same numbers"};
  for (const Section& section : document.sections) {
    const std::string& heading = section.title.empty() ? section.place : section.title;
    std::string parts;
    for (const Part& part : section.parts) parts += std::visit(AsHtml{heading}, part);
    page.add(section.id, section.place, heading, parts);
  }
  return html_document(page);
}

}  // namespace windtunnel::document
