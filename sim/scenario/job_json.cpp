#include "scenario/job_json.hpp"

#include "units/member_reader.hpp"

namespace windtunnel {
namespace {

constexpr double most_tokens = 1e18;
constexpr int most_steps = 1'000'000'000;
constexpr int most_spares = 100'000;
constexpr double most_failures_per_year = 1e4;
constexpr double most_price = 1e6;
constexpr double most_watts = 1e6;
constexpr double most_overhead = 10;
constexpr double most_emissions = 100;
constexpr int most_checkpoints = 1'000'000;

constexpr AmountRange waiting{"0 s", "8760 h"};
constexpr AmountRange interval_range{"1 s", "8760 h"};
constexpr AmountRange storage_range{"1 MB/s", "1000 TB/s"};

void read_length(ObjectReader& reader, JobBlock& job) {
  const bool has_tokens = reader.has("tokens"), has_steps = reader.has("steps");
  if (has_tokens == has_steps) {
    reader.problem(has_tokens ? "steps" : "tokens",
                   has_tokens ? "tokens and steps both say how long the job is"
                              : "neither tokens nor steps say how long the job is",
                   has_tokens ? "write one of them" : "write \"tokens\": 2e12");
    reader.take("tokens");
    reader.take("steps");
    return;
  }
  if (has_tokens) job.tokens = reader.required_number("tokens", 1, most_tokens);
  if (has_steps) job.steps = static_cast<int>(reader.required_int("steps", 1, most_steps));
  reader.take("tokens");
  reader.take("steps");
}

void read_start(ObjectReader reader, JobBlock& job) {
  given(reader, "time", job.start_time, waiting);
  defaulted(reader, "warm_up", job.warm_up, waiting);
  reader.reject_unknown_keys();
}

void read_evaluation(ObjectReader reader, JobBlock& job) {
  required(reader, "every", job.evaluation_every, 1, most_steps);
  required(reader, "time", job.evaluation_time, waiting);
  reader.reject_unknown_keys();
}

void read_checkpoint(ObjectReader reader, JobBlock& job) {
  defaulted(reader, "kind", job.checkpoint_kind);
  defaulted(reader, "sharded", job.sharded);
  given(reader, "interval", job.interval, interval_range);
  defaulted(reader, "storage_bandwidth", job.storage_bandwidth, storage_range);
  defaulted(reader, "node_bandwidth", job.node_bandwidth, storage_range);
  defaulted(reader, "snapshot_bandwidth", job.snapshot_bandwidth, storage_range);
  defaulted(reader, "kept", job.kept_checkpoints, 1, most_checkpoints);
  reader.reject_unknown_keys();
}

void read_failures(ObjectReader reader, JobBlock& job) {
  for (std::size_t i = 0; i < num_failing_parts; ++i)
    defaulted(reader, name_of(static_cast<FailingPart>(i)), job.failures_per_year[i], 0,
              most_failures_per_year);
  reader.reject_unknown_keys();
}

void read_restart(ObjectReader reader, JobBlock& job) {
  given(reader, "detection", job.detection, waiting);
  defaulted(reader, "repair", job.repair, waiting);
  defaulted(reader, "spare_nodes", job.spare_nodes, 0, most_spares);
  defaulted(reader, "elastic", job.elastic);
  reader.reject_unknown_keys();
}

JobBlock::Price read_price(ObjectReader reader) {
  JobBlock::Price price;
  required(reader, "gpu_hour", price.gpu_hour, 0, most_price);
  defaulted(reader, "storage_tb_month", price.storage_tb_month, 0, most_price);
  price.currency = reader.optional_string("currency", price.currency);
  reader.reject_unknown_keys();
  return price;
}

JobBlock::Power read_power(ObjectReader reader) {
  JobBlock::Power power;
  required(reader, "computing", power.computing, 0, most_watts);
  required(reader, "communicating", power.communicating, 0, most_watts);
  required(reader, "idle", power.idle, 0, most_watts);
  defaulted(reader, "node", power.node, 0, most_watts);
  defaulted(reader, "pue", power.overhead, 1, most_overhead);
  given(reader, "kg_co2_per_kwh", power.kg_co2_per_kwh, 0, most_emissions);
  reader.reject_unknown_keys();
  return power;
}

}  // namespace

JobBlock read_job(ObjectReader reader) {
  JobBlock job;
  read_length(reader, job);
  defaulted(reader, "plan", job.plan);
  if (job.plan == JobPlan::best && reader.has("step_time"))
    reader.problem("plan", "plan is \"best\", and step_time is that of one plan",
                   "leave out one of them");
  given(reader, "step_time", job.step_time, AmountRange{"1 us", "24 h"});
  read_start(reader.child("start"), job);
  if (auto evaluation = reader.optional_child("evaluation")) read_evaluation(*evaluation, job);
  read_checkpoint(reader.child("checkpoint"), job);
  read_failures(reader.child("failures"), job);
  read_restart(reader.child("restart"), job);
  if (auto price = reader.optional_child("price")) job.price = read_price(*price);
  if (auto power = reader.optional_child("power")) job.power = read_power(*power);
  reader.reject_unknown_keys();
  return job;
}

}  // namespace windtunnel
