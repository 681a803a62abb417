#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace windtunnel {

/// Permission to quote a file's content in messages. A file that only another file names may be anything that the user can read,
/// such as a password, and messages end up in logs.
enum class Quoting {
  allowed,
  named_by_a_file,  ///< withheld: the command line names it not
  link_elsewhere,   ///< withheld: the command line names a link, which leads out of its folder
};

/// The text of one input file, kept so that a message can show the line it speaks of.
struct SourceText {
  std::string
      name;  ///< as the user wrote the path, or "--set /pointer=value", or "built-in default"
  std::string text;
  Quoting quoting = Quoting::allowed;
  /// Line `line` (from 1) without its line end; empty beyond the end.
  std::string_view line(std::int64_t line) const;
};

/// Kind of place that a value came from.
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
  std::int64_t line = 0;
  std::int64_t column = 0;
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

/// The problem as the lines above; without the caret lines where the position is unknown, and with a remark in their place
/// where the file is not to be quoted.
std::string to_text(const Problem& problem);

/// Bad input: every problem found, at least one. what() is the text of all of them. Exit code 2.
class InputError : public std::runtime_error {
 public:
  /// `more`: how many problems there were besides these.
  explicit InputError(std::vector<Problem> problems, std::size_t more = 0);
  const std::vector<Problem>& problems() const { return problems_; }

 private:
  std::vector<Problem> problems_;
};

/// The environment refused: a file that cannot be read or written, a missing program. Exit code 3.
class EnvironmentError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

/// A request for more memory than there is, refused before the memory is taken.
class NotEnoughMemory : public EnvironmentError {
 public:
  using EnvironmentError::EnvironmentError;
};

/// Collects problems while files are read, so that all of them are reported at once (the first 20), in order of place.
///
/// A mistake is reported once, and not what follows from it: each problem names the values that cannot be relied on
/// because of it (it spoils them), and a check that needs one of those is not made.
class Problems {
 public:
  static constexpr std::size_t max_reported = 20;
  /// Further ones are counted only: a file of millions of mistakes is no reason to run out of memory.
  static constexpr std::size_t max_kept = 1000;

  /// A problem that spoils the value at its pointer. Texts in quotes are taken out of a message about a file that is not
  /// to be quoted.
  void add(Problem problem);
  /// A problem that spoils the values at these pointers; none: every value is still what was meant.
  void add(Problem problem, std::vector<std::string> spoils);
  /// The problems of a text whose values stand at `pointer`.
  void append(const Problems& of_text, const std::string& pointer);
  /// Takes back what was said of the value at `pointer`, and of what is in it: it follows from another mistake.
  void withdraw(std::string_view pointer);

  /// True if no problem spoils the value at `pointer`, anything inside it, or anything around it.
  bool is_sound(std::string_view pointer) const;
  /// True if a problem spoils the very value at `pointer`.
  bool is_spoiled(std::string_view pointer) const;
  /// True if a problem of the same file or option spoils the very value at `pointer`.
  bool is_spoiled(std::string_view pointer, const Origin& of_value) const;

  bool empty() const { return problems_.empty(); }
  std::size_t size() const { return problems_.size() + more_; }
  /// In the order in which they were found.
  const std::vector<Problem>& all() const { return problems_; }
  /// `source` is read now: its problems come after those of the sources read before.
  void begin_source(const SourceText& source);
  /// By place: files in the order in which they are read, each by line and column; then options; then what has no place.
  std::vector<Problem> in_order() const;
  /// Throws InputError with everything collected, in order; does nothing when there is nothing.
  void throw_if_any() const;

 private:
  std::vector<Problem> problems_;
  std::vector<std::vector<std::string>> spoils_;  ///< pointers, of each problem
  std::vector<std::string> sources_;              ///< names, in the order of reading
  std::size_t more_ = 0;
};

/// True for "/a/b" and "/a", and for "/a" and "/a": what is at `inner` is, or is part of, what is at `outer`.
bool is_at_or_in(std::string_view inner, std::string_view outer);

/// The candidate closest to `word` by Damerau-Levenshtein distance, if near enough to be a slip of the fingers (distance <= max(2, length / 3));
/// where that takes two slips, the shortest that begins with `word` instead, if one does. Otherwise empty.
std::string closest_match(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace windtunnel
