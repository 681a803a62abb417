#include "engine/program_simulator.hpp"

#include <doctest/doctest.h>
#include <rapidcheck.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "engine/testing.hpp"

namespace windtunnel {
namespace {

using testing::compute;
using testing::exchange;
using testing::give_own_links;
using testing::in_child_process;
using testing::make_pipeline;
using testing::precision;
using testing::receive;
using testing::send;
using testing::Sends;
using testing::set_compute;
using testing::work;

/// Sums of a few hundred doubles; SimGrid merges events closer than 1e-9 s.
double end_of(MakeEngine kind, const ProgramSet& set, const Network& network) {
  return in_child_process([&]() -> std::vector<double> {
    const auto engine = kind(network);
    return {simulate_programs(set, *engine).end / 1_s};
  })[0];
}

/// A few devices with programs of their own and in-node channels: 1 GB messages at 1 GB/s unless said otherwise.
/// Work row n takes n seconds.
struct World {
  World() {
    for (int seconds = 0; seconds < 10; ++seconds) set.work.push_back(work(1_s * seconds));
    set.message_bytes = {1_GB, 2_GB, 0_GB};
  }
  DeviceId add_device(std::vector<Op> computing, std::vector<Op> data = {}) {
    StageProgram program;
    program.num_slots = 8;
    program.num_events = 8;
    program.streams[static_cast<std::size_t>(Stream::compute)] = std::move(computing);
    program.streams[static_cast<std::size_t>(Stream::data)] = std::move(data);
    ProgramDevice device;
    device.program = static_cast<std::uint32_t>(set.programs.size());
    set.programs.push_back(std::move(program));
    set.devices.push_back(device);
    return DeviceId{set.devices.size() - 1};
  }
  /// The next outgoing channel of `from`.
  Channel& connect(DeviceId from, DeviceId to) {
    set.devices[from.index()].channels.emplace_back(set.channels.size());
    Channel channel;
    channel.from = from;
    channel.to = to;
    channel.bandwidth = 1_GBps;
    set.channels.push_back(channel);
    return set.channels.back();
  }
  void add_collective(Collective collective) {
    for (const DeviceId member : collective.members) {
      set.devices[member.index()].collectives.emplace_back(set.collectives.size());
    }
    set.collectives.push_back(std::move(collective));
  }
  EngineResult simulate_on_heap(SimulationListener* listener = nullptr) const {
    const auto engine = make_heap_engine(network);
    return simulate_programs(set, *engine, listener);
  }
  std::string deadlock() const {
    try {
      simulate_on_heap();
    } catch (const DeadlockError& error) {
      return error.what();
    }
    return "no deadlock";
  }

  ProgramSet set;
  Network network;
};

/// Notes everything that is reported.
class Recorder final : public SimulationListener {
 public:
  struct Message {
    std::uint32_t slot;
    Seconds posted, begin, end;
  };
  void on_compute(DeviceId, Stream, const Op&, const Work& row, Seconds begin,
                  Seconds end) override {
    in_order(end);
    CHECK(end - begin <= row.duration * (1 + precision));
    computed += end - begin;
  }
  void on_wait(DeviceId device, Stream, const Op&, const Waiting& waiting) override {
    in_order(waiting.end);
    CHECK(waiting.begin <= waiting.end);
    CHECK(waiting.sent <= waiting.end);
    waits.push_back(waiting);
    waiting_devices.push_back(device);
  }
  void on_message(ChannelId, const Op& op, Bytes, Seconds posted, Seconds begin,
                  Seconds end) override {
    in_order(end);
    messages.push_back({op.slot, posted, begin, end});
  }
  void on_collective(CollectiveId, const Op&, Seconds begin, Seconds end) override {
    in_order(end);
    collectives.push_back({0, begin, begin, end});
  }
  void on_device_end(DeviceId, Seconds end) override {
    in_order(end);
    device_ends.push_back(end);
  }

  Seconds computed{};
  std::vector<Waiting> waits;
  std::vector<DeviceId> waiting_devices;
  std::vector<Message> messages, collectives;
  std::vector<Seconds> device_ends;

 private:
  void in_order(Seconds end) {
    CHECK(end >= last_);
    last_ = end;
  }
  Seconds last_{};
};

// ---- pipelines ----

struct PipelineCase {
  int stages, microbatches;
  double backward;  ///< over forward, which takes 1 s
  Sends sends;
};

/// Exact makespan of 1F1B with one hop of each message taking c (checked by a simulation of its own):
///   eager:          (m+p-1)(F+B) + c (2(p-1)m/p + 2(p-2))      p >= 2, p divides m
///   blocking pairs: (m+p-1)(F+B) + c (2m+2p-5), p = 2: c (m+1)
double closed_form(const PipelineCase& given, double hop) {
  const double p = given.stages, m = given.microbatches;
  const double full = (m + p - 1) * (1 + given.backward);
  if (given.sends == Sends::eager) return full + hop * (2 * (p - 1) * m / p + 2 * (p - 2));
  return full + hop * (given.stages > 2 ? 2 * m + 2 * p - 5 : m + 1);
}

std::vector<PipelineCase> pipeline_cases(Sends sends) {
  std::vector<PipelineCase> cases;
  for (const int p : {2, 3, 4, 6, 8, 16}) {
    for (const int rounds : {1, 2, 4, 8}) {
      for (const double backward : {1.0, 1.5, 2.0, 3.0}) {
        cases.push_back({p, p * rounds, backward, sends});
      }
    }
  }
  return cases;
}

double end_of(MakeEngine kind, const PipelineCase& given) {
  testing::PipelineShape shape;
  shape.stages = given.stages;
  shape.microbatches = given.microbatches;
  shape.sends = given.sends;
  ProgramSet set = make_pipeline(shape);
  set_compute(set, 1_s, 1_s * given.backward);
  set.message_bytes = {80_MB};
  const Network network = give_own_links(set, 10_GBps, 2_ms);  // 2 ms + 80 MB / 10 GB/s = 10 ms
  return end_of(kind, set, network);
}

void check_closed_forms(MakeEngine kind, Sends sends) {
  for (const PipelineCase& given : pipeline_cases(sends)) {
    CAPTURE(given.stages);
    CAPTURE(given.microbatches);
    CAPTURE(given.backward);
    CHECK(end_of(kind, given) == doctest::Approx(closed_form(given, 0.01)).epsilon(precision));
  }
}

TEST_CASE("1F1B with eager sends takes the time of its closed form, on the heap") {
  check_closed_forms(make_heap_engine, Sends::eager);
}
TEST_CASE("1F1B with eager sends takes the time of its closed form, on SimGrid") {
  check_closed_forms(make_simgrid_engine, Sends::eager);
}
TEST_CASE("1F1B with blocking pairs takes the time of its closed form, on the heap") {
  check_closed_forms(make_heap_engine, Sends::blocking_pairs);
}
TEST_CASE("1F1B with blocking pairs takes the time of its closed form, on SimGrid") {
  check_closed_forms(make_simgrid_engine, Sends::blocking_pairs);
}

TEST_CASE("one slow link delays a pipeline once") {
  testing::PipelineShape shape;
  shape.stages = 4;
  shape.microbatches = 2;
  ProgramSet set = make_pipeline(shape);
  set_compute(set, 1_s, 2_s);
  set.message_bytes = {1_GB};
  Network network;
  const PathId nothing = network.add_path({});
  const PathId slow = network.add_path({network.add_link(2_GBps, "node1->node2")});
  for (Channel& channel : set.channels) channel.bandwidth = BytesPerSecond{1e30};  // takes no time
  // Without the slow link: (m+p-1)(F+B) = 5 * 3 = 15 s.
  CHECK(end_of(make_simgrid_engine, set, network) == doctest::Approx(15).epsilon(precision));
  for (Channel& channel : set.channels) {
    if (channel.from != DeviceId{1} || channel.to != DeviceId{2}) continue;
    channel.in_node = false;
    channel.up = slow;
    channel.down = nothing;
  }
  // 0.5 s for each activation from stage 1 to 2. The first reaches stage 3 at 3.5 s, whose F0 B0 F1 B1 then follow each
  // other: 3.5 + 1 + 2 + 1 + 2 = 9.5 (the second activation came at 4.5, and waited). B1 goes back: + 3 * 2 = 15.5 s.
  CHECK(end_of(make_simgrid_engine, set, network) == doctest::Approx(15.5).epsilon(precision));
}

/// Pipelines side by side whose forward and backward messages meet on the links of their nodes.
double contended_end() {
  testing::PipelineShape shape;
  shape.stages = 4;
  shape.replicas = 4;
  shape.microbatches = 16;
  ProgramSet set = make_pipeline(shape);
  set.message_bytes = {700_MB};
  Network network;
  std::mt19937 random(1);
  std::uniform_real_distribution<double> speed(0.5, 1.0);
  std::vector<PathId> up, down;
  for (std::size_t node = 0; node < 8; ++node) {  // two devices a node
    up.push_back(network.add_path({network.add_link(25_GBps * speed(random), "up")}));
    down.push_back(network.add_path({network.add_link(25_GBps * speed(random), "down")}));
  }
  for (std::size_t d = 0; d < set.devices.size(); ++d) {
    const double slowness = speed(random);
    set.work.push_back(work(10_ms * slowness));
    set.work.push_back(work(20_ms * slowness));
  }
  for (Channel& channel : set.channels) {
    channel.in_node = false;
    channel.latency = 5_us;
    channel.up = up[channel.from.index() % 8];
    channel.down = down[channel.to.index() % 8];
  }
  return end_of(make_simgrid_engine, set, network);
}

TEST_CASE("a contended program gives the same bytes each time, first and last") {
  const double first = contended_end();
  check_closed_forms(make_simgrid_engine, Sends::eager);  // others in between
  CHECK(contended_end() == first);
}

// ---- messages ----

TEST_CASE("a message takes latency + bytes / bandwidth, in the node and over links") {
  World world;
  const DeviceId a = world.add_device({send(0, 0)});
  const DeviceId b = world.add_device({receive(0)});
  Channel& channel = world.connect(a, b);
  channel.latency = 5_us;
  channel.bandwidth = 50_GBps;
  // 5 us + 1 GB / 50 GB/s
  CHECK(world.simulate_on_heap().end / 1_s == doctest::Approx(0.020005).epsilon(precision));
  channel.in_node = false;
  channel.up = world.network.add_path({world.network.add_link(50_GBps, "up")});
  channel.down = world.network.add_path({});
  for (const MakeEngine kind : {make_heap_engine, make_simgrid_engine}) {
    CHECK(end_of(kind, world.set, world.network) == doctest::Approx(0.020005).epsilon(precision));
  }
}

TEST_CASE("messages of a channel follow each other, and an eager send does not wait") {
  World world;
  const DeviceId a = world.add_device({send(0, 0), send(0, 1, 1), compute(1)});
  const DeviceId b = world.add_device({receive(1), receive(0)});
  world.connect(a, b);
  Recorder recorder;
  const EngineResult result = world.simulate_on_heap(&recorder);
  // 1 GB from 0 to 1 s, then 2 GB to 3 s; the sender computes for 1 s and is done.
  CHECK(result.device_end == std::vector<Seconds>{1_s, 3_s});
  CHECK(result.last_device == b);
  REQUIRE(recorder.messages.size() == 2);
  CHECK(recorder.messages[1].posted == 0_s);
  CHECK(recorder.messages[1].begin == 1_s);
  CHECK(recorder.messages[1].end == 3_s);
  CHECK(result.activities == 3);
  CHECK(result.flows == 0);
}

TEST_CASE("a receive reports since when its message was under way") {
  World world;
  const DeviceId a =
      world.add_device({compute(2, Phase::backward), send(0, 0, 0, Phase::gradient)});
  const DeviceId b = world.add_device({compute(1), receive(0, Phase::gradient), receive(0)});
  world.connect(a, b);
  Recorder recorder;
  world.simulate_on_heap(&recorder);
  REQUIRE(recorder.waits.size() == 2);
  CHECK(recorder.waits[0].begin == 1_s);
  CHECK(recorder.waits[0].sent == 2_s);
  CHECK(recorder.waits[0].end == 3_s);
  CHECK(recorder.waits[0].cause == Phase::gradient);
  CHECK(recorder.waits[1].begin == recorder.waits[1].end);  // it was there already
}

TEST_CASE("a message between two exchanges starts when both ends have posted it") {
  World world;
  const DeviceId a = world.add_device({exchange(1), send(0, 0), compute(1)});
  const DeviceId b = world.add_device({compute(3), exchange(1), receive(0)});
  world.connect(a, b);
  Recorder recorder;
  // Posted at 0 and at 3 s, 1 s of transfer: 4 s at both ends, then 1 s of computing.
  CHECK(world.simulate_on_heap(&recorder).device_end == std::vector<Seconds>{5_s, 4_s});
  REQUIRE(recorder.messages.size() == 1);
  CHECK(recorder.messages[0].posted == 0_s);
  CHECK(recorder.messages[0].begin == 3_s);
  for (const Waiting& waiting : recorder.waits) CHECK(waiting.sent == 3_s);
}

TEST_CASE("an exchange ends with the last of its messages, which move at the same time") {
  World world;
  const DeviceId a = world.add_device({exchange(2), send(0, 0), receive(0), compute(1)});
  const DeviceId b = world.add_device({exchange(2), send(0, 0, 1), receive(0)});
  world.connect(a, b);
  world.connect(b, a);
  // 1 GB one way, 2 GB the other, full duplex: both end at 2 s.
  CHECK(world.simulate_on_heap().device_end == std::vector<Seconds>{3_s, 2_s});
}

TEST_CASE(
    "a message from an exchange to a plain receive waits for both, not one from a plain send") {
  World world;
  const DeviceId a = world.add_device({exchange(1), send(0, 0)});
  const DeviceId b = world.add_device({compute(3), receive(0)});
  world.connect(a, b);
  CHECK(world.simulate_on_heap().device_end == std::vector<Seconds>{4_s, 4_s});
  World eager;
  const DeviceId c = eager.add_device({send(0, 0)});
  const DeviceId d = eager.add_device({compute(3), exchange(1), receive(0)});
  eager.connect(c, d);
  CHECK(eager.simulate_on_heap().device_end == std::vector<Seconds>{0_s, 3_s});
}

TEST_CASE("works and messages of no length follow each other at once, however many") {
  World world;
  const DeviceId a = world.add_device(std::vector<Op>(100000, compute(0)));
  world.set.programs[a.index()].streams[0].push_back(send(0, 0, 2));
  const DeviceId b = world.add_device({exchange(0), receive(0), compute(1)});
  world.connect(a, b);
  const EngineResult result = world.simulate_on_heap();
  CHECK(result.end == 1_s);
  CHECK(result.activities == 100002);
}

TEST_CASE("a device without ops ends at the start") {
  World world;
  world.add_device({});
  world.add_device({});
  Recorder recorder;
  const EngineResult result = world.simulate_on_heap(&recorder);
  CHECK(result.end == 0_s);
  CHECK(result.last_device == DeviceId{0});
  CHECK(recorder.device_ends.size() == 2);
}

// ---- streams ----

TEST_CASE("streams run at the same time, and an event holds one back") {
  World world;
  world.add_device({compute(2), testing::record(0), compute(1)},
                   {compute(1), testing::wait(0), compute(3)});
  Recorder recorder;
  // data: 1 s, waits until 2 s, 3 s more
  CHECK(world.simulate_on_heap(&recorder).end == 5_s);
  REQUIRE(recorder.waits.size() == 1);
  CHECK(recorder.waits[0].begin == 1_s);
  CHECK(recorder.waits[0].sent == 2_s);  // nothing was sent: the other stream computed
  CHECK(recorder.waits[0].end == 2_s);
}

TEST_CASE("who waits for an event waits for what its stream waited for") {
  World world;
  const DeviceId a = world.add_device({compute(3), send(0, 0, 0, Phase::gradient)});
  const DeviceId b =
      world.add_device({compute(1), testing::wait(0), compute(1)},
                       {receive(0, Phase::gradient), compute(1), testing::record(0)});
  world.connect(a, b);
  Recorder recorder;
  // sent at 3, arrives at 4, one second of work on the data stream: 5
  CHECK(world.simulate_on_heap(&recorder).end == 6_s);
  const Waiting& waiting = recorder.waits.back();
  CHECK(waiting.begin == 1_s);
  CHECK(waiting.sent == 3_s);
  CHECK(waiting.end == 5_s);
  CHECK(waiting.cause == Phase::gradient);
}

// ---- collectives ----

TEST_CASE("a collective begins with its last member and ends with its longer part") {
  World world;
  for (const int seconds : {1, 3, 2}) world.add_device({compute(seconds), testing::collective(0)});
  Collective collective;
  for (int member = 0; member < 3; ++member) collective.members.emplace_back(member);
  collective.fixed = 2_s;
  collective.latency = 1_s;
  const PathId link = world.network.add_path({world.network.add_link(1_GBps, "ring")});
  const PathId nothing = world.network.add_path({});
  collective.flows = {{link, nothing, 3_GB}};
  world.add_collective(collective);
  Recorder recorder;
  // begins at 3 s; fixed part until 5 s, latency and flow until 3 + 1 + 3 = 7 s
  CHECK(world.simulate_on_heap(&recorder).end == 7_s);
  REQUIRE(recorder.collectives.size() == 1);
  CHECK(recorder.collectives[0].begin == 3_s);
  REQUIRE(recorder.waits.size() == 3);
  for (const Waiting& waiting : recorder.waits) {
    CHECK(waiting.sent == 3_s);
    CHECK(waiting.end == 7_s);
    CHECK(waiting.cause == Phase::gradient_reduce);
  }
}

/// Members on nodes of their own; each sends its bytes to the next.
void add_ring(World& world, const std::vector<DeviceId>& members, const std::vector<PathId>& up,
              const std::vector<PathId>& down) {
  Collective ring;
  ring.members = members;
  for (std::size_t i = 0; i < members.size(); ++i) {
    ring.flows.push_back({up[i], down[(i + 1) % members.size()], 4_GB});
  }
  world.add_collective(ring);
}

TEST_CASE("two rings over the same links take twice as long as one") {
  World world;
  std::vector<PathId> up, down;
  for (int node = 0; node < 4; ++node) {
    up.push_back(world.network.add_path({world.network.add_link(2_GBps, "up")}));
    down.push_back(world.network.add_path({world.network.add_link(2_GBps, "down")}));
  }
  const auto add_members = [&] {
    std::vector<DeviceId> members;
    members.reserve(up.size());
    for (int i = 0; i < 4; ++i) members.push_back(world.add_device({testing::collective(0)}));
    add_ring(world, members, up, down);
  };
  add_members();
  CHECK(end_of(make_simgrid_engine, world.set, world.network) ==
        doctest::Approx(2).epsilon(precision));
  add_members();
  CHECK(end_of(make_simgrid_engine, world.set, world.network) ==
        doctest::Approx(4).epsilon(precision));
  CHECK(end_of(make_heap_engine, world.set, world.network) ==
        doctest::Approx(2).epsilon(precision));
}

TEST_CASE("the k-th entry of each member belongs to the k-th instance") {
  World world;
  const Op enter = testing::collective(0);
  world.add_device({enter, enter, enter});
  world.add_device({compute(1), enter, compute(2), enter, enter});
  Collective collective;
  collective.members = {DeviceId{0}, DeviceId{1}};
  collective.fixed = 1_s;
  world.add_collective(collective);
  Recorder recorder;
  const EngineResult result = world.simulate_on_heap(&recorder);
  // 1..2, then 2 s of computing, 4..5, 5..6
  REQUIRE(recorder.collectives.size() == 3);
  CHECK(recorder.collectives[1].begin == 4_s);
  CHECK(result.end == 6_s);
  CHECK(result.activities == 5);
}

/// An operation of a pass.
Op operation(int work, Label label) {
  Op made = compute(work);
  made.peer = static_cast<std::uint8_t>(label);
  return made;
}

TEST_CASE("a pass waits for launches at its end, the less the longer it has waited for others") {
  for (const int seconds : {0, 5}) {
    World world;
    const std::uint16_t floor = 10;
    world.set.work.push_back(work(8_s));
    world.set.work[floor].floor = {.launch = 12_s, .sharpness = 2};
    const DeviceId device =
        world.add_device({operation(1, Label::batch_read), receive(0),
                          operation(5, Label::attention), operation(floor, Label::launch_floor)});
    const DeviceId other = world.add_device({compute(seconds), send(0, 0, 2)});
    world.connect(other, device);
    // The pass begins at 1, and works for 5: (5^2 + 12^2)^(1/2) = 13. If it waits from 1 to 5 first: (9^2 + 12^2)^(1/2) = 15.
    CHECK(world.simulate_on_heap().end / 1_s == doctest::Approx(seconds == 0 ? 14 : 16));
  }
}

TEST_CASE("a message that is sent earlier may take a link from one that more is waiting for") {
  for (const int seconds : {1, 0}) {
    World world;
    const PathId shared = world.network.add_path({world.network.add_link(1_GBps, "up")}),
                 own = world.network.add_path({});
    const auto connect = [&](DeviceId from, DeviceId to) {
      Channel& channel = world.connect(from, to);
      channel.in_node = false;
      channel.up = shared;
      channel.down = own;
    };
    connect(world.add_device({compute(seconds), send(0, 0)}), world.add_device({receive(0)}));
    connect(world.add_device({send(0, 0)}), world.add_device({receive(0), compute(5)}));
    // 1 s of the link alone, or 2 s of half of it; then 5 s.
    const auto engine = make_native_engine(world.network);
    CHECK(simulate_programs(world.set, *engine).end / 1_s == doctest::Approx(seconds == 1 ? 6 : 7));
  }
}

// ---- programs that cannot finish ----

TEST_CASE("a cyclic wait is named") {
  World world;
  const DeviceId a = world.add_device({receive(0, Phase::gradient, 4), send(0, 0)});
  const DeviceId b = world.add_device({compute(1), receive(0, Phase::activation, 7), send(0, 0)});
  world.connect(a, b);
  world.connect(b, a);
  CHECK(world.deadlock() ==
        "deadlock: 2 of 2 devices never finish\n"
        "  device 0 compute op 0 (receive gradient of microbatch 4) waits for a message that "
        "device 1 has not sent\n"
        "  device 1 compute op 1 (receive activation of microbatch 7) waits for a message that "
        "device 0 has not sent\n"
        "cyclic wait: device 0 -> device 1 -> device 0");
}

TEST_CASE("exchanges in different order never meet, and it says so") {
  World world;
  const DeviceId a = world.add_device({exchange(1), send(0, 0), exchange(1), send(0, 1)});
  const DeviceId b = world.add_device({exchange(1), receive(1), exchange(1), receive(0)});
  world.connect(a, b);
  CHECK(world.deadlock() ==
        "deadlock: 2 of 2 devices never finish\n"
        "  device 0 compute op 0 (exchange: send activation of microbatch 0) waits for device 1 to "
        "receive its message\n"
        "  device 1 compute op 0 (exchange: receive activation of microbatch 0) waits for a "
        "message that device 0 has "
        "not sent\n"
        "cyclic wait: device 0 -> device 1 -> device 0");
}

TEST_CASE(
    "a message that nobody sends, a member that never enters and an event never recorded are "
    "named") {
  World world;
  world.add_device({receive(3)});
  world.add_device({testing::collective(0)});
  world.add_device({compute(1)});
  world.add_device({compute(1), testing::wait(2)});
  Collective collective;
  collective.members = {DeviceId{1}, DeviceId{2}};
  world.add_collective(collective);
  const std::string text = world.deadlock();
  CAPTURE(text);
  CHECK(text.find("3 of 4 devices") != std::string::npos);
  CHECK(text.find("waits for a message that no device sends") != std::string::npos);
  CHECK(text.find("1 of 2 members have entered; device 2 has not") != std::string::npos);
  CHECK(text.find("waits for an event that no stream records") != std::string::npos);
  CHECK(text.find("cyclic") == std::string::npos);
}

TEST_CASE("streams of one device that wait for each other are named as streams") {
  World world;
  world.add_device({testing::wait(0), testing::record(1)}, {testing::wait(1), testing::record(0)});
  const std::string text = world.deadlock();
  CAPTURE(text);
  CHECK(text.find("cyclic wait: device 0 compute -> device 0 comm:data -> device 0 compute") !=
        std::string::npos);
}

TEST_CASE("of many that wait, twenty are named") {
  World world;
  for (int i = 0; i < 30; ++i) world.add_device({receive(0)});
  CHECK(world.deadlock().find("... and 10 more streams") != std::string::npos);
}

// ---- random programs ----

/// Programs written down in one possible order of events, so they can be simulated: drawn by rapidcheck.
struct DrawnPrograms {
  World world;
  Seconds compute_time{};
};

void draw_message(std::vector<std::vector<Op>>& programs, std::vector<std::uint32_t>& slots) {
  const int num_devices = static_cast<int>(programs.size());
  const int from = *rc::gen::inRange(0, num_devices);
  const int to = (from + *rc::gen::inRange(1, num_devices)) % num_devices;
  const int peer = to < from ? to : to - 1;
  const std::uint32_t slot = slots[static_cast<std::size_t>(to)]++;
  auto& source = programs[static_cast<std::size_t>(from)];
  auto& target = programs[static_cast<std::size_t>(to)];
  if (*rc::gen::arbitrary<bool>()) source.push_back(exchange(1));
  source.push_back(send(peer, slot, *rc::gen::inRange(0, 3)));
  if (*rc::gen::arbitrary<bool>()) target.push_back(exchange(1));
  target.push_back(receive(slot));
}

DrawnPrograms draw_programs() {
  DrawnPrograms drawn;
  World& world = drawn.world;
  const auto num_devices = static_cast<std::size_t>(*rc::gen::inRange(2, 6));
  std::vector<std::vector<Op>> programs(num_devices);
  std::vector<std::uint32_t> slots(num_devices);
  const int num_steps = *rc::gen::inRange(0, 80);
  for (int step = 0; step < num_steps; ++step) {
    const int kind = *rc::gen::inRange(0, 10);
    if (kind == 0) {
      for (auto& program : programs) program.push_back(testing::collective(0));
    } else if (kind < 5) {
      const int seconds = *rc::gen::inRange(0, 10);
      programs[*rc::gen::inRange<std::size_t>(0, num_devices)].push_back(compute(seconds));
      drawn.compute_time += 1_s * seconds;
    } else {
      draw_message(programs, slots);
    }
  }
  Collective everyone;
  for (std::size_t d = 0; d < num_devices; ++d) {
    world.add_device(std::move(programs[d]));
    world.set.programs[d].num_slots = slots[d];
    everyone.members.emplace_back(d);
  }
  for (std::size_t from = 0; from < num_devices; ++from) {
    for (std::size_t to = 0; to < num_devices; ++to) {
      if (from != to)
        world.connect(DeviceId{from}, DeviceId{to}).latency = 1_ms * *rc::gen::inRange(0, 9);
    }
  }
  everyone.fixed = 1_s;
  world.add_collective(everyone);
  return drawn;
}

TEST_CASE("programs that can be simulated finish, and compute what they say") {
  CHECK(rc::check([] {
    const DrawnPrograms drawn = draw_programs();
    Recorder recorder;
    const EngineResult result = drawn.world.simulate_on_heap(&recorder);
    RC_ASSERT(std::abs((recorder.computed - drawn.compute_time) / 1_s) < precision * 1e3);
    RC_ASSERT(recorder.device_ends.size() == drawn.world.set.devices.size());
    RC_ASSERT(result.end == recorder.device_ends.back());
    RC_ASSERT(drawn.world.simulate_on_heap().end == result.end);  // a listener changes nothing
  }));
}

TEST_CASE("where no link is shared a program takes the same time on both engines") {
  CHECK(rc::check([] {
    DrawnPrograms drawn = draw_programs();
    ProgramSet& set = drawn.world.set;
    const Network network = give_own_links(set, 3_GBps, 7_us);
    const double on_heap = end_of(make_heap_engine, set, network);
    RC_ASSERT(std::abs(end_of(make_simgrid_engine, set, network) - on_heap) <= precision * on_heap);
  }));
}

TEST_CASE("sharing links never makes a program faster") {
  CHECK(rc::check([] {
    DrawnPrograms drawn = draw_programs();
    ProgramSet& set = drawn.world.set;
    Network network;
    std::vector<PathId> up, down;
    for (std::size_t d = 0; d < set.devices.size(); ++d) {
      up.push_back(network.add_path({network.add_link(1_GBps, "up")}));
      down.push_back(network.add_path({network.add_link(1_GBps, "down")}));
    }
    for (Channel& channel : set.channels) {
      channel.in_node = false;
      channel.up = up[channel.from.index()];
      channel.down = down[channel.to.index()];
    }
    const double alone = end_of(make_heap_engine, set, network);
    RC_ASSERT(end_of(make_simgrid_engine, set, network) >= alone * (1 - precision));
  }));
}

}  // namespace
}  // namespace windtunnel
