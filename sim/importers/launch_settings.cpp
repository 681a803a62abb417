#include "importers/launch_settings.hpp"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>

#include "core/json_number.hpp"

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

}  // namespace

std::string launch_key(std::string_view text) {
  std::string key(text.substr(std::min(text.find_first_not_of("-+"), text.size())));
  std::replace(key.begin(), key.end(), '_', '-');
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
  // ${a.b} is the value of another key; of a configuration that is included elsewhere, "training." stands before it.
  for (LaunchSetting& setting : found.settings) {
    if (!setting.value.starts_with("${") || !setting.value.ends_with("}")) continue;
    std::string key = launch_key(setting.value.substr(2, setting.value.size() - 3));
    if (key.starts_with("."))
      key = setting.key.substr(0, setting.key.rfind('.') + 1) + key.substr(1);
    if (key.starts_with("training.") && found.find(key) == nullptr) key.erase(0, 9);
    const LaunchSetting* const other = found.find(key);
    setting.value = other != nullptr && other != &setting ? other->value : "";
  }
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
