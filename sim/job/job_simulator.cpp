#include <algorithm>
#include <cmath>
#include <deque>
#include <limits>
#include <numeric>
#include <string>

#include "core/contracts.hpp"
#include "job/job_model.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

constexpr Ticks never = std::numeric_limits<Ticks>::max();
constexpr Ticks ticks_per_day = Ticks{86'400} * 1'000'000'000;

/// SplitMix64 (Steele, Lea & Flood, OOPSLA 2014): each draw of a job has a stream of its own.
class RandomStream {
 public:
  RandomStream(std::uint64_t seed, std::uint64_t draw) : state_(seed) {
    state_ = next() ^ (draw * step);
    state_ = next();
  }
  /// In [0, 1).
  double uniform() {
    constexpr int unused_bits = 11;
    constexpr double scale = 0x1p-53;
    return static_cast<double>(next() >> unused_bits) * scale;
  }
  /// Until an event of a Poisson process with so many events per tick; `never` where there are none.
  Ticks until_event(double rate) {
    if (rate <= 0) return never;
    const double ticks = -std::log1p(-uniform()) / rate;
    return ticks < static_cast<double>(never / 4) ? static_cast<Ticks>(ticks) : never;
  }

 private:
  static constexpr std::uint64_t step = 0x9E3779B97F4A7C15;
  std::uint64_t next() {
    std::uint64_t z = state_ += step;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
    return z ^ (z >> 31);
  }
  std::uint64_t state_;
};

/// The steps between two checkpoints, which count once the second is safe.
struct Period {
  std::int64_t steps = 0;
  Ticks compute = 0, noise = 0, slower = 0, evaluation = 0;
  Ticks total() const { return compute + noise + slower + evaluation; }
  Ticks safe_at = never;
};

/// The extra time of steps over the fastest: a series that repeats.
class StepNoises {
 public:
  StepNoises(const std::vector<Ticks>& series, RandomStream& random) {
    if (series.empty()) return;
    first_ = static_cast<std::int64_t>(random.uniform() * static_cast<double>(series.size()));
    sums_.reserve(series.size() + 1);
    sums_.push_back(0);
    for (const Ticks each : series) sums_.push_back(sums_.back() + each);
    most_ = *std::ranges::max_element(series);
  }
  /// The extra time of the steps from number `from` to before `to`.
  Ticks between(std::int64_t from, std::int64_t to) const {
    return sums_.empty() ? 0 : up_to(first_ + to) - up_to(first_ + from);
  }
  /// No `steps` steps in a row have more.
  Ticks most_of(std::int64_t steps) const {
    if (sums_.empty()) return 0;
    return steps / length() * sums_.back() + steps % length() * most_;
  }

 private:
  std::int64_t length() const { return static_cast<std::int64_t>(sums_.size()) - 1; }
  Ticks up_to(std::int64_t step) const {
    return step / length() * sums_.back() + sums_[static_cast<std::size_t>(step % length())];
  }
  std::int64_t first_ = 0;
  std::vector<Ticks> sums_;
  Ticks most_ = 0;
};

class JobSimulator {
 public:
  JobSimulator(const JobModel& model, std::uint64_t seed, std::uint64_t draw, QuietPeriods quiet)
      : model_(&model),
        quiet_(quiet),
        random_(seed, draw),
        noises_(model.noise, random_),
        until_failure_(random_.until_event(rate())) {}

  /// None: it is given up.
  std::optional<JobDraw> simulate() {
    for (bool first = true; !(launch(first) && train()); first = false) {
      if (now_ > most_days * ticks_per_day || draw_.num_failures() >= most_failures) return {};
      recover();
    }
    draw_.total = now_;
    WT_ENSURE(std::accumulate(draw_.spent.begin(), draw_.spent.end(), Ticks{}) == now_);
    return draw_;
  }

  [[noreturn]] void refuse() const {
    const auto text = [](double ticks) { return to_text(to_seconds(static_cast<Ticks>(ticks))); };
    const double between_failures = 1 / model_->failure_rate();
    const auto restart = static_cast<double>(model_->detection + model_->start + model_->read);
    Problems problems;
    problems.add(
        {{},
         "/job",
         "the job does not end: after " + std::to_string(draw_.num_failures()) + " failures in " +
             text(static_cast<double>(now_)) + ", " + std::to_string(done_) + " of its " +
             std::to_string(model_->steps) + " steps are done; it fails every " +
             text(between_failures) + " on average, needs " + text(restart) +
             " to go on, and begins a checkpoint every " +
             text(static_cast<double>(model_->checkpoint_every * model_->step.front())),
         restart > between_failures ? "lower rates, or a shorter restart, detection and read"
                                    : "write a shorter checkpoint/interval, or lower rates"});
    problems.throw_if_any();
    WT_UNREACHABLE();
  }

 private:
  double rate() const {
    return model_->failure_rate() * (1 - static_cast<double>(missing_) / model_->nodes);
  }
  Ticks& spent(Spent kind) { return draw_.spent[kind]; }

  /// The job runs for so long, or until it fails; returns how long it ran.
  Ticks run(Ticks duration) {
    const Ticks ran = std::min(duration, until_failure_);
    now_ += ran;
    if (until_failure_ != never) until_failure_ -= ran;
    failed_ = ran < duration;
    return ran;
  }
  /// The same, all of it spent on `kind`. False: it failed.
  bool run_for(Spent kind, Ticks duration) {
    spent(kind) += run(duration);
    return !failed_;
  }
  /// The clock goes on, and nothing runs that could fail.
  void wait_for(Spent kind, Ticks duration) {
    spent(kind) += duration;
    now_ += duration;
  }

  bool launch(bool first) {
    return run_for(first ? Spent::start : Spent::restart,
                   model_->start + (saved_ ? model_->read : 0));
  }

  bool train() {
    while (done_ < model_->steps) {
      run_quiet_periods();
      if (!run_period()) return false;
      if (missing_ > 0 && missing_nodes() < missing_ && done_ < model_->steps) {
        if (!settle_written()) return false;
        missing_ = missing_nodes();
        if (!launch(false)) return false;
      }
    }
    return settle_written();
  }

  Ticks evaluations(std::int64_t from, std::int64_t to) const {
    if (model_->evaluation_every == 0) return 0;
    return model_->evaluation * (to / model_->evaluation_every - from / model_->evaluation_every);
  }

  /// All periods but one that certainly end before the next failure, and in which no checkpoint waits for the one before it.
  void run_quiet_periods() {
    const std::int64_t every = model_->checkpoint_every;
    const Ticks compute = every * model_->step.front();
    if (quiet_ == QuietPeriods::one_by_one || missing_ > 0 || model_->write > compute) return;
    Ticks longest = compute + noises_.most_of(every) + model_->stall;
    if (model_->evaluation_every > 0)
      longest += model_->evaluation * (every / model_->evaluation_every + 1);
    const std::int64_t periods =
        std::min((model_->steps - done_ - 1) / every, until_failure_ / longest) - 1;
    if (periods < 1) return;
    const std::int64_t end = done_ + periods * every;
    const Period all{periods * every, periods * compute, noises_.between(done_, end), 0,
                     evaluations(done_, end)};
    add(all, +1);
    spent(Spent::checkpoint) += periods * model_->stall;
    draw_.checkpoints += periods;
    run(all.total() + periods * model_->stall);
    saved_ = saved_ || periods > 1 || written_.steps > 0;
    written_ = {every,
                compute,
                noises_.between(end - every, end),
                0,
                evaluations(end - every, end),
                now_ + model_->write};
    done_ = end;
  }

  /// Steps up to the next checkpoint, and the wait for it.
  bool run_period() {
    const std::int64_t steps = std::min(model_->checkpoint_every, model_->steps - done_);
    const Ticks compute = steps * model_->step.front();
    Period period{steps, compute, noises_.between(done_, done_ + steps),
                  steps * model_->step[static_cast<std::size_t>(missing_)] - compute,
                  evaluations(done_, done_ + steps)};
    const Ticks ran = run(period.total());
    if (failed_) {
      spent(Spent::lost) += ran;
      return false;
    }
    add(period, +1);
    unsaved_ = period;
    done_ += steps;
    // Another checkpoint can only begin once the one before it is written.
    if (!settle_written()) return false;
    if (!run_for(Spent::checkpoint, model_->stall)) return false;
    ++draw_.checkpoints;
    written_ = unsaved_;
    written_.safe_at = now_ + model_->write;
    unsaved_ = {};
    return true;
  }

  void add(const Period& period, int sign) {
    spent(Spent::compute) += sign * period.compute;
    spent(Spent::noise) += sign * period.noise;
    spent(Spent::slower) += sign * period.slower;
    spent(Spent::evaluation) += sign * period.evaluation;
  }

  /// Waits until the checkpoint under way is safe.
  bool settle_written() {
    if (written_.steps == 0) return true;
    if (now_ < written_.safe_at && !run_for(Spent::checkpoint, written_.safe_at - now_))
      return false;
    saved_ = true;
    written_ = {};
    return true;
  }

  /// Steps that are not safe are undone.
  void undo(Period& period) {
    if (period.steps > 0 && now_ >= period.safe_at) {
      saved_ = true;
    } else if (period.steps > 0) {
      add(period, -1);
      spent(Spent::lost) += period.total();
      done_ -= period.steps;
    }
    period = {};
  }

  void recover() {
    undo(written_);
    undo(unsaved_);
    const FailingPart part = failing_part();
    ++draw_.failures[part];
    if (part != FailingPart::software) repaired_at_.push_back(now_ + model_->repair);
    const bool hangs = model_->hang_share > 0 && random_.uniform() < model_->hang_share;
    wait_for(Spent::detection, hangs ? model_->hang : model_->detection);
    missing_ = missing_nodes();
    while (static_cast<std::size_t>(missing_) >= model_->step.size()) {
      wait_for(Spent::idle, repaired_at_.front() - now_);
      missing_ = missing_nodes();
    }
    until_failure_ = random_.until_event(rate());
  }

  /// Nodes that the job lacks once all that are repaired and all spares are in use.
  int missing_nodes() {
    while (!repaired_at_.empty() && repaired_at_.front() <= now_) repaired_at_.pop_front();
    return std::max(0, static_cast<int>(repaired_at_.size()) - model_->spare_nodes);
  }

  FailingPart failing_part() {
    double at = random_.uniform() * model_->failure_rate();
    for (const FailingPart part : enumerators<FailingPart>())
      if ((at -= model_->failures_per_tick[part]) < 0) return part;
    return FailingPart::software;
  }

  const JobModel* model_;
  QuietPeriods quiet_;
  RandomStream random_;
  StepNoises noises_;
  JobDraw draw_;
  Ticks now_ = 0;
  std::int64_t done_ = 0;  ///< steps, safe or not
  bool saved_ = false;     ///< there is a checkpoint to begin from
  bool failed_ = false;
  Period unsaved_, written_;  ///< steps without a checkpoint, and with one under way
  int missing_ = 0;           ///< nodes
  std::deque<Ticks> repaired_at_;
  Ticks until_failure_;
};

}  // namespace

std::int64_t JobDraw::num_failures() const {
  return std::accumulate(failures.begin(), failures.end(), std::int64_t{});
}

JobDraw simulate_draw(const JobModel& model, std::uint64_t seed, std::uint64_t draw,
                      QuietPeriods quiet) {
  WT_EXPECT(model.steps > 0 && model.checkpoint_every > 0 && !model.step.empty());
  JobSimulator simulator(model, seed, draw, quiet);
  const std::optional<JobDraw> drawn = simulator.simulate();
  if (!drawn) simulator.refuse();
  return *drawn;
}

std::optional<JobDraw> simulate_draw_if_it_ends(const JobModel& model, std::uint64_t seed,
                                                std::uint64_t draw) {
  return JobSimulator(model, seed, draw, QuietPeriods::at_once).simulate();
}

}  // namespace windtunnel
