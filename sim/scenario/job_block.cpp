#include "scenario/job_block.hpp"

#include "core/enum_names.hpp"
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
    return;
  }
  if (has_tokens) job.tokens = reader.required_number("tokens", 1, most_tokens);
  if (has_steps) job.steps = static_cast<int>(reader.required_int("steps", 1, most_steps));
}

/// An object of the block, all keys of which `read` asks for.
template <class Read>
void read_part(ObjectReader part, const Read& read) {
  read(part);
  part.reject_unknown_keys();
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
  read_part(reader.child("start"), [&](ObjectReader& start) {
    given(start, "time", job.start_time, waiting);
    defaulted(start, "warm_up", job.warm_up, waiting);
  });
  if (auto evaluation = reader.optional_child("evaluation")) {
    required(*evaluation, "every", job.evaluation_every, 1, most_steps);
    required(*evaluation, "time", job.evaluation_time, waiting);
    evaluation->reject_unknown_keys();
  }
  read_part(reader.child("checkpoint"), [&](ObjectReader& checkpoint) {
    defaulted(checkpoint, "kind", job.checkpoint_kind);
    defaulted(checkpoint, "sharded", job.sharded);
    given(checkpoint, "interval", job.interval, interval_range);
    defaulted(checkpoint, "storage_bandwidth", job.storage_bandwidth, storage_range);
    defaulted(checkpoint, "node_bandwidth", job.node_bandwidth, storage_range);
    defaulted(checkpoint, "snapshot_bandwidth", job.snapshot_bandwidth, storage_range);
    defaulted(checkpoint, "kept", job.kept_checkpoints, 1, most_checkpoints);
  });
  read_part(reader.child("failures"), [&](ObjectReader& failures) {
    for (const FailingPart part : enumerators<FailingPart>())
      defaulted(failures, name_of(part), job.failures_per_year[part], 0, most_failures_per_year);
  });
  read_part(reader.child("restart"), [&](ObjectReader& restart) {
    given(restart, "detection", job.detection, waiting);
    defaulted(restart, "repair", job.repair, waiting);
    defaulted(restart, "spare_nodes", job.spare_nodes, 0, most_spares);
    defaulted(restart, "elastic", job.elastic);
  });
  if (auto part = reader.optional_child("price")) {
    JobBlock::Price& price = job.price.emplace(JobBlock::Price{});
    required(*part, "gpu_hour", price.gpu_hour, 0, most_price);
    defaulted(*part, "storage_tb_month", price.storage_tb_month, 0, most_price);
    price.currency = part->optional_string("currency", price.currency);
    part->reject_unknown_keys();
  }
  if (auto part = reader.optional_child("power")) {
    JobBlock::Power& power = job.power.emplace(JobBlock::Power{});
    required(*part, "computing", power.computing, 0, most_watts);
    required(*part, "communicating", power.communicating, 0, most_watts);
    required(*part, "idle", power.idle, 0, most_watts);
    defaulted(*part, "node", power.node, 0, most_watts);
    defaulted(*part, "pue", power.overhead, 1, most_overhead);
    given(*part, "kg_co2_per_kwh", power.kg_co2_per_kwh, 0, most_emissions);
    part->reject_unknown_keys();
  }
  reader.reject_unknown_keys();
  return job;
}

}  // namespace windtunnel
