#include <algorithm>
#include <map>

#include "report/compare_bars.hpp"
#include "report/compare_sections.hpp"

namespace windtunnel::html {
namespace {

/// An input of a prediction in every run that has it.
struct SharedInput {
  std::string what, source, note;
  std::vector<std::string> values;  ///< by run; empty where a run does not have it
};

std::vector<SharedInput> inputs_of(const ComparedFigures& figures) {
  std::vector<SharedInput> inputs;
  std::map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < figures.size(); ++i) {
    const JsonValue* const list = figures.value(i, "/assumptions");
    for (std::size_t k = 0; list != nullptr && list->is_array() && k < list->array().size(); ++k) {
      const std::string at = "/assumptions/" + std::to_string(k) + "/";
      const std::string what = string_at(figures, i, at + "what"),
                        source = string_at(figures, i, at + "source"),
                        note = string_at(figures, i, at + "note");
      const auto [place, is_new] =
          places.try_emplace(what + '\n' + source + '\n' + note, inputs.size());
      if (is_new) inputs.push_back({what, source, note, std::vector<std::string>(figures.size())});
      inputs[place->second].values[i] = string_at(figures, i, at + "value");
    }
  }
  return inputs;
}

bool is_common(const SharedInput& input) {
  return std::all_of(input.values.begin(), input.values.end(),
                     [&](const std::string& value) { return value == input.values.front(); });
}

std::string badge(const std::string& source) {
  return element("span", "class=\"badge e-" + escaped(source) + "\"", escaped(source));
}

std::string input_table(const ComparedFigures& figures, const std::vector<SharedInput>& inputs,
                        bool common) {
  Table table{common ? "Inputs of all runs" : "Inputs of some runs, or with other values",
              {"input"},
              {},
              "l",
              common ? "inputs" : "inputs wide"};
  if (common)
    table.head.emplace_back("value");
  else
    for (std::size_t i = 0; i < figures.size(); ++i) table.head.push_back(letter(i));
  table.head.insert(table.head.end(), {"source", "note"});
  for (const SharedInput& input : inputs) {
    if (is_common(input) != common) continue;
    std::vector<std::string> row{escaped(input.what)};
    for (std::size_t i = 0; i < (common ? 1 : figures.size()); ++i)
      row.push_back(input.values[i].empty() ? "–" : element("code", "", escaped(input.values[i])));
    row.insert(row.end(), {badge(input.source), escaped(input.note)});
    table.rows.push_back(std::move(row));
  }
  return table.rows.empty() ? "" : html::table(table);
}

}  // namespace

std::string compared_inputs(const ComparedFigures& figures) {
  const std::vector<SharedInput> inputs = inputs_of(figures);
  const std::string different = input_table(figures, inputs, false),
                    common = input_table(figures, inputs, true);
  const auto num_common = std::count_if(inputs.begin(), inputs.end(), is_common);
  std::string html;
  if (!different.empty()) html += "<h3>Numbers that not all runs share</h3>\n" + different;
  if (!common.empty())
    html += "<details><summary>" + std::to_string(num_common) +
            " numbers that all runs rest on, with their sources</summary>\n" + common +
            "</details>\n";
  return section({"inputs", "Inputs and their sources", html});
}

}  // namespace windtunnel::html
