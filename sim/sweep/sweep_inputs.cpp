#include <map>
#include <set>

#include "report/html_text.hpp"
#include "scenario/resolved_text.hpp"
#include "sweep/sweep_content.hpp"

namespace windtunnel::detail {
namespace {

using html::element;
using html::escaped;
using html::section;

}  // namespace

/// What the explained points rest on, by name; with the values of those that differ.
std::string input_section(const SweepContent& page) {
  struct Input {
    std::string source, note;
    std::set<std::string> values;
    std::size_t points = 0;
  };
  std::vector<std::string> order;
  std::map<std::string, Input> inputs;
  for (const ExplainedPoint& explained : page.explained) {
    const JsonValue* list = explained.report.find("assumptions");
    if (list == nullptr) continue;
    for (const JsonValue& each : list->array()) {
      const std::string what = text_at(each, "what");
      const auto [place, is_new] = inputs.try_emplace(what);
      if (is_new) order.push_back(what);
      place->second.source = text_at(each, "source");
      place->second.note = text_at(each, "note");
      place->second.values.insert(text_at(each, "value"));
      ++place->second.points;
    }
  }
  html::Table shared{
      "Inputs of all points", {"input", "value", "source", "note"}, {}, "llll", "inputs"};
  std::size_t num_different = 0;
  for (const std::string& what : order) {
    const Input& input = inputs.at(what);
    if (input.values.size() != 1 || input.points != page.explained.size()) {
      ++num_different;
      continue;
    }
    shared.rows.push_back(
        {escaped(what), element("code", "", escaped(*input.values.begin())),
         element("span", "class=\"badge e-" + escaped(input.source) + "\"", escaped(input.source)),
         escaped(input.note)});
  }
  if (shared.rows.empty())
    return section({"inputs", "Inputs and their sources",
                    "<p>No point could be simulated, so there is nothing to list.</p>\n"});
  return section(
      {"inputs", "Inputs and their sources",
       "<p>" + whole(shared.rows.size()) +
           (page.explained.size() == 1
                ? std::string(" inputs of the point that was looked at")
                : " inputs are the same in all " + whole(page.explained.size()) +
                      " points that were looked at") +
           (num_different > 0 ? "; " + whole(num_different) + " differ between them" : "") +
           ".</p>\n<details><summary>The inputs that all share, with their "
           "sources</summary>\n" +
           html::table(shared) + "</details>\n"});
}

std::string scenario_section(const SweepContent& page) {
  html::Table matrix{"What is swept", {"pointer", "values"}, {}, "ll", "matrix"};
  const JsonValue* block = page.sweep.written().find("sweep");
  const JsonValue* axes = block == nullptr ? nullptr : block->find("matrix");
  if (axes != nullptr && axes->is_object())
    for (const JsonValue::Member& axis : axes->object()) {
      std::string values;
      for (const JsonValue& value : axis.value.array())
        values += (values.empty() ? "" : ", ") +
                  (value.is_string() ? value.string() : canonical_text(value));
      matrix.rows.push_back(
          {element("code", "", escaped(axis.key)), element("code", "", escaped(values))});
    }
  const SweepPoints& points = page.sweep.points();
  return section({"scenario", "Scenario and its sweep",
                  "<p>" + whole(points.num_combinations()) + " combinations, " +
                      whole(points.num_excluded()) + " excluded, " + whole(points.num_included()) +
                      " included: " + whole(points.size()) + " points.</p>\n" +
                      html::table(matrix) +
                      "<details><summary>The whole scenario, with the origin of each "
                      "value</summary>\n<pre tabindex=\"0\">" +
                      escaped(resolved_text(page.sweep.written())) + "</pre></details>\n"});
}

}  // namespace windtunnel::detail
