#include "engine/engine.hpp"

#include <dlfcn.h>

#include <string>

#include "core/contracts.hpp"
#include "core/problem.hpp"
#include "engine/event_queue.hpp"
#include "engine/link_flows.hpp"

namespace windtunnel {

std::unique_ptr<Engine> make_simgrid_engine(const Network& network) {
  void* const module = dlopen("windtunnel-simgrid.so", RTLD_LAZY | RTLD_LOCAL);
  void* const make = module == nullptr ? nullptr : dlsym(module, "windtunnel_make_simgrid_engine");
  if (make == nullptr)
    throw EnvironmentError(std::string("cannot load SimGrid: ") + dlerror() +
                           " (--engine native does without)");
  return std::unique_ptr<Engine>(reinterpret_cast<Engine* (*)(const Network&)>(make)(network));
}

MakeEngine engine_named(std::string_view name) {
  if (name == "simgrid") return make_simgrid_engine;
  if (name == "heap") return make_heap_engine;
  WT_EXPECT(name == "native");
  return make_native_engine;
}

namespace {

class HeapEngine final : public Engine {
 public:
  explicit HeapEngine(const Network& network) : paths_(network, network.paths()) {}
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
    queue_.push(now_ + bytes / paths_.rate(up, down), token);
  }
  void run(EventHandler& handler) override {
    while (!queue_.empty()) {
      const auto event = queue_.pop();
      now_ = event.time;
      handler.on_event(event.payload);
    }
  }

 private:
  detail::PathTable paths_;
  detail::EventQueue<std::uint64_t> queue_;
  Seconds now_{};
  std::uint64_t num_flows_ = 0;
};

}  // namespace

std::unique_ptr<Engine> make_heap_engine(const Network& network) {
  return std::make_unique<HeapEngine>(network);
}

}  // namespace windtunnel
