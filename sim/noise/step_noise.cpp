#include "noise/step_noise.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "core/philox.hpp"
#include "cost/kernel_cost.hpp"

namespace windtunnel {
namespace {

/// Passes of different streams of a device are drawn apart: which comes first may depend on the engine.
std::uint32_t stream_index(DeviceId device, Stream stream) {
  return device.index() * static_cast<std::uint32_t>(num_streams) +
         static_cast<std::uint32_t>(stream);
}

Seconds kernels_of(const Work& work) {
  Seconds kernels{};
  for (const Part part : {Part::compute, Part::codec, Part::optimizer})
    kernels += work.parts[static_cast<std::size_t>(part)];
  return kernels;
}

/// All but what waits for launches and the host.
Seconds busy(const Work& work) {
  Seconds sum{};
  for (const Seconds part : work.parts) sum += part;
  return sum - work.parts[static_cast<std::size_t>(Part::other)];
}

/// In (0, 1]: 53 bits.
double unit(std::uint32_t high, std::uint32_t low) {
  constexpr int unused_bits = 11, half = 32;
  constexpr double scale = 0x1p-53;
  const std::uint64_t bits = (static_cast<std::uint64_t>(high) << half | low) >> unused_bits;
  return static_cast<double>(bits + 1) * scale;
}

PhiloxCounter bits(std::uint64_t seed, NoiseKind kind, NoiseDraws::Place place) {
  constexpr int half = 32;
  return philox({place.part, place.step, place.number, static_cast<std::uint32_t>(kind)},
                {static_cast<std::uint32_t>(seed), static_cast<std::uint32_t>(seed >> half)});
}

}  // namespace

Seconds with_slower_kernels(const Work& usual, double factor) {
  if (factor == 1) return usual.duration;
  const Seconds work = busy(usual), longer = kernels_of(usual) * (factor - 1);
  LaunchFloor floor = usual.floor;
  floor.elsewhere += floor.kernels_elsewhere * (factor - 1);
  return usual.duration + with_launch_floor(work + longer, floor) -
         with_launch_floor(work, usual.floor);
}

StepNoise::StepNoise(const NoiseBlock& block, std::uint64_t seed, const Plan& plan,
                     const std::vector<NodeType>& nodes, Seconds step)
    : block_(block),
      draws_(seed),
      plan_(&plan),
      first_gpu_(first_gpus(nodes)),
      sigma_of_all_(block.step_jitter.all_in(step)),
      all_(1),
      node_(nodes.size()) {
  gpu_.resize(first_gpu_.back());
  for (std::size_t node = 0; node < nodes.size(); ++node) {
    const double of_node =
        block.spread.node * draws_.normal(NoiseKind::node_speed, {std::uint32_t(node), 0, 0});
    for (int i = 0; i < nodes[node].gpus; ++i) {
      const auto gpu = static_cast<std::uint32_t>(fixed_.size());
      fixed_.push_back(
          std::exp(of_node + block.spread.gpu * draws_.normal(NoiseKind::gpu_speed, {gpu, 0, 0})));
      for (const NoiseBlock::SlowPart& slow : block.slow_parts)
        if (slow.slows(static_cast<int>(node), static_cast<int>(gpu)))
          fixed_.back() *= slow.slowdown;
    }
  }
  for (const PlanDevice& device : plan.devices) gpus_of_device_.push_back(device.num_gpus());
}

/// Autoregressive of first order with variance 1: x' = r x + sqrt(1 - r^2) e.
void StepNoise::advance(std::vector<double>& state, NoiseKind kind) {
  const double kept = step_ == 0 ? 0 : block_.step_jitter.correlation;
  const double fresh = std::sqrt(1 - kept * kept);
  for (std::size_t i = 0; i < state.size(); ++i)
    state[i] =
        kept * state[i] + fresh * draws_.normal(kind, {static_cast<std::uint32_t>(i), step_, 0});
}

std::size_t StepNoise::number_of(const PlanDevice& device, int gpu) const {
  return first_gpu_[device.node.index()] + static_cast<std::size_t>(gpu);
}

StepFactors StepNoise::next_step() {
  const NoiseBlock::StepJitter& jitter = block_.step_jitter;
  if (jitter.all > 0) advance(all_, NoiseKind::step_of_all);
  if (jitter.gpu > 0) advance(gpu_, NoiseKind::step_of_gpu);
  if (jitter.node > 0) advance(node_, NoiseKind::step_of_node);
  ++step_;
  StepFactors factors;
  factors.all = std::exp(sigma_of_all_ * all_.front());
  for (const PlanDevice& device : plan_->devices) {
    double slowest = 0;
    for (const int gpu : device.gpus) {
      const std::size_t number = number_of(device, gpu);
      slowest =
          std::max(slowest, fixed_[number] * std::exp(jitter.gpu * gpu_[number] +
                                                      jitter.node * node_[device.node.index()]));
    }
    factors.of_device.push_back(slowest);
  }
  return factors;
}

StepDisturbance::StepDisturbance(const StepNoise& noise, const StepFactors& factors,
                                 std::uint32_t step)
    : noise_(&noise),
      factors_(&factors),
      step_(step),
      passes_(factors.of_device.size() * static_cast<std::size_t>(num_streams)),
      messages_(factors.of_device.size()) {
  if (noise.block().stalls.per_gpu_hour == 0) return;
  for (std::size_t i = 0; i < factors.of_device.size(); ++i)
    next_stall_.push_back(stall(DeviceId{i}, 0, Seconds{0}));
}

Seconds StepDisturbance::duration(DeviceId device, Stream stream, const Work& usual, Seconds now) {
  if (usual.duration == Seconds{0}) return usual.duration;
  Seconds time = with_slower_kernels(usual, factors_->of_device[device.index()]) * factors_->all;
  if (const double sigma = noise_->block().pass_jitter; sigma > 0) {
    const std::uint32_t index = stream_index(device, stream);
    time *=
        std::exp(sigma * noise_->draws().normal(NoiseKind::pass, {index, step_, passes_[index]++}));
  }
  if (stream == Stream::compute && !next_stall_.empty()) time += stalled(device, now, time);
  return time;
}

Seconds StepDisturbance::latency(DeviceId from, Seconds usual) {
  const double sigma = noise_->block().links.latency;
  if (sigma == 0 || usual == Seconds{0}) return usual;
  std::uint32_t& number = messages_[from.index()];
  return usual * std::exp(sigma * noise_->draws().normal(NoiseKind::latency,
                                                         {from.index(), step_, number++}));
}

Seconds StepDisturbance::first_stall() const {
  Seconds first{std::numeric_limits<double>::infinity()};
  for (const Stall& stall : next_stall_) first = std::min(first, stall.at);
  return first;
}

Seconds UniformDisturbance::duration(DeviceId, Stream, const Work& usual, Seconds) {
  return with_slower_kernels(usual, kernels_) * all_;
}

std::optional<UniformDisturbance> uniform_disturbance(const NoiseBlock& block,
                                                      const StepFactors& factors) {
  const double kernels = factors.of_device.front();
  const bool are_equal =
      std::ranges::all_of(factors.of_device, [&](double other) { return other == kernels; });
  if (!are_equal || block.pass_jitter > 0 || block.links.rate > 0 || block.links.latency > 0)
    return std::nullopt;
  return UniformDisturbance(factors.all, kernels);
}

StepDisturbance::Stall StepDisturbance::stall(DeviceId device, std::uint32_t number,
                                              Seconds after) const {
  const NoiseBlock::Stalls& stalls = noise_->block().stalls;
  const double rate = stalls.per_gpu_hour / seconds_per_hour * noise_->gpus_of(device);
  const NoiseDraws::Place place{device.index(), step_, number};
  const Seconds until{-std::log(noise_->draws().uniform(NoiseKind::stall_time, place)) / rate};
  const double length =
      std::exp(stalls.spread * noise_->draws().normal(NoiseKind::stall_length, place));
  return {after + until, stalls.median * length, number};
}

Seconds StepDisturbance::stalled(DeviceId device, Seconds now, Seconds duration) {
  Stall& next = next_stall_[device.index()];
  Seconds longer{};
  while (next.at < now + longer + duration) {
    const Seconds end = next.at + next.length;
    // One that came while the device waited may have ended.
    longer += std::max(Seconds{0}, end - std::max(next.at, now));
    next = stall(device, next.number + 1, end);
  }
  return longer;
}

Network disturbed(const Network& network, const StepNoise& noise, std::uint32_t step) {
  Network changed;
  for (std::size_t i = 0; i < network.links().size(); ++i) {
    const Link& link = network.links()[i];
    const double drawn =
        noise.draws().normal(NoiseKind::link_rate, {static_cast<std::uint32_t>(i), step, 0});
    changed.add_link(link.bandwidth * std::exp(noise.block().links.rate * drawn), link.name);
  }
  for (const std::vector<LinkId>& path : network.paths()) changed.add_path(path);
  return changed;
}

double NoiseDraws::uniform(NoiseKind kind, Place place) const {
  const PhiloxCounter drawn = bits(seed_, kind, place);
  return unit(drawn[0], drawn[1]);
}

double NoiseDraws::normal(NoiseKind kind, Place place) const {
  const PhiloxCounter drawn = bits(seed_, kind, place);
  const double radius = std::sqrt(-2 * std::log(unit(drawn[0], drawn[1])));
  return radius * std::cos(2 * std::numbers::pi * unit(drawn[2], drawn[3]));
}

}  // namespace windtunnel
