#pragma once

#include <string>
#include <vector>

#include "report/report.hpp"

namespace windtunnel {

/// A number that reports give for the whole iteration. It is described once; JSON, summary, page and comparison are written from here.
struct Figure {
  std::string key;        ///< in the JSON document: "samples_per_s"
  std::string name;       ///< for people: "samples/s"
  std::string note = {};  ///< a few words more, on the page
  /// The key of the figure that it is shown with on the page; empty: it is shown on its own.
  std::string shown_with = {};
  double (*value)(const Report&) = nullptr;
  std::string (*text)(double number) = nullptr;
  bool name_first = false;  ///< "MFU 38.5 %", not "137.2 samples/s"
  bool is_share = false;    ///< changes are given in percentage points
  /// Condition for showing it in summary and page; none: always.
  bool (*is_shown)(const Report&) = nullptr;
};

/// The table, in the order in which they are written.
const std::vector<Figure>& figures();
/// Samples per second with three significant digits at least: "0.335", "9.53", "30.4", "104.8", "12,345".
std::string throughput_text(double rate);
/// "MFU 38.5 %"
std::string text_of(const Figure& figure, const Report& report);
/// The figures that summary and page of this report show.
std::vector<const Figure*> shown_figures(const Report& report);

}  // namespace windtunnel
