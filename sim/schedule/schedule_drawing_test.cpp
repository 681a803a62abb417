#include "schedule/schedule_drawing.hpp"

#include <doctest/doctest.h>

#include <cstdlib>
#include <filesystem>

#include "core/file_io.hpp"
#include "core/testing.hpp"
#include "plan/schedule.hpp"

namespace windtunnel {
namespace {

TEST_CASE("a schedule is drawn as a row a stage") {
  CHECK(schedule_rows(schedule_orders(*schedule_named("1f1b"), {2, 2, 1})) ==
        "stage 0  F0 F1 .  .  B0--- .  B1---\n"
        "stage 1  .  F0 B0--- F1 B1--- .  .\n");
  CHECK(schedule_rows(schedule_orders(*schedule_named("zero_bubble_h1"), {2, 2, 1})) ==
        "stage 0  F0 F1 .  B0 W0 B1 W1\n"
        "stage 1  .  F0 B0 F1 B1 W0 W1\n");
}

TEST_CASE("a drawing wider than its place goes on in a block below") {
  CHECK(schedule_rows(schedule_orders(*schedule_named("1f1b"), {2, 2, 1}), 20) ==
        "stage 0  F0 F1 .  .\n"
        "stage 1  .  F0 B0---\n"
        "\n"
        "stage 0  B0--- .  B1\n"
        "stage 1  F1 B1--- .\n"
        "\n"
        "stage 0 ---\n"
        "stage 1  .\n");
}

/// WINDTUNNEL_UPDATE_GOLDEN=1 draws them anew; look at the difference.
TEST_CASE("the pictures in the documentation are those that are drawn now") {
  const std::filesystem::path images = source_dir() / "docs/img";
  const bool update = std::getenv("WINDTUNNEL_UPDATE_GOLDEN") != nullptr;
  for (const SchedulePtr& schedule : named_schedules()) {
    const int chunks = schedule->takes(2) ? 2 : 1;
    const std::string name = schedule->name;
    CAPTURE(name);
    const std::string svg = schedule_svg(schedule_orders(*schedule, {4, 8, chunks}));
    const auto file = images / ("schedule-" + name + ".svg");
    if (update) write_file_atomically(file, svg);
    CHECK(read_source(file)->text == svg);
  }
}

TEST_CASE("the name in a picture is text, whatever it holds") {
  ScheduleOrders orders = schedule_orders(*schedule_named("gpipe"), {1, 1, 1});
  orders.name = "<a & b>";
  CHECK(schedule_svg(orders).find("<title>&lt;a &amp; b&gt;: 1 stages") != std::string::npos);
}

}  // namespace
}  // namespace windtunnel
