#include "importers/launch_scenario.hpp"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <sstream>

#include "core/count_text.hpp"
#include "core/edit_distance.hpp"
#include "core/file_io.hpp"
#include "core/option_error.hpp"
#include "core/text_list.hpp"
#include "core/utf8.hpp"
#include "importers/base_platform.hpp"
#include "importers/log_text.hpp"
#include "report/number_text.hpp"

namespace windtunnel {
namespace {

std::string_view without_blanks(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r");
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r") - begin + 1);
}

std::string unquoted(std::string_view text) {
  text = without_blanks(text);
  const bool is_quoted = text.size() > 1 && (text.front() == '"' || text.front() == '\'') &&
                         text.back() == text.front();
  return std::string(is_quoted ? text.substr(1, text.size() - 2) : text);
}

/// `line` up to a "#" that begins a comment: outside quotes, at the beginning or after a blank.
std::string_view without_comment(std::string_view line) {
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == quote) quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) {
      return line.substr(0, i);
    }
  }
  return line;
}

/// Evaluates "${…}" of OmegaConf: values of other keys, and the resolvers of arithmetic that configurations register.
class Interpolation {
 public:
  explicit Interpolation(const LaunchSettings& settings) : settings_(settings) {}

  /// `text`, which is the value of `key` or part of it, with all of it evaluated; none where some cannot be.
  std::optional<std::string> of(std::string_view text, const std::string& key) {
    constexpr int deepest = 20, most = 1000;  // no configuration of a person goes beyond them
    if (depth_ > deepest || ++evaluated_ > most) return std::nullopt;
    std::string value;
    while (!text.empty()) {
      const std::size_t begin = std::min(text.find("${"), text.size());
      value += text.substr(0, begin);
      text.remove_prefix(begin);
      if (text.empty()) break;
      std::size_t end = 0;  // one beyond the "}" of this "${"; 0 where it has none
      int braces = 0;
      for (std::size_t i = 0; i < text.size() && end == 0; ++i) {
        braces += text[i] == '{';
        if (text[i] == '}' && --braces == 0) end = i + 1;
      }
      ++depth_;
      const auto part = end < 3 ? std::nullopt : inner(text.substr(2, end - 3), key);
      --depth_;
      if (!part) return std::nullopt;
      value += *part;
      text.remove_prefix(end);
    }
    return value;
  }

 private:
  std::optional<std::string> inner(std::string_view text, const std::string& key) {
    const std::size_t colon = text.find(':');
    if (colon == std::string_view::npos) return of_key(text, key);
    const std::string_view resolver = without_blanks(text.substr(0, colon));
    const auto arguments = of(text.substr(colon + 1), key);
    if (!arguments) return std::nullopt;
    std::vector<std::string> words;
    std::istringstream list(*arguments);
    for (std::string word; std::getline(list, word, ',');) words.push_back(unquoted(word));
    if (resolver == "oc.env")  // what the environment has is not known
      return words.size() > 1 ? std::optional(words[1]) : std::nullopt;
    if (resolver == "oc.decode" && words.size() == 1) return words.front();
    using Calculation = double (*)(double, double);
    static const std::pair<std::vector<std::string_view>, Calculation> calculations[]{
        {{"add", "sum"}, [](double a, double b) { return a + b; }},
        {{"sub", "subtract"}, [](double a, double b) { return a - b; }},
        {{"mul", "multiply", "prod"}, [](double a, double b) { return a * b; }},
        {{"div", "divide"}, [](double a, double b) { return a / b; }},
        {{"int_div", "floor_div", "divide_floor"},
         [](double a, double b) { return std::floor(a / b); }},
        {{"ceil_div", "divide_ceil"}, [](double a, double b) { return std::ceil(a / b); }},
        {{"max"}, [](double a, double b) { return std::max(a, b); }},
        {{"min"}, [](double a, double b) { return std::min(a, b); }}};
    const auto found = std::ranges::find_if(calculations, [&](const auto& each) {
      return std::ranges::count(each.first, resolver) > 0;
    });
    if (found == std::end(calculations) || words.empty()) return std::nullopt;
    double result = 0;
    for (const std::string& word : words) {
      const std::optional<double> number = number_in(word);
      if (!number) return std::nullopt;
      result = &word == &words.front() ? *number : found->second(result, *number);
    }
    constexpr double most_counted = 1e15;
    if (!(std::abs(result) < most_counted)) return std::nullopt;
    return result == std::floor(result) ? std::to_string(static_cast<long long>(result))
                                        : std::to_string(result);
  }

  /// ${a.b} from the root, ${.b} next to `from`, ${..b} next to what holds it. Of a configuration that is included elsewhere, "training." stands before it.
  std::optional<std::string> of_key(std::string_view name, const std::string& from) {
    const std::size_t dots = std::min(name.find_first_not_of('.'), name.size());
    std::string key = launch_key(name.substr(dots));
    if (dots > 0) {
      std::string holder = from;
      for (std::size_t i = 0; i < dots; ++i)
        holder.resize(holder.find('.') == std::string::npos ? 0 : holder.rfind('.'));
      key = holder.empty() ? key : holder + "." + key;
    }
    if (key.starts_with("training.") && settings_.find(key) == nullptr) key.erase(0, 9);
    const LaunchSetting* const other = settings_.find(key);
    return other == nullptr ? std::nullopt : of(other->value, key);
  }

  const LaunchSettings& settings_;
  int depth_ = 0, evaluated_ = 0;
};

/// "8" is a number, "true" a truth value, all else a text.
JsonValue value_of(const std::string& text) {
  if (text == "true" || text == "True") return JsonValue(true);
  if (text == "false" || text == "False") return JsonValue(false);
  if (const auto whole = whole_in(text)) return JsonValue(*whole);
  if (const auto number = number_in(text)) return JsonValue(*number);
  return JsonValue(text);
}

bool is_variable_name(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_';
  });
}

/// "WORLD_SIZE=2" of arguments that have it behind a word that is none: to a shell it is such a word, too.
std::string late_assignment(const std::string& arguments) {
  std::istringstream words(arguments);
  bool has_word = false;
  for (std::string word; words >> word;) {
    const std::size_t equals = word.find('=');
    const bool assigns = equals != std::string::npos && is_variable_name(word.substr(0, equals));
    if (assigns && has_word) return word;
    has_word = has_word || !assigns;
  }
  return {};
}

/// The vocabulary whose name is part of `text`; null: none is.
const JsonValue::Member* vocabulary_in(const std::string& text, const JsonValue::Object& known) {
  std::string name = lower_case(text);
  std::erase_if(name, [](char c) { return c == '-' || c == '_' || c == '.'; });
  const auto found = std::ranges::find_if(known, [&](const JsonValue::Member& each) {
    return name.find(each.key) != std::string::npos;
  });
  return found == known.end() ? nullptr : &*found;
}

/// Reads TOML 1.0 but for dates with a blank inside. Stops at what is none with an InputError, as a line that is passed over would be a setting that is lost.
class TomlReader {
 public:
  explicit TomlReader(const std::shared_ptr<const SourceText>& source)
      : source_(source), text_(source->text) {
    if (text_.starts_with("\xEF\xBB\xBF")) at_ = 3;  // a byte order mark
  }

  LaunchSettings read() {
    LaunchSettings found;
    std::string prefix;
    for (skip_lines(); at_ < text_.size(); skip_lines()) {
      if (take('[')) {
        const bool is_list = take('[');
        prefix = key() + ".";
        expect("]");
        if (is_list) expect("]");
      } else {
        LaunchSetting setting;
        setting.written = prefix + key();
        setting.line = line_;
        setting.key = launch_key(setting.written);
        expect("=");
        setting.value = unquoted(value());
        found.settings.push_back(std::move(setting));
      }
      skip_blanks();
      if (at_ < text_.size() && peek() != '\n')
        refuse("one setting a line, with nothing behind it");
    }
    return found;
  }

 private:
  char peek() const { return at_ < text_.size() ? text_[at_] : '\n'; }
  bool take(char expected) {
    if (peek() != expected || at_ >= text_.size()) return false;
    ++at_;
    return true;
  }
  /// Blanks and a comment.
  void skip_blanks() {
    while (at_ < text_.size() && (peek() == ' ' || peek() == '\t' || peek() == '\r')) ++at_;
    if (peek() == '#') at_ = std::min(text_.find('\n', at_), text_.size());
  }
  void skip_lines() {
    for (skip_blanks(); at_ < text_.size() && peek() == '\n'; skip_blanks()) ++at_, ++line_;
  }
  void expect(const char* character) {
    skip_blanks();
    if (!take(*character)) refuse(std::string("\"") + character + "\"");
  }

  /// Dotted, without dashes and quotes.
  std::string key() {
    std::string key;
    do {
      skip_blanks();
      if (peek() == '"' || peek() == '\'') {
        key += unquoted(quoted());
      } else {
        const std::size_t begin = at_;
        while (is_variable_name(text_.substr(at_, 1)) || peek() == '-') ++at_;
        if (at_ == begin) refuse("a key");
        key += text_.substr(begin, at_ - begin);
      }
      skip_blanks();
    } while (take('.') && (key += '.', true));
    return without_dashes(key);
  }

  /// As it is written, with its quotes.
  std::string_view quoted() {
    const std::size_t begin = at_;
    const int first_line = line_;
    const std::string_view quote(text_.substr(at_, 1)), triple = text_.substr(at_, 3);
    const bool is_long = triple.size() == 3 && triple.find_first_not_of(quote) == triple.npos;
    const std::string_view end = is_long ? triple : quote;
    for (at_ += end.size(); at_ < text_.size() && !text_.substr(at_).starts_with(end); ++at_) {
      if (peek() == '\\' && quote == "\"") ++at_;
      if (peek() == '\n' && !is_long) break;
      line_ += peek() == '\n';
    }
    if (at_ >= text_.size() || peek() == '\n') {
      at_ = begin, line_ = first_line;
      refuse(std::string(quote) + " at the end of a text as well");
    }
    at_ += end.size();
    return text_.substr(begin, at_ - begin);
  }

  /// As it is written; lists and tables on one line, without comments.
  std::string value() {
    constexpr int deepest = 100;
    skip_blanks();
    const std::size_t begin = at_;
    if (peek() == '"' || peek() == '\'') return std::string(quoted());
    std::string text(1, peek());
    if (++depth_ > deepest) refuse("fewer lists in lists");
    if (take('[')) {
      for (skip_lines(); !take(']'); skip_lines()) {
        text += value();
        skip_lines();
        if (take(','))
          text += ", ";
        else if (peek() != ']')
          refuse("\",\" or \"]\"");
      }
      text += ']';
    } else if (take('{')) {
      skip_blanks();
      for (bool is_first = true; !take('}'); is_first = false) {
        if (!is_first) expect(",");
        text += (is_first ? "" : ", ") + key() + " = ";
        expect("=");
        text += value();
        skip_blanks();
      }
      text += '}';
    } else {
      at_ = std::min(text_.find_first_of(" \t\r\n#,]}", at_), text_.size());
      std::string word(text_.substr(begin, at_ - begin)), digits = word;
      std::erase(digits, '_');
      const bool is_date = std::isdigit(static_cast<unsigned char>(word[0])) != 0 &&
                           digits.find_first_of(":-") != std::string::npos && !number_in(digits);
      const bool is_other_base =
          digits.starts_with("0x") || digits.starts_with("0o") || digits.starts_with("0b");
      const std::string_view unsigned_digits =
          std::string_view(digits).substr(digits.find_first_not_of("+-") == 1 ? 1 : 0);
      if (word != "true" && word != "false" && unsigned_digits != "inf" &&
          unsigned_digits != "nan" && !is_date && !is_other_base && !number_in(unsigned_digits)) {
        at_ = begin;
        refuse("a number, true, false, or a text in quotes");
      }
      if (digits.starts_with('+')) digits.erase(0, 1);
      text = whole_in(digits) ? digits : word;  // 8_192, +8192
      if (is_other_base) {
        const int base = digits[1] == 'x' ? 16 : digits[1] == 'o' ? 8 : 2;
        std::uint64_t whole = 0;
        const auto [last, error] =
            std::from_chars(digits.data() + 2, digits.data() + digits.size(), whole, base);
        if (error == std::errc{} && last == digits.data() + digits.size())
          text = std::to_string(whole);
      }
    }
    --depth_;
    return text;
  }

  [[noreturn]] void refuse(const std::string& expected) const {
    const std::size_t begin = at_ == 0 ? 0 : text_.rfind('\n', at_ - 1) + 1;
    const auto column = static_cast<std::int64_t>(at_ - begin) + 1;
    throw InputError({{{OriginKind::file, source_, line_, column, 1},
                       "",
                       "this is no TOML: " + expected + " is expected here",
                       ""}});
  }

  std::shared_ptr<const SourceText> source_;
  std::string_view text_;
  std::size_t at_ = 0;
  int line_ = 1, depth_ = 0;
};

int int_at(const JsonValue& tree, const std::string& pointer, int fallback) {
  const JsonValue* const value = find_at(tree, pointer);
  return value != nullptr && value->is_integer()
             ? static_cast<int>(std::clamp<std::int64_t>(std::get<std::int64_t>(value->content),
                                                         std::numeric_limits<int>::min(),
                                                         std::numeric_limits<int>::max()))
             : fallback;
}

/// Settings that say how many GPUs there are.
const std::vector<std::string>& counts_of_gpus() {
  static const std::vector<std::string> keys{"nnodes", "num-nodes", "nproc-per-node", "num-gpus",
                                             "devices"};
  return keys;
}

/// True if a launcher takes `text` for a number of nodes, processes or GPUs: "8", "1:4", "gpu", "[0, 1]", "-1".
bool is_count(std::string_view text) {
  static const std::vector<std::string_view> words{"", "gpu", "auto", "cpu", "xpu", "cuda", "-1"};
  return std::ranges::count(words, text) > 0 || text[0] == '[' ||
         (text[0] >= '0' && text[0] <= '9' && text.find('.') == std::string_view::npos);
}

/// " (NNODES=x of --args)" where a variable of the call has the value; else empty.
std::string given_as(const std::string& value, const std::string& arguments) {
  std::istringstream words(arguments);
  for (std::string word; words >> word;)
    if (word.ends_with("=" + value)) return " (" + word + " of --args)";
  return {};
}

/// What a message about a guessed vocabulary ends with.
constexpr const char* vocabulary_hint =
    "; padded-vocab-size in the file, or /model/vocab in the scenario, says it";

}  // namespace

bool is_unknown(std::string_view text) {
  return text.find("${") != std::string_view::npos || text.find("$(") != std::string_view::npos;
}

std::string without_dashes(std::string_view text) {
  return std::string(text.substr(std::min(text.find_first_not_of("-+"), text.size())));
}

std::string launch_key(std::string_view text) {
  std::string key = without_dashes(text);
  std::ranges::replace(key, '_', '-');
  return key;
}

const LaunchSetting* LaunchSettings::find(std::string_view key) const {
  const auto found = std::find_if(settings.rbegin(), settings.rend(),
                                  [&](const LaunchSetting& each) { return each.key == key; });
  return found == settings.rend() ? nullptr : &*found;
}

std::string LaunchSettings::text(std::string_view key) const {
  const LaunchSetting* const setting = find(key);
  return setting == nullptr ? "" : setting->value;
}

int LaunchSettings::number(std::string_view key) const {
  const std::string value = text(key);
  int number = 0;
  std::from_chars(value.data(), value.data() + value.size(), number);
  return std::max(number, 0);
}

bool LaunchSettings::is_on(std::string_view key) const {
  const LaunchSetting* const setting = find(key);
  return setting != nullptr && setting->value != "false" && setting->value != "False" &&
         setting->value != "0";
}

LaunchSettings read_yaml_settings(const SourceText& source, const std::string& arguments) {
  struct Level {
    std::size_t indent;
    std::string prefix;  ///< of its keys, with the dot
  };
  std::vector<Level> levels{{0, ""}};
  LaunchSettings found;
  std::size_t nothing_below =
      std::string::npos;  ///< indent of a text of several lines or an item of a list
  std::istringstream lines(source.text);
  std::string text_line;
  for (int number = 1; std::getline(lines, text_line); ++number) {
    const std::string_view line = without_comment(text_line);
    const std::string_view content = without_blanks(line);
    if (content.empty() || content == "---") continue;
    const std::size_t indent = line.find_first_not_of(' ');
    if (indent > nothing_below) continue;
    nothing_below = std::string::npos;
    if (content.front() == '-' && (content.size() == 1 || content[1] == ' ')) {
      nothing_below = indent;  // items of lists are no settings
      continue;
    }
    std::size_t colon = content.find(':');
    while (colon != std::string_view::npos && colon + 1 < content.size() &&
           content[colon + 1] != ' ')
      colon = content.find(':', colon + 1);
    if (colon == std::string_view::npos) continue;
    while (levels.size() > 1 && indent < levels.back().indent) levels.pop_back();
    if (indent == levels.back().indent || levels.size() == 1) levels.back().indent = indent;
    std::string key = levels.back().prefix;
    key += without_dashes(unquoted(content.substr(0, colon)));
    const std::string_view value = without_blanks(content.substr(colon + 1));
    if (value.empty()) {
      levels.push_back({indent + 1, key + "."});
      continue;
    }
    if (value.front() == '|' || value.front() == '>') nothing_below = indent;
    const std::string text = unquoted(value);
    found.settings.push_back({key, text == "null" || text == "~" ? "" : text, number});
  }
  LaunchSettings known = found;
  std::istringstream given(arguments);
  for (std::string word; given >> word;)
    if (const std::size_t equals = word.find('='); equals != std::string::npos)
      known.settings.push_back({word.substr(0, equals), word.substr(equals + 1)});
  for (LaunchSetting& setting : found.settings)
    if (const auto value = Interpolation(known).of(setting.value, setting.key))
      setting.value = *value;
  return found;
}

LaunchSettings read_toml_settings(const std::shared_ptr<const SourceText>& source) {
  return TomlReader(source).read();
}

LaunchSettings read_json_settings(const JsonValue& document) {
  LaunchSettings found;
  const auto add = [&](const auto& self, const JsonValue& value, const std::string& key) -> void {
    if (value.is_object()) {
      for (const JsonValue::Member& member : value.object())
        self(self, member.value, key + (key.empty() ? "" : ".") + without_dashes(member.key));
    } else {
      const std::string text = value.is_string() ? value.string() : canonical_text(value);
      found.settings.push_back(
          {key, text == "null" ? "" : text, static_cast<int>(value.origin.line)});
    }
  };
  add(add, document, "");
  return found;
}

LaunchScenario::LaunchScenario(const ImportRequest& request, const Library& library,
                               LaunchSettings settings, const detail::Asset& table)
    : request_(request), library_(library), settings_(std::move(settings)) {
  const JsonValue known = detail::parsed(table);
  const JsonValue::Array& harmless = known.find("harmless")->array();
  const auto is_harmless = [&](const LaunchSetting& setting) {
    return std::ranges::any_of(harmless, [&](const JsonValue& beginning) {
      return (setting.key + " " + setting.value).starts_with(beginning.string());
    });
  };
  const JsonValue* const refused = find_at(known, "/refused/options");
  std::vector<const LaunchSetting*> unknown;
  for (const LaunchSetting& each : settings_.settings)
    if (known.find("keys")->find(each.key) == nullptr && !is_harmless(each) &&
        (refused == nullptr || refused->find(each.key) == nullptr))
      unknown.push_back(&each);
  // Settings that are hardly anything but misspelt ones of the table: without them the run would be another one.
  std::vector<std::string> free;  // what the file gives in its own spelling is not given again
  for (const JsonValue::Member& member : known.find("keys")->object())
    if (settings_.find(member.key) == nullptr) free.push_back(member.key);
  std::vector<std::string> misspelt;
  for (const LaunchSetting* const each : unknown)
    if (const std::string meant = misspelt_match(each->key, free); !meant.empty())
      misspelt.push_back("line " + std::to_string(each->line) + ": " + each->written +
                         " is not known; did you mean " + written_like(*each, meant) + "?");
  if (!misspelt.empty())
    refuse(", " + joined(misspelt, "; "),
           "correct it, or take it out if it is an option of a program of your own");
  for (const char* const size : {"num-layers", "hidden-size"})
    for (const LaunchSetting* const each : unknown)
      if (settings_.find(size) == nullptr && closest_match(each->key, {size}) == size)
        near_sizes_ += "; did you mean " + written_like(*each, size) + " by " + each->written +
                       " " + each->value + " in line " + std::to_string(each->line) + "?";
  if (std::ranges::none_of(settings_.settings, [&](const LaunchSetting& each) {
        return !each.is_of_launcher() && std::ranges::count(counts_of_gpus(), each.key) == 0 &&
               (known.find("keys")->find(each.key) != nullptr || is_harmless(each));
      }))
    refuse(" has no settings of a training program" +
               (settings_.notes.empty() ? "" : "; " + listed(settings_.notes)),
           "give the script that starts it, with its options, or its configuration");
  imported_.notes = settings_.notes;
  std::vector<std::string> unused, no_counts;
  std::map<std::string, const LaunchSetting*> last;
  for (const LaunchSetting& setting : settings_.settings) last[setting.key] = &setting;
  for (const LaunchSetting& setting : settings_.settings) {
    if (last[setting.key] != &setting) continue;  // given again later
    if (const JsonValue* const meaning = known.find("keys")->find(setting.key))
      translate(setting, *meaning);
    else if (std::ranges::count(counts_of_gpus(), setting.key) > 0 && is_unknown(setting.value) &&
             !settings_.program.empty())
      unread_counts_.push_back(unread(setting));
    else if (std::ranges::count(counts_of_gpus(), setting.key) > 0 && is_unknown(setting.value))
      leave_out(setting, setting.key,
                setting.written + " " + setting.value + " cannot be evaluated");
    else if (request.options.gpus == 0 && !is_count(setting.value) && !is_unknown(setting.value) &&
             (std::ranges::count(counts_of_gpus(), setting.key) > 0 ||
              setting.key == "launcher-nodes" || setting.key == "launcher-ntasks"))
      no_counts.push_back("line " + std::to_string(setting.line) + ": " + setting.written + " " +
                          setting.value + " is no whole number" +
                          given_as(setting.value, request.options.arguments));
    else if (!is_harmless(setting))
      unused.push_back(setting.written + (setting.value.empty() ? "" : " " + setting.value));
  }
  if (!unused.empty()) note("not used, as no key of a scenario says it: " + listed(unused));
  refuse_unread(unread_);
  if (!no_values_.empty())
    refuse(", " + joined(no_values_, "; "), "write the value behind it, or take the option out");
  if (!no_counts.empty())
    refuse(", " + joined(no_counts, "; "), "write a number, or give --gpus N");
  for (const LaunchTest& test : settings_.tests) judge(test, *known.find("keys"));
  std::erase_if(settings_.settings, [&](LaunchSetting& each) {
    if (!is_unknown(each.value)) return false;
    each.value.clear();
    return settings_.program.empty();  // an option of a program is given, whatever it is
  });
  refuse_other_models(known.find("refused"));
  if (known.find("vocabularies") != nullptr && request.options.model.empty() &&
      !has("/model/vocab"))
    choose_vocabulary(known);
}

/// Models that no model file says, by the options or the program that are theirs; `import hf-config` refuses such models, too.
void LaunchScenario::refuse_other_models(const JsonValue* refused) const {
  if (refused == nullptr) return;
  const auto refuse_model = [&](const std::string& what, const std::string& why,
                                const std::string& hint =
                                    "only transformers whose layers all have attention and an MLP "
                                    "or experts can") {
    refuse(" trains a model with " + what + " (" + why + "), which cannot be simulated", hint);
  };
  for (const auto& [option, origin, what] : refused->find("options")->object())
    if (is_on(option)) refuse_model(what.string(), option);
  if (const std::string experts = text("num-experts"); experts.find(' ') != std::string::npos)
    refuse_model("layers that differ", "num-experts " + experts);
  for (const auto& [program, origin, what] : refused->find("programs")->object())
    if (settings_.program == program) refuse_model(what.string(), program);
  std::vector<std::string> sparse;
  for (const JsonValue& option : refused->find("sparse_attention")->array())
    if (is_on(option.string())) sparse.push_back(option.string());
  if (!sparse.empty())
    refuse_model("sparse attention", listed(sparse),
                 "take these options out to import the model with whole attention");
}

std::string LaunchScenario::written_like(const LaunchSetting& setting, std::string key) const {
  if (setting.written.find('_') != std::string::npos) std::ranges::replace(key, '-', '_');
  const bool is_option = !settings_.program.empty() && key.find('.') == std::string::npos;
  return (is_option ? "--" : "") + key;
}

void LaunchScenario::refuse(const std::string& message, const std::string& hint) const {
  throw option_error("import", request_.kind,
                     request_.inputs.front().string() + with_written_keys(message),
                     with_written_keys(hint));
}

std::string LaunchScenario::with_written_keys(std::string text) const {
  const auto is_part = [&](std::size_t at) {
    return at < text.size() && (text[at] == '-' || is_variable_name(text.substr(at, 1)));
  };
  for (const LaunchSetting& each : settings_.settings)
    for (std::size_t at = 0, size = each.key.size();
         each.written != each.key && (at = text.find(each.key, at)) != std::string::npos;
         at += size + 1)
      if ((at == 0 || !is_part(at - 1)) && !is_part(at + size))
        text.replace(at, size, each.written);
  return text;
}

void LaunchScenario::note_gpus(const std::string& text) {
  about_gpus_ += (about_gpus_.empty() ? "" : "; ") + text;
  note(text);
}

LaunchScenario::LeftOut LaunchScenario::unread(const LaunchSetting& setting) const {
  LeftOut result{setting.key,
                 "line " + std::to_string(setting.line) + ": " + setting.written + " " +
                     setting.value + " cannot be read",
                 {}};
  std::vector<std::string> lines;
  for (const LaunchVariable& each : settings_.variables) {
    if (!each.keys.contains(setting.key)) continue;
    lines.push_back("line " + std::to_string(each.line) + " sets " + each.name);
    if (each.is_word) result.variables.push_back(each.name);
  }
  if (!lines.empty()) result.text += " (" + listed(lines) + ")";
  return result;
}

/// Refuses a script with options whose values cannot be known, all at once.
void LaunchScenario::refuse_unread(const std::vector<LeftOut>& settings,
                                   const std::string& more) const {
  if (settings.empty()) return;
  const std::string given = variables_of(settings);
  refuse(", " + joined(settings, "; ", std::mem_fn(&LeftOut::text)),
         (given.empty() ? "write its value there, or ${NAME} and --args \"NAME=value\""
                        : "write the values there, or give --args \"" + given + "\"") +
             more);
}

void LaunchScenario::refuse_unread_counts(const std::vector<std::string>& keys) const {
  refuse_unread(those_of(keys, unread_counts_), ", or --gpus N");
}

std::vector<LaunchScenario::LeftOut> LaunchScenario::those_of(
    const std::vector<std::string>& pointers, std::vector<LeftOut> settings) {
  std::erase_if(settings, [&](const LeftOut& each) {
    return std::ranges::count(pointers, each.pointer) == 0;
  });
  return settings;
}

/// "NNODES=VALUE TP=VALUE" of the variables that would say `settings`.
std::string LaunchScenario::variables_of(const std::vector<LeftOut>& settings) {
  std::vector<std::string> words;
  for (const LeftOut& each : settings)
    for (const std::string& variable : each.variables)
      if (const std::string word = variable + "=VALUE"; std::ranges::count(words, word) == 0)
        words.push_back(word);
  return joined(words, " ");
}

std::string LaunchScenario::left_out(const std::vector<std::string>& pointers) const {
  const std::string texts = joined(pointers.empty() ? left_out_ : those_of(pointers, left_out_),
                                   "; ", std::mem_fn(&LeftOut::text));
  return texts.empty() ? "" : " (" + texts + ")";
}

std::string LaunchScenario::or_variables(const std::vector<std::string>& pointers) const {
  const std::string words = variables_of(those_of(pointers, left_out_));
  return words.empty() ? "" : ", or --args \"" + words + "\"";
}

void LaunchScenario::leave_out(const LaunchSetting& setting, const std::string& pointer,
                               const std::string& why) {
  // "TP" of "${TP}", which --args can give; empty: another expression.
  const std::size_t begin = setting.value.find("${"), end = setting.value.find('}');
  std::string variable;
  if (begin != std::string::npos && end != std::string::npos && end > begin)
    variable = setting.value.substr(begin + 2, end - begin - 2);
  if (!is_variable_name(variable)) variable.clear();
  left_out_.push_back(
      {pointer, "line " + std::to_string(setting.line) + ": " + why + ", and is left out", {}});
  if (!variable.empty()) left_out_.back().variables.push_back(variable);
  note(left_out_.back().text +
       (variable.empty() ? "" : ": --args \"" + variable + "=VALUE\" would say it"));
}

/// Refuses a script in which a setting depends on a value that cannot be known, and notes what else depends on such a test.
void LaunchScenario::judge(const LaunchTest& test, const JsonValue& meanings) {
  std::set<std::string> translated = test.keys;
  std::erase_if(translated, [&](const std::string& key) {
    const JsonValue* const meaning = meanings.find(key);
    return meaning == nullptr || (meaning->is_string() && meaning->string().empty());
  });
  const std::string line = "line " + std::to_string(test.line) + ": ";
  if (!translated.empty() && is_unknown(test.text))
    refuse(", " + line + listed(translated) + " depends on whether " + test.text +
               ", which cannot be known without running the script",
           test.variable.empty() ? "write the branch that is taken in place of the test"
                                 : "give --args \"" + test.variable + "=VALUE\"");
  if (!test.keys.empty() && (is_unknown(test.text) || !translated.empty()))
    note(line + "the test \"" + test.text + "\" is taken as false; it decides " +
         listed(test.keys));
}

/// "tokenizer-model /data/t.model" of the option that names the tokenizer; empty: none does.
std::string LaunchScenario::tokenizer() const {
  for (const char* key : {"tokenizer-model", "tokenizer-name-or-path", "tokenizer.model",
                          "tokenizer.name-or-path", "vocab-file"})
    if (const std::string name = text(key); !name.empty()) return key + (" " + name);
  return {};
}

/// The vocabulary whose name is in the options that name a tokenizer; it is a guess by the kind of tokenizer, the path that is loaded and the name of the file.
void LaunchScenario::choose_vocabulary(const JsonValue& table) {
  const std::string patch = text("patch-tokenizer-type");
  if (const JsonValue* const tokens = table.find("patch_tokenizers")->find(patch)) {
    const std::int64_t size = std::get<std::int64_t>(tokens->content) + number("extra-vocab-size");
    set("/model/vocab", size);
    set_default("/model/vocab_divisor", 1);
    return note("the size of the vocabulary, " + std::to_string(size) + " tokens, is that of " +
                patch + ", " + canonical_text(*tokens) + ", and extra-vocab-size");
  }
  if (number("extra-vocab-size") > 0)
    warn("extra-vocab-size " + text("extra-vocab-size") +
         " is not used: the size of the tokenizer that it is added to is not known" +
         vocabulary_hint);
  const auto is_kind = [](const LaunchSetting& setting) {  // not "tokenizer.type: org/model"
    return (setting.key.find("type") != std::string::npos ||
            setting.key.find("library") != std::string::npos) &&
           setting.value.find('/') == std::string::npos;
  };
  enum class Source { tokenizer, kind, other };
  struct Name {
    std::string key, text;
    Source source;
  };
  std::vector<Name> names;
  for (const char* beginning : {"tokenizer-m", "tokenizer-n", "tokenizer", "vocab-file"})
    for (const LaunchSetting& each : settings_.settings)
      if (each.key.starts_with(beginning) && !is_kind(each))
        names.push_back({each.key, each.value, Source::tokenizer});
  for (const char* beginning : {"tokenizer", "patch-tokenizer", "load"})
    for (const LaunchSetting& each : settings_.settings)
      if (each.key.starts_with(beginning))
        names.push_back({each.key, each.value, is_kind(each) ? Source::kind : Source::other});
  names.push_back({"the name", request_.inputs.front().filename().string(), Source::other});
  const JsonValue::Object& known = table.find("vocabularies")->object();
  const std::string named = tokenizer();
  const auto name = std::ranges::find_if(
      names, [&](const Name& each) { return vocabulary_in(each.text, known) != nullptr; });
  if (name == names.end()) return;
  const JsonValue::Member& found = *vocabulary_in(name->text, known);
  set("/model/vocab", JsonValue(found.value.content));
  const std::string size =
      "the size of the vocabulary, " + canonical_text(found.value) + " tokens, is ";
  const std::string origin = "that of " + found.key + ": " + name->key + " " + name->text;
  if (name->source == Source::tokenizer) return note(size + origin);
  std::vector<std::string> doubts;
  if (!named.empty()) doubts.push_back(named + " is not known");
  const JsonValue::Member* const loaded = vocabulary_in(text("load"), known);
  if (loaded != nullptr && canonical_text(loaded->value) != canonical_text(found.value))
    doubts.push_back("load " + text("load") + " is of " + loaded->key);
  const std::string guess = size + "a guess, " + origin +
                            (doubts.empty() ? "" : " (" + listed(doubts) + ")") + vocabulary_hint;
  return name->source == Source::kind && doubts.empty() ? note(guess) : warn(guess);
}

void LaunchScenario::translate(const LaunchSetting& setting, const JsonValue& meaning) {
  const std::string line = "line " + std::to_string(setting.line) + ": ",
                    text = setting.written + " " + setting.value;
  const bool is_as_it_is = meaning.is_string();
  if (is_as_it_is && meaning.string().empty()) return;
  const bool is_switch =
      meaning.is_object() && meaning.object().front().value.find("on") != nullptr;
  const bool is_of_program = !settings_.program.empty();  // its switches are on, whatever follows
  const bool is_open = is_unknown(setting.value) && !(is_switch && is_of_program);
  if (is_open && is_of_program) return unread_.push_back(unread(setting));
  const std::string pointer = is_as_it_is ? meaning.string() : meaning.object().front().key;
  if (is_open) return leave_out(setting, pointer, text + " cannot be evaluated");
  if (!is_switch && setting.lacks_value) {
    no_values_.push_back(line + "--" + setting.written + " has no value");
    return;
  }
  if (is_as_it_is && setting.value.empty())
    return leave_out(setting, pointer,
                     "the value of " + setting.written + " comes from outside the file");
  if (is_as_it_is) return set_from(setting.key, pointer, value_of(setting.value));
  const JsonValue& words = meaning.object().front().value;
  const JsonValue* value = words.find(setting.value);
  const bool is_off = setting.value == "false" || setting.value == "False";
  if (is_switch) value = words.find(is_off ? "off" : "on");
  if (is_switch && value == nullptr) return;
  if (value == nullptr) value = words.find("*");
  if (value == nullptr) return warn(line + text + " cannot be simulated, and is left out");
  if (!value->is_null()) set_from(setting.key, pointer, JsonValue(value->content));
}

int LaunchScenario::at(const std::string& pointer, int fallback) const {
  return int_at(tree_, pointer, fallback);
}

bool LaunchScenario::is(const std::string& pointer, std::string_view text) const {
  const JsonValue* const value = find_at(tree_, pointer);
  return value != nullptr && value->is_string() && value->string() == text;
}

int LaunchScenario::gpus(int said) const {
  const int gpus = request_.options.gpus > 0 ? request_.options.gpus : said;
  if (gpus > 0) return gpus;
  refuse_unread_counts(counts_of_gpus());
  refuse(" does not say how many GPUs it runs on" + left_out(counts_of_gpus()), how_to_give_gpus());
}

std::string LaunchScenario::how_to_give_gpus(const std::string& more) const {
  std::string hint = "give --gpus N" + more + or_variables(counts_of_gpus());
  const std::string late = late_assignment(request_.options.arguments);
  if (!late.empty())
    hint += "; " + late +
            " of --args is an argument of the script, as it follows others: write it before them "
            "to set the variable";
  return hint;
}

void LaunchScenario::note_other_nodes(int said, int gpus) {
  const int of_node = gpus_per_node();
  const bool is_one_node = gpus <= said && gpus < of_node;
  if (said < 1 || of_node < 1 || said == of_node || is_one_node) return;
  note_gpus("the file starts " + count_text(said, "GPU") + " per node, and a node of " +
            request_.options.base + " has " + std::to_string(of_node) + ": " +
            count_text(gpus, "GPU") + " are " +
            (gpus % of_node == 0 ? count_text(gpus / of_node, "node") + " here, not " +
                                       std::to_string(std::max(1, gpus / said))
                                 : "no whole nodes here"));
}

JsonValue LaunchScenario::model() const {
  const std::string& name = request_.options.model;
  if (!name.empty()) return file_of_option("--model", name, model_files, library_);
  const JsonValue* const said = find_at(tree_, "/model");
  return said == nullptr ? empty_object() : *said;
}

std::string LaunchScenario::family() const {
  const JsonValue of_model = model();
  const JsonValue* const said = of_model.find("family");
  if (said != nullptr && said->is_string()) return said->string();
  return of_model.find("gated_mlp") == nullptr ? "gpt" : "llama";
}

bool LaunchScenario::has_gated_mlp() const {
  const JsonValue of_model = model();
  const JsonValue* const said = of_model.find("gated_mlp");
  return said != nullptr && said->is_bool() && std::get<bool>(said->content);
}

/// The model that --model names, or the one whose sizes the file says.
void LaunchScenario::choose_model() {
  const std::string& named = request_.options.model;
  set_default("/model", empty_object());
  JsonValue model = *find_at(tree_, "/model");
  if (!named.empty()) {
    JsonValue whole = file_of_option("--model", named, model_files, library_);
    const int sequence = int_at(model, "/sequence", int_at(whole, "/sequence", 0));
    if (sequence == int_at(whole, "/sequence", 0)) return set("/model", absolute_if_path(named));
    add_members(whole, {{"sequence", sequence}});
    return set("/model", whole);
  }
  if (model.find("layers") == nullptr || model.find("hidden") == nullptr)
    refuse(" does not say the model's layers and hidden size" +
               left_out({"/model/layers", "/model/hidden"}) + near_sizes_,
           "give --model MODEL: a name that `windtunnel list models` prints, or a "
           "path (import hf-config makes such a file)" +
               or_variables({"/model/layers", "/model/hidden"}));
  add_members(model, {{"name", request_.output.stem().string()},
                      {"source", request_.kind + " settings of " +
                                     request_.inputs.front().filename().string()}});
  if (model.find("family") == nullptr) add_members(model, {{"family", family()}});
  if (model.find("vocab") != nullptr) return set("/model", model);
  // If several match, take the one with the same sequence: Llama 2 and 3 of 70 B differ in it.
  std::string alike;
  JsonValue vocabulary;
  for (const std::string& name : library_.names("models")) {
    const JsonValue known = file_of_option("--model", name, model_files, library_);
    const auto has_same = [&](const char* size, int otherwise) {
      return int_at(known, size, otherwise) == int_at(model, size, otherwise);
    };
    constexpr int most = 1 << 28;  // more than any model has
    const int hidden = std::min(int_at(model, "/hidden", 0), most);
    const int heads = int_at(model, "/heads", 0);
    const bool has_same_layers = has_same("/layers", 0) && has_same("/hidden", 0) &&
                                 has_same("/heads", 0) && has_same("/kv_heads", heads);
    const bool has_same_widths =
        int_at(model, "/moe/experts", 0) == 0
            ? has_same("/ffn_hidden", 4 * hidden)
            : has_same("/moe/ffn_hidden", 0) && has_same("/moe/shared_ffn_hidden", 0);
    const bool has_same_sizes =
        has_same_layers && has_same_widths && has_same("/moe/experts", 0) &&
        has_same("/mla/key_value_rank", 0) &&
        (model.find("mla") != nullptr || has_same("/head_size", hidden / std::max(1, heads)));
    if (!has_same_sizes || (!alike.empty() && !has_same("/sequence", 0))) continue;
    alike = name;
    vocabulary = *known.find("vocab");
  }
  // Tokenizers of GPT-2 (arXiv:2005.14165) and Llama 2 (arXiv:2307.09288).
  const int assumed = model.find("family")->string() == "llama" ? 32000 : 50257;
  model.set("vocab", alike.empty() ? json_of(assumed) : vocabulary);
  set("/model", model);
  const std::string named_one = tokenizer();
  const std::string unknown = named_one.empty() ? "" : " (" + named_one + " is not known)";
  if (!alike.empty())
    warn("the size of the vocabulary is a guess, that of " + alike +
         ", whose layers have the same sizes" + unknown + vocabulary_hint);
  else
    warn("the file does not say the size of the vocabulary" + unknown + "; " +
         count_text(assumed, "token") + " are assumed: see /model/vocab");
}

int LaunchScenario::gpus_per_node() const {
  const BasePlatform base(request_.options.base, library_);
  const std::vector<NodeType>& types = base.platform().node_types;
  return types.size() == 1 ? types.front().gpus : 0;
}

int LaunchScenario::gpus_of_replica() const {
  return std::max(
      1, at("/parallel/tensor", 1) * at("/parallel/pipeline", 1) * at("/parallel/context", 1));
}

bool LaunchScenario::has_experts() const { return model().find("moe") != nullptr; }

/// Puts the file, and the setting that the value follows from, before what is wrong with it.
void LaunchScenario::name_origin(Problem& problem) const {
  std::string place = request_.inputs.front().string();
  for (std::string at = problem.pointer; at.starts_with("/"); at.erase(at.rfind('/'))) {
    const auto origin = origins_.find(at);
    if (origin == origins_.end()) continue;
    if (const LaunchSetting* const setting = settings_.find(origin->second))
      place += ", line " + std::to_string(setting->line) + ", " + setting->written +
               (setting->value.empty() ? "" : " " + setting->value);
    break;
  }
  problem.message.insert(0, place + ": ");
}

Imported LaunchScenario::finish(const std::string& software, int gpus) {
  if (gpus % gpus_of_replica() != 0)
    refuse(": " + count_text(gpus, "GPU") + " are no multiple of " +
               std::to_string(gpus_of_replica()) + ", its tensor, pipeline and context degrees" +
               (about_gpus_.empty() ? "" : " (" + about_gpus_ + ")"),
           "give another --gpus N");
  choose_model();
  if (at("/parallel/virtual_pipeline", 1) > 1 && !has("/parallel/schedule"))
    set("/parallel/schedule", "interleaved_1f1b");
  if (at("/parallel/zero_stage", 0) == 3) erase("/parallel/overlap_gradient_reduce");  // always
  // Whole nodes where the GPUs are some; else the replicas alone.
  if (const int of_node = gpus_per_node(); of_node > 0 && gpus % of_node == 0)
    set("/nodes", gpus / of_node);
  else
    set("/parallel/data", gpus / gpus_of_replica());

  JsonValue document = object_of({{"version", 1}, {"name", request_.output.stem().string()}});
  document.set("model", *find_at(tree_, "/model"));
  add_members(document, {{"platform", absolute_if_path(request_.options.base)}});
  if (has("/nodes")) document.set("nodes", *find_at(tree_, "/nodes"));
  // The file's own statements about the stack are laid over the profile.
  JsonValue stack = object_of({{"extends", software}});
  if (const JsonValue* const own = tree_.find("software"))
    for (const JsonValue::Member& member : own->object()) stack.set(member.key, member.value);
  document.set("software", stack.object().size() > 1 ? stack : JsonValue(software));
  for (const char* block : {"training", "parallel"})
    if (const JsonValue* value = tree_.find(block)) document.set(block, *value);
  const Scenario scenario = [&] {
    try {
      return read_scenario(document, request_.output.parent_path(), library_);
    } catch (const InputError& error) {
      std::vector<Problem> problems = error.problems();
      for (Problem& problem : problems) name_origin(problem);
      problems.front().message +=
          left_out() + (about_gpus_.empty() ? "" : " (" + about_gpus_ + ")");
      if (request_.options.gpus == 0)
        problems.front().message += " (on " + count_text(gpus, "GPU") +
                                    ", as the file is read; --gpus N gives another number)";
      throw InputError(std::move(problems));
    }
  }();
  if (!has("/parallel/sequence_parallel") && scenario.plan.parallel.sequence_parallel)
    note("sequence_parallel is on, though the file does not say so: " +
         std::string(scenario.model.moe && scenario.plan.parallel.tensor > 1
                         ? "no stack runs experts with tensor parallelism otherwise"
                         : "it is the default of " + software));
  imported_.document = document;
  const double parameters = total_parameters(scenario.model);
  imported_.found = object_of({{"gpus", gpus}, {"parameters", parameters}, {"software", software}});
  imported_.text = file_name_of(request_.inputs.front()) + ": " + fixed_text(parameters / 1e9, 2) +
                   " billion parameters on " + count_text(gpus, "GPU") + "; `windtunnel run " +
                   request_.output.string() + "` simulates an iteration\n";
  return std::move(imported_);
}

}  // namespace windtunnel
