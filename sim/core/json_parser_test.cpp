#include <doctest/doctest.h>

#include "core/json_value.hpp"

namespace windtunnel {
namespace {

std::shared_ptr<const SourceText> source_of(std::string text) {
  return std::make_shared<SourceText>(SourceText{"f.json", std::move(text)});
}

JsonValue parsed(const std::string& text) {
  Problems problems;
  JsonValue value = parse_json(source_of(text), problems);
  for (const Problem& problem : problems.all()) FAIL_CHECK(to_text(problem));
  return value;
}

/// The first line of each problem of `text`, without the file's name.
std::string complaints(const std::string& text) {
  Problems problems;
  parse_json(source_of(text), problems);
  std::string all;
  for (const Problem& problem : problems.all()) {
    const std::string line = to_text(problem).substr(std::string("f.json:").size());
    all += (all.empty() ? "" : "\n") + line.substr(0, line.find('\n'));
  }
  return all;
}

/// "line:column+length" of the value at `pointer`.
std::string place(JsonValue& root, std::string_view pointer) {
  const JsonValue* value = find_at(root, pointer);
  REQUIRE(value != nullptr);
  return std::to_string(value->origin.line) + ":" + std::to_string(value->origin.column) + "+" +
         std::to_string(value->origin.length);
}

TEST_CASE("every kind of value is read as what it is") {
  const JsonValue value =
      parsed(R"({"n": null, "b": true, "i": -8, "d": 2.5, "s": "x", "a": [1], "o": {}})");
  CHECK(value.find("n")->kind_name() == "null");
  CHECK(value.find("b")->kind_name() == "a boolean");
  CHECK(value.find("i")->kind_name() == "an integer");
  CHECK(value.find("d")->kind_name() == "a number");
  CHECK(value.find("s")->kind_name() == "a string");
  CHECK(value.find("a")->kind_name() == "an array");
  CHECK(value.find("o")->kind_name() == "an object");
}

TEST_CASE("8 is an integer and 8.0 and 8e0 are other numbers") {
  const JsonValue value = parsed("[8, 8.0, 8e0, -0]");
  CHECK(value.array()[0].is_integer());
  CHECK_FALSE(value.array()[1].is_integer());
  CHECK_FALSE(value.array()[2].is_integer());
  CHECK(value.array()[3].is_integer());
}

TEST_CASE("the extremes of 64 bits are integers") {
  const JsonValue value = parsed("[9223372036854775807, -9223372036854775808]");
  CHECK(std::get<std::int64_t>(value.array()[0].content) == INT64_MAX);
  CHECK(std::get<std::int64_t>(value.array()[1].content) == INT64_MIN);
}

TEST_CASE("objects keep the order of their keys") {
  const JsonValue value = parsed(R"({"z": 1, "a": 2, "m": 3})");
  CHECK(value.object()[0].key == "z");
  CHECK(value.object()[1].key == "a");
  CHECK(value.object()[2].key == "m");
}

TEST_CASE("values know their places past comments of both kinds") {
  JsonValue value = parsed(
      "// first, a: comment\n"
      "{ /* with { and \" */ \"a\" /*:*/ : /* , */ 12,\n"
      "  \"list\": [true, /* x\n y */ \"s\"] // end\n"
      "}\n");
  CHECK(place(value, "") == "2:1+1");
  CHECK(place(value, "/a") == "2:42+2");
  CHECK(place(value, "/list") == "3:11+1");
  CHECK(place(value, "/list/0") == "3:12+4");
  CHECK(place(value, "/list/1") == "4:7+3");
}

TEST_CASE("keys know their places") {
  const JsonValue value = parsed("{\"a\": {\n  \"inner\": 1}}");
  const JsonValue::Member& inner = value.find("a")->object()[0];
  CHECK(inner.key_origin.line == 2);
  CHECK(inner.key_origin.column == 3);
  CHECK(inner.key_origin.length == 7);  // with its quotes
}

TEST_CASE("columns count a tab as one and a letter of two bytes as one") {
  JsonValue value = parsed("{\t\"\xC3\xA9\": \"\xE2\x82\xAC\xF0\x9F\x98\x80\", \"b\": 1}");
  CHECK(place(value, "/\xC3\xA9") == "1:8+4");
  CHECK(place(value, "/b") == "1:19+1");
}

TEST_CASE("lines that end with carriage return and line feed count once") {
  JsonValue value = parsed("{\r\n  \"a\": 1, // x\r\n  \"b\": 2\r\n}\r\n");
  CHECK(place(value, "/a") == "2:8+1");
  CHECK(place(value, "/b") == "3:8+1");
}

TEST_CASE("the byte order mark is accepted and has no width") {
  JsonValue value = parsed("\xEF\xBB\xBF{\"a\": 1}");
  CHECK(place(value, "") == "1:1+1");
  CHECK(place(value, "/a") == "1:7+1");
}

TEST_CASE("escaped quotes do not disturb the places behind them") {
  JsonValue value = parsed(R"({"a\"b\\": "\u00e9\"//", "c": -0, "d": 1.50e+3})");
  CHECK(value.object()[0].key == "a\"b\\");
  CHECK(value.object()[0].value.string() == "\xC3\xA9\"//");
  CHECK(place(value, "/c") == "1:31+2");
  CHECK(place(value, "/d") == "1:40+7");
}

TEST_CASE("the origin says file or command line as asked") {
  Problems problems;
  CHECK(parse_json(source_of("1"), problems).origin.kind == OriginKind::file);
  CHECK(parse_json(source_of("1"), problems, OriginKind::command_line).origin.kind ==
        OriginKind::command_line);
}

TEST_CASE("a duplicate key is a problem that shows both places and the first is kept") {
  Problems problems;
  const JsonValue value = parse_json(
      source_of("{\"parallel\": {\n  \"tensor\": 8,\n  \"tensor\": 4, \"pipeline\": 2}}"),
      problems);
  REQUIRE(problems.size() == 1);
  CHECK(to_text(problems.all()[0]) ==
        "f.json:3:3: error: duplicate key \"tensor\" at /parallel (first at 2:3)\n"
        "   3 |   \"tensor\": 4, \"pipeline\": 2}}\n"
        "     |   ^~~~~~~~");
  CHECK(canonical_text(value) == R"({"parallel":{"pipeline":2,"tensor":8}})");
}

TEST_CASE("each duplicate is reported") {
  CHECK(complaints("{\"a\": 1, \"a\": {\"b\": 1, \"b\": 2}, \"a\": 3}") ==
        "1:10: error: duplicate key \"a\" (first at 1:2)\n"
        "1:24: error: duplicate key \"b\" at /a (first at 1:16)\n"
        "1:33: error: duplicate key \"a\" (first at 1:2)");
}

TEST_CASE("numbers that cannot be held are problems") {
  CHECK(complaints("{\"a\": [9223372036854775808]}") ==
        "1:8: error: 9223372036854775808 is beyond the 64-bit integers at /a/0 "
        "(the largest is 9223372036854775807)");
  CHECK(complaints("[-9223372036854775809]") ==
        "1:2: error: -9223372036854775809 is beyond the 64-bit integers at /0 "
        "(the largest is 9223372036854775807)");
  CHECK(complaints("{\"a\": 1e999}") ==
        "1:7: error: 1e999 is too large for a number at /a (the largest is about 1.8e308)");
}

TEST_CASE("an integer that cannot be held does not hide the mistakes behind it") {
  CHECK(complaints("[9223372036854775808,\n -9223372036854775809, 2") ==
        "1:2: error: 9223372036854775808 is beyond the 64-bit integers at /0 "
        "(the largest is 9223372036854775807)\n"
        "2:2: error: -9223372036854775809 is beyond the 64-bit integers at /1 "
        "(the largest is 9223372036854775807)\n"
        "1:1: error: this array is never closed (add ] at its end)");
}

TEST_CASE("a comma before a closing bracket is pointed at") {
  CHECK(complaints("{\"a\": 1,}") ==
        "1:8: error: JSON allows no comma before } (remove the comma)");
  CHECK(complaints("[1, 2, // two\n]") ==
        "1:6: error: JSON allows no comma before ] (remove the comma)");
}

TEST_CASE("words that are no JSON are told what to be") {
  CHECK(complaints("[NaN]") == "1:2: error: NaN is not a JSON number (write a finite number)");
  CHECK(complaints("[-Infinity]") ==
        "1:2: error: -Infinity is not a JSON number (write a finite number)");
  CHECK(complaints("[True]") == "1:2: error: True is not a JSON word (write true)");
  CHECK(complaints("[None]") == "1:2: error: None is not a JSON word (write null)");
  CHECK(complaints("{\"a\": gelu}") == "1:7: error: gelu needs double quotes (write \"gelu\")");
  CHECK(complaints("{\"a\": 80GB}") == "1:7: error: 80GB needs double quotes (write \"80GB\")");
  for (const char* text : {"base_model: a\nbf16: true\n", "train_batch_size: 8\n", "---\na: 1\n"})
    CHECK(complaints(text) ==
          "1:1: error: this is YAML, and only JSON is read here (convert it to JSON; settings of "
          "NeMo or Megatron-LM: windtunnel import nemo or megatron)");
  CHECK(complaints("# our run\na: 1\n")
            .starts_with("1:1: error: # opens no comment in JSON, but // does (is it YAML? convert "
                         "it to JSON; "));
  CHECK(complaints("id,gpus\na,8\n") ==
        "1:1: error: this is CSV, and only JSON is read here (a file of JSON begins with {)");
  CHECK(complaints("{a: 1}") == "1:2: error: a needs double quotes (write \"a\")");
  CHECK(complaints("{1: 2}") == "1:2: error: key 1 needs double quotes (write \"1\")");
}

TEST_CASE("numbers in another language are told how JSON writes them") {
  CHECK(complaints("[01]") == "1:2: error: 01 is not a JSON number (leave out the leading zero)");
  CHECK(complaints("[+1]") == "1:2: error: +1 is not a JSON number (leave out the +)");
  CHECK(complaints("[.5]") == "1:2: error: .5 is not a JSON number (write 0.5)");
  CHECK(complaints("[5.]") == "1:2: error: 5. is not a JSON number (write 5.0)");
  CHECK(complaints("[0x1F]") == "1:2: error: 0x1F is not a JSON number (write it in decimal)");
  CHECK(complaints("[1.5.2]") == "1:2: error: 1.5.2 is not a JSON number");
  CHECK(complaints("[-]") == "1:2: error: - is not a JSON number");
}

TEST_CASE("missing punctuation is named") {
  CHECK(complaints("{\"a\": 1 \"b\": 2}") ==
        "1:9: error: a comma is missing before \"b\" (write , between values)");
  CHECK(complaints("[1 2]") == "1:4: error: a comma is missing before 2 (write , between values)");
  CHECK(complaints("{\"a\" 1}") ==
        "1:6: error: a colon is missing before 1 (write \"key\": value)");
  CHECK(complaints("{\"a\": }") == "1:7: error: a value is missing before }");
  CHECK(complaints("[1,,2]") == "1:4: error: a value is missing before ,");
  CHECK(complaints("{\"a\":: 1}") == "1:6: error: : is not expected here");
}

TEST_CASE("what is never closed is shown where it opens") {
  CHECK(complaints("{\"a\": {\n\"b\": 1\n") ==
        "1:7: error: this object is never closed at /a (add } at its end)");
  CHECK(complaints("[1, [2]") == "1:1: error: this array is never closed (add ] at its end)");
  CHECK(complaints("[\"abc\n]") == "1:2: error: this string is never closed (add \" at its end)");
  CHECK(complaints("[\"abc\\\"") == "1:2: error: this string is never closed (add \" at its end)");
  CHECK(complaints("[1 /* x") == "1:4: error: this comment is never closed (add */ at its end)");
  CHECK(complaints("{\"a\": [1}") == "1:9: error: an array cannot end with } at /a (write ])");
}

TEST_CASE("foreign quotes and comments are told ours") {
  CHECK(complaints("['a']") == "1:2: error: ' does not open a string (strings need double quotes)");
  CHECK(complaints("[1 # c\n]") == "1:4: error: # does not open a comment (write // instead)");
}

TEST_CASE("bad escapes and raw control characters in strings are problems") {
  CHECK(complaints(R"(["a\q"])") ==
        R"(1:4: error: \q means nothing in a JSON string (a backslash is written \\))");
  CHECK(complaints(R"({"a": "\u00g9"})") == R"(1:8: error: \u needs four hexadecimal digits)");
  for (const char* half :
       {R"(["\ud83d"])", R"(["\ude00"])", R"(["\ud83d\n"])", R"(["\ud83d\u0041"])"})
    CHECK(complaints(half).starts_with("1:3: error: half a surrogate pair is not a character"));
  CHECK(complaints("[\"a\tb\"]") ==
        "1:4: error: control character U+0009 is not allowed in a string (write \\t)");
  CHECK(complaints("[\"a\x1b\"]") ==
        "1:4: error: control character U+001B is not allowed in a string (write \\u001B)");
}

TEST_CASE("an empty text and text after the value are problems") {
  CHECK(complaints("") == "1:1: error: there is no JSON value here");
  CHECK(complaints("// nothing\n") == "2:1: error: there is no JSON value here");
  CHECK(complaints("\xEF\xBB\xBF") == "1:1: error: there is no JSON value here");
  CHECK(complaints("{} {}") == "1:4: error: nothing may follow the JSON value, but here is {");
  CHECK(complaints("{} x") == "1:4: error: nothing may follow the JSON value, but here is x");
}

TEST_CASE("text that is not UTF-8 is a problem wherever it stands") {
  CHECK(complaints("[\"\xFF\"]") ==
        "1:3: error: byte 0xFF is not UTF-8 text (save the file as UTF-8)");
  CHECK(complaints("// caf\xE9\n[]") ==
        "1:7: error: byte 0xE9 is not UTF-8 text (save the file as UTF-8)");
  CHECK(complaints("[\"\xC0\xAF\"]").starts_with("1:3: error: byte 0xC0"));          // overlong
  CHECK(complaints("[\"\xED\xA0\x80\"]").starts_with("1:3: error: byte 0xED"));      // surrogate
  CHECK(complaints("[\"\xF4\x90\x80\x80\"]").starts_with("1:3: error: byte 0xF4"));  // > U+10FFFF
}

TEST_CASE("a NUL byte does not end the text early") {
  CHECK(complaints(std::string("{}\0{", 4)).starts_with("1:3: error: byte 0x00"));
}

TEST_CASE("200 levels are read and 201 are a problem") {
  CHECK(parsed(std::string(200, '[') + std::string(200, ']')).is_array());
  CHECK(complaints(std::string(201, '[') + std::string(201, ']')) ==
        "1:201: error: nested deeper than 200 levels");
  CHECK(complaints(std::string(1000000, '[')) == "1:201: error: nested deeper than 200 levels");
}

TEST_CASE("a text that cannot be read is null") {
  Problems problems;
  CHECK(parse_json(source_of("{\"a\": 1,}"), problems).is_null());
}

TEST_CASE("a long word is shortened in the message") {
  CHECK(complaints("[" + std::string(1000, 'x') + "]") == "1:2: error: " + std::string(37, 'x') +
                                                              "... needs double quotes (write \"" +
                                                              std::string(37, 'x') + "...\")");
}

TEST_CASE("every beginning of a good text is either read or a problem") {
  const std::string text =
      "\xEF\xBB\xBF{\"a\": [1, -2.5e3, true, null, \"\\u00e9\\n\xC3\xA9\"], // c\n /* d */ \"b\": "
      "{}}";
  for (std::size_t size = 0; size < text.size(); ++size) {
    Problems problems;
    parse_json(source_of(text.substr(0, size)), problems);
    CHECK_MESSAGE(problems.size() == 1, size);
  }
  parsed(text);
}

TEST_CASE("no word of a file that is not to be quoted gets into a problem") {
  for (const char* text :
       {"root:x:0:0", "{\"hunter\": 2, \"hunter\": 3}", "{\"hunter\": 1e999}",
        "{\"hunter\": 98765432109876543210}", "{\"a\": 'hunter'}", "[1, hunter]"}) {
    CAPTURE(text);
    auto source = std::make_shared<SourceText>(SourceText{"base.json", text});
    source->quoting = Quoting::named_by_a_file;
    Problems problems;
    parse_json(source, problems);
    REQUIRE(problems.size() == 1);
    const std::string told = to_text(problems.all().front());
    for (const char* word : {"root", "hunter", "98765", "999"})
      CHECK(told.find(word) == std::string::npos);
    CHECK(told.starts_with("base.json:1:"));
  }
}

TEST_CASE("what other programs write may have any number of keys, and numbers that are none") {
  std::string text = R"({"a": [0.0, Infinity, -Infinity, NaN], "many": {"0": 0)";
  for (std::size_t i = 1; i <= max_json_keys; ++i) text += ", \"" + std::to_string(i) + "\": 0";
  text += "}}";
  Problems problems;
  const JsonValue value = parse_foreign_json(source_of(text), problems);
  CHECK(problems.empty());
  CHECK(value.find("many")->object().size() == max_json_keys + 1);
  CHECK(value.find("a")->array()[1].is_null());
  CHECK(value.find("a")->array()[3].is_null());
  // Anything else that is no JSON stays a problem, and in our own files so do these.
  parse_foreign_json(source_of("[Infinite]"), problems);
  CHECK(problems.size() == 1);
  CHECK(complaints("[Infinity]") ==
        "1:2: error: Infinity is not a JSON number (write a finite number)");
}

}  // namespace
}  // namespace windtunnel
