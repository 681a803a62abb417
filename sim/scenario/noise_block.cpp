#include "scenario/noise_block.hpp"

#include <cmath>
#include <string>

#include "platform/platform_json.hpp"
#include "units/member_reader.hpp"

namespace windtunnel {
namespace {

constexpr double most_sigma = 2;
constexpr double least_slowdown = 0.1, most_slowdown = 100;
constexpr double most_correlation = 0.999;
constexpr double most_stalls_per_hour = 1e6;
constexpr int most_parts = 1 << 20;
constexpr AmountRange stall_range{"1 us", "1 h"};

/// The sources of the numbers in this object, where it names any.
void end_part(ObjectReader& reader, const std::string& prefix, Sources& sources) {
  if (reader.has("source")) sources.merge(read_sources(reader, prefix));
  reader.reject_unknown_keys();
}

NoiseBlock::SlowPart read_slow_part(ObjectReader& reader, const std::string& prefix,
                                    Sources& sources) {
  NoiseBlock::SlowPart part;
  if (reader.has("gpu") == reader.has("node"))
    reader.problem(reader.has("gpu") ? "node" : "gpu",
                   reader.has("gpu") ? "gpu and node both say which part is slow"
                                     : "neither gpu nor node says which part is slow",
                   reader.has("gpu") ? "write one of them" : "write \"gpu\": 11");
  given(reader, "gpu", part.gpu, 0, most_parts - 1);
  given(reader, "node", part.node, 0, most_parts - 1);
  required(reader, "slowdown", part.slowdown, least_slowdown, most_slowdown);
  end_part(reader, prefix, sources);
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
  for (ObjectReader& entry : reader.entries("slow_parts", {}, 0))
    noise.slow_parts.push_back(read_slow_part(entry, place_in(reader, entry), noise.sources));
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
  const auto read_part = [&](const char* key, const auto& read) {
    ObjectReader part = reader.child(key);
    read(part);
    end_part(part, std::string(key) + "/", noise.sources);
  };
  read_preamble(reader);
  noise.name = reader.optional_string("name", "noise");
  defaulted(reader, "pass_jitter", noise.pass_jitter, 0, most_sigma);
  read_part("spread", [&](ObjectReader& part) {
    defaulted(part, "gpu", noise.spread.gpu, 0, most_sigma);
    defaulted(part, "node", noise.spread.node, 0, most_sigma);
  });
  read_part("step_jitter", [&, &jitter = noise.step_jitter](ObjectReader& part) {
    defaulted(part, "all", jitter.all, 0, most_sigma);
    given(part, "all_lasts", jitter.all_lasts, stall_range);
    defaulted(part, "gpu", jitter.gpu, 0, most_sigma);
    defaulted(part, "node", jitter.node, 0, most_sigma);
    defaulted(part, "correlation", jitter.correlation, 0, most_correlation);
  });
  read_slow_parts(reader, noise);
  read_part("links", [&](ObjectReader& part) {
    defaulted(part, "rate", noise.links.rate, 0, most_sigma);
    defaulted(part, "latency", noise.links.latency, 0, most_sigma);
  });
  read_part("stalls", [&](ObjectReader& part) {
    defaulted(part, "per_gpu_hour", noise.stalls.per_gpu_hour, 0, most_stalls_per_hour);
    defaulted(part, "median", noise.stalls.median, stall_range);
    defaulted(part, "spread", noise.stalls.spread, 0, most_sigma);
  });
  end_part(reader, {}, noise.sources);
  return noise;
}

}  // namespace windtunnel
