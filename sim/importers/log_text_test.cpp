#include "importers/log_text.hpp"

#include <doctest/doctest.h>

#include <utility>
#include <vector>

using namespace windtunnel;

namespace {

std::size_t find_hash(std::string_view text) { return text.find("# size"); }

LogText log_of(std::string text) {
  Problems problems;
  LogText log(std::make_shared<const SourceText>(SourceText{"a.log", std::move(text)}), problems,
              find_hash);
  CHECK(problems.empty());
  return log;
}

std::string words_of(const LogLine& line) {
  std::string text;
  for (const LogWord& word : line.words) text += (text.empty() ? "" : "|") + word.text;
  return text;
}

}  // namespace

TEST_CASE("a log loses byte order mark, colours, line ends of Windows and what was overwritten") {
  const LogText log = log_of("\xEF\xBB\xBF\x1b[4mGPU0\x1b[0m\tX \r\n10 %\r20 %\rdone now\n");
  REQUIRE(log.lines().size() == 2);
  CHECK(words_of(log.lines()[0]) == "GPU0|X");
  CHECK(words_of(log.lines()[1]) == "done|now");
  // "ESC [ 4 m" are four characters, so that GPU0 begins in column 5.
  CHECK(log.at(log.lines()[0], log.lines()[0].words[0]).column == 5);
}

TEST_CASE("prefixes of launchers are no words, and columns still count them") {
  for (const auto& prefixes : std::vector<std::pair<std::string, std::string>>{
           {"[1,0]<stdout>:", "[1,13]<stdout>:"},
           {" 0: ", "13: "},
           {"node-01.cluster: ", "node-2: "},
           {"[prterun-node0-1234@1,0]<stdout>: ", "[prterun-node0-1234@1,0]<stdout>: "},
           {"2025-03-04T10:11:12.123456789Z ", "2025-03-04T10:11:13Z "},
           {"Tue Mar  4 10:11:12 2025<stdout>:[1,0]<stdout>:",
            "Wed Mar 15 10:11:12 2025<stdout>:[1,0]<stdout>:"},
           {"[pod/nccl-launcher-x7k/nccl] ", "[pod/nccl-launcher-x7k/nccl] "},
           {"worker | ", "worker | "}}) {
    const std::string &first = prefixes.first, &second = prefixes.second;
    CAPTURE(first);
    const LogText log = log_of("NCCL INFO 7\n" + first + "# size\n" + second + "   8 2\n3:4\n");
    CHECK(words_of(log.lines()[0]) == "NCCL|INFO|7");  // a line without it stays
    CHECK(words_of(log.lines()[1]) == "#|size");
    CHECK(log.lines()[1].words[0].column == static_cast<int>(first.size()) + 1);
    CHECK(words_of(log.lines()[2]) == "8|2");
    CHECK(words_of(log.lines()[3]) == "3:4");
    CHECK(log.lines()[2].prefix.starts_with(second));
  }
  CHECK(words_of(log_of("    # size\n    8 2\n").lines()[1]) == "8|2");  // indented
  CHECK(words_of(log_of("0: 8 2\n").lines()[0]) == "0:|8|2");  // nothing shows what a prefix is
}

TEST_CASE("columns count characters, and separators keep empty cells") {
  const LogText log = log_of("über,,2\n");
  const std::vector<LogWord> cells = split_words(log.lines()[0], ",");
  REQUIRE(cells.size() == 3);
  CHECK(cells[1].text.empty());
  CHECK(cells[2].column == 7);
}

TEST_CASE("a file in UTF-16 is refused") {
  Problems problems;
  const LogText log(
      std::make_shared<const SourceText>(SourceText{"a.log", std::string("\xFF\xFEG\0P\0", 6)}),
      problems, find_hash);
  CHECK(log.lines().empty());
  REQUIRE(problems.size() == 1);
  CHECK(problems.all()[0].message == "the file is in UTF-16");
}

TEST_CASE("only whole finite numbers are numbers") {
  CHECK(number_in("0.500") == 0.5);
  CHECK_FALSE(number_in("1.5x"));
  CHECK_FALSE(number_in("inf"));
  CHECK_FALSE(number_in("nan"));
  CHECK(count_in("12") == 12);
  CHECK_FALSE(count_in("-1"));
  CHECK_FALSE(count_in("1.0"));
  CHECK(is_missing("N/A"));
  CHECK_FALSE(is_missing("0"));
}
