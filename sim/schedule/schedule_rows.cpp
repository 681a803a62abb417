#include <algorithm>
#include <vector>

#include "schedule/schedule_check.hpp"
#include "schedule/schedule_drawing.hpp"

namespace windtunnel {
namespace {

std::size_t longest_token(const ScheduleOrders& orders) {
  std::size_t longest = 0;
  for (const std::vector<Step>& order : orders.of_stage)
    for (const Step& step : order) longest = std::max(longest, token_of(step).size());
  return longest;
}

std::string filled(std::string text, std::size_t width, char fill) {
  text.resize(std::max(width, text.size()), fill);
  return text;
}

}  // namespace

std::string schedule_rows(const ScheduleOrders& orders) {
  const ScheduleTiming timing = time_schedule(orders);
  const std::size_t column = longest_token(orders) + 1;
  const std::size_t label = std::to_string(orders.of_stage.size() - 1).size();
  std::string rows;
  for (std::size_t stage = 0; stage < orders.of_stage.size(); ++stage) {
    std::string row = "stage " + filled(std::to_string(stage), label, ' ') + " ";
    int now = 0;
    const auto idle_until = [&](int time) {
      for (; now < time; ++now) row += " " + filled(".", column - 1, ' ');
    };
    for (std::size_t i = 0; i < orders.of_stage[stage].size(); ++i) {
      const Step& step = orders.of_stage[stage][i];
      idle_until(timing.begin[stage][i]);
      const int length = ScheduleTiming::length_of(step.phase, timing.splits);
      const char fill = length > 1 ? '-' : ' ';
      row += " " + filled(token_of(step), column * static_cast<std::size_t>(length) - 1, fill);
      now += length;
    }
    idle_until(timing.end);
    row.erase(row.find_last_not_of(' ') + 1);
    rows += row + "\n";
  }
  return rows;
}

}  // namespace windtunnel
