#pragma once

#include <string>
#include <vector>

#include "report/report.hpp"

namespace windtunnel {

/// A number that a report says of the whole iteration. It is described once: JSON, summary, page and comparison are written from here.
struct Figure {
  std::string key;        ///< in the JSON document: "samples_per_s"
  std::string name;       ///< for people: "samples/s"
  std::string note = {};  ///< a few words more, on the page
  /// The key of the figure in whose place on the page it stands; empty: it has a place of its own.
  std::string beside = {};
  double (*value)(const Report&) = nullptr;
  std::string (*text)(double number) = nullptr;
  bool name_first = false;  ///< "MFU 38.5 %", not "137.2 samples/s"
  bool is_share = false;    ///< changes are said in percentage points
  /// Whether summary and page have it; none: always.
  bool (*is_shown)(const Report&) = nullptr;
};

/// The table, in the order in which they are written.
const std::vector<Figure>& figures();
/// "MFU 38.5 %"
std::string text_of(const Figure& figure, const Report& report);
/// Those that summary and page of this report have.
std::vector<const Figure*> shown_figures(const Report& report);

}  // namespace windtunnel
