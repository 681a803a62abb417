#include "core/staged_files.hpp"

#include <doctest/doctest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <ostream>

#include "core/gzip.hpp"
#include "core/testing.hpp"

namespace windtunnel {
namespace {

namespace fs = std::filesystem;

TEST_CASE("files that are staged together appear together") {
  const TemporaryFolder folder;
  const fs::path a = folder.write("a.json", "old"), b = folder.path() / "deep" / "b.json.gz";
  StagedFiles files;
  files.add(a, "new");
  files.add_streamed(b, [](std::ostream& out) {
    for (int i = 0; i < 100'000; ++i) out << "0123456789";
  });
  CHECK(read_source(a)->text == "old");
  CHECK_FALSE(fs::exists(b));
  files.commit();
  CHECK(read_source(a)->text == "new");
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "0123456789";
  CHECK(read_source(b)->text == gzip(text));
  CHECK(folder.entries() == 2);
}

TEST_CASE("a file is not staged twice, whatever it is called") {
  const TemporaryFolder folder;
  const fs::path a = folder.write("a.json", "old"), link = folder.path() / "link.json";
  fs::create_symlink("a.json", link);
  for (const fs::path& name : {a, link, folder.path() / "deep" / ".." / "a.json"}) {
    CAPTURE(name);
    StagedFiles files;
    files.add(a, "first");
    CHECK_THROWS_WITH_AS(files.add(name, "second"),
                         doctest::Contains("two outputs are the same file"), InputError);
  }
  CHECK(read_source(a)->text == "old");
  {
    StagedFiles files;
    const fs::path in_new_folder = fs::relative(folder.path()) / "new" / "b.json";
    files.add(in_new_folder, "first");
    CHECK_THROWS_AS(files.add("." / in_new_folder, "second"), InputError);
  }
  StagedFiles files;
  for (int i = 0; i < 2; ++i) files.add("/dev/null", "x");
  for (const char* text : {"1", "2"}) {
    files.add(a, text);
    files.commit();
  }
  CHECK(read_source(a)->text == "2");
}

TEST_CASE("what was not committed leaves nothing behind") {
  const TemporaryFolder folder;
  const fs::path a = folder.write("a.json", "old");
  {
    StagedFiles files;
    files.add(a, "new");
    CHECK_THROWS_AS(files.add(folder.path(), "x"), EnvironmentError);
  }
  CHECK(read_source(a)->text == "old");
  CHECK(folder.entries() == 1);
}

TEST_CASE("where one file cannot have its name, none of the set is replaced") {
  const TemporaryFolder folder;
  const fs::path old = folder.write("a.json", "old"), fresh = folder.path() / "b.json",
                 taken = folder.path() / "c.json";
  {
    StagedFiles files;
    for (const fs::path& path : {old, fresh, taken}) files.add(path, "new");
    fs::create_directory(taken);
    CHECK_THROWS_WITH_AS(files.commit(), doctest::Contains("c.json: Is a directory"),
                         EnvironmentError);
  }
  CHECK(read_source(old)->text == "old");
  CHECK_FALSE(fs::exists(fresh));
  CHECK(folder.entries() == 2);
}

TEST_CASE(
    "a file keeps its permissions when it is replaced, and a new one has those of the umask") {
  const TemporaryFolder folder;
  const fs::path secret = folder.write("secret", "old"), fresh = folder.path() / "new";
  constexpr auto private_file = fs::perms::owner_read | fs::perms::owner_write;
  for (const fs::perms permissions :
       {private_file, private_file | fs::perms::group_write, fs::perms::owner_read}) {
    fs::permissions(secret, permissions);
    StagedFiles files;
    files.add(secret, "new");
    files.add(fresh, "new");
    files.commit();
    CHECK(fs::status(secret).permissions() == permissions);
  }
  const mode_t mask = umask(0);
  umask(mask);
  CHECK(fs::status(fresh).permissions() == static_cast<fs::perms>(0666 & ~mask));
}

TEST_CASE("of two that write a new file, the second is told that there is one") {
  const TemporaryFolder folder;
  const fs::path path = folder.path() / "a.json";
  StagedFiles first, second;
  first.add(path, "first");
  second.add(path, "second");
  CHECK(first.commit_new());
  CHECK_FALSE(second.commit_new());
  CHECK(read_source(path)->text == "first");
  CHECK_FALSE(write_new_file_atomically(path, "third"));
  CHECK(read_source(path)->text == "first");
}

TEST_CASE("a signal removes what its process staged, and a child's nothing of its parent's") {
  const TemporaryFolder folder;
  StagedFiles ours;
  ours.add(folder.path() / "ours", "x");
  const pid_t child = fork();
  if (child == 0) {
    StagedFiles files;
    files.add(folder.path() / "theirs", "x");
    remove_staged_files();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(folder.entries() == 1);
  ours.commit();
  CHECK(fs::exists(folder.path() / "ours"));
}

TEST_CASE("a full disk is told, and leaves nothing") {
  if (!fs::is_character_file("/dev/full")) return;
  StagedFiles files;
  CHECK_THROWS_WITH_AS(files.add("/dev/full", std::string(100'000, 'x')),
                       doctest::Contains("No space left"), EnvironmentError);
}

}  // namespace
}  // namespace windtunnel
