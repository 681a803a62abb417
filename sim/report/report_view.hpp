#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/json_value.hpp"
#include "report/html_text.hpp"
#include "timeline/breakdown.hpp"

/// Parts of pages that show reports (windtunnel/report-v1): of one run, or of several under each other on the same scale. They read the
/// document and not the run, so that a run of which there is only the report looks the same.
namespace windtunnel::html {

using NumberText = std::function<std::string(double)>;

/// A JSON document that a page shows, and its place in the page's data: a number is printed with its pointer, by which the page's
/// self-test finds the exact one.
///
///   DataView{&report, "/runs/1"}.cell("/mfu", percent_text)
///     <span data-at="/runs/1/mfu">37.8 %</span>
struct DataView {
  const JsonValue* document = nullptr;  ///< none: nothing is known
  std::string place = {};               ///< of the document in the data
  std::string data = "report";          ///< id of the data
  std::string heading = {};             ///< HTML above its table, where there are several

  const JsonValue* find(const std::string& pointer) const;
  std::optional<double> number(const std::string& pointer) const;
  /// The number there; 0 where there is none, as in reports of other versions.
  double amount(const std::string& pointer) const { return number(pointer).value_or(0); }
  /// The text there; empty where there is none.
  std::string text(const std::string& pointer) const;
  /// Length of the list there.
  std::size_t size(const std::string& pointer) const;
  /// Prefixes of pointers into the items of that list: "/path/0/", "/path/1/", …
  std::vector<std::string> items(const std::string& list, std::size_t most = SIZE_MAX) const;
  /// The number as HTML, or a dash.
  std::string cell(const std::string& pointer, const NumberText& text,
                   const std::string& unit = "") const;
};
using DataViews = std::vector<DataView>;

std::string text_of_time(double seconds);
std::string text_of_bytes(double bytes);

/// The largest of a number that runs have.
double largest(const DataViews& runs, const std::string& pointer);

/// A number of every run, and its change against the first.
struct FigureRow {
  std::string label;    ///< indented by two blanks: a part of the row above
  std::string pointer;  ///< in each run's document
  NumberText text;
  std::optional<Change> change = {};  ///< none: no change is shown
  std::string kind = {};              ///< of its colour on the page
};
using FigureRows = std::vector<FigureRow>;

/// "+0.208 s", "-1.2 pp"; "=" for what rounds to nothing, "-7.6 %" where changes are relative.
std::string change_text(const FigureRow& row, double base, double exact);
/// The change of a run against the first; empty where there is none to tell.
std::string change_html(const FigureRow& row, const DataView& first, const DataView& run);
/// Leaves out the rows that no run has, or that read as nothing in all of them.
FigureRows shown_rows(FigureRows rows, const DataViews& runs);
/// A table that has a column a run, and after each but the first one for the change against the first. Between two runs a bar shows each
/// difference where `bars` says so.
std::string figure_table(const std::string& caption, const FigureRows& rows, const DataViews& runs,
                         bool bars = false);
/// The letter of a run, in a box: A, B, …
std::string letter(std::size_t run);

/// The lines of the breakdown that the object holds as pieces of a bar that is `whole` long; the titles have their shares of `iteration`.
std::vector<Piece> breakdown_pieces(const JsonValue* lines, Seconds whole, Seconds iteration);
/// Legend of their colours: the lines that some run has.
std::string breakdown_legend(const DataViews& runs);
/// A bar with one piece.
std::string meter(double share, const std::string& kind);

/// Time of each stage by cause, on the replica that ends last.
std::string stage_times(const DataViews& runs);
/// Memory of a GPU of each stage.
std::string stage_memory(const DataViews& runs);
/// The busiest links, at most so many of each run.
std::string busiest_links(const DataViews& runs, std::size_t most);

/// Inputs of predictions: those that all runs have with the same value, and the others with the value of each run.
struct InputTables {
  std::string common, different;  ///< empty: none
  std::size_t num_common = 0, num_different = 0;
};
InputTables input_tables(const DataViews& runs, const std::vector<std::string>& heads);

}  // namespace windtunnel::html
