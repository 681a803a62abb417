#include "engine/heap_engine.hpp"

#include "core/contracts.hpp"

namespace windtunnel::detail {

void HeapEngine::after(Seconds delay, std::uint64_t token) {
  WT_EXPECT(delay >= Seconds{0});
  queue_.push(now_ + delay, token);
}

void HeapEngine::start_flow(PathId up, PathId down, Bytes bytes, std::uint64_t token) {
  WT_EXPECT(bytes >= Bytes{0});
  ++num_flows_;
  queue_.push(now_ + bytes / rates_.rate(up, down), token);
}

void HeapEngine::run(EventHandler& handler) {
  while (!queue_.empty()) {
    const auto event = queue_.pop();
    now_ = event.time;
    handler.on_event(event.payload);
  }
}

}  // namespace windtunnel::detail
