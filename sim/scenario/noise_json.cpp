#include "scenario/noise_json.hpp"

#include <cmath>

#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

constexpr double most_sigma = 2;
constexpr double least_slowdown = 0.1, most_slowdown = 100;
constexpr double most_correlation = 0.999;
constexpr double most_stalls_per_hour = 1e6;
constexpr int most_parts = 1 << 20;
constexpr AmountRange stall_range{"1 us", "1 h"};

double read_sigma(ObjectReader& reader, const char* key) {
  return reader.optional_number(key, 0, 0, most_sigma);
}

/// The sources of the numbers in this object, where it names any.
void end_object(ObjectReader& reader, const std::string& prefix, Sources& sources) {
  if (reader.has("source")) sources.merge(read_sources(reader, prefix));
  reader.take("source");
  reader.reject_unknown_keys();
}

NoiseBlock::Spread read_spread(ObjectReader reader, Sources& sources) {
  NoiseBlock::Spread spread{read_sigma(reader, "gpu"), read_sigma(reader, "node")};
  end_object(reader, "spread/", sources);
  return spread;
}

NoiseBlock::StepJitter read_step_jitter(ObjectReader reader, Sources& sources) {
  NoiseBlock::StepJitter jitter;
  jitter.all = read_sigma(reader, "all");
  if (reader.take("all_lasts") != nullptr)
    jitter.all_lasts = required_quantity<Seconds>(reader, "all_lasts", stall_range);
  jitter.gpu = read_sigma(reader, "gpu");
  jitter.node = read_sigma(reader, "node");
  jitter.correlation = reader.optional_number("correlation", 0, 0, most_correlation);
  end_object(reader, "step_jitter/", sources);
  return jitter;
}

NoiseBlock::Links read_links(ObjectReader reader, Sources& sources) {
  NoiseBlock::Links links{read_sigma(reader, "rate"), read_sigma(reader, "latency")};
  end_object(reader, "links/", sources);
  return links;
}

NoiseBlock::Stalls read_stalls(ObjectReader reader, Sources& sources) {
  NoiseBlock::Stalls stalls;
  stalls.per_gpu_hour = reader.optional_number("per_gpu_hour", 0, 0, most_stalls_per_hour);
  stalls.median = optional_quantity<Seconds>(reader, "median", "100 ms", stall_range);
  stalls.spread = read_sigma(reader, "spread");
  end_object(reader, "stalls/", sources);
  return stalls;
}

NoiseBlock::SlowPart read_slow_part(ObjectReader reader, const std::string& prefix,
                                    Sources& sources) {
  NoiseBlock::SlowPart part;
  if (reader.has("gpu") == reader.has("node"))
    reader.problem(reader.has("gpu") ? "node" : "gpu",
                   reader.has("gpu") ? "gpu and node both say which part is slow"
                                     : "neither gpu nor node says which part is slow",
                   reader.has("gpu") ? "write one of them" : "write \"gpu\": 11");
  if (reader.take("gpu") != nullptr) part.gpu = reader.required_int("gpu", 0, most_parts - 1);
  if (reader.take("node") != nullptr) part.node = reader.required_int("node", 0, most_parts - 1);
  part.slowdown = reader.required_number("slowdown", least_slowdown, most_slowdown);
  end_object(reader, prefix, sources);
  return part;
}

void read_slow_parts(ObjectReader& reader, NoiseBlock& noise) {
  JsonValue* const list = reader.take("slow_parts");
  if (list == nullptr) return;
  if (!list->is_array()) {
    reader.problem("slow_parts", "slow_parts is " + text_for_message(*list) + ", which is no list",
                   "write [{\"gpu\": 11, \"slowdown\": 1.25}]");
    return;
  }
  for (std::size_t i = 0; i < list->array().size(); ++i) {
    const std::string place = "slow_parts/" + std::to_string(i);
    noise.slow_parts.push_back(read_slow_part(
        ObjectReader(list->array()[i], reader.pointer() + "/" + place, reader.problems()),
        place + "/", noise.sources));
  }
}

}  // namespace

double NoiseBlock::StepJitter::all_in(Seconds step) const {
  return all_lasts && step > *all_lasts ? all * std::sqrt(*all_lasts / step) : all;
}

bool NoiseBlock::is_none() const {
  return pass_jitter == 0 && spread.gpu == 0 && spread.node == 0 && step_jitter.all == 0 &&
         step_jitter.gpu == 0 && step_jitter.node == 0 && slow_parts.empty() && links.rate == 0 &&
         links.latency == 0 && stalls.per_gpu_hour == 0;
}

NoiseBlock read_noise(ObjectReader reader) {
  NoiseBlock noise;
  read_preamble(reader);
  noise.name = reader.optional_string("name", "noise");
  noise.pass_jitter = read_sigma(reader, "pass_jitter");
  noise.spread = read_spread(reader.child("spread"), noise.sources);
  noise.step_jitter = read_step_jitter(reader.child("step_jitter"), noise.sources);
  read_slow_parts(reader, noise);
  noise.links = read_links(reader.child("links"), noise.sources);
  noise.stalls = read_stalls(reader.child("stalls"), noise.sources);
  end_object(reader, {}, noise.sources);
  return noise;
}

}  // namespace windtunnel
