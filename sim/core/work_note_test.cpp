#include "core/work_note.hpp"

#include <doctest/doctest.h>

#include <string>

namespace windtunnel {
namespace {

TEST_CASE("the outermost scope says what is being done, and counts") {
  REQUIRE(work_note.doing == nullptr);
  {
    const WorkNoteScope listing("listing the points", "points");
    count_done(3);
    {
      const WorkNoteScope reading("reading JSON", "values");
      count_done(40);
      CHECK(std::string(work_note.doing) == "listing the points");
      CHECK(work_note.done == 3);
    }
    count_done(4);
    CHECK(std::string(work_note.unit) == "points");
    CHECK(work_note.done == 4);
  }
  CHECK(work_note.doing == nullptr);
  const WorkNoteScope next("reading JSON", "values");
  CHECK(std::string(work_note.doing) == "reading JSON");
  CHECK(work_note.done == 0);
}

}  // namespace
}  // namespace windtunnel
