#include "core/problem.hpp"

#include <algorithm>
#include <cstddef>
#include <tuple>
#include <utility>

#include "core/contracts.hpp"
#include "core/edit_distance.hpp"
#include "core/mapped.hpp"
#include "core/terminal_safe.hpp"
#include "core/utf8.hpp"

namespace windtunnel {
namespace {

/// Longest part of a source line that is shown, in characters: with its number and two ellipses it fits into 80, so that the caret stays
/// below its place. A minified file has one line of megabytes.
constexpr int max_shown_width = 66;

/// The characters of `line` from `from` (counted from 0), at most `count`; what acts on a terminal becomes '?', so that the
/// caret below stays in its place.
std::string displayable(std::string_view line, int from, int count) {
  std::string shown;
  int index = 0;
  for (std::size_t at = 0; at < line.size() && index < from + count; ++index) {
    const std::size_t length = utf8_length_at(line, at);
    const bool printable = !acts_on_terminal(line, at);
    if (index >= from) shown += printable ? line.substr(at, length) : std::string_view("?");
    at += length == 0 ? 1 : length;
  }
  return shown;
}

/// White space as wide as `shown`, with the same tabs.
std::string blank_like(std::string_view shown) {
  std::string blank;
  for (std::size_t at = 0; at < shown.size();
       at += std::max<std::size_t>(1, utf8_length_at(shown, at)))
    blank += shown[at] == '\t' ? '\t' : ' ';
  return blank;
}

std::string caret_lines(const Origin& origin) {
  switch (origin.source->quoting) {
    case Quoting::allowed:
      break;
    case Quoting::named_by_a_file:
      return "\n     | (not shown: the command line does not name this file itself)";
    case Quoting::link_elsewhere:
      return "\n     | (not shown: this is a link to another folder; name the file it leads to)";
  }
  if (origin.source->text.empty()) return {};  // read without being kept
  const std::string_view line = origin.source->line(origin.line);
  const int width = utf8_count(line);
  if (origin.column > width + 1) return {};
  const int caret = static_cast<int>(origin.column) - 1;
  const int from = width <= max_shown_width
                       ? 0
                       : std::clamp(caret - max_shown_width / 3, 0, width - max_shown_width);
  const int shown_width = std::min(width - from, max_shown_width);
  const int tail = std::clamp(origin.length - 1, 0, std::max(0, from + shown_width - caret - 1));
  const std::string ellipsis = from > 0 ? "..." : "";

  std::string number = std::to_string(origin.line);
  number.insert(0, number.size() < 4 ? 4 - number.size() : 0, ' ');
  const std::string margin(number.size(), ' ');
  return "\n" + number + " | " + ellipsis + displayable(line, from, shown_width) +
         (from + shown_width < width ? "..." : "") + "\n" + margin + " | " +
         std::string(ellipsis.size(), ' ') + blank_like(displayable(line, from, caret - from)) +
         "^" + std::string(static_cast<std::size_t>(tail), '~');
}

/// "scenario.json:3:13: ", as much of it as is known.
std::string place_text(const Origin& origin) {
  if (!origin.source) return {};
  std::string place = origin.source->name;
  if (origin.kind == OriginKind::file && origin.line > 0)
    place += ":" + std::to_string(origin.line) + ":" + std::to_string(origin.column);
  return place + ": ";
}

/// `message` with "…" in place of each text in double quotes, and '…' in place of all from the first single quote that opens
/// one to the last. A text that `suggestion` quotes too is our own, not the file's.
std::string without_quotations(std::string_view message, std::string_view suggestion) {
  std::string safe;
  for (std::size_t at = 0; at < message.size(); ++at) {
    const char mark = message[at];
    const bool opens = mark == '"' || (mark == '\'' && (at == 0 || message[at - 1] == ' '));
    safe += mark;
    if (!opens) continue;
    std::size_t end = at + 1;
    if (mark == '\'')
      end = std::max(end, message.rfind(mark));
    else
      while (end < message.size() && message[end] != mark) end += message[end] == '\\' ? 2U : 1U;
    end = std::min(end, message.size());
    const std::string_view quoted = message.substr(at + 1, end - at - 1);
    const bool is_ours =
        mark == '"' && !quoted.empty() &&
        suggestion.find(message.substr(at, quoted.size() + 2)) != std::string_view::npos;
    safe += is_ours ? quoted : "…";
    safe += mark;
    at = end;
  }
  return safe;
}

/// True if the line that it stands in is known.
bool has_line(const Origin& origin) {
  return origin.source && origin.kind == OriginKind::file && origin.line > 0 && origin.column > 0;
}

/// `explains`: with the remark why the line is not shown, where it is not.
std::string text_of(const Problem& problem, bool explains) {
  const Origin& origin = problem.origin;
  std::string text = place_text(origin) + "error: " + problem.message;
  if (!problem.pointer.empty()) text += " at " + problem.pointer;
  if (!problem.suggestion.empty()) text += " (" + problem.suggestion + ")";
  if (has_line(origin) && (explains || origin.source->quoting == Quoting::allowed))
    text += caret_lines(origin);
  return text;
}

bool is_same_source(const Origin& a, const Origin& b) {
  return a.source && b.source && a.source->name == b.source->name;
}

std::string text_of_all(const std::vector<Problem>& problems, std::size_t more) {
  std::string text;
  const std::size_t shown = std::min(problems.size(), Problems::max_reported);
  Origin explained;  // the last one whose remark was given
  for (std::size_t i = 0; i < shown; ++i) {
    const Origin& origin = problems[i].origin;
    text += (i == 0 ? "" : "\n") + text_of(problems[i], !is_same_source(explained, origin));
    if (has_line(origin)) explained = origin;
  }
  more += problems.size() - shown;
  if (more > 0) text += "\n... and " + std::to_string(more) + " more";
  return text;
}

bool is_same_place(const Origin& a, const Origin& b) {
  return is_same_source(a, b) && a.line == b.line && a.column == b.column;
}

}  // namespace

std::string_view SourceText::line(std::int64_t line) const {
  constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";
  std::string_view rest = text;
  if (rest.starts_with(byte_order_mark)) rest.remove_prefix(byte_order_mark.size());
  for (std::int64_t number = 1; number < line; ++number) {
    const std::size_t end = rest.find('\n');
    if (end == std::string_view::npos) return {};
    rest.remove_prefix(end + 1);
  }
  if (line < 1) return {};
  rest = rest.substr(0, rest.find('\n'));
  if (rest.ends_with('\r')) rest.remove_suffix(1);
  return rest;
}

std::string to_text(const Problem& problem) { return text_of(problem, true); }

InputError::InputError(std::vector<Problem> problems, std::size_t more)
    : std::runtime_error(text_of_all(problems, more)), problems_(std::move(problems)) {
  WT_EXPECT(!problems_.empty());
}

bool is_at_or_in(std::string_view inner, std::string_view outer) {
  return inner.starts_with(outer) && (inner.size() == outer.size() || inner[outer.size()] == '/');
}

void Problems::add(Problem problem) {
  std::string pointer = problem.pointer;
  add(std::move(problem), {std::move(pointer)});
}

void Problems::add(Problem problem, std::vector<std::string> spoils) {
  if (problems_.size() == max_kept) {
    ++more_;
    return;
  }
  const bool names_our_key = problem.message.starts_with("missing key ");
  if (!names_our_key && problem.origin.source && problem.origin.source->quoting != Quoting::allowed)
    problem.message = without_quotations(problem.message, problem.suggestion);
  // A file that is named twice is read twice, and is wrong once. What cannot be quoted looks alike as well.
  const auto known = std::find_if(problems_.begin(), problems_.end(), [&](const Problem& p) {
    return problem.origin.line > 0 && is_same_place(p.origin, problem.origin) &&
           p.message == problem.message;
  });
  if (known != problems_.end()) {
    std::vector<std::string>& spoilt = spoils_[static_cast<std::size_t>(known - problems_.begin())];
    spoilt.insert(spoilt.end(), spoils.begin(), spoils.end());
    return;
  }
  problems_.push_back(std::move(problem));
  spoils_.push_back(std::move(spoils));
}

void Problems::append(const Problems& of_text, const std::string& pointer) {
  for (std::size_t i = 0; i < of_text.problems_.size(); ++i) {
    std::vector<std::string> spoils = of_text.spoils_[i];
    for (std::string& each : spoils) each.insert(0, pointer);
    Problem problem = of_text.problems_[i];
    if (!problem.pointer.empty()) problem.pointer.insert(0, pointer);
    add(std::move(problem), std::move(spoils));
  }
  more_ += of_text.more_;
}

void Problems::withdraw(std::string_view pointer) {
  const auto concerns = [&](std::size_t i) {
    return is_at_or_in(problems_[i].pointer, pointer) ||
           std::any_of(spoils_[i].begin(), spoils_[i].end(),
                       [&](const std::string& each) { return is_at_or_in(each, pointer); });
  };
  for (std::size_t i = problems_.size(); i-- > 0;) {
    if (!concerns(i)) continue;
    problems_.erase(problems_.begin() + static_cast<std::ptrdiff_t>(i));
    spoils_.erase(spoils_.begin() + static_cast<std::ptrdiff_t>(i));
  }
}

bool Problems::is_sound(std::string_view pointer) const {
  const auto touches = [&](const std::string& each) {
    return is_at_or_in(each, pointer) || is_at_or_in(pointer, each);
  };
  return more_ == 0 && std::none_of(spoils_.begin(), spoils_.end(), [&](const auto& spoiled) {
           return std::any_of(spoiled.begin(), spoiled.end(), touches);
         });
}

bool Problems::is_spoiled(std::string_view pointer) const {
  return std::any_of(spoils_.begin(), spoils_.end(), [&](const auto& spoiled) {
    return std::find(spoiled.begin(), spoiled.end(), pointer) != spoiled.end();
  });
}

bool Problems::is_spoiled(std::string_view pointer, const Origin& of_value) const {
  for (std::size_t i = 0; i < problems_.size(); ++i)
    if (is_same_source(problems_[i].origin, of_value) &&
        std::find(spoils_[i].begin(), spoils_[i].end(), pointer) != spoils_[i].end())
      return true;
  return false;
}

void Problems::begin_source(const SourceText& source) {
  if (std::find(sources_.begin(), sources_.end(), source.name) == sources_.end())
    sources_.push_back(source.name);
}

std::vector<Problem> Problems::in_order() const {
  std::vector<std::string> sources = sources_;
  const auto place = [&sources](const Problem& problem) {
    const Origin& origin = problem.origin;
    constexpr int of_file = 0, of_option = 1, nowhere = 2;
    if (!origin.source) return std::tuple(nowhere, std::ptrdiff_t{0}, origin.line, origin.column);
    auto source = std::find(sources.begin(), sources.end(), origin.source->name);
    if (source == sources.end()) source = sources.insert(sources.end(), origin.source->name);
    return std::tuple(origin.kind == OriginKind::file ? of_file : of_option,
                      source - sources.begin(), origin.line, origin.column);
  };
  std::vector<std::pair<decltype(place(Problem{})), const Problem*>> sorted;
  for (const Problem& problem : problems_) sorted.emplace_back(place(problem), &problem);
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  return mapped(sorted, [](const auto& each) { return *each.second; });
}

void Problems::throw_if_any() const {
  if (!problems_.empty()) throw InputError(in_order(), more_);
}

namespace {

/// The shortest candidate that `is_meant`.
template <class IsMeant>
std::string shortest(const std::vector<std::string>& candidates, const IsMeant& is_meant) {
  std::string found;
  for (const std::string& candidate : candidates)
    if (is_meant(lower_case(candidate)) && (found.empty() || candidate.size() < found.size()))
      found = candidate;
  return found;
}

/// The candidate that shortens the word: its letters stand there in order, with all digits and the first one first: "bf16" of "bfloat16".
std::string abbreviation(const std::string& lower_word,
                         const std::vector<std::string>& candidates) {
  const auto shortens = [&](const std::string& candidate) {
    auto next = lower_word.begin();
    for (const char letter : candidate)
      if (next = std::find(next, lower_word.end(), letter); next++ == lower_word.end())
        return false;
    return candidate.front() == lower_word.front() && !digits_of(candidate).empty() &&
           digits_of(candidate) == digits_of(lower_word);
  };
  const auto found = std::ranges::find_if(candidates, [&](const std::string& candidate) {
    return !candidate.empty() && !lower_word.empty() && shortens(candidate);
  });
  return found == candidates.end() ? "" : *found;
}

}  // namespace

std::string closest_match(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t slips_in_a_short_word = 2;
  constexpr std::size_t letters_per_slip = 3;
  const std::size_t limit = std::max(slips_in_a_short_word, word.size() / letters_per_slip);
  const std::string lower = lower_case(word);
  std::string best;
  std::tuple<std::size_t, bool, std::size_t> best_distance{limit + 1, true, 0};
  for (const std::string& candidate : candidates) {
    const auto [shorter, longer] = std::minmax({word.size(), candidate.size()});
    if (longer - shorter > limit) continue;
    // Another digit is a slip more: "fp4" is "nvfp4", not "fp8". Of equals, what has the whole word in it comes first, then what has its
    // letters in the right case, which is no slip.
    const std::string lower_candidate = lower_case(candidate);
    const std::size_t slips =
        edit_distance(lower, lower_candidate) + (digits_of(lower) == digits_of(candidate) ? 0 : 1);
    const bool is_other = lower_candidate.find(lower) == std::string::npos;
    const std::tuple distance{slips, is_other, edit_distance(word, candidate)};
    if (slips > limit || distance >= best_distance || slips >= longer) continue;
    best = candidate;
    best_distance = distance;
  }
  constexpr std::size_t least_letters = 2;
  if (lower.size() < least_letters || std::get<0>(best_distance) == 0) return best;
  // "h200" is a part of "hgx-h200", and begins "h200-sxm".
  std::string longer = shortest(candidates, [part = "-" + lower + "-"](const std::string& each) {
    return ("-" + each + "-").find(part) != std::string::npos;
  });
  if (longer.empty() && std::get<0>(best_distance) > 1)
    longer = shortest(candidates, [&](const std::string& each) { return each.starts_with(lower); });
  if (!longer.empty()) return longer;
  return best.empty() ? abbreviation(lower, candidates) : best;
}

}  // namespace windtunnel
