#include "report/text_table.hpp"

#include <algorithm>

#include "core/utf8.hpp"
#include "report/number_text.hpp"

namespace windtunnel {

std::string text_table(const std::string& columns, const std::vector<TextRow>& rows) {
  std::vector<int> widths;
  for (const TextRow& row : rows) {
    widths.resize(std::max(widths.size(), row.size()));
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max(widths[i], utf8_count(row[i]));
  }
  std::string text;
  for (const TextRow& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i)
      line += "  " + (columns[std::min(i, columns.size() - 1)] == 'l'
                          ? left_aligned(row[i], widths[i])
                          : right_aligned(row[i], widths[i]));
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

}  // namespace windtunnel
