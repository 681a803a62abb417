#include "evidence/measurement_set.hpp"
#include "importers/gpu_totals.hpp"
#include "importers/testing.hpp"
#include "importers/trace_event_reader.hpp"

using namespace windtunnel;
using namespace windtunnel::testing;

namespace {

GpuTrace trace_in(const std::string& text) {
  TextInput input("t.json", text);
  return read_gpu_trace(input);
}

GpuTrace trace_of(const std::string& events, const std::string& head = "") {
  return trace_in("{" + head + "\"traceEvents\": [" + events + "]}");
}

/// Complaint about a text; empty: none.
std::string problem_in(const std::string& text) {
  try {
    trace_in(text);
  } catch (const InputError& error) {
    return error.what();
  }
  return {};
}

/// A complete event; `times` are its ts and dur, `args` the members of its args.
std::string event(const std::string& category, const std::string& name, int thread,
                  const std::string& times, const std::string& args = "") {
  return R"({"ph": "X", "cat": ")" + category + R"(", "name": ")" + name +
         R"(", "pid": 0, "tid": )" + std::to_string(thread) + ", " + times + R"(, "args": {)" +
         args + "}}";
}

std::string at(int begin, int length) {
  return "\"ts\": " + std::to_string(begin) + ", \"dur\": " + std::to_string(length);
}

std::string text_of_import(const std::vector<std::filesystem::path>& files) {
  ImportRun run("kineto");
  for (const auto& file : files) run.with(file);
  std::ostringstream out, notes;
  run_import(run.request, ResultFormat::text, shipped_library(), out, notes);
  return out.str();
}

std::int64_t line(const GpuTotals& gpu, TraceLine which) { return gpu.of(which); }

}  // namespace

TEST_CASE("work that runs at once counts once, and hidden communication is told from exposed") {
  const GpuTrace trace = trace_of(
      event("kernel", "gemm", 7, R"("ts": 100.5, "dur": 10)") + "," +
      event("kernel", "ncclDevKernel_AllReduce_Sum_f32_RING_LL(x)", 20,
            R"("ts": 105.5, "dur": 20)") +
      "," + event("gpu_memcpy", "Memcpy DtoH (Device -> Pinned)", 7, R"("ts": 135.5, "dur": 5)") +
      "," + event("cpu_op", "aten::mm", 1, R"("ts": 0, "dur": 1000)"));
  const std::vector<GpuTotals> totals = totals_of(trace);
  REQUIRE(totals.size() == 1);
  const GpuTotals& gpu = totals.front();
  CHECK(gpu.window == 40'000);         // 100.5 to 140.5 us
  CHECK(gpu.compute == 10'000);        // 100.5 to 110.5
  CHECK(gpu.communication == 20'000);  // 105.5 to 125.5
  CHECK(gpu.overlap == 5'000);         // 105.5 to 110.5
  CHECK(gpu.exposed_communication() == 15'000);
  CHECK(gpu.idle() == 10'000);  // 125.5 to 135.5
  CHECK(line(gpu, TraceLine::copies) == 5'000);
  CHECK(gpu.by_stream.at("20").at("nccl AllReduce").nanoseconds == 20'000);
  CHECK(gpu.by_stream.at("7").at("memcpy DtoH").count == 1);
  CHECK(gpu.by_kernel.at("matrix product").nanoseconds == 10'000);
}

TEST_CASE("the lines of the breakdown add up to the time, each instant in the first that runs") {
  const auto nccl = [](const char* name, const char* group, int begin, int length) {
    return event("kernel", name, 20, at(begin, length),
                 std::string(R"("Process Group Description": ")") + group + "\"");
  };
  const GpuTrace trace =
      trace_of(event("kernel", "gemm", 7, at(0, 10)) + "," +
               nccl("ncclKernel_AllReduce_x(", "TENSOR_MODEL_PARALLEL_GROUP", 5, 10) + "," +
               nccl("ncclKernel_SendRecv(", "mesh_pp", 10, 10) + "," +
               nccl("ncclKernel_AllGather_y(", "DATA_PARALLEL", 15, 15) + "," +
               nccl("ncclKernel_AllReduce_y(", "default_pg", 40, 5));
  const GpuTotals gpu = totals_of(trace).front();
  CHECK(line(gpu, TraceLine::compute) == 10'000);
  CHECK(line(gpu, TraceLine::tensor_comm) == 5'000);    // 10 to 15
  CHECK(line(gpu, TraceLine::pipeline_comm) == 5'000);  // 15 to 20
  CHECK(line(gpu, TraceLine::data_comm) == 10'000);     // 20 to 30
  CHECK(line(gpu, TraceLine::other_comm) == 5'000);
  CHECK(line(gpu, TraceLine::idle) == 10'000);
  // By itself the pipeline's message is exposed for all of its 10 us, and takes 10.
  CHECK(gpu.exposed[static_cast<std::size_t>(CommClass::pipeline)] == 10'000);
  CHECK(gpu.by_kernel.contains("nccl SendRecv (mesh_pp)"));
}

TEST_CASE("process groups that a kernel only numbers are described by the file's head") {
  const GpuTrace trace = trace_of(
      event("kernel", "ncclKernel_AllReduce_x(", 20, at(0, 4), R"("Process Group Name": "3")"),
      R"("distributedInfo": {"rank": 5, "world_size": 8, "pg_config": [
           {"pg_name": "0", "pg_desc": "default_pg", "ranks": [0, 1]},
           {"pg_name": "3", "pg_desc": "PIPELINE_MODEL_PARALLEL_GROUP"}]}, )");
  CHECK(trace.events.front().comm == CommClass::pipeline);
  CHECK(trace.rank == 5);
  CHECK(trace.world_size == 8);
}

TEST_CASE("names of groups are sorted by the parallelism that they name, and nothing is guessed") {
  CHECK(comm_class_of("TENSOR_MODEL_PARALLEL_GROUP") == CommClass::tensor);
  CHECK(comm_class_of("mesh_tp") == CommClass::tensor);
  CHECK(comm_class_of("PIPELINE_PARALLEL") == CommClass::pipeline);
  CHECK(comm_class_of("DATA_PARALLEL_GROUP_GLOO") == CommClass::data);
  CHECK(comm_class_of("mesh_dp_shard") == CommClass::data);
  CHECK(comm_class_of("EMBEDDING_GROUP") == CommClass::embedding);
  for (const char* name :
       {"", "default_pg", "CONTEXT_PARALLEL_GROUP", "DATA_PARALLEL_GROUP_WITH_CP",
        "TENSOR_AND_DATA_PARALLEL_GROUP", "EXPERT_MODEL_PARALLEL_GROUP", "metadata"})
    CHECK_MESSAGE(comm_class_of(name) == CommClass::other, name);
  CHECK(compute_kind_of("ampere_sgemm_128x64_nn") == std::string("matrix product"));
  CHECK(compute_kind_of("void cudnn::bn_bw_1C11_kernel_new<float>") ==
        std::string("normalisation"));
  CHECK(compute_kind_of("at::native::elementwise_kernel<lambda>") == std::string("elementwise"));
  CHECK(compute_kind_of("something_new") == std::string("other kernels"));
}

TEST_CASE("communication is told by the library that a kernel's name belongs to") {
  const std::vector<std::pair<const char*, const char*>> kernels{
      {"ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
       "nccl AllReduce"},
      {"ncclSymkDevKernel_ReduceScatter_LD(ncclSymkDevWorkArgs)", "nccl ReduceScatter"},
      {"void deep_ep::internode::dispatch<false, 8, true, 8>(int4*, float*)", "DeepEP dispatch"},
      {"void other::ep::internode::cached_notify<false>(int, int)", "DeepEP cached_notify"},
      {"void deep_ep::intranode::combine<__nv_bfloat16, 8, 768>(__nv_bfloat16*)", "DeepEP combine"},
      {"void deep_ep::internode_ll::dispatch<true, 7168>(void*)", "DeepEP dispatch"},
      {"void hybrid_ep::dispatch_kernel<Config>(hybrid_ep::dispatch_kernel_param_t<unsigned char>)",
       "hybrid-EP dispatch_kernel"},
      {"void (anonymous namespace)::multimem_all_reduce_kernel<c10::BFloat16, 16>(c10::BFloat16*)",
       "symmetric memory multimem_all_reduce_kernel"},
      {"void (anonymous namespace)::two_shot_all_reduce_kernel_inplace<c10::BFloat16, 16, 2>(int)",
       "symmetric memory two_shot_all_reduce_kernel_inplace"},
      {"void vllm::cross_device_reduce_2stage<__nv_bfloat16, 8>(vllm::RankData*)",
       "custom all-reduce cross_device_reduce_2stage"},
      {"userbuffers_fp16_sum_inplace_gpu_rr_rs",
       "user buffers userbuffers_fp16_sum_inplace_gpu_rr_rs"},
      {"kuserbuffers_pushrecv(int, int, int*)", "user buffers kuserbuffers_pushrecv"},
      {"void nvshmemi_transfer_put<int>(int*)", "NVSHMEM nvshmemi_transfer_put"},
      {"void somebody::intranode_alltoall_kernel<8>(char*)", "intranode_alltoall_kernel"}};
  for (const auto& [kernel, communication] : kernels)
    CHECK(communication_in(kernel) == std::string(communication));
  // Computing, though their names sound like it.
  const std::vector<std::pair<const char*, const char*>> computing{
      {"void deep_ep::layout::get_dispatch_layout<256, 32, 8>(long const*)", "embedding and index"},
      {"triton_poi_fused_add_all_reduce_4", "reduction"},
      {"void at::native::reduce_kernel<512, 1>(at::native::ReduceOp<float>)", "reduction"},
      {"nvjet_hsh_128x256_64x4_2x1_v_bz_coopA_NTT", "matrix product"},
      {"nvjet_tst_192x192_64x4_1x2_h_bz_coopB_TNN", "matrix product"},
      {"Cijk_Ailk_Bljk_BBS_BH_MT256x256x64_MI16x16", "matrix product"},
      {"void a::grouped_gemm::utils::transpose<512, 128>(unsigned char const*)",
       "cast and transpose"}};
  for (const auto& [kernel, kind] : computing) {
    CHECK(communication_in(kernel).empty());
    CHECK(compute_kind_of(kernel) == std::string(kind));
  }
}

TEST_CASE(
    "exchanges of experts without NCCL are communication, hidden where products run meanwhile") {
  // On stream 20 a dispatch from 0 to 60 us, on stream 7 a product from 10 to 50, then a kernel that nobody knows for 40 us.
  const std::string events =
      event("kernel", "void deep_ep::internode::dispatch<false, 8>(int4*)", 20, at(0, 60)) + "," +
      event("kernel", "nvjet_tst_192x192_64x4_1x2_h_bz_coopB_TNN", 7, at(10, 40)) + "," +
      event("kernel", "mystery", 7, at(60, 40));
  const GpuTrace trace = trace_of(events);
  const GpuTotals gpu = totals_of(trace).front();
  CHECK(gpu.communication == 60'000);
  CHECK(gpu.overlap == 40'000);
  CHECK(gpu.exposed_communication() == 20'000);
  CHECK(gpu.by_kernel.at("DeepEP dispatch").count == 1);
  CHECK(trace.calls.empty());  // of NCCL, which alone says its group
  CHECK(trace.unknown_share() == doctest::Approx(40.0 / 140));
  ImportRun run("kineto");
  run.with("t.json", "{\"traceEvents\": [" + events + "]}");
  std::ostringstream out, notes;
  run_import(run.request, ResultFormat::text, shipped_library(), out, notes);
  CHECK(contains(notes.str(),
                 "28.6 % of the kernels' time is in kernels whose names say nothing; it counts as "
                 "computing (mystery)"));
}

TEST_CASE("a kernel's phase is that of its launch, not of when it runs") {
  // Thread 1 trains, thread 2 is autograd's. Kernels run 100 us after their launches.
  const auto launched = [](int correlation, int thread, int time) {
    const std::string number = "\"correlation\": " + std::to_string(correlation);
    return event("cuda_runtime", "cudaLaunchKernel", thread, at(time, 1), number) + "," +
           event("kernel", "gemm", 7, at(time + 100, correlation), number);
  };
  const GpuTrace trace = trace_of(
      launched(1, 1, 10) + "," + launched(2, 2, 20) + "," + launched(4, 1, 31) + "," +
      launched(8, 2, 40) + "," + event("kernel", "gemm", 7, at(300, 16), R"("correlation": 99)") +
      "," + event("cpu_op", "autograd::engine::evaluate_function: Mm", 2, at(15, 10)) + "," +
      event("user_annotation", "Optimizer.step#AdamW.step", 1, at(30, 5)));
  const GpuTotals gpu = totals_of(trace).front();
  const auto phase = [&](ComputePhase which) {
    return gpu.phases[static_cast<std::size_t>(which)];
  };
  CHECK(phase(ComputePhase::forward) == 9'000);  // 1 before all; 8 outside of the engine's work
  CHECK(phase(ComputePhase::backward) == 2'000);
  CHECK(phase(ComputePhase::optimizer) == 4'000);
  CHECK(phase(ComputePhase::unknown) == 16'000);
  CHECK(trace.unlaunched == 1);
  CHECK(line(gpu, TraceLine::optimizer) == 4'000);
}

TEST_CASE("steps hold the work that runs in them, cut at their marks") {
  const GpuTrace trace = trace_of(event("user_annotation", "ProfilerStep#8", 1, at(100, 50)) + "," +
                                  event("user_annotation", "ProfilerStep#7", 1, at(0, 100)) + "," +
                                  event("gpu_user_annotation", "ProfilerStep#7", 7, at(0, 500)) +
                                  "," + event("kernel", "gemm", 7, at(90, 20)) + "," +
                                  event("kernel", "gemm", 7, at(140, 30)));
  REQUIRE(trace.steps.size() == 2);
  CHECK(trace.steps[0].name == "ProfilerStep#7");
  CHECK(totals_of(trace, {&trace.steps[0], 1}).front().compute == 10'000);
  const GpuTotals second = totals_of(trace, {&trace.steps[1], 1}).front();
  CHECK(second.compute == 20'000);  // 100 to 110 and 140 to 150
  CHECK(second.window == 50'000);
  CHECK(second.idle() == 30'000);
  const GpuTotals both = totals_of(trace, trace.steps).front();
  CHECK(both.window == 150'000);
  CHECK(both.compute == 30'000);
}

TEST_CASE("times are read to the nanosecond, however large the clock") {
  using detail::to_nanoseconds_exactly;
  CHECK(to_nanoseconds_exactly("4458676416788.066") == 4458676416788066);
  CHECK(to_nanoseconds_exactly("1694128201426675") == 1694128201426675000);
  CHECK(to_nanoseconds_exactly("0.0005") == 1);
  CHECK(to_nanoseconds_exactly("12.34") == 12340);
  CHECK(to_nanoseconds_exactly("1.5e3") == 1500000);
  CHECK(to_nanoseconds_exactly("-2") == -2000);
  for (const char* text : {"", "-", "x", "1.2.3", "99999999999999999999", "1e300"})
    CHECK_MESSAGE(!to_nanoseconds_exactly(text), text);
}

TEST_CASE("an overlap that is rounding of the clock is not shown") {
  const TemporaryFolder folder;
  const auto hidden = [&](const std::string& begin) {
    const std::string times = "\"ts\": " + begin + ", \"dur\": 1000";
    const auto file = folder.write(
        "t.json", "{\"traceEvents\": [" + event("kernel", "gemm", 1, at(0, 10000)) + ", " +
                      event("kernel", "ncclDevKernel_AllReduce", 2, times) + "]}");
    return text_of_import({file});
  };
  CHECK(contains(hidden("9500"), "500 us"));
  CHECK_FALSE(contains(hidden("9999.999"), "1.00 ns"));
}

TEST_CASE("a real step of data-parallel training on A100: all-reduces behind the backward pass") {
  const std::string text = text_of_import({sample("trace-1-step.json.gz")});
  CHECK(contains(text, "1258 pieces of GPU work, 1 profiler step\n"));
  CHECK(contains(text, "NVIDIA A100-PG509-200"));
  CHECK(contains(text, "nccl AllReduce (default_pg)"));
  CHECK(contains(text, "nccl AllReduce (default_pg)  12.3 ms      5\n"));
  CHECK(contains(text, "backward"));
}

TEST_CASE(
    "the ranks of a job stand in one table, by rank, and what does not fit together is said") {
  ImportRun run("kineto");
  run.with(sample("trace-v100-rank1.json.gz")).with(sample("trace-v100-rank0.json.gz"));
  std::ostringstream out, notes;
  run_import(run.request, ResultFormat::text, shipped_library(), out, notes);
  CHECK(out.str().find("rank 0, GPU 0") < out.str().find("rank 1, GPU 1"));
  CHECK(contains(notes.str(), "64 kernels were launched before the trace began"));
  run.with(sample("trace-1-step.json.gz"));
  run_import(run.request, ResultFormat::text, shipped_library(), out, notes);
  CHECK(contains(notes.str(), "both say that they are of rank 0"));
  CHECK(contains(notes.str(), "jobs of different sizes"));
}

TEST_CASE("bad traces are refused with file, line and byte") {
  const auto of = [](const std::string& events) {
    return problem_in("{\"traceEvents\": [\n" + events + "]}");
  };
  CHECK(contains(of(""), "no work of a GPU in the trace"));
  const std::string negative = event("kernel", "k", 7, R"("ts": 1, "dur": -2)");
  CHECK(contains(of(negative), "t.json:2:"));
  CHECK(contains(of(negative), "dur is -2 in the event that ends at byte " +
                                   std::to_string(18 + negative.size())));
  CHECK(contains(of(event("kernel", "k", 7, R"("ts": 1)")), "missing key \"dur\""));
  CHECK(contains(of(event("kernel", "k", 7, R"("ts": "1", "dur": 2)")), "ts is a string (\"1\")"));
  CHECK(contains(of(event("kernel", "k", 7, R"("ts": "1", "dur": 2)")), "at /traceEvents/0/ts"));
  CHECK(contains(of(event("kernel", "", 7, at(1, 2))), "missing key \"name\""));
  CHECK(contains(
      of(R"({"ph": "X", "cat": "kernel", "name": "k", "ts": 1, "dur": 2, "pid": "a", "tid": 7})"),
      "pid is a"));
  CHECK(contains(problem_in("{\"traceEvents\": [1, 2"), "in the middle of its JSON"));
  CHECK(contains(problem_in("[]"), "a list, not an object"));
  CHECK(contains(problem_in("{\"traceEvents\": {}}"), "not a list"));
  CHECK(contains(problem_in("{\"a\": 1}"), "missing key \"traceEvents\""));
  CHECK(contains(problem_in("{\"traceEvents\": [], \"traceEvents\": []}"), "second list"));
  CHECK(contains(problem_in("{\"traceEvents\": " + std::string(300, '[')), "nested deeper"));
}

TEST_CASE("all problems of a trace are told, up to twenty") {
  std::string events;
  for (int i = 0; i < 30; ++i) events += (i > 0 ? "," : "") + event("kernel", "k", 7, R"("ts": 1)");
  try {
    trace_of(events);
    FAIL("not refused");
  } catch (const InputError& error) {
    CHECK(error.problems().size() == 20);
  }
}

TEST_CASE("a trace that was cut off is refused, packed or not") {
  ImportRun run("kineto");
  run.with("trace.json.gz", text_of(sample("trace-1-step.json.gz")).substr(0, 4000));
  std::ostringstream out, notes;
  try {
    run_import(run.request, ResultFormat::text, shipped_library(), out, notes);
    FAIL("not refused");
  } catch (const InputError& error) {
    CHECK(contains(error.what(),
                   "trace.json.gz: error: the gzip file ends in the middle, after 4000"));
  }
}

TEST_CASE("a scenario given as a trace is called one, and importers are found by their program") {
  ImportRun run("kineto");
  run.request.options.base = "job.json";
  CHECK(contains(run.with("job.json", "// a job\n{\"model\": 1, \"platform\": 2}").problem(),
                 "job.json is a scenario, not "));
  CHECK(contains(ImportRun("huggingface").with("x.json", "{}").problem(),
                 "did you mean \"hf-config\"?"));
  CHECK(contains(ImportRun("PyTorch").with("x.json", "{}").problem(), "did you mean \"kineto\"?"));
}

TEST_CASE("an archive of traces is no trace, and the message says what to do") {
  std::string archive(512, '\0');
  archive.replace(257, 5, "ustar");
  CHECK(contains(problem_in(archive), "unpack it"));
}

TEST_CASE(
    "traces become a set for calibrate: the median step, and the scenario that --base names") {
  // Steps of 100, 300 and 200 us on rank 0, of 220 us on rank 1: 200 and 220, of which the median is 210 us.
  const auto steps = [](int rank, const std::vector<int>& lengths) {
    std::string events = event("kernel", "gemm", 7, at(0, 90));
    int begin = 0, number = 0;
    for (const int length : lengths) {
      events += "," + event("user_annotation", "ProfilerStep#" + std::to_string(++number), 1,
                            at(begin, length));
      begin += length;
    }
    return R"({"distributedInfo": {"rank": )" + std::to_string(rank) +
           R"(, "world_size": 2}, "traceEvents": [)" + events + "]}";
  };
  ImportRun run("kineto");
  run.with("rank0.json", steps(0, {100, 300, 200})).with("rank1.json", steps(1, {220}));
  run.request.options.base = (source_dir() / "scenarios/gpt-8.3b-128xa100.json").string();
  run.run();
  const MeasurementSet set = read_measurement_set(run.request.output);
  REQUIRE(set.points.size() == 1);
  CHECK(set.points.front().iteration_time == Seconds{210e-6});
  CHECK(set.points.front().id == "gpt-8.3b-128xa100");
  const Scenario scenario =
      read_scenario(scenario_of(set, set.points.front()), set.folder, shipped_library());
  CHECK(scenario.plan.parallel.tensor == 8);
  CHECK(contains(run.messages, "the traces are of 2 ranks, and gpt-8.3b-128xa100 is of 128 GPUs"));
}

TEST_CASE("traces of many ranks are counted, a few listed") {
  const TemporaryFolder folder;
  std::vector<std::filesystem::path> files;
  for (int rank = 0; rank < 9; ++rank) {
    const std::string name = "rank" + std::to_string(rank) + ".json";
    folder.write(name, R"({"distributedInfo": {"rank": )" + std::to_string(rank) +
                           R"(, "world_size": 9}, "traceEvents": [)" +
                           event("kernel", "gemm", 7, at(1, 10)) + "]}");
    files.push_back(folder.path() / name);
  }
  const std::string many = text_of_import(files);
  CHECK(many.starts_with("9 files: ranks 0 to 8\n  the first, rank0.json: "));
  CHECK(many.find("rank1.json: ") == std::string::npos);
  files.erase(files.begin() + 4);
  const std::string few = text_of_import(files);
  CHECK(few.starts_with("8 files: ranks 0 to 8 with gaps\n  rank0.json: "));
  CHECK(few.find("\n  rank8.json: ") != std::string::npos);
}

TEST_CASE("a set is not made of what measures no iteration, nor without its scenario") {
  ImportRun run("kineto");
  run.with(sample("trace-1-step.json.gz"));
  CHECK(contains(run.problem(), "where both -o and --base are given"));
  ImportRun unmarked("kineto");
  unmarked.request.options.base = (source_dir() / "scenarios/gpt-8.3b-128xa100.json").string();
  unmarked.with("t.json", "{\"traceEvents\": [" + event("kernel", "gemm", 7, at(0, 90)) + "]}");
  CHECK(contains(unmarked.problem(), "marks no steps"));
}
