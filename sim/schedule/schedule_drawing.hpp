#pragma once

#include <cstddef>
#include <string>

#include "plan/schedule.hpp"

namespace windtunnel {

/// Most passes of a schedule that is drawn; beyond, nobody reads the picture.
inline constexpr std::size_t most_drawn_passes = 100'000;

/// A legal schedule as text: a row a stage, a column for the time of a forward pass. A backward pass is two columns wide (B0---), or
/// split into B and W; dots are idle time.
///
///   stage 0  F0 F1 .  .  B0--- .  B1---
///   stage 1  .  F0 B0--- F1 B1--- .  .
///
/// Lines longer than `width` characters (0: any) go on in further blocks of rows, later in time.
std::string schedule_rows(const ScheduleOrders& orders, std::size_t width = 0);

/// The same as a picture (SVG), as the papers draw it: forward blue, backward green, weight gradients pale, chunks in shades. Legible on
/// light and dark ground.
std::string schedule_svg(const ScheduleOrders& orders);

}  // namespace windtunnel
