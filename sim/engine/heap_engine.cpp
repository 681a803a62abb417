#include "core/contracts.hpp"
#include "engine/engine.hpp"
#include "engine/event_queue.hpp"
#include "engine/link_flows.hpp"

namespace windtunnel {
namespace {

class HeapEngine final : public Engine {
 public:
  explicit HeapEngine(const Network& network) : rates_(network) {}
  std::string_view name() const override { return "heap"; }
  Seconds now() const override { return now_; }
  std::uint64_t num_activities() const override { return queue_.num_pushed(); }
  std::uint64_t num_flows() const override { return num_flows_; }

  void after(Seconds delay, std::uint64_t token) override {
    WT_EXPECT(delay >= Seconds{0});
    queue_.push(now_ + delay, token);
  }
  void start_flow(PathId up, PathId down, Bytes bytes, std::uint64_t token) override {
    WT_EXPECT(bytes >= Bytes{0});
    ++num_flows_;
    queue_.push(now_ + bytes / rates_.rate(up, down), token);
  }
  void run(EventHandler& handler) override {
    while (!queue_.empty()) {
      const auto event = queue_.pop();
      now_ = event.time;
      handler.on_event(event.payload);
    }
  }

 private:
  detail::PathRates rates_;
  detail::EventQueue<std::uint64_t> queue_;
  Seconds now_{};
  std::uint64_t num_flows_ = 0;
};

}  // namespace

std::unique_ptr<Engine> make_heap_engine(const Network& network) {
  return std::make_unique<HeapEngine>(network);
}

}  // namespace windtunnel
