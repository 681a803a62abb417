#include "importers/launch_settings.hpp"

#include <algorithm>
#include <charconv>
#include <optional>
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

/// "num_layers", "--num-layers" and "++num-layers" are one key.
std::string normal_key(std::string_view text) {
  std::string key(text.substr(std::min(text.find_first_not_of("-+"), text.size())));
  std::replace(key.begin(), key.end(), '_', '-');
  return key;
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

/// Calls visit(number, line) for each line of `text`.
template <class Visit>
void for_each_line(std::string_view text, const Visit& visit) {
  for (int number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    visit(number, text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

const LaunchSetting* LaunchSettings::find(const std::string& key) const {
  const auto found = std::find_if(settings.rbegin(), settings.rend(),
                                  [&](const LaunchSetting& each) { return each.key == key; });
  return found == settings.rend() ? nullptr : &*found;
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
  for_each_line(source.text, [&](int number, std::string_view line) {
    line = without_comment(line);
    const std::string_view content = without_blanks(line);
    if (content.empty() || content == "---") return;
    const std::size_t indent = line.find_first_not_of(' ');
    if (indent > nothing_below) return;
    nothing_below = std::string::npos;
    if (content.front() == '-' && (content.size() == 1 || content[1] == ' ')) {
      nothing_below = indent;  // items of lists are no settings
      return;
    }
    std::size_t colon = content.find(':');
    while (colon != std::string_view::npos && colon + 1 < content.size() &&
           content[colon + 1] != ' ')
      colon = content.find(':', colon + 1);
    if (colon == std::string_view::npos) return;
    while (levels.size() > 1 && indent < levels.back().indent) levels.pop_back();
    if (indent == levels.back().indent || levels.size() == 1) levels.back().indent = indent;
    const std::string key = levels.back().prefix + normal_key(unquoted(content.substr(0, colon)));
    const std::string_view value = without_blanks(content.substr(colon + 1));
    if (value.empty()) {
      levels.push_back({indent + 1, key + "."});
      return;
    }
    if (value.front() == '|' || value.front() == '>') nothing_below = indent;
    const std::string text = unquoted(value);
    found.settings.push_back({key, text == "null" || text == "~" ? "" : text, number});
  });
  // ${a.b} is the value of another key; of a configuration that is included elsewhere, "training." stands before it.
  for (LaunchSetting& setting : found.settings) {
    if (!setting.value.starts_with("${") || !setting.value.ends_with("}")) continue;
    std::string key = normal_key(setting.value.substr(2, setting.value.size() - 3));
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
  for_each_line(source.text, [&](int number, std::string_view line) {
    const std::string_view content = without_blanks(without_comment(line));
    if (in_list) {
      in_list = !content.ends_with("]");
      return;
    }
    if (content.empty()) return;
    if (content.front() == '[') {
      const std::size_t begin = content.find_first_not_of("[ "), end = content.find(']');
      if (begin < end && end != std::string_view::npos)
        prefix = normal_key(content.substr(begin, end - begin)) + ".";
      return;
    }
    const std::size_t equals = content.find('=');
    if (equals == std::string_view::npos) return;
    const std::string value = unquoted(content.substr(equals + 1));
    in_list = value.starts_with("[") && !value.ends_with("]");
    found.settings.push_back(
        {prefix + normal_key(unquoted(content.substr(0, equals))), value, number});
  });
  return found;
}

LaunchSettings read_json_settings(const JsonValue& document) {
  LaunchSettings found;
  const auto add = [&](const auto& self, const JsonValue& value, const std::string& key) -> void {
    if (value.is_object()) {
      for (const JsonValue::Member& member : value.object())
        self(self, member.value, key + (key.empty() ? "" : ".") + normal_key(member.key));
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
