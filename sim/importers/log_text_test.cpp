#include "importers/log_text.hpp"

#include <doctest/doctest.h>

using namespace windtunnel;

namespace {

LogText log_of(std::string text) {
  Problems problems;
  LogText log(std::make_shared<const SourceText>(SourceText{"a.log", std::move(text)}), problems);
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
  const LogText log = log_of("[1,0]<stdout>:# size\n 3: 8 2\n3:4\n");
  CHECK(words_of(log.lines()[0]) == "#|size");
  CHECK(log.lines()[0].words[0].column == 15);  // behind the 14 characters of the prefix
  CHECK(words_of(log.lines()[1]) == "8|2");
  CHECK(words_of(log.lines()[2]) == "3:4");
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
      problems);
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
