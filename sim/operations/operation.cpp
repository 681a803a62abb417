#include "operations/operation.hpp"

#include <algorithm>
#include <utility>

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

bool is_kernel(const Operation& operation) { return row_of(operation.label).part == Part::compute; }

/// Or scatters behind its layers: what their collectives overlap with reaches from layer to layer.
bool prefetches(const PassOperations& pass) {
  return std::any_of(pass.layer.begin(), pass.layer.end(), [](const Operation& o) {
    return o.overlap == Overlap::prefetched || o.overlap == Overlap::trailing;
  });
}

bool layer_has(const PassOperations& pass, Label label) {
  return std::any_of(pass.layer.begin(), pass.layer.end(),
                     [label](const Operation& o) { return o.label == label; });
}

/// Puts operations in their places, one after the other.
class Placer {
 public:
  explicit Placer(const PassOperations& pass)
      : pass_(pass),
        prefetches_(prefetches(pass)),
        gathers_(layer_has(pass, Label::gather_layer)),
        scatters_(layer_has(pass, Label::scatter_layer)),
        gathered_(static_cast<std::size_t>(pass.layers) + 1, PlacedOperation::nothing) {}

  PlacedPass place() {
    for (std::size_t i = 0; i < pass_.before.size(); ++i) in_line(i, 0);
    for (int layer = 1; layer <= std::min(pass_.layers, pass_.prefetch + 1); ++layer)
      prefetch(layer);
    for (int layer = 1; layer <= pass_.layers; ++layer) place_layer(layer);
    WT_EXPECT(trailing_ == PlacedOperation::nothing || !pass_.after.empty());
    awaited_.push_back(trailing_);
    for (std::size_t i = 0; i < pass_.after.size(); ++i)
      in_line(pass_.before.size() + pass_.layer.size() + i, 0);
    placed_.awaited_at_end = overlapped_;
    return std::move(placed_);
  }

 private:
  int add(const PlacedOperation& operation) {
    placed_.operations.push_back(operation);
    return static_cast<int>(placed_.operations.size()) - 1;
  }

  void place_layer(int layer) {
    awaited_.push_back(gathered_[static_cast<std::size_t>(layer)]);
    for (std::size_t i = 0; i < pass_.layer.size(); ++i) {
      const Overlap overlap = pass_.layer[i].overlap;
      if (overlap != Overlap::prefetched && overlap != Overlap::trailing)
        in_line(pass_.before.size() + i, layer);
    }
    for (std::size_t i = 0; i < pass_.layer.size(); ++i)
      if (pass_.layer[i].overlap == Overlap::trailing)
        trailing_ = on_data_stream(pass_.before.size() + i, layer);
    prefetch(layer + pass_.prefetch + 1);
  }

  void prefetch(int layer) {
    if (!prefetches_ || layer > pass_.layers) return;
    for (std::size_t i = 0; i < pass_.layer.size(); ++i)
      if (pass_.layer[i].overlap == Overlap::prefetched)
        gathered_[static_cast<std::size_t>(layer)] = on_data_stream(pass_.before.size() + i, layer);
  }

  int on_data_stream(std::size_t number, int layer) {
    PlacedOperation operation = at(number, layer);
    operation.stream = Stream::data;
    operation.after = {last_in_line_, PlacedOperation::nothing};
    return add(operation);
  }

  /// On the stream of the kernels, or overlapped with the next one of them.
  void in_line(std::size_t number, int layer) {
    PlacedOperation operation = at(number, layer);
    if (pass_[number].overlap == Overlap::with_next) {
      operation.stream = Stream::tensor;
      operation.after = {last_in_line_, PlacedOperation::nothing};
      next_overlapped_ = add(operation);
      return;
    }
    int& exchange = exchange_of_[pass_[number].of];
    if (pass_[number].overlap == Overlap::with_other_pass) {
      operation.stream = Stream::tensor;
      operation.after = {last_in_line_, exchange};
      exchange = add(operation);
      return;
    }
    if (pass_[number].of != PassOfBlock::only)
      awaited_.push_back(std::exchange(exchange, PlacedOperation::nothing));
    awaited_.push_back(overlapped_);
    overlapped_ = next_overlapped_;
    next_overlapped_ = PlacedOperation::nothing;
    operation.after = awaited();
    if (layer > 0 && is_kernel(pass_[number])) {
      operation.overlaps_gather = gathers_ && (!prefetches_ || layer < pass_.layers);
      operation.overlaps_scatter = scatters_ && (!prefetches_ || layer > 1);
    }
    last_in_line_ = add(operation);
  }

  PlacedOperation at(std::size_t number, int layer) const {
    PlacedOperation operation;
    operation.number = static_cast<std::uint16_t>(number);
    operation.layer = std::max(static_cast<std::uint16_t>(layer), pass_[number].of_layer);
    return operation;
  }

  /// Operations that the next one in line waits for.
  std::array<int, 2> awaited() {
    std::erase(awaited_, PlacedOperation::nothing);
    WT_EXPECT(awaited_.size() <= 2);
    std::array<int, 2> after{PlacedOperation::nothing, PlacedOperation::nothing};
    std::copy(awaited_.begin(), awaited_.end(), after.begin());
    awaited_.clear();
    return after;
  }

  const PassOperations& pass_;
  const bool prefetches_, gathers_, scatters_;
  std::vector<int> gathered_;  ///< by layer: its prefetched collective
  std::vector<int> awaited_;   ///< by the next operation in line
  int last_in_line_ = PlacedOperation::nothing;
  int overlapped_ = PlacedOperation::nothing;  ///< the collective overlapped with the last kernel
  int next_overlapped_ = PlacedOperation::nothing;
  /// By pass of a block: its exchange that no operation has waited for yet.
  EnumArray<PassOfBlock, int> exchange_of_{PlacedOperation::nothing, PlacedOperation::nothing,
                                           PlacedOperation::nothing, PlacedOperation::nothing};
  int trailing_ = PlacedOperation::nothing;
  PlacedPass placed_;
};

Seconds time_of(const std::vector<Operation>& operations, Label label) {
  Seconds time{};
  for (const Operation& operation : operations)
    if (operation.label == label) time += operation.time;
  return time;
}

/// Walks a pass, and keeps account of what the stream of the kernels does.
class Walk {
 public:
  explicit Walk(const PlacedPass& pass) : pass_(pass) { ends_.reserve(pass.operations.size()); }

  template <class Duration, class Waited, class Ran>
  Seconds operator()(const Duration& duration, const Waited& waited, const Ran& ran) {
    for (const PlacedOperation& operation : pass_.operations) {
      Seconds& stream = free_[operation.stream];
      const bool counts = operation.stream == Stream::compute;
      for (const int awaited : operation.after) wait(awaited, stream, counts, waited);
      const Seconds time = duration(operation);
      if (counts) ran(operation, time);
      stream += time;
      ends_.push_back(stream);
    }
    wait(pass_.awaited_at_end, free_.front(), true, waited);
    return *std::max_element(free_.begin(), free_.end());
  }

 private:
  template <class Waited>
  void wait(int awaited, Seconds& stream, bool counts, const Waited& waited) {
    if (awaited == PlacedOperation::nothing) return;
    const Seconds end = ends_[static_cast<std::size_t>(awaited)];
    if (end <= stream) return;
    if (counts) waited(pass_.operations[static_cast<std::size_t>(awaited)], end - stream);
    stream = end;
  }

  const PlacedPass& pass_;
  std::vector<Seconds> ends_;
  EnumArray<Stream, Seconds> free_{};  ///< from when on each stream is
};

double of_mean_draw(const PlacedOperation&) { return 1; }

template <class Fullness>
PassTimes walk_times(const PassOperations& pass, const PlacedPass& placed,
                     const Fullness& fullness) {
  PassTimes times{};
  const auto part_of = [&pass](const PlacedOperation& o) {
    return row_of(pass[o.number].label).part;
  };
  Walk{placed}([&](const PlacedOperation& o) { return duration_of(pass, o, fullness(o)); },
               [&](const PlacedOperation& o, Seconds time) { times[part_of(o)] += time; },
               [&](const PlacedOperation& o, Seconds time) {
                 const Seconds own = time_of(pass[o.number], fullness(o));
                 times[part_of(o)] += own;
                 times[Part::data_comm] += time - own;
               });
  return times;
}

PassTimes walk_times(const PassOperations& pass) {
  return walk_times(pass, place_operations(pass), of_mean_draw);
}

}  // namespace

Operation kernel(Label label, Seconds time) {
  Operation operation;
  operation.label = label;
  operation.time = time;
  return operation;
}

bool varies(const Operation& operation) {
  return std::any_of(operation.by_fullness.begin(), operation.by_fullness.end(),
                     [](const TimeByFullness& time) { return time.varying != Seconds{0}; });
}

Seconds time_of(const Operation& operation, double fullness) {
  if (fullness == 1 || !varies(operation)) return operation.time;
  return std::max(operation.by_fullness[0].at(fullness), operation.by_fullness[1].at(fullness));
}

void slow_down(Operation& operation, double factor) {
  operation.time *= factor;
  for (TimeByFullness& time : operation.by_fullness) {
    time.at_mean *= factor;
    time.varying *= factor;
  }
}

void scale(Operation& operation, double share) {
  slow_down(operation, share);
  for (Seconds* time : {&operation.products, &operation.gathered_products,
                        &operation.scattered_products, &operation.launch})
    *time *= share;
  operation.share *= share;
  operation.flops = operation.flops * share;
  operation.payload *= share;
}

Operation collective(Label label, Bytes payload, Overlap overlap) {
  Operation operation;
  operation.label = label;
  operation.payload = payload;
  operation.overlap = overlap;
  return operation;
}

const Operation& PassOperations::operator[](std::size_t number) const {
  if (number < before.size()) return before[number];
  number -= before.size();
  return number < layer.size() ? layer[number] : after[number - layer.size()];
}

Seconds PassOperations::layer_kernels() const {
  Seconds time{};
  for (const Operation& operation : layer)
    if (is_kernel(operation)) time += operation.time;
  return time;
}

PlacedPass place_operations(const PassOperations& pass) { return Placer(pass).place(); }

Seconds overlap_slowdown(Seconds collectives, Seconds kernels, double taken) {
  return std::min(collectives, kernels / (1 - taken)) * taken;
}

Seconds duration_of(const PassOperations& pass, const PlacedOperation& operation) {
  const Seconds own = pass[operation.number].time;
  if (!prefetches(pass) || (!operation.overlaps_gather && !operation.overlaps_scatter)) return own;
  const Seconds layer = pass.layer_kernels();
  if (layer == Seconds{0}) return own;
  Seconds collectives{};
  if (operation.overlaps_gather)
    collectives += time_of(pass.layer, Label::gather_layer) +
                   time_of(pass.layer, Label::gather_expert_parameters);
  if (operation.overlaps_scatter)
    collectives += time_of(pass.layer, Label::scatter_layer) +
                   time_of(pass.layer, Label::reduce_layer) +
                   time_of(pass.layer, Label::scatter_experts);
  return own * ((layer + overlap_slowdown(collectives, layer, pass.taken)) / layer);
}

Seconds duration_of(const PassOperations& pass, const PlacedOperation& operation, double fullness) {
  const Operation& of = pass[operation.number];
  return duration_of(pass, operation) + (time_of(of, fullness) - of.time);
}

Seconds time_alone(const PlacedPass& pass,
                   const std::function<Seconds(const PlacedOperation&)>& duration) {
  const auto ignore = [](const PlacedOperation&, Seconds) {};
  return Walk{pass}(duration, ignore, ignore);
}

PassTimes times_alone(const PassOperations& pass) {
  if (prefetches(pass)) return walk_times(pass);
  // No layer meets the next one.
  const PassOperations edges{pass.before, {}, pass.after, 0, pass.prefetch, pass.taken},
      one{{}, pass.layer, {}, 1, pass.prefetch, pass.taken};
  PassTimes times = walk_times(edges);
  const PassTimes layer = walk_times(one);
  for (std::size_t i = 0; i < times.size(); ++i)
    times[i] += layer[i] * static_cast<double>(pass.layers);
  return times;
}

PassTimes times_alone(const PassOperations& pass, const PlacedPass& placed,
                      const FullnessOf& fullness) {
  return walk_times(pass, placed, fullness);
}

BlockTimes times_of_block(const PassOperations& block) {
  return times_of_block(block, place_operations(block), of_mean_draw);
}

BlockTimes times_of_block(const PassOperations& block, const PlacedPass& placed,
                          const FullnessOf& fullness) {
  BlockTimes times{};
  const auto line_of = [&](const PlacedOperation& o) -> Seconds& {
    const Operation& operation = block[o.number];
    return times[operation.of][row_of(operation.label).part];
  };
  const auto add = [&](const PlacedOperation& o, Seconds time) { line_of(o) += time; };
  Walk{placed}([&](const PlacedOperation& o) { return duration_of(block, o, fullness(o)); }, add,
               add);
  return times;
}

int GroupSizes::of(const Operation& operation) const {
  const GroupKind group = group_of(operation.label);
  return group == GroupKind::axis ? replicas.size(operation.axis) : members[group];
}

Bytes sent_bytes(const PassOperations& pass, Traffic traffic, const GroupSizes& sizes) {
  const auto sent = [&](const std::vector<Operation>& operations) {
    Bytes sum{};
    for (const Operation& operation : operations) {
      const LabelRow& row = row_of(operation.label);
      if (!is_collective(row.kind) || row.traffic != traffic) continue;
      const GroupKind group = group_of(operation.label);
      const int members = sizes.of(operation);
      const double times = row.kind == OperationKind::all_reduce ? 2 : 1;
      sum += operation.payload *
             (group == GroupKind::experts ? sizes.exchanged : times * (members - 1) / members);
    }
    return sum;
  };
  return sent(pass.before) + sent(pass.layer) * static_cast<double>(pass.layers) + sent(pass.after);
}

namespace {

/// Frozen parameters have neither gradients nor optimizer states. Adapters do not count as matrices of the layer.
void add_kinds(ParameterCounts& sum, const Held& held, double times) {
  const double frozen = held.frozen.sum() * times, matrices = held.matrices.sum() * times;
  const StateShards& shards = held.shards;
  sum.frozen += frozen;
  sum.frozen_weights += frozen / shards.weights;
  sum.gradients -= frozen / shards.gradients;
  sum.optimizer -= frozen / shards.optimizer;
  if (frozen > 0)
    sum.frozen_matrices += matrices / shards.weights;
  else
    sum.matrices += matrices / shards.optimizer;
}

void add(ParameterCounts& sum, const std::vector<Operation>& operations, double times) {
  for (const Operation& operation : operations) {
    const double parameters = operation.held.parameters.sum() * times;
    const StateShards& shards = operation.held.shards;
    sum.all += parameters;
    if (is_of_experts(operation.label)) {
      sum.experts += parameters;
      sum.trained_experts += parameters - operation.held.frozen.sum() * times;
    }
    sum.weights += parameters / shards.weights;
    sum.gradients += parameters / shards.gradients;
    sum.optimizer += parameters / shards.optimizer;
    add_kinds(sum, operation.held, times);
  }
}

}  // namespace

ParameterCounts& ParameterCounts::operator+=(const ParameterCounts& other) {
  using Count = double ParameterCounts::*;
  for (const Count count :
       {&ParameterCounts::all, &ParameterCounts::weights, &ParameterCounts::gradients,
        &ParameterCounts::optimizer, &ParameterCounts::experts, &ParameterCounts::trained_experts,
        &ParameterCounts::frozen, &ParameterCounts::frozen_weights, &ParameterCounts::matrices,
        &ParameterCounts::frozen_matrices})
    this->*count += other.*count;
  return *this;
}

FlopCounts& FlopCounts::operator+=(const FlopCounts& other) {
  model += other.model;
  causal += other.causal;
  hardware += other.hardware;
  executed += other.executed;
  return *this;
}

FlopCounts count_flops(const PassOperations& pass) {
  FlopCounts sum;
  const auto add = [&sum](const std::vector<Operation>& operations, double times) {
    for (const Operation& operation : operations) {
      FlopCounts flops = operation.flops * times;
      if (is_recomputed(operation.label)) flops.model = flops.causal = Flops{};
      sum += flops;
    }
  };
  add(pass.before, 1);
  add(pass.layer, pass.layers);
  add(pass.after, 1);
  return sum;
}

ParameterCounts count_parameters(const PassOperations& forward) {
  ParameterCounts sum;
  add(sum, forward.layer, forward.layers);
  add(sum, forward.before, 1);
  add(sum, forward.after, 1);
  return sum;
}

}  // namespace windtunnel
