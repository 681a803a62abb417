#pragma once

#include <cstddef>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace windtunnel {

/// The text of one input file, kept so that a message can show the line it speaks of.
struct SourceText {
  std::string
      name;  ///< as the user wrote the path, or "--set /pointer=value", or "built-in default"
  std::string text;
  /// Line `line` (from 1) without its line end; empty beyond the end.
  std::string_view line(int line) const;
};

/// Where a value came from.
enum class OriginKind {
  file,          ///< read from `source` at line:column
  command_line,  ///< given by --set; `source` holds the option's text
  defaulted,     ///< not given; the documented default was used
  searched,      ///< found by a search that was asked for
};

/// The place of one JSON value or key. Lines and columns count from 1; 0 means unknown.
struct Origin {
  OriginKind kind = OriginKind::defaulted;
  std::shared_ptr<const SourceText> source;
  int line = 0;
  int column = 0;
  int length = 0;  ///< of the token, for the caret line
};

/// One thing wrong with the input.
///
///   scenario.json:3:13: error: unknown key "hiden" at /model (did you mean "hidden"?)
///      3 |   "model": {"hiden": 4096,
///        |             ^~~~~~~
struct Problem {
  Origin origin;
  std::string pointer;     ///< JSON pointer of the value
  std::string message;     ///< what is wrong, with the numbers in it
  std::string suggestion;  ///< what to write instead; may be empty
};

/// The problem as the lines above; without the caret lines where the position is unknown.
std::string to_text(const Problem& problem);

/// Bad input: every problem found, at least one. what() is the text of all of them. Exit code 2.
class InputError : public std::runtime_error {
 public:
  explicit InputError(std::vector<Problem> problems);
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

/// The environment refused: a file that cannot be read or written, a missing program. Exit code 3.
class EnvironmentError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// Collects problems while a file is read, so that all of them are reported at once (the first 20).
class Problems {
 public:
  static constexpr std::size_t max_reported = 20;

  void add(Problem problem);
  bool empty() const { return problems_.empty(); }
  std::size_t size() const { return problems_.size(); }
  const std::vector<Problem>& all() const { return problems_; }
  /// Throws InputError with everything collected; does nothing when there is nothing.
  void throw_if_any() const;

 private:
  std::vector<Problem> problems_;
};

/// The candidate closest to `word` by Damerau-Levenshtein distance, if near enough to be a slip of
/// the fingers (distance <= max(2, length / 3)); otherwise empty.
std::string closest_match(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace windtunnel
