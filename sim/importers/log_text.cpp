#include "importers/log_text.hpp"

#include <algorithm>
#include <array>
#include <cctype>

#include "core/utf8.hpp"

namespace windtunnel {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
constexpr char escape = '\x1b';

/// Past the terminal sequence that begins with the escape at `at` (ECMA-48, 5.3 to 5.6: control
/// sequences end with a letter, command strings with BEL or ESC \).
std::size_t skip_escape(std::string_view line, std::size_t at) {
  std::size_t end = at + 1;
  if (end >= line.size()) return end;
  if (line[end] == ']') {
    while (end < line.size() && line[end] != '\a' && line[end] != escape) ++end;
    return std::min(line.size(), end + (end < line.size() && line[end] == escape ? 2 : 1));
  }
  if (line[end] != '[') return end + 1;
  ++end;
  while (end < line.size() && line[end] >= ' ' && line[end] <= '?') ++end;
  return std::min(line.size(), end + 1);
}

bool is_blank(char c) { return c == ' ' || c == '\t'; }
bool is_of_word(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-' || c == '.' || c == '_';
}

/// Length of the beginning of `text` that has the shape of `prefix` (LogText); nothing: it has another shape.
std::optional<std::size_t> same_shape(std::string_view prefix, std::string_view text) {
  std::size_t at = 0, i = 0;
  const auto skip = [](std::string_view where, std::size_t& from, bool (*belongs)(char)) {
    const std::size_t begin = from;
    while (from < where.size() && belongs(where[from])) ++from;
    return from > begin;
  };
  skip(prefix, i, is_blank);
  skip(text, at, is_blank);
  while (i < prefix.size()) {
    if (skip(prefix, i, is_of_word)) {
      if (!skip(text, at, is_of_word)) return std::nullopt;
    } else if (skip(prefix, i, is_blank)) {
      if (!skip(text, at, is_blank) && at < text.size()) return std::nullopt;
    } else if (at == text.size() || text[at++] != prefix[i++]) {
      return std::nullopt;
    }
  }
  return at;
}

/// `written` without what is not text; what stands before a carriage return is overwritten.
LogLine clean_line(std::string_view written, int number) {
  LogLine line;
  line.number = number;
  line.written = written;
  for (std::size_t at = 0; at < written.size();) {
    const char c = written[at];
    if (c == escape) {
      at = skip_escape(written, at);
    } else if (c == '\r') {
      line.text.clear();
      line.places.clear();
      ++at;
    } else {
      line.text += c == '\0' ? ' ' : c;
      line.places.push_back(at++);
    }
  }
  return line;
}

/// Moves the launcher's prefix out of each line that has it.
void take_prefixes(std::vector<LogLine>& lines, FindAnchor find_anchor) {
  const auto first = std::ranges::find_if(
      lines, [&](const LogLine& line) { return find_anchor(line.text) != std::string_view::npos; });
  if (first == lines.end()) return;
  const std::string prefix = first->text.substr(0, find_anchor(first->text));
  if (std::ranges::all_of(prefix, is_blank)) return;
  for (LogLine& line : lines) {
    const auto length = same_shape(prefix, line.text);
    if (!length) continue;
    line.prefix = line.text.substr(0, *length);
    line.text.erase(0, *length);
    line.places.erase(line.places.begin(),
                      line.places.begin() + static_cast<std::ptrdiff_t>(*length));
  }
}

constexpr std::string_view blank_characters = " \t\v\f";

}  // namespace

LogText::LogText(std::shared_ptr<const SourceText> source, Problems& problems,
                 FindAnchor find_anchor)
    : source_(std::move(source)), problems_(&problems) {
  std::string_view rest = source_->text;
  if (rest.starts_with("\xFF\xFE") || rest.starts_with("\xFE\xFF")) {
    problem({OriginKind::file, source_, 1, 1, 1}, "the file is in UTF-16",
            "save it as UTF-8, as with: iconv -f UTF-16 -t UTF-8");
    return;
  }
  if (rest.starts_with(byte_order_mark)) rest.remove_prefix(byte_order_mark.size());
  // Bytes and lines take some ten and a hundred bytes of memory each, words fifty.
  constexpr std::size_t most_bytes = std::size_t{64} << 20;
  constexpr std::ptrdiff_t most_lines = 1'000'000;
  const bool has_many_bytes = rest.size() > most_bytes;
  if (has_many_bytes || std::ranges::count(rest, '\n') > most_lines) {
    problem(
        {OriginKind::file, source_, 0, 0, 0},
        has_many_bytes ? "the log is larger than 64 MiB" : "the log has more than a million lines",
        "cut out the part that counts");
    return;
  }
  for (int number = 1; !rest.empty(); ++number) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    std::string_view written = rest.substr(0, end);
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (written.ends_with('\r')) written.remove_suffix(1);
    lines_.push_back(clean_line(written, number));
  }
  take_prefixes(lines_, find_anchor);
  for (LogLine& line : lines_) line.words = split_words(line, blank_characters);
  std::erase_if(lines_, [](const LogLine& line) { return line.words.empty(); });
}

Origin LogText::at(const LogLine& line, const LogWord& word) const {
  return {OriginKind::file, source_, line.number, word.column, word.length};
}

Origin LogText::at(const LogLine& line) const {
  const LogWord& last = line.words.back();
  const int from = line.words.front().column;
  return {OriginKind::file, source_, line.number, from, last.column + last.length - from};
}

Origin LogText::end() const {
  if (lines_.empty()) return {OriginKind::file, source_, 1, 1, 1};
  return at(lines_.back(), lines_.back().words.back());
}

std::string file_and_line(const Origin& place) {
  return place.source->name + ":" + std::to_string(place.line);
}

std::vector<LogWord> split_words(const LogLine& line, std::string_view separators) {
  const bool blanks = separators.find(' ') != std::string_view::npos;
  std::vector<LogWord> words;
  std::size_t counted = 0;  // bytes of the line, with so many characters
  int characters = 0;
  for (std::size_t from = 0; from <= line.text.size();) {
    const std::size_t end = std::min(line.text.find_first_of(separators, from), line.text.size());
    if (end > from || !blanks) {
      LogWord word{line.text.substr(from, end - from), 0, 0};
      const std::size_t byte = from < line.places.size() ? line.places[from] : line.written.size();
      characters += utf8_count(line.written.substr(counted, byte - counted));
      counted = byte;
      word.column = characters + 1;
      word.length = std::max(1, utf8_count(word.text));
      words.push_back(std::move(word));
    }
    from = end + 1;
  }
  return words;
}

std::optional<long long> count_in(std::string_view word) {
  const auto number = number_in<long long>(word);
  return number && *number >= 0 ? number : std::nullopt;
}

bool is_missing(std::string_view word) {
  constexpr std::array<std::string_view, 6> words{"", "n/a", "na", "nan", "-", "none"};
  return std::ranges::find(words, lower_case(word)) != words.end();
}

bool is_plain_text(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= ' ' && c <= '~'; });
}

}  // namespace windtunnel
