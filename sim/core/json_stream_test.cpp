#include "core/json_stream.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>

#include <fstream>
#include <thread>

#include "core/file_io.hpp"
#include "core/gzip.hpp"
#include "core/problem.hpp"
#include "core/testing.hpp"

namespace windtunnel {
namespace {

/// Writes down what it is told: "{k:1 [sw]}".
class Notes final : public JsonListener {
 public:
  std::string text;
  void on_object_begin() override { text += "{"; }
  void on_object_end() override { text += "}"; }
  void on_array_begin() override { text += "["; }
  void on_array_end() override { text += "]"; }
  void on_key(std::string& key) override { text += key + ":"; }
  void on_string(std::string& value) override { text += "'" + value + "' "; }
  void on_number(const std::string& number) override { text += number + " "; }
  void on_word() override { text += "w "; }
};

std::string notes_of(TextInput& input) {
  Notes notes;
  stream_json(input, notes);
  return notes.text;
}

std::string problem_of(const std::string& text) {
  TextInput input("t.json", text);
  try {
    notes_of(input);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

const std::string list_of_many = [] {
  std::string text = "[";
  for (int i = 0; i < 50'000; ++i) text += std::to_string(i) + ",\n";
  return text + "1]";
}();

TEST_CASE("a JSON text is told piece by piece, numbers as they were written") {
  TextInput input("t.json",
                  R"({"a": [1, -2.50e3, 4458676416788.066, "x\u00e9"], "b": {"c": null}})");
  CHECK(notes_of(input) == "{a:[1 -2.50e3 4458676416788.066 'xé' ]b:{c:w }}");
}

TEST_CASE("a text that is no JSON is refused with its line and byte") {
  CHECK(problem_of("{\"a\": 1,\n \"b\": nope}").find("t.json:2:") == 0);
  CHECK(problem_of("{\"a\": 1,\n \"b\": nope}")
            .find("no JSON at byte 15: nope needs double quotes") != std::string::npos);
  CHECK(problem_of("{\"a\": [1, 2").find("the text ends after 11 bytes") != std::string::npos);
  CHECK(problem_of("").find("the text ends after 0 bytes") != std::string::npos);
  CHECK(problem_of("{} {}").find("no JSON at byte") != std::string::npos);
  CHECK(problem_of("[\"\xC3\xA9\", \"\xC3\"]")
            .find("t.json:1:8: error: no JSON at byte 8: byte 0xC3 is not UTF-8") == 0);
  CHECK(problem_of("[1, // two\n 2]").find("no JSON at byte 4: / is not expected here") !=
        std::string::npos);
  CHECK(problem_of("[1]") == "");
}

TEST_CASE(
    "blanks between tokens are passed over, whatever their number, and those in texts are kept") {
  const std::string blanks(100'000, ' ');
  const std::string text =
      "{" + blanks + "\"a  \\\"  b\"" + blanks + ":\n\n[1," + blanks + "2]}" + blanks;
  TextInput input("t.json", text);
  CHECK(notes_of(input) == "{a  \"  b:[1 2 ]}");
  CHECK(problem_of("[1," + blanks + "nope]").find("no JSON at byte 100003") != std::string::npos);
}

TEST_CASE(
    "a file with 16 MiB between two texts or numbers is refused before it is read to its end") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "t.json";
  const std::size_t size = std::size_t{20} << 20;
  std::string lists;
  while (lists.size() < size) lists += "[], ";
  for (const std::string& much :
       {"\"" + std::string(size, 'x'), std::string(size, '1'), std::string(size, ' '), lists}) {
    std::ofstream(file) << "[" << much;
    TextInput input(file);
    CHECK_THROWS_WITH_AS(notes_of(input), doctest::Contains("more than 16 MiB"), InputError);
    CHECK(input.byte() < size);
  }
}

TEST_CASE("a file is read as a text in memory is, wherever the pieces end in which it is read") {
  const TemporaryFolder folder;
  constexpr std::size_t piece = 65'536, longest_token = 12;
  const auto result = [](TextInput& input) {
    try {
      return notes_of(input);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
  };
  for (const char* end : {"\"a\\\"b\", 12.5, {\"k\": null}]", "nope", "80GB]", "12 34]",
                          "\"a\\q\"]", "1,]", "\"abc", "tru", "1}", "\xC3\xA9]", "\"\xC3\"]"})
    for (std::size_t shift = 0; shift < longest_token; ++shift) {
      const std::string text = "[" + std::string(piece - shift, ' ') + end;
      CAPTURE(end);
      CAPTURE(shift);
      const std::string name = folder.write("t.json", text).string();
      TextInput file{std::filesystem::path(name)}, memory(name, text);
      CHECK(result(file) == result(memory));
    }
}

TEST_CASE("a packed file is unpacked on the way, by its content and not its name") {
  const TemporaryFolder folder;
  const auto file = folder.path() / "packed.json";
  const std::string half = gzip(list_of_many.substr(0, list_of_many.size() / 2));
  // Two members one after the other are one text (RFC 1952, 2.2).
  std::ofstream(file, std::ios::binary)
      << half << gzip(list_of_many.substr(list_of_many.size() / 2));
  TextInput packed(file), plain("plain", list_of_many);
  CHECK(notes_of(packed) == notes_of(plain));
  CHECK(packed.position().line == 50'001);
  CHECK(packed.position().byte == list_of_many.size());
}

TEST_CASE("a pipe is read from its first byte, packed or not") {
  const TemporaryFolder folder;
  const auto pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  for (const std::string& bytes : {list_of_many, gzip(list_of_many)}) {
    std::thread writer([&] { std::ofstream(pipe, std::ios::binary) << bytes; });
    TextInput input(pipe), plain("plain", list_of_many);
    CHECK(notes_of(input) == notes_of(plain));
    writer.join();
  }
}

TEST_CASE("packed bytes that are cut off or damaged are refused") {
  const TemporaryFolder folder;
  const auto refused = [&](const std::string& bytes) {
    std::ofstream(folder.path() / "t.gz", std::ios::binary | std::ios::trunc) << bytes;
    TextInput input(folder.path() / "t.gz");
    try {
      notes_of(input);
    } catch (const InputError& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  std::string bytes = gzip(list_of_many);
  CHECK(refused(bytes) == "");
  CHECK(refused(bytes.substr(0, bytes.size() / 2)).find("ends in the middle") != std::string::npos);
  CHECK(refused(bytes.substr(0, bytes.size() - 3)).find("ends in the middle") != std::string::npos);
  char& of_checksum = bytes[bytes.size() - 6];  // eight bytes of checksum and size end the file
  of_checksum = static_cast<char>(of_checksum ^ 0x55);
  CHECK(refused(bytes).find("damaged near byte") != std::string::npos);
  CHECK_THROWS_AS(TextInput(folder.path() / "none.json"), EnvironmentError);
  CHECK_THROWS_AS(TextInput(folder.path()), EnvironmentError);
}

}  // namespace
}  // namespace windtunnel
