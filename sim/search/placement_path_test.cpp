#include <doctest/doctest.h>

#include <algorithm>
#include <random>

#include "engine/player.hpp"
#include "schedule/pipeline_program.hpp"
#include "search/placement_objective.hpp"

namespace windtunnel {
namespace {

bool compresses(const CompressedTraffic& traffic) {
  return traffic.activations != CodecParts::none || traffic.gradients != CodecParts::none;
}

/// A pipeline whose stages and messages all take their own time.
struct Pipeline {
  PipelineShape shape;
  SchedulePtr schedule = schedule_named("1f1b");
  DurationLayout layout;
  std::vector<StageProgram> programs;
  std::vector<Seconds> durations;

  Pipeline(const SchedulePtr& order, const PipelineShape& of) : shape(of), schedule(order) {
    shape.chunk_path = schedule->chunk_path;
    for (int s = 0; s < shape.stages; ++s) {
      const OrderShape asked{shape.stages, shape.microbatches, shape.chunks};
      programs.push_back(
          make_pipeline_program(shape, schedule->order(asked, StageId{s}), StageId{s}));
    }
    layout.chunks = shape.chunks;
    layout.rows = num_work_rows(shape.chunks, compresses(shape.compressed));
    layout.messages = num_message_rows;
    layout.collectives = num_collective_slots(shape.chunks);
    durations.resize(layout.size(programs.size()));
  }

  void set_work(std::size_t stage, int chunk, ChunkRow row, Seconds time) {
    durations[layout.work(stage, row_of(row, chunk))] = time;
  }
  void set_codec(std::size_t stage, DeviceRow row, Seconds time) {
    durations[layout.work(stage, row_of(row, shape.chunks))] = time;
  }
  void set_message(std::size_t stage, std::size_t channel, Seconds time) {
    for (std::uint32_t row = 0; row < layout.messages; ++row)
      durations[layout.message(stage, static_cast<std::uint32_t>(channel), row)] = time;
  }
  std::vector<Seconds> ends() const { return PipelinePath(programs, layout).ends(durations); }

  /// The same played by the engine, messages inside a node: latency alone.
  Seconds played() const {
    ProgramSet set;
    set.programs = programs;
    set.message_bytes.assign(num_message_rows, 0_B);
    for (std::size_t s = 0; s < programs.size(); ++s) {
      ProgramDevice device;
      device.program = static_cast<std::uint32_t>(s);
      device.work_base = static_cast<std::uint32_t>(set.work.size());
      for (std::uint32_t row = 0; row < layout.rows; ++row) {
        Work work;
        work.duration = work.parts[0] = durations[layout.work(s, row)];
        set.work.push_back(work);
      }
      for (std::size_t c = 0; c < programs[s].targets.size(); ++c) {
        Channel channel;
        channel.from = DeviceId{s};
        channel.to = DeviceId{programs[s].targets[c].index()};
        channel.bandwidth = 1_GBps;
        channel.latency = durations[layout.message(s, static_cast<std::uint32_t>(c), 0)];
        device.channels.emplace_back(set.channels.size());
        set.channels.push_back(channel);
      }
      device.collectives.resize(layout.collectives);
      set.devices.push_back(device);
    }
    const auto engine = make_heap_engine(Network{});
    return play(set, *engine).end;
  }
};

PipelineShape shape_of(int stages, int microbatches, PipelineSend send, int chunks = 1) {
  PipelineShape shape;
  shape.stages = stages;
  shape.microbatches = microbatches;
  shape.send = send;
  shape.chunks = chunks;
  return shape;
}

/// 1F1B on equal stages: F = 1 s, every message `hop`.
Seconds uniform_end(const PipelineShape& shape, Seconds backward, Seconds hop) {
  Pipeline pipeline(schedule_named("1f1b"), shape);
  for (std::size_t s = 0; s < pipeline.programs.size(); ++s) {
    pipeline.set_work(s, 0, ChunkRow::forward, 1_s);
    pipeline.set_work(s, 0, ChunkRow::backward, backward);
    for (std::size_t c = 0; c < pipeline.programs[s].targets.size(); ++c)
      pipeline.set_message(s, c, hop);
  }
  return pipeline.ends().front();
}

constexpr double exact = 1e-12;  // sums of up to 10^4 terms

TEST_CASE("equal stages with eager sends take (m+p-1)(F+B) + c (2(p-1)m/p + 2(p-2))") {
  for (const int p : {2, 3, 4, 8}) {
    for (const int m : {p, 2 * p, 8 * p}) {
      for (const double backward : {1.0, 2.0, 3.0}) {
        const double c = 0.01, closed = (m + p - 1) * (1 + backward) +
                                        c * (2.0 * (p - 1) * m / p + 2 * (p - 2));
        CHECK(uniform_end(shape_of(p, m, PipelineSend::eager), 1_s * backward, 1_s * c) / 1_s ==
              doctest::Approx(closed).epsilon(exact));
      }
    }
  }
}

TEST_CASE("equal stages with blocking pairs take (m+p-1)(F+B) + c (2m+2p-5)") {
  for (const int p : {2, 3, 4, 8}) {
    for (const int m : {p, 2 * p, 8 * p}) {
      for (const double backward : {1.0, 2.0, 3.0}) {
        const double c = 0.01, hops = p > 2 ? 2 * m + 2 * p - 5 : m + 1;
        CHECK(uniform_end(shape_of(p, m, PipelineSend::blocking_pairs), 1_s * backward, 1_s * c) /
                  1_s ==
              doctest::Approx((m + p - 1) * (1 + backward) + c * hops).epsilon(exact));
      }
    }
  }
}

TEST_CASE("a stage other than the first is done as much earlier as its gradients still travel") {
  // Eager sends: stage s is done s (B + c) before stage 0.
  Pipeline pipeline(schedule_named("1f1b"), shape_of(4, 8, PipelineSend::eager));
  for (std::size_t s = 0; s < 4; ++s) {
    pipeline.set_work(s, 0, ChunkRow::forward, 1_s);
    pipeline.set_work(s, 0, ChunkRow::backward, 2_s);
    for (std::size_t c = 0; c < pipeline.programs[s].targets.size(); ++c)
      pipeline.set_message(s, c, 0.1_s);
  }
  const std::vector<Seconds> ends = pipeline.ends();
  for (std::size_t s = 1; s < 4; ++s)
    CHECK((ends[0] - ends[s]) / 1_s == doctest::Approx(2.1 * static_cast<double>(s)));
}

/// Messages in one or two parts, encoded between the passes or beside them.
CompressedTraffic drawn_traffic(std::mt19937& random) {
  constexpr CodecParts parts[] = {CodecParts::none, CodecParts::one, CodecParts::two};
  constexpr CodecStream streams[] = {CodecStream::compute, CodecStream::codec};
  CompressedTraffic traffic;
  traffic.activations = parts[random() % 3];
  traffic.gradients = parts[random() % 3];
  traffic.activation_encoder = streams[random() % 2];
  traffic.gradient_encoder = streams[random() % 2];
  return traffic;
}

/// Whether activations and gradients leave from different streams.
bool leaves_from_two_streams(const CompressedTraffic& traffic) {
  const auto stream = [](CodecParts parts, CodecStream encoder) {
    return parts == CodecParts::none ? CodecStream::compute : encoder;
  };
  return stream(traffic.activations, traffic.activation_encoder) !=
         stream(traffic.gradients, traffic.gradient_encoder);
}

TEST_CASE("any pipeline of unequal stages, hops and codecs ends when the engine says") {
  std::mt19937 random(7);
  std::uniform_real_distribution<double> time(0.1, 1.0);
  for (const SchedulePtr& schedule : named_schedules()) {
    for (const PipelineSend send : {PipelineSend::eager, PipelineSend::blocking_pairs}) {
      if (send == PipelineSend::blocking_pairs && schedule->sends == ScheduleSends::only_eager)
        continue;
      for (int trial = 0; trial < 20; ++trial) {
        const int p = 2 + static_cast<int>(random() % 4);
        const int v = schedule->takes(2) ? 2 : 1;
        const int m =
            std::max(p * (1 + static_cast<int>(random() % 3)), schedule->fewest_microbatches(p, v));
        if (!schedule->misfit({p, m, v}).empty()) continue;
        PipelineShape shape = shape_of(p, m, send, v);
        if (trial % 2 == 1) shape.compressed = drawn_traffic(random);
        // The limit that PipelinePath states.
        const bool is_v = schedule->chunk_path != ChunkPath::loop;
        if (is_v && leaves_from_two_streams(shape.compressed)) continue;
        Pipeline pipeline(schedule, shape);
        for (std::size_t s = 0; s < pipeline.programs.size(); ++s) {
          for (int chunk = 0; chunk < v; ++chunk)
            for (int row = 0; row < num_chunk_rows; ++row)
              pipeline.set_work(s, chunk, static_cast<ChunkRow>(row), 1_s * time(random));
          if (compresses(shape.compressed))
            for (const DeviceRow row : {DeviceRow::encode_activation, DeviceRow::decode_activation,
                                        DeviceRow::encode_gradient, DeviceRow::decode_gradient})
              pipeline.set_codec(s, row, 1_s * time(random));
          for (std::size_t c = 0; c < pipeline.programs[s].targets.size(); ++c)
            pipeline.set_message(s, c, 1_s * time(random));
        }
        CAPTURE(schedule->name);
        CAPTURE(p);
        CAPTURE(m);
        const std::vector<Seconds> ends = pipeline.ends();
        CHECK(*std::max_element(ends.begin(), ends.end()) / 1_s ==
              doctest::Approx(pipeline.played() / 1_s).epsilon(exact));
      }
    }
  }
}

}  // namespace
}  // namespace windtunnel
