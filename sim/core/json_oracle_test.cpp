#include <doctest/doctest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>

#include "core/json_stream.hpp"
#include "core/json_value.hpp"

// nlohmann_json is an independent reader of the same language: it must accept what we accept, and read the same from it.
namespace windtunnel {
namespace {

using nlohmann::json;

/// Texts drawn from the pieces of JSON: some are JSON, most nearly are.
class TextDrawer {
 public:
  explicit TextDrawer(unsigned seed) : random_(seed) {}

  std::string draw() {
    std::string text = value(0);
    for (std::size_t i = below(3); i > 0; --i) spoil(text);
    return text;
  }

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }
  const char* one_of(const std::vector<const char*>& pieces) {
    return pieces[below(pieces.size())];
  }

  std::string blank() {
    return one_of(
        {"", "", "", "", " ", "\n", "\r\n", "\t", "/* * / // */", "// \xC3\xA9\n", "//\r"});
  }
  std::string string() {
    std::string text = "\"";
    for (std::size_t i = below(4); i > 0; --i)
      text += one_of({"a", "b", "\\n", "\\\"", "\\\\", "\\/", "\\u00e9", "\\uD83D\\uDE00",
                      "\\u0000", "\xC3\xA9", "\xF0\x9F\x98\x80", "\x7F", " ", "//", "{"});
    return text + '"';
  }
  std::string number() {
    return one_of({"0", "-0", "1", "-1", "0.1", "-0.0", "1e5", "1E+2", "2.50e-3", "1e400", "-1e400",
                   "1e-400", "4.9e-324", "123456789.125", "9223372036854775807",
                   "-9223372036854775808", "9223372036854775808", "0.30000000000000004"});
  }
  std::string list(char open, char close, int depth) {
    std::string text(1, open);
    const std::size_t size = below(4);
    for (std::size_t i = 0; i < size; ++i) {
      text += (i == 0 ? "" : ",") + blank();
      // Numbered keys do not meet again.
      if (open == '{') text += "\"" + std::to_string(i) + string().substr(1) + blank() + ":";
      text += value(depth + 1);
    }
    return text + blank() + close;
  }
  std::string value(int depth) {
    constexpr int deepest = 4;
    const std::size_t kind = below(depth < deepest ? 8 : 4);
    if (kind >= 6) return blank() + list('{', '}', depth) + blank();
    if (kind >= 4) return blank() + list('[', ']', depth) + blank();
    if (kind == 3) return blank() + one_of({"true", "false", "null"}) + blank();
    return blank() + (kind == 2 ? string() : number()) + blank();
  }
  void spoil(std::string& text) {
    const std::size_t at = below(text.size() + 1), length = 1 + below(3);
    switch (below(4)) {
      case 0:
        text.resize(at);
        break;
      case 1:
        text.erase(at, length);
        break;
      case 2:
        text.insert(at, one_of({"{",      "}",
                                "[",      "]",
                                ",",      ":",
                                "\"",     "\\",
                                "/",      "*",
                                "'",      "#",
                                "-",      "+",
                                ".",      "e",
                                "0",      "1",
                                "nul",    "NaN",
                                "\n",     "\xEF\xBB\xBF",
                                "\x01",   "\xED\xA0\x80",
                                "\xC3",   "\x80",
                                "\xF5",   "\\u",
                                "\\uDE00"}));
        break;
      default:
        text.insert(at, text.substr(below(text.size() + 1), length));
    }
  }

  std::mt19937 random_;
};

JsonValue value_of(const json& read) {
  switch (read.type()) {
    case json::value_t::boolean:
      return JsonValue(read.get<bool>());
    case json::value_t::number_integer:
    case json::value_t::number_unsigned:
      return JsonValue(read.get<std::int64_t>());
    case json::value_t::number_float:
      return JsonValue(read.get<double>());
    case json::value_t::string:
      return JsonValue(read.get<std::string>());
    case json::value_t::array: {
      JsonValue::Array array;
      for (const json& element : read) array.push_back(value_of(element));
      return JsonValue(std::move(array));
    }
    case json::value_t::object: {
      JsonValue value(JsonValue::Object{});
      for (const auto& [key, member] : read.items()) value.set(key, value_of(member));
      return value;
    }
    default:
      return {};
  }
}

/// Values equal to the kind and the sign of zero: canonical_text() writes 8.0 as 8, this as 8.0.
std::string exact_text(JsonValue value) {
  if (!value.is_object() && !value.is_array()) return pretty_text(value);
  std::string text;
  if (value.is_array())
    for (JsonValue& element : value.array()) text += exact_text(std::move(element)) + ",";
  else {
    auto& members = value.object();
    std::sort(members.begin(), members.end(),
              [](const auto& a, const auto& b) { return a.key < b.key; });
    for (auto& member : members)
      text += member.key + ":" + exact_text(std::move(member.value)) + ",";
  }
  return (value.is_array() ? "[" : "{") + text + "}";
}

TEST_CASE("what another reader accepts is accepted and read as the same values") {
  TextDrawer drawer(11);
  int num_accepted = 0, num_refused = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = drawer.draw();
    CAPTURE(text);
    Problems problems;
    const JsonValue ours =
        parse_json(std::make_shared<SourceText>(SourceText{"f.json", text}), problems);
    const json theirs = json::parse(text, nullptr, false, true);
    if (problems.empty()) {
      ++num_accepted;
      REQUIRE_FALSE(theirs.is_discarded());
      CHECK(exact_text(ours) == exact_text(value_of(theirs)));
      continue;
    }
    ++num_refused;
    // JSON to some, problems to us; the other reader does not look at the bytes of comments.
    const std::string& message = problems.all().front().message;
    const bool stricter = message.starts_with("duplicate key") ||
                          message.ends_with("is beyond the 64-bit integers") ||
                          message.ends_with("is not UTF-8 text");
    CHECK((stricter || theirs.is_discarded()));
  }
  CHECK(num_accepted > 5'000);
  CHECK(num_refused > 5'000);
}

class Deaf final : public JsonListener {
  void on_object_begin() override {}
  void on_object_end() override {}
  void on_array_begin() override {}
  void on_array_end() override {}
  void on_key(std::string&) override {}
  void on_string(std::string&) override {}
  void on_number(const std::string&) override {}
  void on_word() override {}
};

/// Nothing where the other reader ends early, at a number too large for it: to a stream that is a text.
std::optional<bool> is_json(const std::string& text) {
  try {
    return !json::parse(text).is_discarded();
  } catch (const json::out_of_range&) {
    return std::nullopt;
  } catch (const json::parse_error&) {
    return false;
  }
}

TEST_CASE("a stream is refused where another reader refuses it without comments") {
  TextDrawer drawer(12);
  int num_accepted = 0;
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = drawer.draw();
    CAPTURE(text);
    TextInput input("t.json", text);
    Deaf listener;
    bool accepted = true;
    try {
      stream_json(input, listener);
    } catch (const InputError&) {
      accepted = false;
    }
    num_accepted += accepted ? 1 : 0;
    CHECK(accepted == is_json(text).value_or(accepted));
  }
  CHECK(num_accepted > 2'000);
}

}  // namespace
}  // namespace windtunnel
