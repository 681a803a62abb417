#include <algorithm>
#include <map>
#include <utility>

#include "report/html_text.hpp"
#include "report/terminal_text.hpp"
#include "sweep/sweep_content.hpp"

namespace windtunnel::detail {
namespace {

using html::escaped;
using html::section;

}  // namespace

/// Failed points with the same reason together, the commonest first.
std::string failure_section(const SweepContent& page) {
  if (page.num_failed == 0) return "";
  struct Group {
    std::string kind, error;
    std::vector<const Row*> rows;
  };
  std::map<std::pair<std::string, std::string>, Group> by_reason;
  for (const Row& row : page.ranked) {
    if (row.ok) continue;
    const std::string kind = text_at(row.content, "failure"), error = text_at(row.content, "error");
    Group& group = by_reason[{kind, error}];
    group.kind = kind;
    group.error = error;
    group.rows.push_back(&row);
  }
  std::vector<Group> groups;
  for (auto& [reason, group] : by_reason) groups.push_back(std::move(group));
  std::stable_sort(groups.begin(), groups.end(),
                   [](const Group& a, const Group& b) { return a.rows.size() > b.rows.size(); });
  constexpr std::size_t most_groups = 50, most_named = 3;
  html::Table table{
      "Failed points", {"kind", "reason", "points", "such as"}, {}, "llllr", "failures"};
  for (std::size_t i = 0; i < std::min(most_groups, groups.size()); ++i) {
    std::string named;
    for (std::size_t k = 0; k < std::min(most_named, groups[i].rows.size()); ++k)
      named +=
          (k == 0 ? "" : "<br>") + escaped("point " + std::to_string(groups[i].rows[k]->point) +
                                           ": " + page.values_of(groups[i].rows[k]->content));
    table.rows.push_back({escaped(with_spaces(groups[i].kind)), escaped(groups[i].error),
                          whole(groups[i].rows.size()), named});
  }
  const std::string rest = groups.size() > most_groups
                               ? "<p class=\"quiet\">" + whole(groups.size() - most_groups) +
                                     " more reasons stand in results.csv.</p>\n"
                               : "";
  return section({"failed", "Points that failed", html::table(table) + rest});
}

}  // namespace windtunnel::detail
