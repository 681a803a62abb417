#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "report/comparison.hpp"
#include "report/html_text.hpp"

/// The numbers of a comparison's page, each with its place in the page's data.
namespace windtunnel::html {

/// Whose numbers a table shows.
enum class FigureSource {
  report,  ///< the runs' reports, in the comparison's document
  why,     ///< RunDetails::why, in the page's data "why"
};

/// A row of a table that has a column a run, and after each but the first one for the change against the first.
struct FigureRow {
  std::string label;    ///< HTML
  std::string pointer;  ///< within a report, or RunDetails::why
  std::function<std::string(double)> text;
  std::optional<Change> change;  ///< none: no change is shown
  std::string unit = {};         ///< of the text where it does not say it
};

/// Reads and prints figures of the runs.
class ComparedFigures {
 public:
  explicit ComparedFigures(const Comparison& comparison) : comparison_(&comparison) {}

  std::size_t size() const { return comparison_->runs.size(); }
  const ComparedRun& run(std::size_t i) const { return comparison_->runs[i]; }
  const Comparison& comparison() const { return *comparison_; }

  /// The value at `pointer` of a run; null where it has none, as in reports of other versions.
  const JsonValue* value(std::size_t run, const std::string& pointer,
                         FigureSource source = FigureSource::report) const;
  std::optional<double> number(std::size_t run, const std::string& pointer,
                               FigureSource source = FigureSource::report) const;
  /// The largest of all runs; 0 where none has the number.
  double largest(const std::string& pointer) const;

  /// The number as the page prints it, or a dash.
  std::string cell(std::size_t run, const FigureRow& row,
                   FigureSource source = FigureSource::report) const;
  /// Its change against the first run; empty where there is none to tell.
  std::string change(std::size_t run, const FigureRow& row,
                     FigureSource source = FigureSource::report) const;

  /// A table of such rows; those that no run has, or that read as nothing in all of them, are left out. Between two runs a bar shows each
  /// difference where `bars` says so.
  std::string table(const std::string& caption, const std::vector<FigureRow>& rows,
                    bool bars = false, FigureSource source = FigureSource::report) const;

 private:
  std::string place(std::size_t run, const std::string& pointer, FigureSource source) const;

  const Comparison* comparison_;
};

/// The letter of a run, in a box: A, B, …
std::string letter(std::size_t run);

}  // namespace windtunnel::html
