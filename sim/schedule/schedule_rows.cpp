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

std::string schedule_rows(const ScheduleOrders& orders, std::size_t width) {
  const ScheduleTiming timing = time_schedule(orders);
  const std::size_t column = longest_token(orders) + 1;
  const std::size_t label = std::to_string(orders.of_stage.size() - 1).size();
  std::vector<std::string> labels, rows;
  for (std::size_t stage = 0; stage < orders.of_stage.size(); ++stage) {
    labels.push_back("stage " + filled(std::to_string(stage), label, ' ') + " ");
    std::string& row = rows.emplace_back();
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
  }
  // A wide drawing is cut between columns, and goes on below.
  const std::size_t all = rows.front().size(), used = labels.front().size() + column;
  const std::size_t block =
      width == 0 ? all : column * (1 + (width > used ? width - used : 0) / column);
  std::string text;
  for (std::size_t begin = 0; begin < all; begin += block) {
    if (begin > 0) text += "\n";
    for (std::size_t stage = 0; stage < rows.size(); ++stage) {
      std::string line = labels[stage] + rows[stage].substr(begin, block);
      line.erase(line.find_last_not_of(' ') + 1);
      text += line + "\n";
    }
  }
  return text;
}

}  // namespace windtunnel
