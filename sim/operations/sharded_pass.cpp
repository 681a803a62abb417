#include "operations/sharded_pass.hpp"

#include <algorithm>
#include <array>
#include <cstddef>

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

class PassWriter {
 public:
  PassWriter(ShardedDirection direction, int layers, int prefetch)
      : is_forward_(direction == ShardedDirection::forward), layers_(layers), prefetch_(prefetch) {}

  std::vector<ShardedOperation> write() {
    if (is_forward_) add({ShardedWork::gather_edges});
    add({ShardedWork::edges});
    if (prefetch_ == 0)
      write_in_a_row();
    else
      write_beside();
    if (!is_forward_) add({ShardedWork::scatter_edges, false, last_scatter_});
    return std::move(operations_);
  }

 private:
  int add(const ShardedOperation& operation) {
    operations_.push_back(operation);
    return static_cast<int>(operations_.size()) - 1;
  }

  void write_in_a_row() {
    const std::uint8_t scatters = is_forward_ ? 0 : 1;
    for (int layer = 0; layer < layers_; ++layer) {
      add({ShardedWork::gather_layer});
      add({ShardedWork::layer, false, -1, 1, scatters});
      if (!is_forward_) add({ShardedWork::scatter_layer});
    }
  }

  void write_beside() {
    std::vector<int> gathers;
    const auto gather_next = [&](int after) {
      if (static_cast<int>(gathers.size()) < layers_)
        gathers.push_back(add({ShardedWork::gather_layer, true, after}));
    };
    const int edges = static_cast<int>(operations_.size()) - 1;
    for (int ahead = 0; ahead <= prefetch_; ++ahead) gather_next(edges);
    for (int layer = 0; layer < layers_; ++layer) {
      const std::uint8_t gathers_beside = layer + 1 < layers_,
                         scatters_beside = !is_forward_ && layer > 0;
      const int computed = add({ShardedWork::layer, false, gathers[static_cast<std::size_t>(layer)],
                                gathers_beside, scatters_beside});
      if (!is_forward_) last_scatter_ = add({ShardedWork::scatter_layer, true, computed});
      gather_next(computed);
    }
  }

  bool is_forward_;
  int layers_, prefetch_;
  int last_scatter_ = -1;
  std::vector<ShardedOperation> operations_;
};

}  // namespace

std::vector<ShardedOperation> sharded_pass(ShardedDirection direction, int layers, int prefetch) {
  WT_EXPECT(layers >= 0 && prefetch >= 0);
  return PassWriter(direction, layers, prefetch).write();
}

Seconds duration_of(const ShardedOperation& operation, const ShardedTimes& times) {
  switch (operation.work) {
    case ShardedWork::gather_edges:
      return times.gather_edges;
    case ShardedWork::edges:
      return times.edges;
    case ShardedWork::gather_layer:
      return times.gather_layer;
    case ShardedWork::layer: {
      const Seconds collectives = times.gather_layer * static_cast<double>(operation.gathers) +
                                  times.scatter_layer * static_cast<double>(operation.scatters);
      if (!times.prefetches)
        return times.layer + collectives * (std::max(1.0, times.interference) - 1);
      return times.layer + times.interference * std::min(collectives, times.layer);
    }
    case ShardedWork::scatter_layer:
      return times.scatter_layer;
    case ShardedWork::scatter_edges:
      return times.scatter_edges;
  }
  return {};
}

Seconds time_alone(const std::vector<ShardedOperation>& operations,
                   const std::function<Seconds(const ShardedOperation&)>& duration) {
  std::vector<Seconds> ends;
  ends.reserve(operations.size());
  std::array<Seconds, 2> free{};  // from when on each stream is
  for (const ShardedOperation& operation : operations) {
    Seconds& stream = free[operation.on_data_stream ? 1 : 0];
    if (operation.after >= 0)
      stream = std::max(stream, ends[static_cast<std::size_t>(operation.after)]);
    stream += duration(operation);
    ends.push_back(stream);
  }
  return std::max(free[0], free[1]);
}

}  // namespace windtunnel
