#include <doctest/doctest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "core/file_io.hpp"
#include "scenario/corpus_fixtures.hpp"

namespace windtunnel {
namespace {

std::string message_of(const std::filesystem::path& file) {
  try {
    read_scenario(file, Library{"../library"});
  } catch (const InputError& error) {
    return std::string(error.what()) + "\n";
  }
  return "accepted\n";
}

/// WINDTUNNEL_UPDATE_GOLDEN=1 writes the messages down; review the difference.
TEST_CASE("each kind of bad input gets exactly the message written next to it") {
  std::filesystem::current_path(corpus() / "errors");
  const bool update = std::getenv("WINDTUNNEL_UPDATE_GOLDEN") != nullptr;
  for (const auto& file : json_files(".")) {
    const std::string name = file.filename().string();
    CAPTURE(name);
    const std::string message = message_of(name);
    const std::filesystem::path expected = std::filesystem::path(name).replace_extension(".txt");
    if (update) write_file_atomically(expected, message);
    CHECK(message == read_source(expected)->text);
  }
}

TEST_CASE("at most twenty problems are told, and how many more there are") {
  std::filesystem::current_path(corpus() / "errors");
  // One unknown model, one fraction and 25 unknown keys: 27.
  const std::string message = message_of("many_problems.json");
  std::size_t told = 0;
  for (std::size_t at = message.find(": error: "); at != std::string::npos;
       at = message.find(": error: ", at + 1))
    ++told;
  CHECK(told == Problems::max_reported);
  CHECK(message.find("and 7 more") != std::string::npos);
}

}  // namespace
}  // namespace windtunnel
