// Reads shell scripts without running them: read_launch_script() of launch_scenario.hpp.
#include <fnmatch.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/mapped.hpp"
#include "importers/launch_scenario.hpp"

namespace windtunnel {
namespace {

/// A word as written, with its quotes, or an operator: "\n" and ";" end a statement.
struct ShellToken {
  std::string text;
  bool is_operator = false;
  int line = 0;
  std::string document = {};  ///< of "<<": the lines up to its delimiter
};

bool is_name_character(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
}

/// The end of the name that begins at `from`, which may be empty.
std::size_t end_of_name(std::string_view text, std::size_t from) {
  while (from < text.size() && is_name_character(text[from])) ++from;
  return from;
}
bool is_digit_character(char c) { return std::isdigit(static_cast<unsigned char>(c)) != 0; }
bool is_blank_character(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

bool is_one_of(const std::string& word, std::initializer_list<const char*> words) {
  return std::ranges::find(words, word) != words.end();
}

/// The deepest nesting of parentheses and braces, and the largest value of a variable: no script of a person goes beyond them.
constexpr int deepest_nesting = 50;
constexpr std::size_t largest_value = std::size_t{1} << 20;
/// Bytes of all expanded words; a script that doubles its variables over and over is read no further.
constexpr std::size_t most_expanded = std::size_t{64} << 20;
/// Numbers of sums: no amount of a training run is larger.
constexpr long most_counted = long{1} << 30;
/// A text in which "*" of a pattern is sought anywhere, which takes the third power of its length.
constexpr std::size_t longest_searched = 500;
/// Turns of all loops, and tests of unknown outcome that are tried: a script of a person has fewer.
constexpr int most_turns = 1000;
constexpr std::size_t most_tests = 50;

/// The end of what opens at `at` ("$(", "${", "(", a quote or a backquote), one beyond its last character.
std::size_t end_of_group(std::string_view text, std::size_t at, int depth = 0) {
  if (depth > deepest_nesting) return text.size();
  const char open = text[at];
  if (open == '\'' || open == '`') {
    const std::size_t end = text.find(open, at + 1);
    return end == std::string_view::npos ? text.size() : end + 1;
  }
  const char close = open == '"' ? '"' : open == '{' ? '}' : ')';
  for (std::size_t i = at + 1; i < text.size();) {
    const char c = text[i];
    if (c == close) return i + 1;
    if (c == '\\') {
      i += 2;
    } else if (c == '$' && i + 1 < text.size() && (text[i + 1] == '(' || text[i + 1] == '{')) {
      i = end_of_group(text, i + 1, depth + 1);
    } else if (open != '"' && (c == '"' || c == '\'' || (c == '(' && open == '('))) {
      i = end_of_group(text, i, depth + 1);
    } else {
      ++i;
    }
  }
  return text.size();
}

std::vector<ShellToken> shell_tokens(std::string_view text) {
  static constexpr std::string_view operators[]{"<<<", "&&", "||", ";;", ";", "|",
                                                "&",   "(",  ")",  "<",  ">"};
  std::vector<ShellToken> tokens;
  std::vector<std::size_t> documents;  // tokens whose document begins on the next line
  int line = 1;
  const auto ends_word = [&](std::size_t place, std::string_view characters) {
    return place >= text.size() || characters.find(text[place]) != std::string_view::npos;
  };
  for (std::size_t at = 0; at < text.size();) {
    const char c = text[at];
    const std::string_view rest = text.substr(at);
    if (c == ' ' || c == '\t' || c == '\r') {
      ++at;
    } else if (rest.starts_with("\\\n") || rest.starts_with("\\\r\n")) {
      at = text.find('\n', at) + 1;
      ++line;
    } else if (c == '#') {
      at = std::min(text.find('\n', at), text.size());
    } else if (c == '\n') {
      tokens.push_back({"\n", true, line++});
      ++at;
      for (const std::size_t document : documents) {
        const std::string& delimiter = tokens[document].text;
        const std::size_t begin = at;
        while (at < text.size()) {
          const std::size_t end = std::min(text.find('\n', at), text.size());
          const std::size_t indent = text.find_first_not_of(" \t", at);
          const bool is_last =
              indent < end &&
              text.substr(indent, end - indent).substr(0, delimiter.size()) == delimiter &&
              end - indent <= delimiter.size() + 1;
          if (is_last) tokens[document].document = text.substr(begin, at - begin);
          at = std::min(end + 1, text.size());
          ++line;
          if (is_last) break;
        }
        tokens[document].text = "<<";
      }
      documents.clear();
    } else if (rest.starts_with("<<") && !rest.starts_with("<<<")) {
      at = text.find_first_not_of("-~ ", at + 2);
      if (at == std::string_view::npos) break;
      std::string delimiter;
      for (; !ends_word(at, " \t\n;|&>)"); ++at)
        if (text[at] != '\'' && text[at] != '"' && text[at] != '\\') delimiter += text[at];
      documents.push_back(tokens.size());
      tokens.push_back({delimiter, true, line});
    } else if (const auto sign = std::ranges::find_if(
                   operators, [&](std::string_view each) { return rest.starts_with(each); });
               sign != std::end(operators)) {
      tokens.push_back({std::string(*sign), true, line});
      at += sign->size();
    } else {
      const std::size_t begin = at;
      const int first_line = line;
      while (!ends_word(at, " \t\r\n;|&()<>")) {
        std::size_t end = at + 1;
        if (text[at] == '\\')
          end = at + 2;
        else if (text[at] == '"' || text[at] == '\'' || text[at] == '`')
          end = end_of_group(text, at);
        else if (text[at] == '$' && end < text.size() && (text[end] == '(' || text[end] == '{'))
          end = end_of_group(text, end);
        end = std::min(end, text.size());
        line += static_cast<int>(std::ranges::count(text.substr(at, end - at), '\n'));
        at = end;
      }
      tokens.push_back({std::string(text.substr(begin, at - begin)), false, first_line});
    }
  }
  tokens.push_back({"\n", true, line});
  return tokens;
}

/// A value of `$((…))` and `((…))`: whole numbers with the operators of C, as far as scripts use them.
class Arithmetic {
 public:
  explicit Arithmetic(std::string_view text) : text_(text) {}
  std::optional<long> value() {
    const std::optional<long> result = choice();
    return next() == '\0' && at_ == text_.size() ? result : std::nullopt;
  }

 private:
  char next() {
    while (at_ < text_.size() && is_blank_character(text_[at_])) ++at_;
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool takes(std::string_view sign) {
    next();
    const bool is_next = text_.substr(at_).starts_with(sign);
    if (is_next) at_ += sign.size();
    return is_next;
  }
  /// "a ? b : c", or an operation alone.
  std::optional<long> choice() {
    if (depth_ > deepest_nesting) return std::nullopt;
    const std::optional<long> condition = operation(0);
    if (!condition || !takes("?")) return condition;
    ++depth_;
    const std::optional<long> if_true = choice();
    const std::optional<long> if_false = takes(":") ? choice() : std::nullopt;
    --depth_;
    return *condition != 0 && if_false ? if_true : if_false;
  }
  /// Operators of one level, from the left; factors below the last.
  std::optional<long> operation(std::size_t level) {
    static const std::vector<std::vector<std::string_view>> levels{
        {"||"}, {"&&"}, {"==", "!="}, {"<=", ">=", "<", ">"}, {"+", "-"}, {"*", "/", "%"}};
    if (level == levels.size()) return factor();
    std::optional<long> left = operation(level + 1);
    while (left) {
      const auto sign =
          std::ranges::find_if(levels[level], [&](std::string_view each) { return takes(each); });
      if (sign == levels[level].end()) break;
      const std::optional<long> right = operation(level + 1);
      if (!right || ((*sign == "/" || *sign == "%") && *right == 0)) return std::nullopt;
      const long a = *left, b = *right;
      left = counted(*sign == "||"   ? a != 0 || b != 0
                     : *sign == "&&" ? a != 0 && b != 0
                     : *sign == "==" ? a == b
                     : *sign == "!=" ? a != b
                     : *sign == "<=" ? a <= b
                     : *sign == ">=" ? a >= b
                     : *sign == "<"  ? a < b
                     : *sign == ">"  ? a > b
                     : *sign == "+"  ? a + b
                     : *sign == "-"  ? a - b
                     : *sign == "*"  ? a * b
                     : *sign == "/"  ? a / b
                                     : a % b);
    }
    return left;
  }
  std::optional<long> factor() {
    if (takes("!")) {
      if (++depth_ > deepest_nesting) return std::nullopt;
      const std::optional<long> negated = factor();
      --depth_;
      return negated ? std::optional<long>(*negated == 0) : std::nullopt;
    }
    if (takes("(")) {
      ++depth_;
      const std::optional<long> inner = choice();
      --depth_;
      return takes(")") ? inner : std::nullopt;
    }
    long number = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), number);
    if (error != std::errc{}) return std::nullopt;
    at_ = static_cast<std::size_t>(end - text_.data());
    return counted(number);
  }
  static std::optional<long> counted(long number) {
    return number >= -most_counted && number <= most_counted ? std::optional(number) : std::nullopt;
  }

  std::string_view text_;
  std::size_t at_ = 0;
  int depth_ = 0;
};

bool matches(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

/// `text` without the beginning ('#') or end ('%') that `pattern` matches.
std::string trimmed(const std::string& text, char side, bool is_longest,
                    const std::string& pattern) {
  for (std::size_t n = 0; n <= text.size(); ++n) {
    const std::size_t cut = (side == '#') == is_longest ? text.size() - n : n;
    const std::string before = text.substr(0, cut), after = text.substr(cut);
    if (matches(pattern, side == '#' ? before : after)) return side == '#' ? after : before;
  }
  return text;
}

/// Follows a script statement by statement. Tests whose outcome cannot be known, of files and of what commands print, are false, but for the one that is number
/// `assumed` (from 1) of them: read_launch_script() compares such runs with the one where all are false, and with one where `variable` is 1 instead of unknown.
class ShellReader {
 public:
  ShellReader(const SourceText& source, const std::string& arguments, std::size_t assumed,
              const std::string& variable = {})
      : assumed_(assumed) {
    read_directives(source.text);
    if (!variable.empty()) given_[variable] = {"1"};
    Fields& positional = variables_["@"];
    for (const ShellToken& word : shell_tokens(arguments)) {
      const std::size_t equals = word.text.find('=');
      if (word.is_operator) continue;
      if (positional.empty() && equals > 0 && end_of_name(word.text, 0) == equals)
        given_[word.text.substr(0, equals)] = {text_of(word.text.substr(equals + 1))};
      else
        positional.push_back(text_of(word.text));
    }
    for (const auto& [name, value] : given_) variables_[name] = value;
  }

  void run(std::string_view text, int first_line) {
    const Nesting level(depth_);
    if (level.is_too_deep()) return;
    auto saved = std::exchange(tokens_, shell_tokens(text));
    const std::size_t at = std::exchange(at_, 0);
    const int line = std::exchange(first_line_, first_line);
    while (at_ < tokens_.size()) {
      run_list(true);
      if (at_ < tokens_.size()) ++at_;  // a word that closes nothing
    }
    tokens_ = std::move(saved);
    at_ = at;
    first_line_ = line;
  }

  LaunchSettings result() {
    if (program_.empty())  // else it is its environment: "eval $(conda shell.bash hook)"
      for (const auto& [line, command] : unknown_commands_)
        note(line, "what " + command + " prints is run, and is not known: write it there");
    LaunchSettings found{std::move(directives_), std::move(notes_), program_name_,
                         std::move(tests_), std::move(unknown_variables_)};
    std::move(program_.begin(), program_.end(), std::back_inserter(found.settings));
    return found;
  }

 private:
  /// A level of parentheses, quotes or statements within each other, as long as it lives.
  struct Nesting {
    explicit Nesting(int& counter) : depth(++counter) {}
    ~Nesting() { --depth; }
    Nesting(const Nesting&) = delete;
    bool is_too_deep() const { return depth > deepest_nesting; }
    int& depth;
  };
  using Fields = std::vector<std::string>;

  /// The option at words[i] of Slurm or, where `is_mpi`, of mpirun, by Slurm's long name: "launcher-nodes" of "-N 16", "-N16" and "--nodes=16".
  /// Moves `i` to its last word.
  static LaunchSetting launcher_option(const Fields& words, std::size_t& i, bool is_mpi, int line) {
    static const std::map<std::string, const char*> slurm{
        {"N", "nodes"}, {"n", "ntasks"}, {"G", "gpus"}, {"gres", "gpus-per-node"}};
    static const std::map<std::string, const char*> mpi{{"n", "ntasks"},
                                                        {"np", "ntasks"},
                                                        {"c", "ntasks"},
                                                        {"N", "ntasks-per-node"},
                                                        {"npernode", "ntasks-per-node"},
                                                        {"ppn", "ntasks-per-node"}};
    const std::string& word = words[i];
    const bool is_joined =
        !word.starts_with("--") && word.size() > 2 && is_digit_character(word[2]);
    const std::size_t end = is_joined ? 2 : std::min(word.find('='), word.size());
    std::string key = launch_key(word.substr(0, end));
    std::string value = word.substr(std::min(end + (is_joined ? 0 : 1), word.size()));
    if (end == word.size() && i + 1 < words.size() && !words[i + 1].starts_with("-") &&
        !is_command(words[i + 1]))
      value = words[++i];
    const auto& names = is_mpi ? mpi : slurm;
    const bool is_gres = !is_mpi && key == "gres";
    if (is_gres) {  // "gpu:a100:8" of the resources "nvme:1,gpu:a100:8"
      std::istringstream entries(std::exchange(value, {}));
      for (std::string entry; value.empty() && std::getline(entries, entry, ',');)
        if (entry.starts_with("gpu")) value = entry;
    }
    if (const auto name = names.find(key); name != names.end() && (!is_gres || !value.empty()))
      key = name->second;
    if (key.starts_with("gpus")) value.erase(0, value.rfind(':') + 1);  // "gpu:a100:8"
    return {LaunchSetting::launcher + key, value, line};
  }

  /// "#SBATCH --nodes=8", also as variables that Slurm sets.
  void read_directives(std::string_view text) {
    std::istringstream lines{std::string(text)};
    std::string line;
    for (int number = 1; std::getline(lines, line); ++number) {
      if (!line.starts_with("#SBATCH")) continue;
      line.resize(std::min(line.find(" #"), line.size()));
      std::istringstream text_of_line(line.substr(std::string_view("#SBATCH").size()));
      const Fields words{std::istream_iterator<std::string>(text_of_line), {}};
      for (std::size_t i = 0; i < words.size(); ++i)
        if (words[i].starts_with("-"))
          directives_.push_back(launcher_option(words, i, false, number));
    }
    const LaunchSettings said{directives_, {}};
    const auto set = [&](const std::string& value, std::initializer_list<const char*> names) {
      for (const char* name : names)
        if (!value.empty()) variables_[name] = {value};
    };
    set(said.text("launcher-nodes"), {"SLURM_NNODES", "SLURM_JOB_NUM_NODES", "SLURM_NODES"});
    set(said.text("launcher-gpus-per-node"), {"SLURM_GPUS_ON_NODE", "SLURM_GPUS_PER_NODE"});
    set(said.text("launcher-ntasks-per-node"), {"SLURM_NTASKS_PER_NODE"});
    const std::int64_t tasks =
        std::int64_t{said.number("launcher-nodes")} * said.number("launcher-ntasks-per-node");
    set(tasks > 0 ? std::to_string(tasks) : said.text("launcher-ntasks"),
        {"SLURM_NTASKS", "SLURM_NPROCS"});
  }

  bool at_end() const { return at_ >= tokens_.size(); }
  const ShellToken& token() const { return tokens_[at_]; }
  bool is_word(const char* word) const {
    return !at_end() && !token().is_operator && token().text == word;
  }
  bool is_operator_at(std::size_t at, const char* text) const {
    return at < tokens_.size() && tokens_[at].is_operator && tokens_[at].text == text;
  }
  bool is_operator(const char* text) const { return is_operator_at(at_, text); }

  bool closes_list() const {
    return is_operator(";;") ||
           (!at_end() && !token().is_operator &&
            is_one_of(token().text, {"then", "else", "elif", "fi", "do", "done", "esac"}));
  }

  /// Statements up to a word that closes them; the truth of the last one. Where not `active`, they are skipped.
  bool run_list(bool active) {
    bool truth = true;
    while (!at_end() && !closes_list()) {
      const bool is_join = is_operator("&&") || is_operator("||");
      if (token().is_operator && !is_join && !begins_sum()) {
        ++at_;
        continue;
      }
      bool runs = active && leaves_.empty();
      if (is_join) {
        runs = runs && (token().text == "&&") == truth;
        ++at_;
        while (is_operator("\n")) ++at_;
        if (at_end() || closes_list()) break;
      }
      const bool result = run_statement(runs);
      if (runs) truth = result;
    }
    return truth;
  }

  bool run_statement(bool active) {
    const Nesting level(depth_);
    if (level.is_too_deep()) {
      at_ = tokens_.size();
      return false;
    }
    line_ = line_of(token());
    const bool is_negated = is_word("!");
    if (is_negated) ++at_;
    if (is_word("if")) return run_if(active);
    if (is_word("case")) return run_case(active);
    if (is_word("for") || is_word("while") || is_word("until")) return run_loop(active);
    if (is_word("{")) groups_.push_back({std::exchange(is_function_, false), variable("@")});
    if (is_word("}") && !groups_.empty()) {
      if (groups_.back().first) variables_["@"] = groups_.back().second;
      groups_.pop_back();
    }
    if (is_word("{") || is_word("}")) {
      ++at_;
      return true;
    }
    if (begins_sum()) return sum_is_true(active) != is_negated;
    return run_command(active) != is_negated;
  }

  bool begins_sum() const { return is_operator("(") && is_operator_at(at_ + 1, "("); }

  bool sum_is_true(bool active) {
    std::string sum;
    int depth = 0;
    for (at_ += 2; !at_end() && (depth > 0 || !is_operator(")") || !is_operator_at(at_ + 1, ")"));
         ++at_) {
      if (is_operator("(")) ++depth;
      if (is_operator(")")) --depth;
      sum += token().text;
    }
    at_ = std::min(at_ + 2, tokens_.size());
    if (!active) return false;
    if (const std::optional<long> value = assigned(sum)) return *value != 0;
    sum = with_values(sum);
    const auto value = is_unknown(sum) ? std::nullopt : Arithmetic(sum).value();
    return value ? *value != 0 : decide({is_unknown(sum) ? sum : as_written(sum)});
  }

  /// The truth of a test whose outcome cannot be known, which is the same in all turns of a loop.
  bool decide(const Fields& words) {
    LaunchTest test{line_, joined(words), {}, {}};
    for (const auto& [name, value] : variables_)
      if (value.size() == 1 && is_unknown(value[0]) && std::ranges::count(words, value[0]) > 0)
        test.variable = name;
    auto found = std::ranges::find_if(tests_, [&](const LaunchTest& each) {
      return each.line == test.line && each.text == test.text;
    });
    if (found == tests_.end()) found = tests_.insert(found, std::move(test));
    return static_cast<std::size_t>(found - tests_.begin()) + 1 == assumed_;
  }

  bool run_if(bool active) {
    bool is_taken = false;
    do {
      ++at_;  // if, elif
      const bool outer = std::exchange(is_condition_, true);
      const bool truth = run_list(active && !is_taken);
      is_condition_ = outer;
      if (is_word("then")) ++at_;
      run_list(active && !is_taken && truth);
      is_taken = is_taken || truth;
    } while (is_word("elif"));
    if (is_word("else")) {
      ++at_;
      run_list(active && !is_taken);
    }
    if (is_word("fi")) ++at_;
    return true;
  }

  bool run_case(bool active) {
    ++at_;
    const std::string subject = at_end() || !active ? "" : text_of(token().text);
    while (!at_end() && !is_word("in")) ++at_;
    ++at_;
    bool is_taken = false;
    while (!at_end() && !is_word("esac")) {
      bool holds = false;
      for (; !at_end() && !is_operator(")"); ++at_)
        if (active && !is_taken && !holds && !token().is_operator)
          holds = token().text == "*" || comparison({subject, "==", text_of(token().text)});
      ++at_;
      run_list(active && holds);
      is_taken = is_taken || holds;
      if (is_operator(";;")) ++at_;
      while (is_operator("\n")) ++at_;
      if (!at_end() && closes_list() && !is_word("esac")) break;  // not a case as we know it
    }
    ++at_;
    return true;
  }

  /// A loop over words or with a test, turn by turn up to the one that starts a program; none of others, whose end cannot be told.
  bool run_loop(bool active) {
    const int line = line_of(token()), before = num_programs_;
    const bool is_for = is_word("for"), is_until = is_word("until");
    const std::string name = ++at_ < tokens_.size() && is_for ? token().text : "";
    Fields items(1);  // of "for ((i = 0; …))"
    if (is_for && !begins_sum() && !is_word("do")) {
      items = variable("@");
      if (++at_; is_word("in")) items.clear();
      for (; !at_end() && !token().is_operator && !is_word("do"); ++at_)
        if (active && !is_word("in")) append(items, expand(token().text));
    }
    const std::size_t begin = at_;
    if (is_word("!")) ++at_;
    const bool has_end = is_for || begins_sum() || is_word("[") || is_word("[[") ||
                         is_word("test") || is_word("true") || is_word(":");
    const std::string unread = "the loop is not followed: write what it sets into the script";
    if (active && !has_end && !variable("@").empty()) note(line, unread);
    ++num_loops_;
    bool runs = active && has_end;
    for (std::size_t turn = 0; turn == 0 || runs; ++turn) {  // the last one is skipped
      at_ = begin;
      if (num_programs_ > before && runs && items.size() > 1)
        note(line, "the loop over " + name + " is read with its first value, " + items[turn - 1]);
      runs = runs && num_programs_ == before && leaves_ != "break";
      if (runs) leaves_.clear();
      runs = is_for ? runs && turn < items.size() : (run_list(runs) != is_until) && runs;
      if (runs && ++num_turns_ == most_turns) note(line, unread);
      runs = runs && num_turns_ < most_turns;
      if (runs && is_for) variables_[name] = {items[turn]};
      while (!at_end() && !is_word("do")) ++at_;
      ++at_;
      run_list(runs);
      if (is_word("done")) ++at_;
    }
    --num_loops_;
    if (active) leaves_.clear();
    return true;
  }

  /// Assignments, a test, or a program.
  bool run_command(bool active) {
    Fields words;
    const int line = line_of(token());
    bool only_assignments = true, is_declaration = false;
    std::string document;
    for (; !at_end(); ++at_) {
      const std::string& text = token().text;
      if (!token().is_operator) {
        if (text == "{" && words.size() == 2 && words[0] == "function") return is_function_ = true;
        if (only_assignments && assign(active)) continue;
        const bool declares =
            is_one_of(text, {"export", "readonly", "local", "declare", "typeset", "env"});
        is_declaration = is_declaration || (only_assignments && declares);
        if (only_assignments && (declares || (is_declaration && text.starts_with("-")))) continue;
        if (!active) continue;
        only_assignments = false;
        append(words, expand(text));
      } else if (text != "\n" && !words.empty() && words.front() == "[[" && words.back() != "]]") {
        words.push_back(text);  // "[[ a && b ]]" is one test
      } else if (text == "<<") {
        document = token().document;
      } else if (is_one_of(text, {">", "<", "<<<"})) {
        // The file, or "&1", that it names; of "2>&1" also the "2" before it.
        while (is_operator_at(at_ + 1, ">")) ++at_;
        const bool is_duplicate = is_operator_at(at_ + 1, "&");
        if (is_duplicate) ++at_;
        if (is_duplicate && !words.empty() && is_one_of(words.back(), {"1", "2"})) words.pop_back();
        if (at_ + 1 < tokens_.size() && !tokens_[at_ + 1].is_operator) ++at_;
      } else if (text == "(" && !words.empty() && is_operator_at(at_ + 1, ")")) {
        at_ += 2;
        return is_function_ = true;
      } else if (text == "(" && !words.empty() && is_python(at_ + 1)) {
        words.push_back(parenthesized());
      } else if (text != "&" || !is_operator_at(at_ + 1, ">")) {  // &>
        break;
      }
    }
    if (!active || words.empty()) return true;
    const std::string& command = words.front();
    Fields& positional = variables_["@"];
    if (is_one_of(command, {"[", "[[", "test"})) return truth_of(words);
    if (is_one_of(command, {"false", "read"})) return false;
    if (is_one_of(command, {"echo", "printf"})) return true;
    if (command == "let")
      for (const std::string& word : words) assigned(word);
    if (is_one_of(command, {"break", "continue"}) && num_loops_ > 0) leaves_ = command;
    if (command == "set" && words.size() > 1 && words[1] == "--")
      positional.assign(words.begin() + 2, words.end());
    if (command == "shift") {
      const long count = words.size() > 1 ? Arithmetic(words[1]).value().value_or(1) : 1;
      positional.erase(positional.begin(),
                       positional.begin() + std::clamp(count, 0L, std::ssize(positional)));
    }
    for (const std::string& word : words)
      if (word.starts_with("$(") && word.ends_with(")") && (&word == &command || command == "eval"))
        unknown_commands_.emplace_back(line, word);
    if (words.size() > 1 && is_one_of(words[0], {"source", "."}) && words[1].ends_with(".sh") &&
        words[1].find("/etc/") == std::string::npos)
      note(line, words[1] + " is sourced and not read: copy its lines into the script");
    add_program(words, line);
    const bool is_script =
        is_one_of(words.front(), {"sbatch", "bash"}) || document.find(".py") != std::string::npos;
    if (is_script) run(document, line + 1);
    return !is_condition_ || is_one_of(words.front(), {"true", ":", "cd", "set"}) || decide(words);
  }

  /// "N = sum", "N += sum" and "N++" of "((…))" and let: assigns, and gives the value. None for other sums, and where it cannot be known.
  std::optional<long> assigned(std::string sum) {
    std::erase_if(sum, is_blank_character);
    const std::size_t end = end_of_name(sum, 0);
    const std::string name = sum.substr(0, end), rest = sum.substr(end);
    if (name.empty() || is_digit_character(name[0]) || rest.empty()) return std::nullopt;
    std::string changed;
    if (rest == "++" || rest == "--")
      changed = name + rest[0] + "1";
    else if (rest[0] == '=' && !rest.starts_with("=="))
      changed = rest.substr(1);
    else if (rest.size() > 1 && rest[1] == '=' &&
             std::string_view("+-*/%").find(rest[0]) != std::string_view::npos)
      changed = name + rest[0] + "(" + rest.substr(2) + ")";
    else
      return std::nullopt;
    const auto value = Arithmetic(with_values(changed)).value();
    variables_[name] = {value ? std::to_string(*value) : as_written(changed)};
    return value;
  }

  /// "[0]*3+[1]*58" or "127,0" of a value in Python that was not quoted.
  bool is_python(std::size_t at) const {
    return at < tokens_.size() && !tokens_[at].is_operator &&
           (tokens_[at].text[0] == '[' || is_digit_character(tokens_[at].text[0]));
  }

  /// Words and parentheses from the "(" at `at_` to its ")", joined; `at_` moves to that.
  std::string parenthesized() {
    std::string text;
    for (int depth = 0; !at_end() && token().text != "\n"; ++at_) {
      text += token().text;
      if (is_operator("(")) ++depth;
      if (is_operator(")") && --depth == 0) break;
    }
    return text;
  }

  /// NAME=value, NAME+=value, NAME=( words ).
  bool assign(bool active) {
    const std::string& text = token().text;
    const std::size_t end = end_of_name(text, 0);
    if (end == 0 || end == text.size() || is_digit_character(text[0])) return false;
    const bool adds = text.substr(end).starts_with("+=");
    if (!adds && text[end] != '=') return false;
    const std::string name = text.substr(0, end);
    const std::string raw = text.substr(end + (adds ? 2 : 1));
    Fields value;
    const bool is_array = raw.empty() && is_operator_at(at_ + 1, "(");
    if (is_array) {
      for (at_ += 2; !at_end() && !is_operator(")"); ++at_)
        if (is_operator("(") && is_python(at_ + 1))
          value.push_back(parenthesized());
        else if (!token().is_operator && active)
          append(value, expand(token().text));
    } else if (active) {
      value = {text_of(raw)};
      if (is_unknown(value[0])) value = value_in(given_, name, value);
      if (is_unknown(value[0]) &&
          std::ranges::count(unknown_variables_, name, &LaunchVariable::name) == 0)
        unknown_variables_.push_back(
            {name, line_of(token()), value[0].find("--") == std::string::npos, {}});
    }
    if (!active) return true;
    Fields& variable = variables_[name];
    if (adds && value.size() == 1 && variable.size() == 1 && !is_array)
      variable.front() += value.front();
    else if (adds)
      append(variable, std::move(value));
    else
      variable = std::move(value);
    std::size_t size = 0;
    for (const std::string& field : variable) size += field.size() + 1;
    if (size > largest_value) variable.clear();
    return true;
  }

  static void append(Fields& to, Fields from) {
    to.insert(to.end(), std::make_move_iterator(from.begin()), std::make_move_iterator(from.end()));
  }

  void note(int line, const std::string& text) {
    notes_.push_back("line " + std::to_string(line) + ": " + text);
  }
  int line_of(const ShellToken& token) const { return first_line_ + token.line - 1; }

  std::string text_of(std::string_view word) { return joined(expand(word, true)); }
  static std::string joined(const Fields& fields) {
    std::string text;
    for (const std::string& field : fields) text += (text.empty() ? "" : " ") + field;
    return text;
  }

  /// The fields that a word stands for; as one where it is not split (an assignment).
  Fields expand(std::string_view text, bool is_whole = false) {
    Fields fields;
    std::optional<std::string> current;  // the field that is put together
    const auto add = [&](std::string_view value) {
      if (!current) current.emplace();
      current->append(value);
    };
    const auto finish = [&] {
      if (current) fields.push_back(std::move(*current));
      current.reset();
    };
    bool in_quotes = false;
    for (std::size_t at = 0; at < text.size();) {
      const char c = text[at];
      if (c == '\'' && !in_quotes) {
        const std::size_t begin = std::exchange(at, end_of_group(text, at));
        add(text.substr(begin + 1, at - begin - 2));
      } else if (c == '"') {
        in_quotes = !in_quotes;
        add(text.substr(at++, 0));
      } else if (c == '\\' && at + 1 < text.size()) {
        if (text[at + 1] != '\n') add(text.substr(at + 1, 1));
        at += 2;
      } else if (c == '`') {
        const std::size_t begin = std::exchange(at, end_of_group(text, at));
        add(output_of(text.substr(begin + 1)));
      } else if (c != '$') {
        add(text.substr(at++, 1));
      } else {
        bool is_list = false;
        const Fields values = parameter(text, at, is_list);
        for (const std::string& each : values) {
          const bool is_first = &each == &values.front();
          if (!is_first && is_whole) add(" ");
          if (!is_first && !is_whole) finish();
          expanded_ += each.size() + 1;
          const std::string_view value = expanded_ > most_expanded ? std::string_view() : each;
          if (in_quotes || is_whole || is_list) {
            add(value);
            continue;
          }
          for (std::size_t i = 0; i < value.size(); ++i)
            if (is_blank_character(value[i]))
              finish();
            else
              add(value.substr(i, 1));
        }
      }
    }
    if (is_whole) add({});
    finish();
    return fields;
  }

  /// A variable, or the argument of that number.
  Fields variable(const std::string& name) const {
    if (name.empty() || !is_digit_character(name[0])) return value_in(variables_, name, {});
    const Fields positional = value_in(variables_, "@", {});
    const long place = Arithmetic(name).value().value_or(0);
    if (place < 1 || place > std::ssize(positional)) return {};
    return {positional[static_cast<std::size_t>(place - 1)]};
  }

  /// "$(nvidia-smi)": stands for what a command prints, which is not known.
  static std::string output_of(std::string_view command) {
    command.remove_prefix(std::min(command.find_first_not_of(" \t\r\n"), command.size()));
    const std::size_t end = command.find_first_of(" \t\r\n|;&()<>{}\"'`$");
    return "$(" + std::string(command.substr(0, end)) + ")";
  }

  /// A sum that is not followed, cut where it is long.
  static std::string as_written(const std::string& sum) {
    constexpr std::size_t most = 60;
    return "$((" + (sum.size() > most ? sum.substr(0, most) + "…" : sum) + "))";
  }

  /// The value of the parameter, command or sum at text[at] == '$'; moves `at` beyond it.
  Fields parameter(std::string_view text, std::size_t& at, bool& is_list) {
    const std::size_t begin = at + 1;
    if (begin >= text.size()) {
      ++at;
      return {"$"};
    }
    if (text[begin] == '(') {
      at = end_of_group(text, begin);
      if (!text.substr(begin).starts_with("((")) return {output_of(text.substr(begin + 1))};
      const std::string sum = with_values(text.substr(begin + 2, at - begin - 4));
      if (const std::size_t part = sum.find('$'); is_unknown(sum))
        return {sum.substr(part, end_of_group(sum, part + 1) - part)};
      const std::optional<long> value = Arithmetic(sum).value();
      return {value ? std::to_string(*value) : as_written(sum)};
    }
    if (text[begin] == '{') {
      at = end_of_group(text, begin);
      return braced(text.substr(begin + 1, at - begin - 2), is_list);
    }
    at = std::max(begin + 1, end_of_name(text, begin));
    return braced(text.substr(begin, at - begin), is_list);
  }

  /// "${NAME:-default}" without its braces.
  Fields braced(std::string_view inner, bool& is_list) {
    const Nesting level(depth_);
    if (level.is_too_deep()) return {};
    if (inner.starts_with("#") && inner.size() > 1) {  // how many fields or characters
      const Fields counted = braced(inner.substr(1), is_list);
      return {
          std::to_string(std::exchange(is_list, false) ? counted.size() : joined(counted).size())};
    }
    const bool is_indirect = inner.starts_with("!");
    if (is_indirect) inner.remove_prefix(1);
    const std::size_t end = end_of_name(inner, 0);
    std::string name(inner == "@" || inner == "*" ? "@" : inner.substr(0, end));
    if (is_indirect) name = joined(variable(name));
    std::string_view rest = inner.substr(end);
    is_list = rest.starts_with("[@]") || rest.starts_with("[*]") || name == "@";
    Fields value = inner == "#" ? Fields{std::to_string(variable("@").size())} : variable(name);
    if (is_list && (rest.size() <= 3 || rest.find_first_of("+-") <= 4)) return value;
    if (rest.starts_with("[0]")) rest.remove_prefix(3);
    const bool tests_empty = rest.starts_with(":");
    const std::string_view operation = tests_empty ? rest.substr(1) : rest;
    if (value.size() > 1 && !is_list) value.resize(1);
    if (operation.empty() || operation[0] == '?' || inner == "#") return value;
    if (std::string_view("-=+").find(operation[0]) != std::string_view::npos) {
      const bool has_value = !value.empty() && !(tests_empty && value[0].empty());
      if (has_value != (operation[0] == '+')) return value;
      Fields other{text_of(operation.substr(1))};
      if (operation[0] == '=') variables_[name] = other;
      return other;
    }
    if (value.empty() || is_unknown(value[0])) return value;
    const auto result = is_list || is_indirect ? std::nullopt : edited(value[0], rest);
    if (result) return {*result};
    const std::string text = (is_indirect ? "${!" : "${") + std::string(inner) + "}";
    note(line_, text + " is not followed: write its value");
    return {text};  // of which no option can be read
  }

  /// `text` as "%.json", "##*/", "/a/b", ":0:3" or "^^" make it; none where that is not followed.
  std::optional<std::string> edited(const std::string& text, std::string_view operation) {
    const char kind = operation[0];
    const bool is_double = operation.size() > 1 && operation[1] == kind;
    const std::string_view rest = operation.substr(is_double ? 2 : 1);
    expanded_ += text.size() * text.size() / 64;  // of matches, each of which reads up to all of it
    if (expanded_ > most_expanded) return std::nullopt;
    if (kind == '#' || kind == '%') return trimmed(text, kind, is_double, text_of(rest));
    const std::size_t part = std::min(rest.find(kind), rest.size());
    const std::string_view first = rest.substr(0, part),
                           second = rest.substr(std::min(part + 1, rest.size()));
    if (kind == ':') {
      const long size = std::ssize(text);
      const auto offset = Arithmetic(with_values(first)).value();
      const long length = Arithmetic(with_values(second)).value().value_or(size);
      if (!offset) return std::nullopt;
      const long begin = *offset < 0 ? size + *offset : *offset;
      if (begin < 0 || begin > size) return "";
      const long end = std::clamp(length < 0 ? size + length : begin + length, begin, size);
      return std::string(text.begin() + begin, text.begin() + end);
    }
    std::string result;
    if (kind == '/' && !rest.starts_with("#") && !rest.starts_with("%")) {
      const std::string pattern = text_of(first), other = text_of(second);
      // Without "*" a match has at most the characters of the pattern.
      const bool is_short = pattern.find('*') == std::string::npos;
      if (!is_short && text.size() > longest_searched) return std::nullopt;
      bool is_done = pattern.empty();
      for (std::size_t at = 0; at < text.size();) {
        const std::string next = text.substr(at, is_short ? pattern.size() : text.size());
        const std::size_t left = is_done ? next.size() : trimmed(next, '#', true, pattern).size();
        const std::size_t matched = next.size() - left;
        result += matched > 0 ? other : next.substr(0, 1);
        at += std::max<std::size_t>(matched, 1);
        is_done = is_done || (matched > 0 && !is_double);
      }
      return result;
    }
    if ((kind != '^' && kind != ',') || !is_double || !rest.empty()) return std::nullopt;
    std::ranges::transform(text, std::back_inserter(result), [&](unsigned char c) {
      return static_cast<char>(kind == '^' ? std::toupper(c) : std::tolower(c));
    });
    return result;
  }

  /// `sum` with variables, bare or after "$", replaced by their values.
  std::string with_values(std::string_view sum) {
    const Nesting level(depth_);
    if (level.is_too_deep()) return "?";
    std::string text;
    for (std::size_t at = 0; at < sum.size();) {
      if (sum[at] == '$') {
        bool is_list = false;
        for (const std::string& value : parameter(sum, at, is_list)) text += value;
      } else if (is_name_character(sum[at]) && !is_digit_character(sum[at])) {
        const std::size_t begin = std::exchange(at, end_of_name(sum, at));
        for (const std::string& value : variable(std::string(sum.substr(begin, at - begin))))
          text += value;
      } else if (sum[at] == '"') {
        ++at;
      } else {
        text += sum[at++];
      }
    }
    return text;
  }

  /// Evaluates "[ a -eq b ]": comparisons joined by && and ||.
  bool truth_of(const Fields& words) {
    const bool has_bracket = words.back() == "]" || words.back() == "]]";
    Fields terms(words.begin() + 1, words.end() - (has_bracket ? 1 : 0));
    bool truth = true;
    bool joins_all = true;
    for (auto begin = terms.begin();; ++begin) {
      const auto end = std::find_if(begin, terms.end(), [](const std::string& word) {
        return is_one_of(word, {"&&", "||", "-a", "-o"});
      });
      const bool is_negated = begin != end && *begin == "!";
      const bool term = comparison(Fields(begin + (is_negated ? 1 : 0), end)) != is_negated;
      truth = joins_all ? truth && term : truth || term;
      if (end == terms.end()) return truth;
      joins_all = *end == "&&" || *end == "-a";
      begin = end;
    }
  }

  bool comparison(const Fields& terms) {
    if (terms.empty()) return false;
    const bool is_of_file = terms.size() == 2 && terms[0].size() == 2 && terms[0][0] == '-' &&
                            !is_one_of(terms[0], {"-z", "-n"});
    const bool is_comparison =
        terms.size() < 3 ||
        is_one_of(terms[1], {"=", "==", "!=", "-eq", "-ne", "-gt", "-ge", "-lt", "-le"});
    if (is_of_file || !is_comparison || std::ranges::any_of(terms, is_unknown))
      return decide(terms);
    if (terms[0] == "-z") return terms.size() < 2 || terms[1].empty();
    if (terms[0] == "-n") return terms.size() > 1 && !terms[1].empty();
    if (terms.size() == 1) return !terms[0].empty() && terms[0][0] != '-';
    // An operand that is empty and not in quotes is no word: "[ $X -eq 1 ]".
    const bool lacks_left = terms.size() == 2;
    const std::string left = lacks_left ? "" : terms[0], operation = terms[lacks_left ? 0 : 1];
    const std::string right = lacks_left ? terms[1] : terms.size() > 2 ? terms[2] : "";
    if (operation == "=" || operation == "==") return matches(right, left);
    if (operation == "!=") return !matches(right, left);
    const auto a = Arithmetic(left).value(), b = Arithmetic(right).value();
    if (!a || !b) return false;
    return (operation == "-eq" && *a == *b) || (operation == "-ne" && *a != *b) ||
           (operation == "-gt" && *a > *b) || (operation == "-ge" && *a >= *b) ||
           (operation == "-lt" && *a < *b) || (operation == "-le" && *a <= *b);
  }

  static bool starts_program(const std::string& word) {
    return word.ends_with(".py") || word == "torchrun" || word.starts_with("torch.distributed");
  }
  /// True for programs that srun and mpirun start, as far as the value of an option tells.
  static bool is_command(const std::string& word) {
    const std::string name = word.substr(word.rfind('/') + 1);
    return starts_program(word) || name.starts_with("python") ||
           is_one_of(name, {"bash", "sh", "deepspeed", "accelerate", "numactl"});
  }

  /// The settings of a command that starts a Python program, behind those of the srun or mpirun that it is part of.
  void add_program(const Fields& words, int line) {
    const std::vector<LaunchSetting> outer = launcher_;
    bool is_slurm = false, is_mpi = false;
    std::size_t of_launcher = 0;
    for (std::size_t& i = of_launcher; i < words.size() && !is_command(words[i]); ++i) {
      const std::string name = words[i].substr(words[i].rfind('/') + 1);
      is_slurm = is_slurm || name == "srun";
      is_mpi = is_mpi || name == "mpirun" || name == "mpiexec";
      if ((is_slurm || is_mpi) && words[i].starts_with("-"))
        launcher_.push_back(launcher_option(words, i, is_mpi, line));
    }
    if (!is_slurm && !is_mpi) of_launcher = 0;
    for (std::size_t i = 0; i < words.size(); ++i) {  // bash -c "torchrun …"
      const bool is_script = i > 0 && words[i - 1].starts_with("-") && words[i - 1].ends_with("c");
      if (words[i].find(' ') != std::string::npos &&
          (is_script || words[i].find(".py") != std::string::npos ||
           words[i].find("torchrun") != std::string::npos))
        run(words[i], line);
    }
    std::vector<LaunchSetting> settings = std::exchange(launcher_, outer);
    if (std::ranges::none_of(words, starts_program)) return;
    ++num_programs_;
    for (std::size_t i = of_launcher; i < words.size(); ++i) {
      const std::string& word = words[i];
      const std::size_t equals = word.find('=');
      const bool is_option = word.starts_with("--") && word.size() > 2;
      const bool is_hydra = !word.starts_with("-") && equals != std::string::npos && equals > 0 &&
                            word.find('.') < equals;
      if (is_hydra || (is_option && equals != std::string::npos)) {
        settings.push_back({without_dashes(word.substr(0, equals)), word.substr(equals + 1), line});
      } else if (is_option) {
        // "--vocab-size 128256" in quotes is one word.
        const std::size_t blank = std::min(word.find(' '), word.size());
        LaunchSetting setting{without_dashes(word.substr(0, blank)),
                              word.substr(std::min(blank + 1, word.size())), line};
        while (i + 1 < words.size() && !words[i + 1].starts_with("--") &&
               !starts_program(words[i + 1]))
          setting.value += (setting.value.empty() ? "" : " ") + words[++i];
        settings.push_back(std::move(setting));
      }
    }
    // Launcher options say how a program is started: they decide only between programs with as many options of their own.
    const auto amount = [](const std::vector<LaunchSetting>& of) {
      return std::pair(std::ranges::count(of, false, &LaunchSetting::is_of_launcher), of.size());
    };
    if (amount(settings) <= amount(program_)) return;
    program_ = std::move(settings);
    const auto file =
        std::ranges::find_if(words, [](const std::string& word) { return word.ends_with(".py"); });
    program_name_ = file == words.end() ? "" : file->substr(file->rfind('/') + 1);
  }

  std::vector<ShellToken> tokens_;
  std::size_t at_ = 0;
  int first_line_ = 1, line_ = 1, depth_ = 0;
  int num_loops_ = 0;          ///< around the statement
  bool is_condition_ = false;  ///< of an "if": what its commands answer decides
  bool is_function_ =
      false;  ///< the next "{ … }", which is read where it stands: what it shifts are arguments of its own
  std::vector<std::pair<bool, Fields>>
      groups_;  ///< "{ … }" around the statement, and the arguments before them
  int num_turns_ = 0, num_programs_ = 0;
  std::string leaves_;  ///< "break" or "continue", up to the end of the turn
  std::size_t assumed_;
  std::vector<LaunchTest> tests_;
  std::map<std::string, Fields> given_;  ///< variables of the call
  std::size_t expanded_ = 0;             ///< bytes, of all words so far
  std::map<std::string, Fields> variables_;
  std::vector<LaunchSetting> directives_;
  std::vector<LaunchSetting> launcher_;  ///< of the srun or mpirun whose program is read
  std::vector<LaunchSetting> program_;   ///< of the one with the most of its own
  std::string program_name_;
  std::vector<std::string> notes_;
  std::vector<LaunchVariable> unknown_variables_;
  std::vector<std::pair<int, std::string>> unknown_commands_;  ///< by line
};

/// True if nothing that could be a value follows `option` anywhere in the script but in comments.
bool lacks_value(const std::string& script, const std::string& option) {
  bool is_found = false;
  for (std::size_t at = script.find(option); at != std::string::npos;
       at = script.find(option, at + 1)) {
    const std::size_t line = at == 0 ? 0 : script.rfind('\n', at - 1) + 1;
    if (script[std::min(script.find_first_not_of(" \t", line), at)] == '#') continue;
    const std::size_t end = at + option.size(), next = script.find_first_not_of(" \t\r\n\\", end);
    if (next == end && next != std::string::npos && script.find_first_of("\"')}", end) != end)
      continue;  // a longer option, or "=" and a value
    const bool is_bare = next == std::string::npos || script.compare(next, 2, "--") == 0 ||
                         script.find_first_of("\"')};&|#", next) == next;
    if (!is_bare) return false;
    is_found = true;
  }
  return is_found;
}

}  // namespace

LaunchSettings read_launch_script(const SourceText& source, const std::string& arguments) {
  const auto read = [&](std::size_t assumed, const std::string& variable = {}) {
    ShellReader reader(source, arguments, assumed, variable);
    reader.run(source.text, 1);
    return reader.result();
  };
  LaunchSettings found = read(0);
  found.tests.resize(std::min(found.tests.size(), most_tests));
  for (LaunchTest& test : found.tests) {
    const LaunchSettings other = read(static_cast<std::size_t>(&test - found.tests.data()) + 1);
    for (const LaunchSettings* run : std::initializer_list<const LaunchSettings*>{&found, &other})
      for (const LaunchSetting& each : run->settings)
        if ((found.find(each.key) == nullptr) != (other.find(each.key) == nullptr) ||
            found.text(each.key) != other.text(each.key))
          test.keys.insert(each.key);
  }
  for (LaunchSetting& each : found.settings)
    each.lacks_value = each.value.empty() && lacks_value(source.text, "--" + each.written);
  const auto is_open = [](const LaunchSetting& setting) { return is_unknown(setting.value); };
  if (std::ranges::none_of(found.settings, is_open)) found.variables.clear();
  found.variables.resize(std::min(found.variables.size(), most_tests));
  std::map<std::string, std::set<std::string>>
      followers;  // variables that are known where this one is
  for (LaunchVariable& variable : found.variables) {
    const LaunchSettings other = read(0, variable.name);
    for (const LaunchSetting& each : found.settings)
      if (is_open(each) && other.text(each.key) != each.value) variable.keys.insert(each.key);
    for (const LaunchVariable& each : found.variables)
      if (std::ranges::count(other.variables, each.name, &LaunchVariable::name) == 0)
        followers[variable.name].insert(each.name);
  }
  // Of a chain "A=$(nproc); B=$A; OPTIONS=\"--x $B\"" the first one counts.
  for (LaunchVariable& variable : found.variables)
    std::erase_if(variable.keys, [&](const std::string& key) {
      return std::ranges::any_of(found.variables, [&](const LaunchVariable& each) {
        const bool precedes = followers[each.name].contains(variable.name) &&
                              !followers[variable.name].contains(each.name);
        return each.name != variable.name && each.keys.contains(key) &&
               (precedes || (each.is_word && !variable.is_word));
      });
    });
  return found;
}

}  // namespace windtunnel
