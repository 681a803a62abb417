#include "report/text_table.hpp"

#include <algorithm>
#include <cctype>

#include "core/utf8.hpp"
#include "report/number_text.hpp"

namespace windtunnel {
namespace {

struct Column {
  char letter;
  int width = 0;
};

/// "l20r" as {{'l', 20}, {'r', 0}}.
std::vector<Column> columns_of(const std::string& text) {
  constexpr int ten = 10;
  std::vector<Column> columns;
  for (const char each : text)
    if (std::isdigit(static_cast<unsigned char>(each)) == 0)
      columns.push_back({each});
    else
      columns.back().width = ten * columns.back().width + (each - '0');
  return columns;
}

}  // namespace

std::vector<std::string> table_lines(const std::string& columns, const std::vector<TextRow>& rows) {
  std::vector<Column> shown = columns_of(columns);
  const Column further = shown.back();
  for (const TextRow& row : rows) {
    shown.resize(std::max(shown.size(), row.size()), further);
    for (std::size_t i = 0; i < row.size(); ++i)
      shown[i].width = std::max(shown[i].width, utf8_count(row[i]));
  }
  std::vector<std::string> lines;
  for (const TextRow& row : rows) {
    std::string& line = lines.emplace_back();
    for (std::size_t i = 0; i < row.size(); ++i)
      line +=
          (i == 0 ? "" : "  ") + (shown[i].letter == 'l' ? left_aligned(row[i], shown[i].width)
                                                         : right_aligned(row[i], shown[i].width));
    line.erase(line.find_last_not_of(' ') + 1);
  }
  return lines;
}

std::string text_table(const std::string& columns, const std::vector<TextRow>& rows) {
  std::string text;
  for (const std::string& line : table_lines(columns, rows))
    text += (line.empty() ? "" : "  ") + line + "\n";
  return text;
}

std::string csv_line(const std::vector<std::string>& fields) {
  std::string line;
  for (const std::string& field : fields) {
    if (&field != &fields.front()) line += ',';
    if (field.find_first_of(",\"\r\n") == std::string::npos) {
      line += field;
      continue;
    }
    line += '"';
    for (const char letter : field) line += letter == '"' ? "\"\"" : std::string(1, letter);
    line += '"';
  }
  return line + "\n";
}

}  // namespace windtunnel
