#include <doctest/doctest.h>

#include <numeric>

#include "job/job_model.hpp"

namespace windtunnel {
namespace {

constexpr Ticks second = 1'000'000'000;

/// 1,000 steps of 10 s, a checkpoint of 20 s every 50 steps, 100 s to start, no failures.
JobModel plain_job() {
  JobModel model;
  model.steps = 1000;
  model.step = {10 * second};
  model.start = 100 * second;
  model.read = 30 * second;
  model.detection = 60 * second;
  model.repair = 3600 * second;
  model.checkpoint_every = 50;
  model.stall = 20 * second;
  model.nodes = 4;
  return model;
}

void set_rate(JobModel& model, FailingPart part, double per_hour) {
  constexpr double ticks_per_hour = 3600e9;
  model.failures_per_tick[static_cast<std::size_t>(part)] = per_hour / ticks_per_hour;
}

Ticks sum(const JobDraw& draw) {
  return std::accumulate(draw.spent.begin(), draw.spent.end(), Ticks{});
}

TEST_CASE("a job that fails faster than it starts is given up, and says how far it came") {
  // Fails every 100 s, and needs 100 s to start, 30 s to read and 1,000 s for each checkpoint.
  JobModel model = plain_job();
  model.stall = 1000 * second;
  set_rate(model, FailingPart::software, 36);
  std::string message;
  try {
    simulate_draw(model, 0, 0);
  } catch (const InputError& error) {
    message = error.problems().front().message;
  }
  CHECK(message.find("the job does not end: after 100000 failures in ") == 0);
  CHECK(message.find(" of its 1000 steps are done; it fails every 100.0 s") != std::string::npos);
  CHECK(!simulate_draw_if_it_ends(model, 0, 0));
}

TEST_CASE("a job in which nothing fails takes its start, steps, checkpoints and evaluations") {
  JobModel model = plain_job();
  model.evaluation_every = 300;
  model.evaluation = 7 * second;
  const JobDraw draw = simulate_draw(model, 0, 0);
  // 100 + 1000 · 10 + 1000/50 · 20 + 3 · 7 = 10521 s
  CHECK(draw.total == 10'521 * second);
  CHECK(draw.checkpoints == 20);
  CHECK(draw.spent[Spent::compute] == 10'000 * second);
  CHECK(draw.spent[Spent::evaluation] == 21 * second);
}

TEST_CASE("the time of every draw adds up exactly, whatever happens in it") {
  for (const Ticks write : {Ticks{0}, 300 * second, 900 * second})
    for (const bool elastic : {false, true}) {
      JobModel model = plain_job();
      model.write = write;
      if (elastic) model.step = {10 * second, 13 * second, 20 * second};
      model.evaluation_every = 33;
      model.evaluation = 7 * second + 1;
      model.spare_nodes = elastic ? 0 : 1;
      set_rate(model, FailingPart::gpu, 1.5);
      set_rate(model, FailingPart::software, 0.7);
      for (std::uint64_t i = 0; i < 300; ++i) {
        const JobDraw draw = simulate_draw(model, 5, i);
        CHECK(sum(draw) == draw.total);
        CHECK(draw.spent[Spent::compute] == model.steps * model.step.front());
        CHECK(draw.spent[Spent::detection] == draw.num_failures() * model.detection);
        for (const Ticks each : draw.spent) CHECK(each >= 0);
      }
    }
}

TEST_CASE("quiet periods simulated at once give the same as one by one") {
  for (const Ticks write : {Ticks{0}, 300 * second, 900 * second}) {
    JobModel model = plain_job();
    model.steps = 20'003;
    model.write = write;
    model.evaluation_every = 33;
    model.evaluation = 7 * second + 1;
    set_rate(model, FailingPart::gpu, 0.1);
    set_rate(model, FailingPart::software, 0.1);
    for (std::uint64_t i = 0; i < 100; ++i) {
      const JobDraw at_once = simulate_draw(model, 2, i, QuietPeriods::at_once);
      const JobDraw one_by_one = simulate_draw(model, 2, i, QuietPeriods::one_by_one);
      CHECK(at_once.spent == one_by_one.spent);
      CHECK(at_once.failures == one_by_one.failures);
      CHECK(at_once.checkpoints == one_by_one.checkpoints);
    }
  }
}

TEST_CASE("a job that does not end says which of its times are too long") {
  JobModel model = plain_job();
  model.checkpoint_every = 1000;            // 10,000 s of steps
  set_rate(model, FailingPart::gpu, 14.4);  // every 250 s, and 190 s to go on
  CHECK_THROWS_WITH_AS(simulate_draw(model, 0, 0), doctest::Contains("checkpoint/interval"),
                       InputError);
  model.start = model.detection = 86'400 * second;
  CHECK_THROWS_WITH_AS(simulate_draw(model, 0, 0), doctest::Contains("shorter restart"),
                       InputError);
}

TEST_CASE("a job repeats the steps of its noise, from a first one that is drawn") {
  JobModel model = plain_job();
  model.noise = {1 * second, 2 * second, 0, 5 * second};
  for (std::uint64_t i = 0; i < 20; ++i) {
    const JobDraw draw = simulate_draw(model, 0, i);
    // 250 times 8 s, wherever it begins, on top of 100 + 10,000 + 400 s
    CHECK(draw.spent[Spent::noise] == 2000 * second);
    CHECK(draw.total == 12'500 * second);
  }
  model.steps = 1001;  // the step beyond is the first again
  bool differ = false;
  for (std::uint64_t i = 1; i < 20; ++i)
    differ |= simulate_draw(model, 0, i).spent[Spent::noise] !=
              simulate_draw(model, 0, 0).spent[Spent::noise];
  CHECK(differ);
}

TEST_CASE("with noise, too, every draw adds up exactly, simulated at once or one by one") {
  for (const Ticks write : {Ticks{0}, 300 * second, 900 * second}) {
    JobModel model = plain_job();
    model.steps = 20'003;
    model.write = write;
    model.noise = {1 * second + 3, 0, 7 * second, 2 * second, 2 * second + 1, 0, 11};
    model.evaluation_every = 33;
    model.evaluation = 7 * second + 1;
    model.hang = 900 * second;
    model.hang_share = 0.3;
    set_rate(model, FailingPart::gpu, 0.1);
    set_rate(model, FailingPart::software, 0.1);
    for (std::uint64_t i = 0; i < 100; ++i) {
      const JobDraw draw = simulate_draw(model, 4, i);
      CHECK(sum(draw) == draw.total);
      CHECK(draw.spent[Spent::compute] == model.steps * model.step.front());
      for (const Ticks each : draw.spent) CHECK(each >= 0);
      CHECK(draw.spent == simulate_draw(model, 4, i, QuietPeriods::one_by_one).spent);
    }
  }
}

TEST_CASE("as many failures hang as their share says, and take the longer time to be noticed") {
  JobModel model = plain_job();
  model.steps = 100'000;
  model.hang = 600 * second;
  model.hang_share = 0.25;
  set_rate(model, FailingPart::software, 0.5);
  Ticks noticing = 0;
  std::int64_t failures = 0;
  for (std::uint64_t i = 0; i < 50; ++i) {
    const JobDraw draw = simulate_draw(model, 1, i);
    noticing += draw.spent[Spent::detection];
    failures += draw.num_failures();
  }
  // 0.75 · 60 + 0.25 · 600 = 195 s; some 8,000 failures know the share to 2 %, and with it the mean to 2.4 %; three times that
  CHECK(to_seconds(noticing) / Seconds{1} / double(failures) == doctest::Approx(195).epsilon(0.08));
}

TEST_CASE("as many failures come as their rate says") {
  JobModel model = plain_job();
  model.steps = 100'000;
  set_rate(model, FailingPart::software, 0.5);
  double failures = 0, hours = 0;
  for (std::uint64_t i = 0; i < 50; ++i) {
    const JobDraw draw = simulate_draw(model, 1, i);
    failures += static_cast<double>(draw.num_failures());
    hours += to_seconds(draw.total - draw.spent[Spent::detection]) / Seconds{3600};
  }
  // Some 8,000 failures: their number is known to 1/sqrt(8000) = 1.1 %; three times that.
  CHECK(failures / hours == doctest::Approx(0.5).epsilon(0.035));
}

TEST_CASE("without spares a job waits for repairs, with spares it does not") {
  JobModel model = plain_job();
  set_rate(model, FailingPart::node, 0.5);
  Ticks idle = 0, idle_with_spares = 0, slower = 0, idle_elastic = 0;
  for (std::uint64_t i = 0; i < 50; ++i) {
    const JobDraw alone = simulate_draw(model, 1, i);
    idle += alone.spent[Spent::idle];
    CHECK(alone.spent[Spent::idle] == alone.num_failures() * (model.repair - model.detection));
    JobModel spares = model;
    spares.spare_nodes = 20;
    idle_with_spares += simulate_draw(spares, 1, i).spent[Spent::idle];
    JobModel elastic = model;
    elastic.step = {10 * second, 13 * second, 20 * second};
    const JobDraw draw = simulate_draw(elastic, 1, i);
    slower += draw.spent[Spent::slower];
    idle_elastic += draw.spent[Spent::idle];
  }
  CHECK(idle > 0);
  CHECK(idle_with_spares == 0);
  CHECK(slower > 0);
  CHECK(idle_elastic < idle);
}

TEST_CASE("a checkpoint that is written during training stalls it less, and is safe later") {
  JobModel synchronous = plain_job();
  set_rate(synchronous, FailingPart::software, 1);
  JobModel asynchronous = synchronous;
  asynchronous.stall = 1 * second;
  asynchronous.write = 19 * second;
  Ticks lost_synchronous = 0, lost_asynchronous = 0;
  for (std::uint64_t i = 0; i < 300; ++i) {
    const JobDraw a = simulate_draw(synchronous, 1, i), b = simulate_draw(asynchronous, 1, i);
    CHECK(a.checkpoints * synchronous.stall >=
          a.spent[Spent::checkpoint] - synchronous.stall * a.num_failures());
    lost_synchronous += a.spent[Spent::lost];
    lost_asynchronous += b.spent[Spent::lost];
  }
  CHECK(lost_asynchronous > 0);
  CHECK(lost_synchronous > 0);
}

TEST_CASE("a draw is the same for the same seed and number, and another for another") {
  JobModel model = plain_job();
  set_rate(model, FailingPart::software, 1);
  CHECK(simulate_draw(model, 3, 7).total == simulate_draw(model, 3, 7).total);
  CHECK(simulate_draw(model, 3, 7).total != simulate_draw(model, 3, 8).total);
  CHECK(simulate_draw(model, 3, 7).total != simulate_draw(model, 4, 7).total);
}

}  // namespace
}  // namespace windtunnel
