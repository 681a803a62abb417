#include "importers/launch_settings.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json_value.hpp"
#include "importers/log_text.hpp"

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
      const std::size_t end = end_of(text);
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
  /// One beyond the "}" of the "${" that `text` begins with; 0 where it has none.
  static std::size_t end_of(std::string_view text) {
    int depth = 0;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '{') ++depth;
      if (text[i] == '}' && --depth == 0) return i + 1;
    }
    return 0;
  }

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
    Calculation calculation = nullptr;
    for (const auto& [names, of_names] : calculations)
      if (std::ranges::count(names, resolver) > 0) calculation = of_names;
    if (calculation == nullptr || words.empty()) return std::nullopt;
    double result = 0;
    for (const std::string& word : words) {
      const std::optional<double> number = number_in(word);
      if (!number) return std::nullopt;
      result = &word == &words.front() ? *number : calculation(result, *number);
    }
    constexpr double most_counted = 1e15;
    if (!(std::abs(result) < most_counted)) return std::nullopt;
    return result == std::floor(result) ? std::to_string(static_cast<long long>(result))
                                        : std::to_string(result);
  }

  /// ${a.b} from the root, ${.b} beside `from`, ${..b} beside what holds it. Of a configuration that is included elsewhere, "training." stands before it.
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

}  // namespace

std::string launch_key(std::string_view text) {
  std::string key(text.substr(std::min(text.find_first_not_of("-+"), text.size())));
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

LaunchSettings read_yaml_settings(const SourceText& source) {
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
    const std::string key = levels.back().prefix + launch_key(unquoted(content.substr(0, colon)));
    const std::string_view value = without_blanks(content.substr(colon + 1));
    if (value.empty()) {
      levels.push_back({indent + 1, key + "."});
      continue;
    }
    if (value.front() == '|' || value.front() == '>') nothing_below = indent;
    const std::string text = unquoted(value);
    found.settings.push_back({key, text == "null" || text == "~" ? "" : text, number});
  }
  for (LaunchSetting& setting : found.settings)
    if (const auto value = Interpolation(found).of(setting.value, setting.key))
      setting.value = *value;
  return found;
}

LaunchSettings read_toml_settings(const SourceText& source) {
  LaunchSettings found;
  std::string prefix;
  bool in_list = false;  // that began on an earlier line
  std::istringstream lines(source.text);
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    const std::string_view content = without_blanks(without_comment(line));
    if (in_list) {
      in_list = !content.ends_with("]");
      continue;
    }
    if (content.empty()) continue;
    if (content.front() == '[') {
      const std::size_t begin = content.find_first_not_of("[ "), end = content.find(']');
      if (begin < end && end != std::string_view::npos)
        prefix = launch_key(content.substr(begin, end - begin)) + ".";
      continue;
    }
    const std::size_t equals = content.find('=');
    if (equals == std::string_view::npos) continue;
    std::string value = unquoted(content.substr(equals + 1));
    if (value.find_first_not_of("0123456789_") == std::string::npos)  // 8_192
      std::erase(value, '_');
    in_list = value.starts_with("[") && !value.ends_with("]");
    found.settings.push_back(
        {prefix + launch_key(unquoted(content.substr(0, equals))), value, number});
  }
  return found;
}

LaunchSettings read_json_settings(const JsonValue& document) {
  LaunchSettings found;
  const auto add = [&](const auto& self, const JsonValue& value, const std::string& key) -> void {
    if (value.is_object()) {
      for (const JsonValue::Member& member : value.object())
        self(self, member.value, key + (key.empty() ? "" : ".") + launch_key(member.key));
    } else {
      const std::string text = value.is_string() ? value.string() : canonical_text(value);
      found.settings.push_back(
          {key, text == "null" ? "" : text, static_cast<int>(value.origin.line)});
    }
  };
  add(add, document, "");
  return found;
}

}  // namespace windtunnel
