#include "scenario/job_json.hpp"

#include "units/quantity_reader.hpp"

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

/// Failures per part and year in 54 days of Llama 3 405B on 16,384 H100 in 2,048 nodes: 419 interruptions, by cause
/// (The Llama 3 Herd of Models, arXiv:2407.21783, table 5, as quoted by G. K. Lockwood's component-reliability page).
/// 54 days are 0.1478 years: 2,422 years of a GPU and of a NIC, 302.8 of a node.
///   gpu: faulty GPU 148, system processor 17, silent corruption 6, thermal 6: 177 / 2422
///   memory: HBM3 72, SRAM 19: 91 / 2422         nic: 7 / 2422       network: switch or cable 35 / 2422
///   node: maintenance 32, SSD 3, power supply 3, chassis 2, I/O board 2, CPU 2, memory 2: 46 / 302.8
///   software: bug 54, dependency 2, NCCL watchdog 7: 63 / 302.8
constexpr std::array<double, num_failing_parts> llama3_failures_per_year{0.0731,  0.0376, 0.00289,
                                                                         0.01445, 0.152,  0.208};

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
  if (reader.take("time") != nullptr)
    job.start_time = required_quantity<Seconds>(reader, "time", waiting);
  job.warm_up = optional_quantity<Seconds>(reader, "warm_up", "0 s", waiting);
  reader.reject_unknown_keys();
}

void read_evaluation(ObjectReader reader, JobBlock& job) {
  job.evaluation_every = static_cast<int>(reader.required_int("every", 1, most_steps));
  job.evaluation_time = required_quantity<Seconds>(reader, "time", waiting);
  reader.reject_unknown_keys();
}

void read_checkpoint(ObjectReader reader, JobBlock& job) {
  job.checkpoint_kind =
      reader.optional_enum<CheckpointKind>("kind", CheckpointKind::synchronous,
                                           {{"synchronous", CheckpointKind::synchronous},
                                            {"asynchronous", CheckpointKind::asynchronous}});
  job.sharded = reader.optional_bool("sharded", true);
  if (reader.take("interval") != nullptr)
    job.interval = required_quantity<Seconds>(reader, "interval", interval_range);
  job.storage_bandwidth =
      optional_quantity<BytesPerSecond>(reader, "storage_bandwidth", "100 GB/s", storage_range);
  job.node_bandwidth =
      optional_quantity<BytesPerSecond>(reader, "node_bandwidth", "5 GB/s", storage_range);
  job.snapshot_bandwidth =
      optional_quantity<BytesPerSecond>(reader, "snapshot_bandwidth", "10 GB/s", storage_range);
  job.kept_checkpoints = reader.optional_int("kept", 3, 1, most_checkpoints);
  reader.reject_unknown_keys();
}

void read_failures(ObjectReader reader, JobBlock& job) {
  for (std::size_t i = 0; i < num_failing_parts; ++i)
    job.failures_per_year[i] =
        reader.optional_number(name_of(static_cast<FailingPart>(i)), llama3_failures_per_year[i], 0,
                               most_failures_per_year);
  reader.reject_unknown_keys();
}

void read_restart(ObjectReader reader, JobBlock& job) {
  if (reader.take("detection") != nullptr)
    job.detection = required_quantity<Seconds>(reader, "detection", waiting);
  job.repair = optional_quantity<Seconds>(reader, "repair", "24 h", waiting);
  job.spare_nodes = reader.optional_int("spare_nodes", 0, 0, most_spares);
  job.elastic = reader.optional_bool("elastic", false);
  reader.reject_unknown_keys();
}

JobBlock::Price read_price(ObjectReader reader) {
  JobBlock::Price price;
  price.gpu_hour = reader.required_number("gpu_hour", 0, most_price);
  price.storage_tb_month = reader.optional_number("storage_tb_month", 0, 0, most_price);
  price.currency = reader.optional_string("currency", "USD");
  reader.reject_unknown_keys();
  return price;
}

JobBlock::Power read_power(ObjectReader reader) {
  JobBlock::Power power;
  power.computing = reader.required_number("computing", 0, most_watts);
  power.communicating = reader.required_number("communicating", 0, most_watts);
  power.idle = reader.required_number("idle", 0, most_watts);
  power.node = reader.optional_number("node", 0, 0, most_watts);
  power.overhead = reader.optional_number("pue", 1, 1, most_overhead);
  if (reader.has("kg_co2_per_kwh"))
    power.kg_co2_per_kwh = reader.required_number("kg_co2_per_kwh", 0, most_emissions);
  reader.take("kg_co2_per_kwh");
  reader.reject_unknown_keys();
  return power;
}

}  // namespace

const char* name_of(FailingPart part) {
  switch (part) {
    case FailingPart::gpu:
      return "gpu";
    case FailingPart::memory:
      return "memory";
    case FailingPart::nic:
      return "nic";
    case FailingPart::network:
      return "network";
    case FailingPart::node:
      return "node";
    case FailingPart::software:
      return "software";
  }
  return "";
}

JobBlock read_job(ObjectReader reader) {
  JobBlock job;
  read_length(reader, job);
  job.plan = reader.optional_enum<JobPlan>("plan", JobPlan::given,
                                           {{"given", JobPlan::given}, {"best", JobPlan::best}});
  if (job.plan == JobPlan::best && reader.has("step_time"))
    reader.problem("plan", "plan is \"best\", and step_time is that of one plan",
                   "leave out one of them");
  if (reader.take("step_time") != nullptr)
    job.step_time = required_quantity<Seconds>(reader, "step_time", {"1 us", "24 h"});
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
