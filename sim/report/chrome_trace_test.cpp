#include "report/chrome_trace.hpp"

#include <doctest/doctest.h>

#include <sstream>
#include <utility>

#include "cost/codec_table.hpp"
#include "report/testing.hpp"
#include "report/trace_check_fixtures.hpp"
#include "report/trace_slices.hpp"

namespace windtunnel {
namespace {

std::string small_trace() {
  const ProgramSet programs = testing::two_stage_programs();
  return chrome_trace(testing::simulate_alone(programs).timeline, programs,
                      testing::two_stage_plan(), testing::small_report());
}

bool has_line(const std::string& text, const std::string& line) {
  return text.find("\n" + line + ",\n") != std::string::npos;
}

TEST_CASE("the small world runs as drawn, and its lines add up to 32 us on every device") {
  const auto world = testing::simulate_alone(testing::two_stage_programs());
  CHECK(world.result.end / 1_us == doctest::Approx(32));
  for (std::size_t i = 0; i < 2; ++i)
    CHECK(world.breakdowns[i].total() / world.result.device_end[i] ==
          doctest::Approx(1).epsilon(1e-9));
  // stage 0: gradient 0 awaited in [6, 14), sent at 13; gradient 1 in [20, 23), sent at 22
  const Breakdown& first = world.breakdowns[0];
  CHECK(first.of(Line::compute) / 1_us == doctest::Approx(12));
  CHECK(first.of(Line::tensor_comm) / 1_us == doctest::Approx(6));
  CHECK(first.of(Line::pipeline_bubble) / 1_us == doctest::Approx(9));
  CHECK(first.of(Line::pipeline_comm) / 1_us == doctest::Approx(2));
  CHECK(first.of(Line::embedding_sync) / 1_us == doctest::Approx(2));
  CHECK(first.of(Line::optimizer) / 1_us == doctest::Approx(1));
  // stage 1 waits for stage 0 in the collective from 22 to 29: bubble; and in [0, 3)
  CHECK(world.breakdowns[1].of(Line::pipeline_bubble) / 1_us == doctest::Approx(10));
}

TEST_CASE("a trace passes its own check and shows all of the time and memory") {
  const TraceFindings findings = check_trace(small_trace());
  CHECK(findings.problems == std::vector<std::string>{});
  CHECK(findings.processes == 2);
  // step, compute, comm:tensor, comm:pipeline and comm:data of each; nothing ran on the codec's
  CHECK(findings.threads == 10);
  CHECK(findings.arrows == 4);
  // Both devices. Ops: 2 x (9 + 9 + 1). Bubble 9 + 10. Wait: 2 + 2 of stage 0, 1 + 2 of stage 1.
  CHECK(findings.nanoseconds_by_category.at("gpu_user_annotation") == 38000);
  CHECK(findings.nanoseconds_by_category.at("bubble") == 19000);
  CHECK(findings.nanoseconds_by_category.at("wait") == 7000);
  // Kernels: the ops' 38, four messages of 1 at both ends, a collective of 2 at both members.
  CHECK(findings.nanoseconds_by_category.at("kernel") == 38000 + 8000 + 4000);
  CHECK(findings.counter_peak_by_process.at(1) == (23_GiB) / Bytes{1});
  CHECK(findings.counter_peak_by_process.at(2) == (22_GiB) / Bytes{1});
}

TEST_CASE("a trace has one event a line, in the shapes that viewers know") {
  const std::string trace = small_trace();
  CHECK(trace.starts_with(
      R"json({"schemaVersion":1,"displayTimeUnit":"ns","distributedInfo":{"rank":0,"world_size":16,"backend":"nccl"},"otherData":{"generator":"windtunnel","version":"0.1.0","name":"small","scenario_hash":"c0ffee","seed":"7","model":"toy","platform":"two-nodes","software":"megatron-lm-2021"},"traceEvents":[)json"
      "\n"));
  CHECK(trace.ends_with("}\n]}\n"));
  for (
      const char* line : {
          R"json({"ph":"M","name":"process_name","pid":2,"args":{"name":"ranks 0008-0015 · dp0 pp1 tp0-7 · node1"}})json",
          R"json({"ph":"X","name":"ProfilerStep#0","cat":"user_annotation","pid":2,"tid":299,"ts":0.000,"dur":32.000})json",
          R"json({"ph":"M","name":"thread_name","pid":2,"tid":202,"args":{"name":"comm:pipeline"}})json",
          R"json({"ph":"X","name":"forward 1","cat":"gpu_user_annotation","pid":1,"tid":100,"ts":3.000,"dur":3.000,"args":{"microbatch":1,"chunk":0,"parts_us":{"compute":2.000,"tensor_comm":1.000}}})json",
          R"json({"ph":"X","name":"forward","cat":"kernel","pid":1,"tid":100,"ts":3.000,"dur":2.000,"args":{"microbatch":1,"chunk":0,"device":0,"stream":100}})json",
          R"json({"ph":"X","name":"bubble: gradient","cat":"bubble","pid":1,"tid":100,"ts":6.000,"dur":7.000,"args":{"microbatch":0,"chunk":0}})json",
          R"json({"ph":"X","name":"wait: gradient","cat":"wait","pid":1,"tid":100,"ts":13.000,"dur":1.000,"args":{"microbatch":0,"chunk":0}})json",
          R"json({"ph":"X","name":"ncclDevKernel_SendRecv(gradient)","cat":"kernel","pid":2,"tid":202,"ts":13.000,"dur":1.000,"args":{"microbatch":0,"chunk":0,"device":0,"stream":202,"direction":"send","to_pid":1,"bytes":1000000,"queued_us":0.000,"Collective name":"send","Process Group Name":"PIPELINE_PARALLEL.0","Process Group Description":"PIPELINE_PARALLEL","Group size":2,"In msg nelems":125000,"Out msg nelems":125000,"dtype":"Byte"}})json",
          R"json({"ph":"s","name":"gradient","cat":"message","id":3,"pid":2,"tid":202,"ts":13.001})json",
          R"json({"ph":"f","bp":"e","name":"gradient","cat":"message","id":3,"pid":1,"tid":102,"ts":13.999})json",
          R"json({"ph":"X","name":"ncclDevKernel_AllReduce(embedding gradients)","cat":"kernel","pid":1,"tid":103,"ts":29.000,"dur":2.000,"args":{"device":0,"stream":103,"bytes":4000000,"Collective name":"allreduce","Process Group Name":"EMBEDDING.0","Process Group Description":"EMBEDDING","Group size":2,"In msg nelems":250000,"Out msg nelems":250000,"dtype":"Byte"}})json",
          R"json({"ph":"C","name":"memory","pid":1,"ts":3.000,"args":{"bytes":24696061952}})json",
      })
    CHECK_MESSAGE(has_line(trace, line), line);
}

TEST_CASE("a file a device holds that device, says its first rank, and has no arrows") {
  const ProgramSet programs = testing::two_stage_programs();
  std::vector<std::string> texts;
  write_device_traces(testing::simulate_alone(programs).timeline, programs,
                      testing::two_stage_plan(), testing::small_report(),
                      {DeviceId{1}, DeviceId{0}},
                      [&](DeviceId, std::string text) { texts.push_back(std::move(text)); });
  REQUIRE(texts.size() == 2);
  CHECK(texts[0].find(R"("distributedInfo":{"rank":8,"world_size":16)") != std::string::npos);
  CHECK(texts[1].find(R"("distributedInfo":{"rank":0,"world_size":16)") != std::string::npos);
  const TraceFindings whole = check_trace(small_trace());
  std::int64_t kernels = 0;
  for (const std::string& text : texts) {
    const TraceFindings findings = check_trace(text);
    CHECK(findings.problems == std::vector<std::string>{});
    CHECK(findings.processes == 1);
    CHECK(findings.arrows == 0);
    kernels += findings.nanoseconds_by_category.at("kernel");
  }
  CHECK(kernels == whole.nanoseconds_by_category.at("kernel"));
}

TEST_CASE("a trace of some devices keeps the arrows between them, and its rank is the first's") {
  const ProgramSet programs = testing::two_stage_programs();
  const Timeline timeline = testing::simulate_alone(programs).timeline;
  const auto trace_of = [&](const std::vector<DeviceId>& devices) {
    std::ostringstream out;
    write_chrome_trace(timeline, programs, testing::two_stage_plan(), testing::small_report(),
                       devices, out);
    return std::move(out).str();
  };
  CHECK(trace_of({DeviceId{0}, DeviceId{1}}) == small_trace());
  CHECK(check_trace(trace_of({DeviceId{1}, DeviceId{0}})).arrows == 4);
  CHECK(check_trace(trace_of({DeviceId{1}})).arrows == 0);
  CHECK(trace_of({DeviceId{1}}).find(R"("distributedInfo":{"rank":8,)") != std::string::npos);
}

TEST_CASE("viewers get whole replicas of up to a million events, and at least the first") {
  ProgramSet programs = testing::two_stage_programs();
  Plan plan = testing::two_stage_plan();
  plan.parallel.data = 3;
  plan.devices.insert(plan.devices.end(), {plan.devices[0], plan.devices[1]});
  plan.devices.insert(plan.devices.end(), {plan.devices[0], plan.devices[1]});
  programs.devices.resize(6);
  Timeline timeline;
  const Op op = testing::op(OpKind::compute, Phase::forward, 0);
  const auto computing = [&](std::uint32_t device, int spans) {
    for (int i = 0; i < spans; ++i)
      timeline.computes.push_back({DeviceId{device}, Stream::compute, op, 0_s, 1_us});
  };
  const auto kept = [&] { return devices_that_viewers_load(timeline, programs, plan).size(); };
  CHECK(kept() == 6);
  computing(0, 200'000);  // 3 events each: the span and two parts
  CHECK(kept() == 6);
  computing(3, 150'000);  // 600,000 and 450,000 are too many together
  CHECK(kept() == 2);
  computing(1, 200'000);  // a replica too large by itself
  CHECK(kept() == 2);
}

TEST_CASE("sharded gradients are reduced and scattered, in PowerSGD's factors all-reduced") {
  Plan plan = testing::two_stage_plan();
  const auto name = [&] { return detail::kernel_name(Phase::gradient_reduce, plan, StageId{0}); };
  CHECK(name() == "ncclDevKernel_AllReduce(data gradients)");
  plan.parallel.zero_stage = 1;
  CHECK(name() == "ncclDevKernel_ReduceScatter(data gradients)");
  plan.compression.data_gradients = Compressor{};
  plan.compression.data_gradients->codec = &codec_named("powersgd");
  CHECK(name() == "ncclDevKernel_AllReduce(data gradients)");
  plan.parallel.zero_stage = 3;
  CHECK(name() == "ncclDevKernel_ReduceScatter(data gradients)");
}

TEST_CASE("tensor collectives of a pass, drawn as one, are named by what they are") {
  Plan plan = testing::two_stage_plan();
  const auto name = [&] { return detail::kernel_name(Phase::tensor_reduce, plan, StageId{0}); };
  CHECK(name() == "ncclDevKernel_AllReduce(tensor activations)");
  plan.parallel.sequence_parallel = true;
  CHECK(name() == "ncclDevKernel_AllGather_ReduceScatter(tensor activations)");
}

TEST_CASE("the same run gives the same bytes") { CHECK(small_trace() == small_trace()); }

/// A timeline of messages alone, on the two devices.
Timeline messages_at(std::initializer_list<std::pair<Seconds, Seconds>> times) {
  Timeline timeline;
  std::uint32_t channel = 0;
  for (const auto& [begin, end] : times) {
    const Op send =
        testing::op(OpKind::send, channel == 0 ? Phase::activation : Phase::gradient, 0);
    timeline.messages.push_back({ChannelId{channel}, send, 1_MB, begin, begin, end});
    channel = 1 - channel;
  }
  return timeline;
}

TEST_CASE("messages that cross each other get a second thread, never an overlap") {
  const Timeline timeline = messages_at({{0_us, 5_us}, {2_us, 7_us}, {5_us, 6_us}});
  const std::string trace =
      chrome_trace(timeline, testing::two_stage_programs(), testing::two_stage_plan(), Report{});
  const TraceFindings findings = check_trace(trace);
  CHECK(findings.problems == std::vector<std::string>{});
  CHECK(findings.threads == 4);  // two of each device
  CHECK(has_line(
      trace,
      R"({"ph":"M","name":"thread_name","pid":1,"tid":105,"args":{"name":"comm:pipeline 2"}})"));
  CHECK(trace.find("comm:pipeline 3") == std::string::npos);
}

TEST_CASE("a message that takes no time is still long enough to hold its arrow") {
  const Timeline timeline = messages_at({{1_us, 1_us}, {1_us, 1_us}});
  const TraceFindings findings = check_trace(
      chrome_trace(timeline, testing::two_stage_programs(), testing::two_stage_plan(), Report{}));
  CHECK(findings.problems == std::vector<std::string>{});
  CHECK(findings.slices == 4);
  CHECK(findings.arrows == 2);
}

TEST_CASE("slices that follow each other share their border, at any time of the clock") {
  // Thirds of a nanosecond, an hour into the run: rounded alike, so that nothing overlaps.
  Timeline timeline;
  const Op op = testing::op(OpKind::compute, Phase::forward, 0);
  Seconds now = 3600_s;
  for (int i = 0; i < 1000; ++i) {
    const Seconds end = now + Seconds{(i % 7 + 1) / 3e9};
    timeline.computes.push_back({DeviceId{0}, Stream::compute, op, now, end});
    now = end;
  }
  const TraceFindings findings = check_trace(
      chrome_trace(timeline, testing::two_stage_programs(), testing::two_stage_plan(), Report{}));
  CHECK(findings.problems == std::vector<std::string>{});
  CHECK(findings.slices > 0);
}

TEST_CASE("more lanes than a hundred still have threads of their own") {
  Timeline timeline;
  for (int i = 0; i < 150; ++i) {
    const Op send = testing::op(OpKind::send, Phase::activation, 0);
    timeline.messages.push_back({ChannelId{0}, send, 1_MB, 0_s, 0_s, 1_us});
  }
  const TraceFindings findings = check_trace(
      chrome_trace(timeline, testing::two_stage_programs(), testing::two_stage_plan(), Report{}));
  CHECK(findings.problems == std::vector<std::string>{});
  CHECK(findings.threads == 300);
}

TEST_CASE("a device whose ranks are no neighbours names each") {
  Plan plan = testing::two_stage_plan();
  plan.devices[0] = {3, StageId{0}, 0, NodeId{2}, {RankId{1}, RankId{5}}, {0, 2}, {1, 5}};
  const std::string trace = chrome_trace(Timeline{}, testing::two_stage_programs(), plan, Report{});
  CHECK(has_line(
      trace,
      R"({"ph":"M","name":"process_name","pid":1,"args":{"name":"ranks 0001,0005 · dp3 pp0 tp0,2 · node2"}})"));
}

TEST_CASE("a device of one GPU is named by its rank and GPU, ranks padded to one width") {
  Plan plan = testing::two_stage_plan();
  plan.parallel.tensor = 2;
  plan.parallel.data = 8192;  // 32768 ranks: five digits
  plan.devices[0] = {3, StageId{0}, 1, NodeId{2}, {RankId{7}}, {1}, {5}};
  const std::string trace = chrome_trace(Timeline{}, testing::two_stage_programs(), plan, Report{});
  CHECK(has_line(
      trace,
      R"({"ph":"M","name":"process_name","pid":1,"args":{"name":"rank 00007 · dp3 pp0 tp1 · node2 gpu5"}})"));
  CHECK(check_trace(trace).ok());
}

}  // namespace
}  // namespace windtunnel
