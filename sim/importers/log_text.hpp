#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/number_in.hpp"
#include "core/problem.hpp"

namespace windtunnel {

/// Adds a problem at a place, and the suggestion what to write instead.
inline void add_problem(Problems& problems, const Origin& place, std::string message,
                        std::string suggestion = {}) {
  problems.add({place, {}, std::move(message), std::move(suggestion)});
}

/// One word of a line, and where it stands in the file as it was written.
struct LogWord {
  std::string text;
  int column = 0;  ///< from 1, in characters
  int length = 0;
};

/// One line of a log without what terminals and launchers add to it.
struct LogLine {
  int number = 0;            ///< from 1
  std::string_view written;  ///< as in the file
  std::string text;          ///< without colours, overwritten parts and the launcher's prefix
  std::string prefix;        ///< of the launcher: "node01: "
  std::vector<std::size_t> places;  ///< of each byte of `text` in the line as written
  std::vector<LogWord> words;       ///< of `text`, split at blanks
};

/// Finds the anchor in `text`: a line that every file of a format has. npos: `text` is no such line.
using FindAnchor = std::size_t (*)(std::string_view text);

/// A log as its writer meant it: empty lines, a byte order mark, escape sequences of terminals, parts of a line
/// that a carriage return overwrites, and the prefixes of launchers are left out. Positions are
/// those of the file.
///
/// A launcher's prefix is what stands before the anchor, whatever it is: "0: " of srun, "node01: "
/// of pdsh, "[1,0]<stdout>:" or "[prterun-node0-1234@1,0]<stdout>: " of Open MPI, a time of day. It
/// is taken from each line that begins with a prefix of the same shape: with words (letters,
/// digits, "-", "." and "_") and blanks where that has some, and the same characters between them.
class LogText {
 public:
  /// A file in UTF-16 is a problem; its lines are then none.
  LogText(std::shared_ptr<const SourceText> source, Problems& problems, FindAnchor find_anchor);

  const std::vector<LogLine>& lines() const { return lines_; }
  Origin at(const LogLine& line, const LogWord& word) const;
  Origin at(const LogLine& line) const;  ///< of the whole line
  Origin end() const;                    ///< of the last word

  void problem(const Origin& place, std::string message, std::string suggestion = {}) const {
    add_problem(*problems_, place, std::move(message), std::move(suggestion));
  }
  void problem(const LogLine& line, const LogWord& word, std::string message,
               std::string suggestion = {}) const {
    problem(at(line, word), std::move(message), std::move(suggestion));
  }
  const Problems& problems() const { return *problems_; }

 private:
  std::shared_ptr<const SourceText> source_;
  Problems* problems_;
  std::vector<LogLine> lines_;
};

/// The text of `line` split at any of `separators`; empty words between two of them are kept when
/// there is no blank among `separators`.
std::vector<LogWord> split_words(const LogLine& line, std::string_view separators);

/// "topo.txt:12", for a message about a place that is no error.
std::string file_and_line(const Origin& place);

/// A whole number that is the whole word, and one that is 0 or more.
inline std::optional<std::int64_t> whole_in(std::string_view word) {
  return number_in<std::int64_t>(word);
}
std::optional<long long> count_in(std::string_view word);
/// "N/A", "nan", "-" or nothing: a value that was not measured.
bool is_missing(std::string_view word);
/// Printable characters of ASCII, at least one: fit for a name in our files.
bool is_plain_text(std::string_view text);

}  // namespace windtunnel
