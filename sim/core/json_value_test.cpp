#include "core/json_value.hpp"

#include <doctest/doctest.h>

#include <limits>

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

JsonValue value_of_text(const std::string& text, const std::string& name = "f.json") {
  Problems problems;
  JsonValue value = parse_json(std::make_shared<SourceText>(SourceText{name, text}), problems);
  problems.throw_if_any();
  return value;
}

std::string merged(const std::string& base, const std::string& overlay) {
  JsonValue value = value_of_text(base);
  merge_json(value, value_of_text(overlay));
  return canonical_text(value);
}

TEST_CASE("a value starts as null") { CHECK(JsonValue{}.is_null()); }

TEST_CASE("asking a value for what it is not is a broken contract") {
  CHECK_THROWS_AS(JsonValue{}.object(), ContractViolation);
  CHECK_THROWS_AS(JsonValue{}.array(), ContractViolation);
  CHECK_THROWS_AS(JsonValue{}.string(), ContractViolation);
}

TEST_CASE("members are found set and erased") {
  JsonValue value = value_of_text(R"({"a": 1, "b": 2})");
  value.set("a", JsonValue(std::int64_t{3}));
  value.set("c", JsonValue(std::string("x")));
  CHECK(value.erase("b"));
  CHECK_FALSE(value.erase("b"));
  CHECK(value.find("b") == nullptr);
  CHECK(JsonValue{}.find("b") == nullptr);
  CHECK(canonical_text(value) == R"({"a":3,"c":"x"})");
}

TEST_CASE("objects merge key by key and everything else replaces") {
  CHECK(merged(R"({"a": {"x": 1, "y": 2}, "b": 1})", R"({"a": {"y": 3, "z": 4}, "c": 5})") ==
        R"({"a":{"x":1,"y":3,"z":4},"b":1,"c":5})");
  CHECK(merged(R"({"a": [1, 2, 3]})", R"({"a": [4]})") == R"({"a":[4]})");
  CHECK(merged(R"({"a": {"x": 1}})", R"({"a": 2})") == R"({"a":2})");
  CHECK(merged(R"({"a": 2})", R"({"a": {"x": 1}})") == R"({"a":{"x":1}})");
  CHECK(merged(R"({"a": 2})", "[1]") == "[1]");
}

// RFC 7396, appendix A.
TEST_CASE("null deletes also inside objects that are new") {
  CHECK(merged(R"({"a": 1, "b": 2})", R"({"a": null})") == R"({"b":2})");
  CHECK(merged(R"({"a": {"b": "c"}})", R"({"a": {"b": "d", "c": null}})") == R"({"a":{"b":"d"}})");
  CHECK(merged("{}", R"({"a": {"bb": {"ccc": null}}})") == R"({"a":{"bb":{}}})");
  CHECK(merged(R"({"e": null})", R"({"a": 1})") == R"({"a":1,"e":null})");
  CHECK(merged("[1,2]", R"({"a": "b", "c": null})") == R"({"a":"b"})");
}

TEST_CASE("a merged value keeps the origin of the file it came from") {
  JsonValue value = value_of_text(R"({"a": {"x": 1, "y": 2}})", "base.json");
  merge_json(value, value_of_text(R"({"a": {"y": 3}})", "over.json"));
  CHECK(find_at(value, "/a/x")->origin.source->name == "base.json");
  CHECK(find_at(value, "/a/y")->origin.source->name == "over.json");
  CHECK(find_at(value, "/a")->object()[1].key_origin.source->name == "over.json");
}

TEST_CASE("a pointer escapes ~ and /") {
  CHECK(pointer_join("", "a") == "/a");
  CHECK(pointer_join("/a", "b/c~d") == "/a/b~1c~0d");
  CHECK(pointer_join("/a", "") == "/a/");
}

// RFC 6901, section 5.
TEST_CASE("pointers find what they name") {
  JsonValue value = value_of_text(R"({"foo": ["bar", "baz"], "": 0, "a/b": 1, "m~n": 8, "~1": 9})");
  CHECK(find_at(value, "") == &value);
  CHECK(find_at(value, "/foo/0")->string() == "bar");
  CHECK(canonical_text(*find_at(value, "/")) == "0");
  CHECK(canonical_text(*find_at(value, "/a~1b")) == "1");
  CHECK(canonical_text(*find_at(value, "/m~0n")) == "8");
  CHECK(canonical_text(*find_at(value, "/~01")) == "9");
}

TEST_CASE("pointers to nothing find nothing") {
  JsonValue value = value_of_text(R"({"foo": ["bar"], "s": "x"})");
  for (const char* pointer : {"foo", "/fo", "/foo/1", "/foo/00", "/foo/-", "/foo/x", "/foo/",
                              "/s/0", "/foo/0/x", "/~2", "/~", "/foo/99999999999999999999999"})
    CHECK_MESSAGE(find_at(value, pointer) == nullptr, pointer);
}

TEST_CASE("setting at a pointer makes the objects on the way") {
  JsonValue value = value_of_text(R"({"a": {"b": 1}, "list": [{"x": 1}], "none": null})");
  const JsonValue nine(std::int64_t{9});
  CHECK(set_at(value, "/a/b", nine));
  CHECK(set_at(value, "/a/c/d", nine));
  CHECK(set_at(value, "/list/0/x", nine));
  CHECK(set_at(value, "/none/x/y", nine));
  CHECK(canonical_text(value) ==
        R"({"a":{"b":9,"c":{"d":9}},"list":[{"x":9}],"none":{"x":{"y":9}}})");
  CHECK(set_at(value, "", nine));
  CHECK(canonical_text(value) == "9");
}

TEST_CASE("setting where something is in the way changes nothing") {
  const std::string text = R"({"list":[1],"s":"x"})";
  JsonValue value = value_of_text(text);
  std::string deep;
  for (std::size_t i = 0; i <= max_json_depth; ++i) deep += "/d";
  for (const std::string& pointer :
       {std::string("/s/x"), std::string("/list/1"), std::string("/list/x"), std::string("s"),
        std::string("/new/~2"), std::string("/list/0/x"), deep})
    CHECK_FALSE_MESSAGE(set_at(value, pointer, JsonValue{}), pointer);
  CHECK(canonical_text(value) == text);
}

TEST_CASE("a member is taken away where its pointer leads, and nothing else") {
  JsonValue value = value_of_text(R"({"a": {"/b": 1, "c": [1]}})");
  CHECK(erase_at(value, "/a/~1b"));
  for (const char* pointer : {"/a/~1b", "/a/c/0", "/x/y", "", "a"})
    CHECK_FALSE_MESSAGE(erase_at(value, pointer), pointer);
  CHECK(canonical_text(value) == R"({"a":{"c":[1]}})");
}

TEST_CASE("the canonical text sorts keys and drops white space and comments") {
  CHECK(canonical_text(value_of_text("{\"b\" : [ 1 , true, null ], // c\n \"a\" : \"x\" }")) ==
        R"({"a":"x","b":[1,true,null]})");
}

TEST_CASE("equal numbers have equal canonical texts") {
  CHECK(canonical_text(value_of_text("[8, 8.0, 8e0, 1e6, 0.1, 1e22, -0.0, 1.5e-7]")) ==
        "[8,8,8,1000000,0.1,1e+22,0,1.5e-07]");
}

TEST_CASE("the canonical text of what was read from a canonical text is the same") {
  for (const char* text :
       {"{}", "[]", R"({"a":[{"b":0.1},{"c":1e+300}],"d":"x\"\\\n\u0001"})", "9223372036854775807",
        "2.2250738585072014e-308", "\"\xC3\xA9\"", "0.30000000000000004"})
    CHECK(canonical_text(value_of_text(text)) == text);
}

TEST_CASE("the pretty text is indented and keeps what is no integer apart") {
  CHECK(pretty_text(
            value_of_text(R"({"b":{"x":8.0,"y":[1,2.5,"z"]},"a":[],"o":{},"p":[{"q":1}]})")) ==
        "{\n"
        "  \"b\": {\n"
        "    \"x\": 8.0,\n"
        "    \"y\": [1, 2.5, \"z\"]\n"
        "  },\n"
        "  \"a\": [],\n"
        "  \"o\": {},\n"
        "  \"p\": [\n"
        "    {\n"
        "      \"q\": 1\n"
        "    }\n"
        "  ]\n"
        "}");
}

TEST_CASE("the pretty text is read back as the same value") {
  const JsonValue value =
      value_of_text(R"([0.1, 1e6, -0.0, 16.31, 1e-300, 123456789012345678, 8.0, "\u0007"])");
  const JsonValue again = value_of_text(pretty_text(value));
  for (std::size_t i = 0; i < value.array().size(); ++i) {
    CHECK(again.array()[i].content.index() == value.array()[i].content.index());
    CHECK(canonical_text(again.array()[i]) == canonical_text(value.array()[i]));
  }
}

TEST_CASE("a long array of numbers has one a line") {
  const std::string text = pretty_text(JsonValue(JsonValue::Array(60, JsonValue(std::int64_t{7}))));
  CHECK(text.starts_with("[\n  7,\n  7,"));
}

TEST_CASE("NaN is never written") {
  const JsonValue nan(std::numeric_limits<double>::quiet_NaN());
  CHECK_THROWS_AS(canonical_text(nan), ContractViolation);
  CHECK_THROWS_AS(pretty_text(nan), ContractViolation);
}

TEST_CASE("bytes that are not UTF-8 are written as the replacement character") {
  CHECK(canonical_text(JsonValue(std::string("a\xFF"))) == "\"a\xEF\xBF\xBD\"");
  CHECK(canonical_text(JsonValue(std::string("\x7F\xC2\x9B\xE2\x80\xAE"))) ==
        R"("\u007f\u009b\u202e")");
}

TEST_CASE("a value in a message is short") {
  CHECK(text_for_message(JsonValue(2.7)) == "2.7");
  CHECK(text_for_message(JsonValue(std::string("x"))) == "\"x\"");
  CHECK(text_for_message(JsonValue(JsonValue::Array{})) == "an array");
  CHECK(text_for_message(JsonValue(std::string(100, 'x'))) == "\"" + std::string(56, 'x') + "...");
}

}  // namespace
}  // namespace windtunnel
