#include "core/output_guard.hpp"

#include <doctest/doctest.h>

#include <vector>

#include "core/json_stream.hpp"
#include "core/testing.hpp"

namespace windtunnel {
namespace {

namespace fs = std::filesystem;

/// The outputs of one test, which the next one does not have.
class Announced {
 public:
  explicit Announced(const std::vector<fs::path>& outputs) { announce_outputs(outputs); }
  ~Announced() { announce_outputs({}); }
  Announced(const Announced&) = delete;
  Announced& operator=(const Announced&) = delete;
};

TEST_CASE("an announced output is not read, whatever it is called") {
  const TemporaryFolder folder;
  const fs::path file = folder.write("a.json", "{}");
  const fs::path link = folder.path() / "link.json", twin = folder.path() / "twin.json";
  fs::create_symlink("a.json", link);
  fs::create_hard_link(file, twin);
  const Announced outputs({link});
  for (const fs::path& name : {file, link, twin, folder.path() / "." / "a.json"}) {
    CAPTURE(name);
    const std::string both =
        "the output " + link.string() + " is the same file as the input " + name.string();
    CHECK_THROWS_WITH_AS(read_source(name), doctest::Contains(both.c_str()), InputError);
    CHECK_THROWS_AS(TextInput{name}, InputError);
  }
}

TEST_CASE("an output that leaves a folder which is not there is the file that will be written") {
  const TemporaryFolder folder;
  const fs::path file = folder.write("a.json", "{}");
  const Announced outputs({folder.path() / "missing" / ".." / "a.json"});
  CHECK_THROWS_AS(read_source(file), InputError);
}

TEST_CASE("what was asked for as input is not written, even where the refusal was caught") {
  const TemporaryFolder folder;
  const fs::path file = folder.write("a.json", "{}");
  const Announced outputs({file});
  CHECK_THROWS_AS(read_source(file), InputError);
  CHECK_THROWS_AS(write_file_atomically(file, "[]"), InputError);
  CHECK(read_source(file, {ReadFor::rewriting})->text == "{}");
}

TEST_CASE("other files, new files, devices and files to be written anew are no matter") {
  const TemporaryFolder folder;
  const fs::path old = folder.write("old.json", "{}"), other = folder.write("other.json", "[]");
  const Announced outputs({old, folder.path() / "new.json", "/dev/null"});
  CHECK(read_source(other)->text == "[]");
  CHECK(read_source("/dev/null")->text.empty());
  CHECK(read_source(old, {ReadFor::rewriting})->text == "{}");
  write_file_atomically(old, "1");
  write_file_atomically(folder.path() / "new.json", "2");
  CHECK(read_source(folder.path() / "new.json")->text == "2");
}

TEST_CASE("two outputs that are one file are refused, devices are not") {
  const TemporaryFolder folder;
  const fs::path file = folder.write("a.json", "{}"), link = folder.path() / "link.json";
  fs::create_symlink("new.json", link);
  CHECK_THROWS_WITH_AS(announce_outputs({file, file}),
                       doctest::Contains(("the same file: " + file.string() + " (").c_str()),
                       InputError);
  const fs::path made = folder.path() / "." / "new.json";
  const std::string both = link.string() + " and " + made.string();
  CHECK_THROWS_WITH_AS(announce_outputs({link, file, made}), doctest::Contains(both.c_str()),
                       InputError);
  const Announced outputs({file, link, "/dev/null", "/dev/null"});
}

}  // namespace
}  // namespace windtunnel
