#include "sweep/parts.hpp"

#include <doctest/doctest.h>
#include <signal.h>
#include <sys/resource.h>

#include "sweep/row.hpp"
#include "sweep/sweep_fixtures.hpp"

namespace windtunnel {
namespace {

std::string row(int point, const char* ok, const std::string& more = "") {
  return "{\"point\": " + std::to_string(point) + ", \"ok\": " + ok + more + "}";
}

TEST_CASE("rows that were appended are found again, from every writer") {
  const TemporaryFolder folder;
  PartWriter first(folder.path()), second(folder.path());
  first.append(row(2, "true"));
  second.append(row(0, "false"));
  first.append(row(1, "true"));
  const PartRows rows = read_parts(folder.path(), 3);
  CHECK(rows.by_point.size() == 3);
  CHECK(rows.num_failed == 1);
  CHECK(rows.num_torn == 0);
  CHECK(rows.by_point.at(1).row == row(1, "true"));
}

TEST_CASE("a torn last line, an empty line and a row of no point are ignored and counted") {
  const TemporaryFolder folder;
  const std::string whole = row(0, "true") + "\n";
  folder.write("parts/a.jsonl", whole + row(1, "true").substr(0, 12));
  folder.write("parts/b.jsonl", whole + "\n" + row(9, "true") + "\n");
  // Whole, but without its line end: nobody can know that it is whole.
  folder.write("parts/c.jsonl", row(2, "true"));
  const PartRows rows = read_parts(folder.path(), 3);
  CHECK(rows.by_point.size() == 1);
  CHECK(rows.num_torn == 4);
}

TEST_CASE("of several rows of a point one that is ok counts, in whatever order they were written") {
  const TemporaryFolder folder;
  folder.write("parts/a.jsonl",
               row(0, "false", ", \"error\": \"x\"") + "\n" + row(0, "true") + "\n");
  folder.write("parts/b.jsonl", row(0, "false", ", \"error\": \"a\"") + "\n");
  const PartRows rows = read_parts(folder.path(), 1);
  CHECK(rows.by_point.at(0).row == row(0, "true"));
  CHECK(rows.num_failed == 0);
}

TEST_CASE("where no part was written there are no rows") {
  const TemporaryFolder folder;
  CHECK(read_parts(folder.path() / "none", 3).by_point.empty());
  CHECK(size_of_parts(folder.path() / "none") == 0);
}

TEST_CASE("a row that does not fit on the disk leaves no half, and what was there stays") {
  const TemporaryFolder folder;
  PartWriter writer(folder.path());
  writer.append(row(0, "true"));
  signal(SIGXFSZ, SIG_IGN);
  rlimit before{};
  getrlimit(RLIMIT_FSIZE, &before);
  const rlimit tight{40, before.rlim_max};  // the first row and its line end take 26 bytes
  setrlimit(RLIMIT_FSIZE, &tight);
  CHECK_THROWS_AS(writer.append(row(1, "true")), EnvironmentError);
  setrlimit(RLIMIT_FSIZE, &before);
  const PartRows rows = read_parts(folder.path(), 3);
  CHECK(rows.by_point.size() == 1);
  CHECK(rows.num_torn == 0);
}

}  // namespace
}  // namespace windtunnel
