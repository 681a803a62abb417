#include "search/rank_command.hpp"

#include <chrono>
#include <ostream>

#include "report/number_text.hpp"
#include "scenario/forked.hpp"
#include "search/rank.hpp"
#include "search/rank_json.hpp"
#include "search/rank_text.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

/// A bar that overwrites its line, once the work has taken long enough for somebody to wonder.
class ProgressBar {
 public:
  explicit ProgressBar(std::ostream& messages) : messages_(messages) {}
  ~ProgressBar() {
    if (shown_) messages_ << "\r\x1b[K" << std::flush;
  }
  ProgressBar(const ProgressBar&) = delete;
  ProgressBar& operator=(const ProgressBar&) = delete;

  void show(const RankProgress& progress) {
    constexpr auto patience = std::chrono::seconds(1);
    constexpr int width = 30;
    if (Clock::now() - start_ < patience) return;
    const double done = static_cast<double>(progress.simulated);
    const double share = done / (done + static_cast<double>(progress.left));
    messages_ << "\r\x1b[K" << left_aligned(bar_text(share, width), width) << " "
              << progress.simulated << " simulated, " << progress.left << " to rule out";
    if (progress.best) messages_ << ", best " << to_text(*progress.best);
    messages_ << std::flush;
    shown_ = true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  std::ostream& messages_;
  Clock::time_point start_ = Clock::now();
  bool shown_ = false;
};

}  // namespace

int run_rank(const Scenario& base, const RankRequest& request, std::ostream& out,
             std::ostream& messages) {
  ProgressBar bar(messages);
  RankOptions options;
  options.top = request.top;
  options.budget = request.budget;
  options.at_once = request.jobs == 0 ? default_at_once() : request.jobs;
  if (request.progress == RankProgressBar::shown)
    options.on_progress = [&bar](const RankProgress& progress) { bar.show(progress); };
  const RankResult result = rank_plans(base, options);
  out << (request.format == RankFormat::json ? rank_json(base, result)
                                             : rank_text(base, result, request.colour));
  return result.plans.empty() ? 1 : 0;
}

}  // namespace windtunnel
