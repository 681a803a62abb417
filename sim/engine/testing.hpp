#pragma once

#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <concepts>
#include <exception>
#include <functional>
#include <iostream>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/engine.hpp"
#include "engine/program_simulator.hpp"
#include "schedule/pipeline_program.hpp"
#include "schedule/program.hpp"

/// Fixtures of the tests and the benchmark of this folder: small programs, and processes to simulate
/// them in.
namespace windtunnel::testing {

/// Largest difference between two engines, or between an engine and arithmetic.
constexpr double precision = 1e-9;

/// Result of `body`, computed in a child process: SimGrid allows one engine per process. Throws
/// when it throws.
inline std::vector<double> in_child_process(const std::function<std::vector<double>()>& body) {
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) throw std::runtime_error("pipe failed");
  std::cout.flush();  // or the child prints it again
  const pid_t child = fork();
  if (child < 0) throw std::runtime_error("fork failed");
  if (child == 0) {
    close(ends[0]);
    int status = 0;
    try {
      const std::vector<double> result = body();
      const std::size_t size = result.size() * sizeof(double);
      if (write(ends[1], result.data(), size) != static_cast<ssize_t>(size)) status = 2;
    } catch (const std::exception& error) {
      status = write(STDERR_FILENO, error.what(), std::string(error.what()).size()) > 0 ? 1 : 2;
    }
    _exit(status);
  }
  close(ends[1]);
  std::vector<double> result;
  for (double number = 0; read(ends[0], &number, sizeof number) == sizeof number;) {
    result.push_back(number);
  }
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) throw std::runtime_error("the child failed");
  return result;
}

inline Op op(OpKind kind, Phase phase, std::uint32_t slot, std::uint32_t microbatch = 0) {
  Op made;
  made.kind = kind;
  made.phase = phase;
  made.slot = slot;
  made.microbatch = microbatch;
  return made;
}
inline Op compute(int work, Phase phase = Phase::forward, std::uint32_t microbatch = 0) {
  Op made = op(OpKind::compute, phase, 0, microbatch);
  made.work = static_cast<std::uint16_t>(work);
  return made;
}
inline Op send(int peer, std::uint32_t slot, int size = 0, Phase phase = Phase::activation,
               std::uint32_t microbatch = 0) {
  Op made = op(OpKind::send, phase, slot, microbatch);
  made.peer = static_cast<std::uint8_t>(peer);
  made.work = static_cast<std::uint16_t>(size);
  return made;
}
inline Op receive(std::uint32_t slot, Phase phase = Phase::activation,
                  std::uint32_t microbatch = 0) {
  return op(OpKind::receive, phase, slot, microbatch);
}
inline Op exchange(std::uint32_t size) { return op(OpKind::exchange, Phase::activation, size); }
inline Op record(std::uint32_t event) { return op(OpKind::record, Phase::forward, event); }
inline Op wait(std::uint32_t event) { return op(OpKind::wait, Phase::forward, event); }
inline Op collective(std::uint32_t slot) {
  return op(OpKind::collective, Phase::gradient_reduce, slot);
}

/// Way in which stages send messages to each other.
enum class Sends { eager, blocking_pairs };

/// A 1F1B pipeline, several times side by side.
struct PipelineShape {
  int stages = 1;
  int replicas = 1;
  int microbatches = 1;
  Sends sends = Sends::eager;
};

/// The ops of one stage. Message slots: forward of microbatch i is i, backward is microbatches + i.
class StageWriter {
 public:
  StageWriter(const PipelineShape& shape, int stage) : shape_(shape), stage_(stage) {
    if (stage > 0) program_.targets.emplace_back(stage - 1);
    if (!last()) program_.targets.emplace_back(stage + 1);
    program_.num_slots = static_cast<std::uint32_t>(2 * shape.microbatches);
    shape.sends == Sends::eager ? write_eager() : write_blocking();
  }
  const StageProgram& program() const { return program_; }

 private:
  using Ops = std::vector<Op>;
  bool first() const { return stage_ == 0; }
  bool last() const { return stage_ == shape_.stages - 1; }
  int warm_up() const { return std::min(shape_.stages - stage_ - 1, shape_.microbatches); }
  std::uint32_t backward_slot(int i) const {
    return static_cast<std::uint32_t>(shape_.microbatches + i);
  }
  static std::uint32_t number(int i) { return static_cast<std::uint32_t>(i); }

  Ops receive_forward(int i) const {
    return first() ? Ops{} : Ops{receive(number(i), Phase::activation, number(i))};
  }
  Ops receive_backward(int i) const {
    return last() ? Ops{} : Ops{receive(backward_slot(i), Phase::gradient, number(i))};
  }
  Ops send_forward(int i) const {
    return last() ? Ops{}
                  : Ops{testing::send(first() ? 0 : 1, number(i), 0, Phase::activation, number(i))};
  }
  Ops send_backward(int i) const {
    return first() ? Ops{} : Ops{testing::send(0, backward_slot(i), 0, Phase::gradient, number(i))};
  }
  void add(const Ops& ops) {
    auto& stream = program_.streams[static_cast<std::size_t>(Stream::compute)];
    stream.insert(stream.end(), ops.begin(), ops.end());
  }
  void add_pair(const Ops& a, const Ops& b = {}) {
    if (a.empty() && b.empty()) return;
    add({exchange(static_cast<std::uint32_t>(a.size() + b.size()))});
    add(a);
    add(b);
  }
  void forward(int i) { add({compute(0, Phase::forward, number(i))}); }
  void backward(int i) { add({compute(1, Phase::backward, number(i))}); }

  void eager_forward(int i) {
    add(receive_forward(i));
    forward(i);
    add(send_forward(i));
  }
  void eager_backward(int i) {
    add(receive_backward(i));
    backward(i);
    add(send_backward(i));
  }
  void write_eager() {
    const int m = shape_.microbatches;
    const int w = warm_up();
    for (int i = 0; i < w; ++i) eager_forward(i);
    for (int i = 0; i < m - w; ++i) {
      eager_forward(w + i);
      eager_backward(i);
    }
    for (int i = m - w; i < m; ++i) eager_backward(i);
  }

  /// Megatron's batched pairs: send_forward with receive_backward, send_backward with
  /// receive_forward.
  void write_blocking() {
    const int m = shape_.microbatches;
    const int w = warm_up();
    const int steady = m - w;
    for (int i = 0; i < w; ++i) {
      add_pair(receive_forward(i));
      forward(i);
      add_pair(send_forward(i));
    }
    if (steady > 0) add_pair(receive_forward(w));
    for (int i = 0; i < steady; ++i) {
      forward(w + i);
      add_pair(send_forward(w + i), receive_backward(i));
      backward(i);
      add_pair(send_backward(i), i < steady - 1 ? receive_forward(w + i + 1) : Ops{});
    }
    for (int i = steady; i < m; ++i) {
      add_pair(receive_backward(i));
      backward(i);
      add_pair(send_backward(i));
    }
  }

  PipelineShape shape_;
  int stage_;
  StageProgram program_;
};

/// The programs, devices and channels of a pipeline; work, message bytes and links are the caller's
/// to fill in. Device: replica * stages + stage; its work rows are 2 * device (forward) and 2 *
/// device + 1 (backward).
inline ProgramSet make_pipeline(const PipelineShape& shape) {
  ProgramSet set;
  for (int stage = 0; stage < shape.stages; ++stage) {
    set.programs.push_back(StageWriter(shape, stage).program());
  }
  for (int d = 0; d < shape.replicas * shape.stages; ++d) {
    ProgramDevice device;
    device.program = static_cast<std::uint32_t>(d % shape.stages);
    device.work_base = static_cast<std::uint32_t>(2 * d);
    const int first_stage = d - d % shape.stages;
    for (const StageId target : set.programs[device.program].targets) {
      device.channels.emplace_back(set.channels.size());
      Channel channel;
      channel.from = DeviceId{d};
      channel.to = DeviceId{first_stage + static_cast<int>(target.index())};
      set.channels.push_back(channel);
    }
    set.devices.push_back(device);
  }
  return set;
}

inline Work work(Seconds duration) { return {duration, {duration}}; }

inline void set_compute(ProgramSet& set, Seconds forward, Seconds backward) {
  set.work.clear();
  for (std::size_t d = 0; d < set.devices.size(); ++d) {
    set.work.push_back(work(forward));
    set.work.push_back(work(backward));
  }
}

/// One device per stage of a pipeline that runs the orders `order_of` gives its stages, with a channel inside a node to each of its targets.
template <std::invocable<StageId> OrderOf>
void add_stages(ProgramSet& set, const windtunnel::PipelineShape& shape, OrderOf&& order_of,
                BytesPerSecond bandwidth, Seconds latency = {}) {
  for (int s = 0; s < shape.stages; ++s) {
    set.programs.push_back(make_pipeline_program(shape, order_of(StageId{s}), StageId{s}));
    ProgramDevice device;
    device.program = static_cast<std::uint32_t>(s);
    for (const StageId target : set.programs.back().targets) {
      Channel channel;
      channel.from = DeviceId{s};
      channel.to = DeviceId{target.index()};
      channel.bandwidth = bandwidth;
      channel.latency = latency;
      device.channels.emplace_back(set.channels.size());
      set.channels.push_back(channel);
    }
    device.collectives.resize(num_collective_slots(shape.chunks));
    set.devices.push_back(device);
  }
}

/// The same with the orders of a built-in schedule.
inline void add_stages(ProgramSet& set, const windtunnel::PipelineShape& shape,
                       const SchedulePtr& schedule, BytesPerSecond bandwidth) {
  const OrderShape order{shape.stages, shape.microbatches, shape.chunks};
  windtunnel::PipelineShape mapped = shape;
  mapped.chunk_path = schedule->chunk_path;
  add_stages(
      set, mapped, [&](StageId stage) { return schedule->order(order, stage); }, bandwidth);
}

/// Each channel over a link of its own, between nodes.
inline Network give_own_links(ProgramSet& set, BytesPerSecond bandwidth, Seconds latency) {
  Network network;
  const PathId nothing = network.add_path({});
  for (Channel& channel : set.channels) {
    channel.in_node = false;
    channel.latency = latency;
    channel.up = network.add_path({network.add_link(bandwidth, "own")});
    channel.down = nothing;
  }
  return network;
}

}  // namespace windtunnel::testing
