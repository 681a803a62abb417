#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <random>

#include "core/json_stream.hpp"
#include "core/json_value.hpp"
#include "core/testing.hpp"

// Python's json module is an independent reader of the same language: it must accept what we accept, and read the same from it.
namespace windtunnel {
namespace {

enum class Blanks { only, and_comments };

/// Texts drawn from the pieces of JSON. With the same seed they differ in comments alone.
class TextDrawer {
 public:
  TextDrawer(unsigned seed, Blanks blanks) : random_(seed), blanks_(blanks) {}

  std::string draw() { return value(0); }
  /// Some are JSON, most nearly are.
  std::string draw_spoiled() {
    std::string text = draw();
    for (std::size_t i = below(3); i > 0; --i) spoil(text);
    return text;
  }

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }
  const char* one_of(const std::vector<const char*>& pieces) {
    return pieces[below(pieces.size())];
  }

  std::string blank() {
    const std::string blank =
        one_of({"", "", "", "", " ", "\n", "\r\n", "\t", "/* * / // */", "// \xC3\xA9\n", "//\r"});
    return blanks_ == Blanks::only && blank.starts_with('/') ? " " : blank;
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
  Blanks blanks_;
};

class IgnoringListener final : public JsonListener {
  void on_object_begin() override {}
  void on_object_end() override {}
  void on_array_begin() override {}
  void on_array_end() override {}
  void on_key(std::string&) override {}
  void on_string(std::string&) override {}
  void on_number(const std::string&) override {}
  void on_word() override {}
};

bool is_streamed(const std::string& text) {
  TextInput input("t.json", text);
  IgnoringListener listener;
  try {
    stream_json(input, listener);
    return true;
  } catch (const InputError& error) {
    CHECK(error.problems().size() == 1);
    return false;
  }
}

/// The text of what was read; empty where there was a problem.
std::string read_back(const std::string& text) {
  Problems problems;
  const JsonValue value =
      parse_json(std::make_shared<SourceText>(SourceText{"f.json", text}), problems);
  for (const Problem& problem : problems.all()) {
    CHECK(problem.origin.line > 0);
    CHECK(problem.message.find("json.exception") == std::string::npos);
  }
  return problems.empty() ? pretty_text(value) : "";
}

std::string hexadecimal(const std::string& bytes) {
  constexpr const char* digits = "0123456789abcdef";
  std::string text = "x";  // so that no field of a line is empty
  for (const char byte : bytes)
    (text += digits[static_cast<unsigned char>(byte) >> 4]) += digits[byte & 15];
  return text;
}

/// Reads lines of whether a text was streamed, the text and what was read of it; says where Python's reader disagrees.
constexpr const char* python_reader = R"python(
import json, math, sys

class Problem(ValueError): pass

def integer(text):
    if not -2**63 <= int(text) < 2**63: problems.append(text)
    return int(text)

def number(text):
    value = float(text)
    if math.isinf(value): raise Problem(text)
    return int(value) if value and value.is_integer() else value  # large ones are written without ".0"

def constant(text): raise Problem(text)

def members(pairs):
    if len(dict(pairs)) < len(pairs): problems.append(pairs)
    return pairs

def read(text):
    value = json.loads(text.decode("utf-8-sig"), parse_int=integer, parse_float=number, parse_constant=constant,
                       object_pairs_hook=members)
    json.dumps(value, ensure_ascii=False).encode()  # half a surrogate pair is no text
    return repr(value)

for line in open(sys.argv[1]):
    streamed, text, ours = line.split()
    text, ours, problems = bytes.fromhex(text[1:]), bytes.fromhex(ours[1:]), []
    try: theirs = read(text)
    except ValueError: theirs = None
    if (streamed == "1") != (theirs is not None): sys.exit(f"accepted by one only: {text} ({line})")
    if theirs is None: continue
    if bool(ours) == bool(problems): sys.exit(f"duplicate keys and large integers are problems: {text}")
    if ours and theirs != read(ours): sys.exit(f"read differently: {text}, {ours}")
)python";

TEST_CASE("what Python's json module accepts is accepted and read as the same values") {
  const TemporaryFolder folder;
  TextDrawer drawer(11, Blanks::only);
  int num_accepted = 0, num_refused = 0;
  {
    std::ofstream lines(folder.path() / "texts");
    for (int i = 0; i < 20'000; ++i) {
      const std::string text = drawer.draw_spoiled();
      CAPTURE(text);
      const bool streamed = is_streamed(text);
      ++(streamed ? num_accepted : num_refused);
      lines << streamed << " " << hexadecimal(text) << " " << hexadecimal(read_back(text)) << "\n";
    }
  }
  const std::string script = folder.write("read.py", python_reader).string();
  CHECK(std::system(("python3 " + script + " " + (folder.path() / "texts").string()).c_str()) == 0);
  CHECK(num_accepted > 5'000);
  CHECK(num_refused > 5'000);
}

TEST_CASE("comments are read like blanks, and refused in a stream") {
  TextDrawer with(12, Blanks::and_comments), without(12, Blanks::only);
  int num_commented = 0;
  for (int i = 0; i < 5'000; ++i) {
    const std::string commented = with.draw(), plain = without.draw();
    CAPTURE(commented);
    CHECK(read_back(commented) == read_back(plain));
    if (commented == plain) continue;
    ++num_commented;
    CHECK_FALSE(is_streamed(commented));
  }
  CHECK(num_commented > 2'000);
}

TEST_CASE("every spoiled text with comments is read or told its problems") {
  TextDrawer drawer(13, Blanks::and_comments);
  for (int i = 0; i < 20'000; ++i) {
    const std::string text = drawer.draw_spoiled();
    CAPTURE(text);
    const std::string read = read_back(text);
    if (!read.empty()) CHECK(read_back(read) == read);
  }
}

}  // namespace
}  // namespace windtunnel
