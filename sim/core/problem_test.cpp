#include "core/problem.hpp"

#include <doctest/doctest.h>

namespace windtunnel {
namespace {

std::shared_ptr<const SourceText> scenario_source(std::string text,
                                                  std::string name = "scenario.json") {
  return std::make_shared<SourceText>(SourceText{std::move(name), std::move(text)});
}

Problem problem_at(std::shared_ptr<const SourceText> source, int line, int column, int length) {
  Problem problem;
  problem.origin = {OriginKind::file, std::move(source), line, column, length};
  problem.message = "it is wrong";
  return problem;
}

TEST_CASE("a problem shows its place and the line with a caret") {
  Problem problem = problem_at(
      scenario_source("{\n  \"version\": 1,\n  \"model\": {\"hiden\": 4096,\n"), 3, 13, 7);
  problem.pointer = "/model";
  problem.message = "unknown key \"hiden\"";
  problem.suggestion = "did you mean \"hidden\"?";
  CHECK(to_text(problem) ==
        "scenario.json:3:13: error: unknown key \"hiden\" at /model (did you mean \"hidden\"?)\n"
        "   3 |   \"model\": {\"hiden\": 4096,\n"
        "     |             ^~~~~~~");
}

TEST_CASE("a problem without a place is one line") {
  CHECK(to_text({{}, "/nodes", "nodes is 0", "write 1"}) ==
        "error: nodes is 0 at /nodes (write 1)");
  CHECK(to_text({{}, "", "nodes is 0", ""}) == "error: nodes is 0");
}

TEST_CASE("a problem of a file as a whole names the file") {
  CHECK(to_text(problem_at(scenario_source("{}"), 0, 0, 0)) == "scenario.json: error: it is wrong");
}

TEST_CASE("a problem of an option names the option and shows no line") {
  const auto option = scenario_source("2.7", "--set /nodes=2.7");
  CHECK(to_text({{OriginKind::command_line, option, 1, 1, 3}, "/nodes", "nodes is 2.7", ""}) ==
        "--set /nodes=2.7: error: nodes is 2.7 at /nodes");
}

TEST_CASE("the caret stands below its token after tabs and wide letters") {
  CHECK(to_text(problem_at(scenario_source("\t\"\xC3\xA9\": 12"), 1, 7, 2)) ==
        "scenario.json:1:7: error: it is wrong\n"
        "   1 | \t\"\xC3\xA9\": 12\n"
        "     | \t     ^~");
}

TEST_CASE("a shown line has neither its line end nor control characters") {
  CHECK(to_text(problem_at(scenario_source("[\x1b[31m\xFF]\r\n"), 1, 1, 1)) ==
        "scenario.json:1:1: error: it is wrong\n"
        "   1 | [?[31m?]\n"
        "     | ^");
}

TEST_CASE("of a file that nobody named, a problem shows the place and nothing of the content") {
  auto source = std::make_shared<SourceText>(SourceText{"base.json", "root:$6$salt:0:0\n"});
  source->quoting = Quoting::named_by_a_file;
  Problem problem = problem_at(source, 1, 1, 4);
  problem.message = "device is \"s\\\"ecret\", and '12 sec'ret' has no unit (it is no device's)";
  Problems problems;
  problems.add(problem);
  CHECK(to_text(problems.all().front()) ==
        "base.json:1:1: error: device is \"…\", and '…'s)\n"
        "     | (not shown: the command line does not name this file itself)");
}

TEST_CASE("millions of problems are counted, not kept") {
  Problems problems;
  for (int i = 0; i < 5000; ++i) problems.add({{}, "", "it is wrong", ""});
  CHECK(problems.size() == 5000);
  CHECK(problems.all().size() == 1000);
  CHECK_THROWS_WITH_AS(problems.throw_if_any(), doctest::Contains("... and 4980 more"), InputError);
}

TEST_CASE("a column beyond 2^31 is printed as it is") {
  Problem problem;
  problem.origin = {OriginKind::file, scenario_source({}), 1, 3'000'000'000, 1};
  problem.message = "it is wrong";
  CHECK(to_text(problem) == "scenario.json:1:3000000000: error: it is wrong");
}

TEST_CASE("of a very long line only the part around the caret is shown") {
  const std::string line = std::string(1000, 'x') + "HERE" + std::string(1000, 'y');
  // The caret stands 22 characters (a third of 66) into the part that is shown.
  CHECK(to_text(problem_at(scenario_source(line), 1, 1001, 4)) ==
        "scenario.json:1:1001: error: it is wrong\n"
        "   1 | ..." +
            std::string(22, 'x') + "HERE" + std::string(40, 'y') + "...\n" + "     | " +
            std::string(25, ' ') + "^~~~");
}

TEST_CASE("the caret line of a token longer than the line ends with the line") {
  CHECK(to_text(problem_at(scenario_source("{\"a\""), 1, 2, 99)) ==
        "scenario.json:1:2: error: it is wrong\n   1 | {\"a\"\n     |  ^~~");
}

TEST_CASE("lines are counted from 1 and are empty beyond the end") {
  const SourceText source{"x", "one\r\ntwo\n\nfour"};
  CHECK(source.line(1) == "one");
  CHECK(source.line(2) == "two");
  CHECK(source.line(3).empty());
  CHECK(source.line(4) == "four");
  CHECK(source.line(5).empty());
  CHECK(source.line(0).empty());
}

TEST_CASE("a byte order mark is no part of the first line") {
  const SourceText source{"x", "\xEF\xBB\xBF{}"};
  CHECK(source.line(1) == "{}");
}

TEST_CASE("no problems throw nothing") {
  CHECK_NOTHROW(Problems{}.throw_if_any());
  CHECK(Problems{}.empty());
}

TEST_CASE("all problems are thrown at once") {
  Problems problems;
  problems.add({{}, "/a", "one", ""});
  problems.add({{}, "/b", "two", ""});
  CHECK(problems.size() == 2);
  try {
    problems.throw_if_any();
    FAIL("nothing was thrown");
  } catch (const InputError& error) {
    CHECK(std::string(error.what()) == "error: one at /a\nerror: two at /b");
    CHECK(error.problems().size() == 2);
  }
}

TEST_CASE("after 20 problems the rest is counted") {
  Problems problems;
  for (int i = 0; i < 23; ++i) problems.add({{}, "", "number " + std::to_string(i), ""});
  try {
    problems.throw_if_any();
    FAIL("nothing was thrown");
  } catch (const InputError& error) {
    const std::string text = error.what();
    CHECK(text.find("error: number 19\n... and 3 more") != std::string::npos);
    CHECK(text.find("number 20") == std::string::npos);
    CHECK(error.problems().size() == 23);
  }
}

/// "file:line" of each problem, in order.
std::string places(const Problems& problems) {
  std::string all;
  for (const Problem& problem : problems.in_order())
    all += (all.empty() ? "" : " ") +
           (problem.origin.source
                ? problem.origin.source->name + ":" + std::to_string(problem.origin.line)
                : "nowhere") +
           problem.message.substr(std::string("it is wrong").size());
  return all;
}

TEST_CASE("problems are told by place: files as they are read, then options, then the rest") {
  const auto first = scenario_source("{}", "first.json"),
             second = scenario_source("{}", "second.json");
  Problems problems;
  problems.begin_source(*first);
  problems.begin_source(*second);
  problems.add({{}, "", "it is wrong", ""});
  Problem option = problem_at(scenario_source("8", "--set /a=8"), 1, 1, 1);
  option.origin.kind = OriginKind::command_line;
  problems.add(option);
  problems.add(problem_at(second, 1, 1, 1));
  problems.add(problem_at(first, 3, 1, 1));
  problems.add(problem_at(first, 2, 9, 1));
  Problem same_place = problem_at(first, 2, 9, 1);
  same_place.message += " again";
  problems.add(same_place);
  problems.add(problem_at(first, 2, 4, 1));
  CHECK(places(problems) ==
        "first.json:2 first.json:2 first.json:2 again first.json:3 second.json:1 --set /a=8:1 "
        "nowhere");
}

TEST_CASE("the same problem of the same place is one") {
  Problems problems;
  for (int i = 0; i < 2; ++i) problems.add(problem_at(scenario_source("{}"), 1, 1, 1));
  CHECK(problems.size() == 1);
  problems.add({{}, "/a", "it is wrong", ""});
  problems.add({{}, "/a", "it is wrong", ""});
  CHECK(problems.size() == 3);
}

TEST_CASE("a value is sound unless it, a part of it, or what it is part of is spoiled") {
  Problems problems;
  problems.add({{}, "/a/b", "it is wrong", ""});
  for (const char* pointer : {"", "/a", "/a/b", "/a/b/c"})
    CHECK_FALSE_MESSAGE(problems.is_sound(pointer), pointer);
  for (const char* pointer : {"/a/bc", "/a/c", "/b"})
    CHECK_MESSAGE(problems.is_sound(pointer), pointer);
  CHECK(problems.is_spoiled("/a/b"));
  CHECK_FALSE(problems.is_spoiled("/a"));
}

TEST_CASE("a problem may spoil other values than the one it stands at, or none") {
  Problems problems;
  problems.add({{}, "/a", "it is wrong", ""}, {});
  CHECK(problems.is_sound("/a"));
  problems.add({{}, "/a", "it is wrong", ""}, {std::string("/b"), std::string("/c")});
  CHECK(problems.is_sound("/a"));
  CHECK_FALSE(problems.is_sound("/b"));
  CHECK_FALSE(problems.is_sound("/c"));
}

TEST_CASE("what follows from another mistake is withdrawn") {
  Problems problems;
  problems.add({{}, "/a", "about /a/b", ""}, {std::string("/a/b")});
  problems.add({{}, "/a/b/c", "about /a/b/c", ""}, {});
  problems.add({{}, "/a/bc", "about /a/bc", ""});
  problems.withdraw("/a/b");
  REQUIRE(problems.size() == 1);
  CHECK(problems.all().front().message == "about /a/bc");
  CHECK(problems.is_sound("/a/b"));
}

TEST_CASE("problems of a text spoil what stands where its values go") {
  Problems of_text, problems;
  of_text.add({{}, "/layers", "it is wrong", ""});
  problems.append(of_text, "/model");
  CHECK_FALSE(problems.is_sound("/model/layers"));
  CHECK(problems.is_sound("/layers"));
  CHECK(problems.all().front().pointer == "/model/layers");
}

TEST_CASE("a slip of the fingers finds the word that was meant") {
  const std::vector<std::string> keys{"layers", "hidden", "heads", "sequence"};
  CHECK(closest_match("hiden", keys) == "hidden");    // one letter missing
  CHECK(closest_match("hiddden", keys) == "hidden");  // one too many
  CHECK(closest_match("haeds", keys) == "heads");     // two swapped
  CHECK(closest_match("sequnece", keys) == "sequence");
  // Two slips, or the beginning of a longer word: the latter.
  CHECK(closest_match("h100", {"b200", "h100-sxm-80gb", "h100-sxm"}) == "h100-sxm");
  CHECK(closest_match("h10", {"b10", "h100-sxm"}) == "b10");
  CHECK(closest_match("hf", {"nemo", "hf-config"}) == "hf-config");
  CHECK(closest_match("LAYERS", keys) == "layers");                   // case is no slip
  CHECK(closest_match("fp4", {"fp8", "mxfp8", "nvfp4"}) == "nvfp4");  // what has it all in it
  CHECK(closest_match("date", {"update", "data"}) == "data");
  CHECK(closest_match("h200", {"b200", "h200-sxm"}) == "h200-sxm");  // one of its parts
  CHECK(closest_match("h200", {"hgx-h200-4gpu", "hgx-h200", "h100"}) == "hgx-h200");
  CHECK(closest_match("bfloat16", {"fp16", "bf16"}) == "bf16");  // its short form
  CHECK(closest_match("bfloat16", {"bf8", "f16"}).empty());
}

TEST_CASE("a word that is far from all of them finds none") {
  CHECK(closest_match("bandwidth", {"layers", "hidden"}).empty());
  CHECK(closest_match("xy", {"tp", "pp"}).empty());  // two slips in two letters are another word
  CHECK(closest_match("anything", {}).empty());
  CHECK(closest_match("", {"a"}).empty());
}

TEST_CASE("a third of a long word may be wrong") {
  // 12 letters: 4 slips are near enough, 5 are not.
  CHECK(closest_match("abcdefghWXYZ", {"abcdefghijkl"}) == "abcdefghijkl");
  CHECK(closest_match("abcdefgVWXYZ", {"abcdefghijkl"}).empty());
}

TEST_CASE("of two equally near words the one in the right case wins") {
  CHECK(closest_match("Gbsp", {"GBps", "Gbps"}) == "Gbps");
  CHECK(closest_match("GBsp", {"GBps", "Gbps"}) == "GBps");
}

TEST_CASE("of a file that is not to be quoted our own words stand, and the remark once") {
  Origin origin;
  origin.source =
      std::make_shared<const SourceText>(SourceText{"secret.json", "{}", Quoting::named_by_a_file});
  origin.kind = OriginKind::file;
  origin.line = origin.column = 1;
  Problems problems;
  Origin nowhere = origin;
  nowhere.line = nowhere.column = 0;
  problems.add({nowhere, "", "no object", {}});
  problems.add({origin, "/a", "missing key \"heads\"", "add \"heads\": ..."});
  problems.add({origin, "/b", "unknown key \"password\"", "did you mean \"layers\"?"});
  CHECK_THROWS_WITH_AS(problems.throw_if_any(),
                       "secret.json: error: no object\n"
                       "secret.json:1:1: error: missing key \"heads\" at /a (add \"heads\": ...)\n"
                       "     | (not shown: the command line does not name this file itself)\n"
                       "secret.json:1:1: error: unknown key \"…\" at /b (did you mean \"layers\"?)",
                       InputError);
}

TEST_CASE("problems that look alike because nothing may be quoted spoil all their values") {
  Origin origin;
  origin.source =
      std::make_shared<const SourceText>(SourceText{"secret.json", "{}", Quoting::named_by_a_file});
  origin.line = origin.column = 1;
  Problems problems;
  for (const char* key : {"heads", "layers"})
    problems.add({origin, std::string("/") + key, std::string("unknown key \"") + key + "\"", {}});
  CHECK(problems.size() == 1);
  CHECK(!problems.is_sound("/heads"));
  CHECK(!problems.is_sound("/layers"));
}

}  // namespace
}  // namespace windtunnel
