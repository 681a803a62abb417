#include "core/enum_names.hpp"

#include <doctest/doctest.h>

#include <cstdint>
#include <string>

using namespace windtunnel;

namespace {

enum class Shape : std::uint8_t { round, almost_square };
struct Box {
  enum class Lid { open };
};
enum class Renamed { first };
const char* name_of(Renamed) { return "1st"; }

}  // namespace

TEST_CASE("an enumerator is called what its declaration calls it") {
  CHECK(std::string(name_of(Shape::almost_square)) == "almost_square");
  CHECK(std::string(name_of(Box::Lid::open)) == "open");
  CHECK(dashed_name(Shape::almost_square) == "almost-square");
}

TEST_CASE("a name_of() of an enumeration's own is preferred") {
  CHECK(std::string(name_of(Renamed::first)) == "1st");
}

TEST_CASE("enumerators are listed in the order of their declaration") {
  static_assert(enumerators<Shape>().size() == 2);
  CHECK(enumerators<Shape>()[1] == Shape::almost_square);
  CHECK(all_names<Shape>() ==
        Names<Shape>{{"round", Shape::round}, {"almost_square", Shape::almost_square}});
}

TEST_CASE("an enumerator is found by its name, other words are none") {
  CHECK(enumerator_named<Shape>("round") == Shape::round);
  CHECK(!enumerator_named<Shape>("Round"));
  CHECK(!enumerator_named<Shape>(""));
}
