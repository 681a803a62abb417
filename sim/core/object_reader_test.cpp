#include "core/object_reader.hpp"

#include <doctest/doctest.h>

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

/// A text under "/plan", read with its problems.
struct Read {
  explicit Read(const std::string& text)
      : value(parse_json(std::make_shared<SourceText>(SourceText{"f.json", text}), problems)) {
    problems.throw_if_any();
  }
  /// First lines of all problems, without "f.json:LINE:COLUMN: error: ".
  std::string complaints() const {
    std::string all;
    for (const Problem& problem : problems.all()) {
      const std::string text = to_text(problem);
      const std::size_t begin = text.find("error: ") + 7;
      all += (all.empty() ? "" : "\n") + text.substr(begin, text.find('\n') - begin);
    }
    return all;
  }
  std::string place() const {
    const Origin& origin = problems.all().at(0).origin;
    return std::to_string(origin.line) + ":" + std::to_string(origin.column) + "+" +
           std::to_string(origin.length);
  }

  Problems problems;
  JsonValue value;
  ObjectReader reader{value, "/plan", problems};
};

TEST_CASE("a name is one line, prose may have several") {
  Read read(R"({"name": "a\nb", "id": "c\rd", "note": "e\nf"})");
  CHECK(read.reader.optional_string("name", "") == "a\nb");
  read.reader.required_string("id");
  CHECK(read.reader.required_text("note") == "e\nf");
  CHECK(read.complaints() ==
        "name has a line break in it at /plan/name (write it on one line)\n"
        "id has a line break in it at /plan/id (write it on one line)");
}

/// The complaint about {"tensor": `text`} when an integer from 1 to 8 is wanted.
std::string about_int(const std::string& text) {
  Read read("{\"tensor\": " + text + "}");
  CHECK(read.reader.required_int("tensor", 1, 8) == 1);
  return read.complaints();
}

std::string about_number(const std::string& text) {
  Read read("{\"share\": " + text + "}");
  CHECK(read.reader.required_number("share", 0, 1) == 0);
  return read.complaints();
}

enum class Color { red, green };
const std::vector<std::pair<std::string, Color>> colors{{"red", Color::red},
                                                        {"green", Color::green}};

TEST_CASE("what is there is read") {
  Read read(R"({"i": 3, "d": 0.5, "whole": 2, "b": true, "s": "x", "l": [1, 2], "e": "green"})");
  CHECK(read.reader.required_int("i", 1, 8) == 3);
  CHECK(read.reader.optional_int("i", 7, 1, 8) == 3);
  CHECK(read.reader.required_number("d", 0, 1) == 0.5);
  CHECK(read.reader.optional_number("whole", 1, 0, 9) == 2.0);
  CHECK(read.reader.optional_bool("b", false));
  CHECK(read.reader.required_string("s") == "x");
  CHECK(read.reader.optional_int_list("l", 0, 9) == std::vector<int>{1, 2});
  CHECK(read.reader.required_enum("e", colors) == Color::green);
  read.reader.reject_unknown_keys();
  CHECK(read.complaints().empty());
}

TEST_CASE("a number with a fraction is no integer") {
  CHECK(about_int("2.7") ==
        "tensor is 2.7, which is not a whole number at /plan/tensor (write 2 or 3)");
  CHECK(about_int("0.5") == "tensor is 0.5, which is not a whole number at /plan/tensor (write 1)");
  CHECK(about_int("99.5") ==
        "tensor is 99.5, which is not a whole number at /plan/tensor (write a whole number from 1 "
        "to 8)");
}

TEST_CASE("2.0 is not written as an integer") {
  CHECK(about_int("2.0") ==
        "tensor is 2.0, which is not written as a whole number at /plan/tensor (write 2)");
}

TEST_CASE("true and strings and containers are no integers") {
  CHECK(about_int("true") ==
        "tensor is true, which is not a whole number at /plan/tensor (write a whole number from 1 "
        "to 8)");
  CHECK(about_int("\"8\"") ==
        "tensor is \"8\", which is not a whole number at /plan/tensor (write 8 without quotes)");
  CHECK(about_int("\"08\"").ends_with("(write 8 without quotes)"));  // 08 is no JSON number
  CHECK(about_int("\"many\"") ==
        "tensor is \"many\", which is not a whole number at /plan/tensor (write a whole number "
        "from 1 to 8)");
  CHECK(about_int("[8]") ==
        "tensor is an array, which is not a whole number at /plan/tensor (write a whole number "
        "from 1 to 8)");
}

TEST_CASE("an integer out of range shows the range") {
  CHECK(about_int("0") ==
        "tensor is 0, which is too small at /plan/tensor (write a whole number from 1 to 8)");
  CHECK(about_int("9") ==
        "tensor is 9, which is too large at /plan/tensor (write a whole number from 1 to 8)");
  CHECK(about_int("4294967297") ==
        "tensor is 4294967297, which is too large at /plan/tensor (write a whole number from 1 to "
        "8)");
}

TEST_CASE("a range without a top names its bottom only") {
  Read read(R"({"n": "x", "big": 99999999999})");
  read.reader.required_int("n", 1, 2147483647);
  read.reader.required_int("big", 1, 2147483647);
  CHECK(read.complaints() ==
        "n is \"x\", which is not a whole number at /plan/n (write a whole number of 1 or more)\n"
        "big is 99999999999, which is too large at /plan/big (write a whole number from 1 to "
        "2147483647)");
}

TEST_CASE("a number that is none or out of range is a problem") {
  CHECK(about_number("true") ==
        "share is true, which is not a number at /plan/share (write a number from 0 to 1)");
  CHECK(about_number("\"0.5\"") ==
        "share is \"0.5\", which is not a number at /plan/share (write 0.5 without quotes)");
  CHECK(about_number("1.5") ==
        "share is 1.5, which is too large at /plan/share (write a number from 0 to 1)");
  CHECK(about_number("-1") ==
        "share is -1, which is too small at /plan/share (write a number from 0 to 1)");
}

TEST_CASE("a boolean is true or false and nothing like it") {
  Read read(R"({"a": 1, "b": "true", "c": []})");
  CHECK(read.reader.optional_bool("a", true));
  CHECK_FALSE(read.reader.optional_bool("b", false));
  read.reader.optional_bool("c", false);
  CHECK(read.complaints() ==
        "a is 1, which is neither true nor false at /plan/a (write true)\n"
        "b is \"true\", which is neither true nor false at /plan/b (write true without quotes)\n"
        "c is an array, which is neither true nor false at /plan/c (write true or false)");
}

TEST_CASE("a string is in quotes") {
  Read read(R"({"a": 8, "b": {}})");
  CHECK(read.reader.required_string("a").empty());
  CHECK(read.reader.optional_string("b", "x") == "x");
  CHECK(read.complaints() ==
        "a is 8, which is not a string at /plan/a (write \"8\")\n"
        "b is an object, which is not a string at /plan/b (write a string in double quotes)");
}

TEST_CASE("a name that is none of the names shows the nearest and all") {
  Read read(R"({"a": "gren", "b": "mauve", "c": 3})");
  CHECK(read.reader.required_enum("a", colors) == Color::red);
  CHECK(read.reader.optional_enum("b", Color::green, colors) == Color::green);
  read.reader.required_enum("c", colors);
  CHECK(read.complaints() ==
        "a is \"gren\", which is none of red, green at /plan/a (did you mean \"green\"?)\n"
        "b is \"mauve\", which is none of red, green at /plan/b\n"
        "c is 3, which is not a string at /plan/c (write one of \"red\", \"green\")");
}

TEST_CASE("each bad element of a list is a problem at its own place") {
  Read read(R"({"l": [1, 2.5, "3", 99], "m": 4})");
  CHECK(read.reader.optional_int_list("l", 0, 9) == std::vector<int>{1, 0, 0, 0});
  CHECK(read.reader.optional_int_list("m", 0, 9).empty());
  CHECK(read.complaints() ==
        "l[1] is 2.5, which is not a whole number at /plan/l/1 (write 2 or 3)\n"
        "l[2] is \"3\", which is not a whole number at /plan/l/2 (write 3 without quotes)\n"
        "l[3] is 99, which is too large at /plan/l/3 (write a whole number from 0 to 9)\n"
        "m is 4, which is not a list at /plan/m (write [ ... ] with whole numbers)");
  CHECK(read.place() == "1:11+3");
}

TEST_CASE("where one number alone will do it is what to write") {
  Read read("{\"a\": 2, \"b\": \"x\"}");
  read.reader.required_int("a", 1, 1);
  read.reader.required_int("b", 1, 1);
  read.reader.required_int("c", 1, 1);
  CHECK(read.complaints() ==
        "a is 2, which is too large at /plan/a (write 1)\n"
        "b is \"x\", which is not a whole number at /plan/b (write 1)\n"
        "missing key \"c\" at /plan (add \"c\": 1)");
}

TEST_CASE("a key that was asked for is known, null or not") {
  Read read(R"({"share": null, "shore": null})");
  CHECK_FALSE(read.reader.has("share"));
  read.reader.reject_unknown_keys();
  CHECK(read.complaints() == "unknown key \"shore\" at /plan (did you mean \"share\"?)");
}

TEST_CASE("a missing key says what to add and null counts as missing") {
  Read read("\n {\"n\": null}");
  read.reader.required_int("n", 1, 8);
  read.reader.required_number("d", 0, 1);
  read.reader.required_string("s");
  read.reader.required_enum("e", colors);
  CHECK(read.reader.require("r") == nullptr);
  CHECK_FALSE(read.reader.has("n"));
  CHECK(read.complaints() ==
        "missing key \"n\" at /plan (add \"n\": a whole number from 1 to 8)\n"
        "missing key \"d\" at /plan (add \"d\": a number from 0 to 1)\n"
        "missing key \"s\" at /plan (add \"s\": a string)\n"
        "missing key \"e\" at /plan (add \"e\": one of \"red\", \"green\")\n"
        "missing key \"r\" at /plan");
  CHECK(read.place() == "2:2+1");
}

TEST_CASE("defaults are written back and marked so") {
  Read read(R"({"given": 1, "nothing": null})");
  read.reader.optional_int("given", 5, 0, 9);
  read.reader.optional_int("nothing", 6, 0, 9);
  read.reader.optional_number("d", 0.5, 0, 1);
  read.reader.optional_bool("b", true);
  read.reader.optional_string("s", "x");
  read.reader.optional_enum("e", Color::green, colors);
  read.reader.set_default("t", std::string("y"));
  read.reader.set_default("given", std::int64_t{7});  // is given: stays
  read.reader.optional_int_list("l", 0, 9);
  CHECK(canonical_text(read.value) ==
        R"({"b":true,"d":0.5,"e":"green","given":1,"nothing":6,"s":"x","t":"y"})");
  CHECK(read.value.find("given")->origin.kind == OriginKind::file);
  CHECK(read.value.find("d")->origin.kind == OriginKind::defaulted);
  read.reader.reject_unknown_keys();
  CHECK(read.complaints().empty());
}

TEST_CASE("an unknown key shows the nearest key or all of them") {
  Read read(R"({"hiden": 1, "colour": 2, "hidden": 3, "heads": 4})");
  read.reader.required_int("hidden", 1, 9);
  read.reader.required_int("heads", 1, 9);
  read.reader.reject_unknown_keys();
  CHECK(read.complaints() ==
        "unknown key \"hiden\" at /plan (did you mean \"hidden\"?)\n"
        "unknown key \"colour\" at /plan (keys allowed: hidden, heads)");
  CHECK(read.place() == "1:2+7");
}

TEST_CASE("a required key that is misspelt is not also missing") {
  Read read(R"({"microbatch": 8, "global_batch": 64})");
  read.reader.required_int("global_batch", 1, 99);
  read.reader.required_int("micro_batch", 1, 99);
  read.reader.reject_unknown_keys();
  CHECK(read.complaints() == "unknown key \"microbatch\" at /plan (did you mean \"micro_batch\"?)");
  CHECK_FALSE(read.reader.are_sound({"micro_batch"}));
  CHECK(read.reader.are_sound({"global_batch"}));
}

TEST_CASE("a key is missing when what resembles it means another key, or none") {
  Read read(R"({"micro_batchs": 8, "micro_batch": 4, "colour": 1})");
  read.reader.required_int("micro_batch", 1, 99);
  read.reader.required_int("global_batch", 1, 99);
  read.reader.reject_unknown_keys();
  CHECK(
      read.complaints() ==
      "missing key \"global_batch\" at /plan (add \"global_batch\": a whole number from 1 to 99)\n"
      "unknown key \"micro_batchs\" at /plan (did you mean \"micro_batch\"?)\n"
      "unknown key \"colour\" at /plan (keys allowed: micro_batch, global_batch)");
  CHECK(read.reader.are_sound({"micro_batch", "colour"}));
}

TEST_CASE("a misspelt block is not also an empty one") {
  Read read(R"({"trainig": {"batch": 8}})");
  read.reader.child("training").required_int("batch", 1, 9);
  read.reader.reject_unknown_keys();
  CHECK(read.complaints() == "unknown key \"trainig\" at /plan (did you mean \"training\"?)");
}

TEST_CASE("of a value that is wrong nothing else is said") {
  Read read(R"({"a": 2.5})");
  read.reader.required_int("a", 1, 9);
  read.reader.problem("a", "a does not divide b");
  CHECK(read.complaints() == "a is 2.5, which is not a whole number at /plan/a (write 2 or 3)");
}

TEST_CASE("the schema key is unknown unless the reader takes it") {
  Read strict(R"({"$schema": "x"})");
  strict.reader.reject_unknown_keys();
  CHECK(strict.complaints() == "unknown key \"$schema\" at /plan (no keys are allowed here)");
  Read taking(R"({"$schema": "x"})");
  taking.reader.take("$schema");
  taking.reader.reject_unknown_keys();
  CHECK(taking.complaints().empty());
}

TEST_CASE("what is no object is one problem however much is read of it") {
  Read read(R"({"model": [1]})");
  ObjectReader model = read.reader.child("model");
  CHECK(model.required_int("layers", 1, 9) == 1);
  CHECK(model.optional_int("heads", 7, 1, 9) == 7);
  CHECK(model.child("inner").required_string("x").empty());
  CHECK(model.require("y") == nullptr);
  model.reject_unknown_keys();
  CHECK(read.complaints() ==
        "model is an array, which is not an object at /plan/model (write { ... })");
}

TEST_CASE("an entry of a list that is no object is named by its number") {
  Read read(R"({"nodes": [{}, 3]})");
  JsonValue& entry = read.reader.take("nodes")->array()[1];
  ObjectReader(entry, "/plan/nodes/1", read.reader.problems());
  CHECK(read.complaints() ==
        "entry 1 is 3, which is not an object at /plan/nodes/1 (write { ... })");
}

TEST_CASE("a file that is no object is a problem of the file") {
  Problems problems;
  JsonValue value(std::int64_t{8});
  ObjectReader reader(value, "", problems);
  CHECK(to_text(problems.all().at(0)) ==
        "error: this is 8, which is not an object (write { ... })");
}

TEST_CASE("an absent child is inserted and its missing keys are reported at its parent") {
  Read read("\n{}");
  ObjectReader child = read.reader.child("training");
  child.optional_bool("flag", true);
  child.required_int("batch", 1, 9);
  CHECK(canonical_text(read.value) == R"({"training":{"flag":true}})");
  CHECK(read.complaints() ==
        "missing key \"batch\" at /plan/training (add \"batch\": a whole number from 1 to 9)");
  CHECK(read.place() == "2:1+1");
}

TEST_CASE("an optional child that is absent or null is none") {
  Read read(R"({"a": null, "b": {"x": 1}})");
  CHECK_FALSE(read.reader.optional_child("a").has_value());
  CHECK_FALSE(read.reader.optional_child("z").has_value());
  REQUIRE(read.reader.optional_child("b").has_value());
  CHECK(read.reader.optional_child("b")->required_int("x", 0, 9) == 1);
  CHECK(read.reader.optional_child("b")->pointer() == "/plan/b");
  read.reader.reject_unknown_keys();
  CHECK(read.complaints().empty());
}

TEST_CASE("children and members stay valid while defaults are added next to them") {
  Read read(R"({"child": {"x": 1}, "member": "m"})");
  ObjectReader child = read.reader.child("child");
  const JsonValue* member = read.reader.take("member");
  for (int i = 0; i < 40; ++i) read.reader.optional_int("default" + std::to_string(i), i, 0, 99);
  ObjectReader second(read.value, "/plan", read.problems);  // reads the same object again
  CHECK(member->string() == "m");
  CHECK(child.required_int("x", 0, 9) == 1);
}

TEST_CASE("a problem of the caller stands at the member or at the object") {
  Read read("{\n \"a\": 12}");
  read.reader.problem("a", "too odd", "write 13");
  read.reader.problem("b", "not there");
  CHECK(read.complaints() == "too odd at /plan/a (write 13)\nnot there at /plan");
  CHECK(read.place() == "2:7+2");
}

TEST_CASE("keys with slashes are escaped in pointers") {
  Read read(R"({"a/b": true})");
  read.reader.required_int("a/b", 0, 1);
  CHECK(read.problems.all().at(0).pointer == "/plan/a~1b");
}

TEST_CASE("a range beyond int is a broken contract") {
  Read read(R"({"a": 1})");
  CHECK_THROWS_AS(read.reader.required_int("a", 0, 4294967296), ContractViolation);
}

TEST_CASE("an option on the command line is named in the problem") {
  Read read(R"({"tensor": 8})");
  Problems parse_problems;
  const auto option = std::make_shared<SourceText>(SourceText{"--set /plan/tensor=2.7", "2.7"});
  read.value.set("tensor", parse_json(option, parse_problems, OriginKind::command_line));
  read.reader.required_int("tensor", 1, 8);
  CHECK(to_text(read.problems.all().at(0)) ==
        "--set /plan/tensor=2.7: error: tensor is 2.7, which is not a whole number at /plan/tensor "
        "(write 2 or 3)");
}

TEST_CASE(
    "the objects of a list are read at their places, and what is no list of enough of them is one "
    "problem") {
  Read read(R"({"links": [{"rate": 1}, {"rate": 9}], "none": [], "word": "a"})");
  for (ObjectReader& entry : read.reader.entries("links", "expected a list of links"))
    entry.required_int("rate", 1, 8);
  CHECK(read.reader.entries("absent", "expected a list").empty());
  CHECK(read.reader.entries("none", "expected a list", 0).empty());
  read.reader.entries("none", "expected a list of one");
  read.reader.entries("word", "expected a list of words");
  CHECK(read.complaints() ==
        "rate is 9, which is too large at /plan/links/1/rate (write a whole number from 1 to 8)\n"
        "expected a list of one at /plan/none\n"
        "expected a list of words at /plan/word");
}

}  // namespace
}  // namespace windtunnel
