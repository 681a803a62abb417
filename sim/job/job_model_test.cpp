#include "job/job_model.hpp"

#include <doctest/doctest.h>

#include "core/testing.hpp"
#include "job/job_result.hpp"

namespace windtunnel {
namespace {

Scenario scenario_with_job(const std::string& job) {
  return read_scenario(source_dir() / "scenarios/gpt3-175b-512xa100.json", Library{source_dir()},
                       {.overrides = {{"/job", job}}});
}

Report report_of(const Scenario& scenario, Seconds iteration = Seconds{30}) {
  Report report;
  report.iteration_time = iteration;
  report.parameters = 175e9;
  report.breakdown.add(Line::compute, Seconds{20});
  report.breakdown.add(Line::data_comm, Seconds{6});
  report.breakdown.add(Line::pipeline_bubble, Seconds{4});
  report.plan = scenario.plan;
  return report;
}

TEST_CASE("start-up times are those measured, and on straight lines elsewhere") {
  CHECK(measured_start_up(8) / Seconds{1} == 169.1);
  CHECK(measured_start_up(1024) / Seconds{1} == doctest::Approx(291.3));
  CHECK(measured_start_up(640) / Seconds{1} == doctest::Approx((188.2 + 228.9) / 2));
  // 392.1 + (2048 - 1344) (392.1 - 228.9) / (1344 - 768) = 591.6 s
  CHECK(measured_start_up(2048) / Seconds{1} == doctest::Approx(591.6).epsilon(1e-3));
}

TEST_CASE("a job of tokens has as many steps as its batches need") {
  const Scenario scenario = scenario_with_job(R"({"tokens": 3.0e11})");
  const Job job = make_job(scenario, report_of(scenario));
  // 1536 · 2048 tokens a step: 95,367.4 steps
  CHECK(job.model.steps == 95'368);
  // 175e9 (2 + 12) bytes; BLOOM's checkpoints of 176e9 parameters in the same states had 2.3 "TB" (chronicles of tr11), 2.24 TiB
  CHECK(job.checkpoint / Bytes{1} == doctest::Approx(175e9 * 14));
  CHECK(job.shares.computing == doctest::Approx(20.0 / 30));
  CHECK(job.shares.communicating == doctest::Approx(6.0 / 30));
}

TEST_CASE("a sharded checkpoint is written by all nodes, another by those of one replica") {
  const auto stall = [](const std::string& sharded, const char* kind) {
    const Scenario scenario = scenario_with_job(
        R"({"steps": 100000, "checkpoint": {"storage_bandwidth": "10 TB/s", "node_bandwidth": "1 GB/s", "sharded": )" +
        sharded + R"(, "kind": ")" + kind + "\"}}");
    const JobModel model = make_job(scenario, report_of(scenario)).model;
    return std::pair{to_seconds(model.stall) / Seconds{1}, to_seconds(model.write) / Seconds{1}};
  };
  // 2450 GB by 64 nodes, or by 16 (8 · 16 GPUs): 38.28 s or 153.1 s
  CHECK(stall("true", "synchronous").first == doctest::Approx(38.28).epsilon(1e-3));
  CHECK(stall("false", "synchronous").first == doctest::Approx(153.1).epsilon(1e-3));
  // 512 GPUs copy 10 GB/s each: 0.4785 s
  CHECK(stall("true", "asynchronous").first == doctest::Approx(0.4785).epsilon(1e-3));
  CHECK(stall("true", "asynchronous").second == doctest::Approx(38.28).epsilon(1e-3));
}

TEST_CASE("an unsharded checkpoint is written by the nodes on which a replica stands") {
  const auto stall = [](const std::string& order) {
    const Scenario scenario = read_scenario(
        source_dir() / "scenarios/gpt3-175b-512xa100.json", Library{source_dir()},
        {.overrides = {{"/nodes", "4"},
                       {"/parallel", R"({"tensor": 2, "pipeline": 4, "data": 4, "rank_order": ")" +
                                         order + "\"}"},
                       {"/job", R"({"steps": 1000, "checkpoint": {"sharded": false,
                          "storage_bandwidth": "10 TB/s", "node_bandwidth": "1 GB/s"}})"}}});
    return to_seconds(make_job(scenario, report_of(scenario)).model.stall) / Seconds{1};
  };
  // 2450 GB by the four nodes of four stages, or by the one of a whole replica
  CHECK(stall("tensor-data-pipeline") == doctest::Approx(612.5).epsilon(1e-3));
  CHECK(stall("tensor-pipeline-data") == doctest::Approx(2450).epsilon(1e-3));
}

TEST_CASE("the published failures of Llama 3 come back on its cluster") {
  const Scenario scenario = read_scenario(
      source_dir() / "scenarios/job-llama3-405b-16384xh100.json", Library{source_dir()});
  const Job job = make_job(scenario, report_of(scenario));
  // 54 days, 419 interruptions
  CHECK(job.model.failure_rate() * 54 * 86'400e9 == doctest::Approx(419).epsilon(0.005));
}

TEST_CASE("fewer nodes take longer for a step, and half of the replicas are the least") {
  const Scenario scenario = scenario_with_job(R"({"steps": 1000, "restart": {"elastic": true}})");
  const JobModel model = make_job(scenario, report_of(scenario)).model;
  // Replicas of 16 nodes, 4 of them: 1 to 16 missing nodes leave 3 of them, 17 to 32 leave 2; 384 microbatches become 512 or 768.
  REQUIRE(model.step.size() == 33);
  CHECK(model.step[1] == 40'000'000'000);
  CHECK(model.step[16] == 40'000'000'000);
  CHECK(model.step[17] == 60'000'000'000);
}

TEST_CASE("each tray of an NVLink domain fails, writes and is missed alone") {
  const Scenario scenario = read_scenario(
      source_dir() / "scenarios/gpt3-175b-512xa100.json", Library{source_dir()},
      {.overrides = {
           {"/nodes", "32"},
           {"/model", R"("llama3-8b")"},
           {"/platform", R"("gb200-nvl72")"},
           {"/software", R"("megatron-core-2026")"},
           {"/training", R"({"global_batch": 128, "micro_batch": 1, "precision": "bf16"})"},
           {"/parallel", R"({"tensor": 4, "data": 32, "sequence_parallel": true})"},
           {"/job", R"({"steps": 1000, "restart": {"elastic": true},
              "checkpoint": {"storage_bandwidth": "10 TB/s", "node_bandwidth": "1 GB/s"},
              "failures": {"gpu": 0, "memory": 0, "nic": 0, "network": 0, "node": 1, "software": 0}})"}}});
  REQUIRE(scenario.plan.num_nodes == 2);  // a rack of 18 trays and 14 of another
  const Job job = make_job(scenario, report_of(scenario));
  CHECK(job.model.nodes == 32);
  CHECK(job.gpus == 128);
  CHECK(job.gpus_per_node == 4);
  CHECK(job.model.failure_rate() * 365.25 * 86'400e9 == doctest::Approx(32));
  // A replica a tray: 1 to 16 may be missing. 2450 GB by 32 trays: 76.6 s
  CHECK(job.model.step.size() == 17);
  CHECK(to_seconds(job.model.stall) / Seconds{1} == doctest::Approx(76.56).epsilon(1e-3));
}

/// 128 GPUs in nodes of 8, each replica on the GPUs of a tensor group of 8 times `degrees`.
Scenario elastic_scenario(const std::string& degrees) {
  return read_scenario(
      source_dir() / "scenarios/gpt3-175b-512xa100.json", Library{source_dir()},
      {.overrides = {
           {"/nodes", "16"},
           {"/model", R"("llama3-8b")"},
           {"/platform", R"("dgx-h100")"},
           {"/software", R"("megatron-core-2024")"},
           {"/training",
            R"({"global_batch": 64, "micro_batch": 1, "precision": "bf16", "attention": "flash",
              "recompute": "full"})"},
           {"/parallel", R"({"tensor": 8, "data": 4, "sequence_parallel": true, )" + degrees + "}"},
           {"/job", R"({"steps": 20000, "checkpoint": {"interval": "30 min"},
              "failures": {"gpu": 20, "memory": 0, "nic": 0, "network": 0, "node": 0, "software": 0},
              "restart": {"elastic": true, "repair": "200 h", "detection": "1 min"},
              "start": {"time": "1 min"}})"}}});
}

TEST_CASE("context and pipeline degrees belong to a replica alike") {
  const auto steps = [](const std::string& degrees) {
    const Scenario scenario = elastic_scenario(degrees);
    return make_job(scenario, report_of(scenario, Seconds{10})).model.step;
  };
  // Replicas of four nodes: 1 to 4 missing nodes leave three of four, 5 to 8 leave two; 16 microbatches become 22 or 32.
  const std::vector<Ticks> context = steps(R"("context": 4)");
  REQUIRE(context.size() == 9);
  CHECK(context[1] == 13'750'000'000);
  CHECK(context[4] == 13'750'000'000);
  CHECK(context[8] == 20'000'000'000);
  CHECK(steps(R"("pipeline": 4)") == context);
}

TEST_CASE("a job with long sequences waits for the nodes of whole replicas") {
  const Scenario scenario = elastic_scenario(R"("context": 4)");
  // An independent simulation of the same job says 17.7 days.
  CHECK(simulate_job(scenario, report_of(scenario, Seconds{10}), {.draws = 400}).days.median ==
        doctest::Approx(17.7).epsilon(0.05));
}

TEST_CASE("a job that waits for repairs says how many spare nodes it needs") {
  const Scenario scenario = elastic_scenario(R"("context": 4)");
  Report report = report_of(scenario, Seconds{10});
  report.iteration_time_interval = {Seconds{9}, Seconds{12}};
  const JobResult result = simulate_job(scenario, report, {.draws = 100});
  REQUIRE(result.enough_spares);
  CHECK(result.enough_spares->least <= result.enough_spares->nodes);
  CHECK(result.enough_spares->most >= result.enough_spares->nodes);
  CHECK(result.share_without_nodes() > 0.5);
  CHECK(result.enough_spares->median_days < result.days.median / 2);
  CHECK(text_of(job_document(result)).find("without spare nodes, the job waits for nodes in ") !=
        std::string::npos);
  CHECK(text_of(job_document(result))
            .find("plan: tensor 8 × context 4 × pipeline 1 × data 4, 1f1b, 16 "
                  "microbatches of 1 sample, bf16, sequence parallel, flash "
                  "attention (cudnn), full recompute\n") != std::string::npos);
}

TEST_CASE("money and energy of a job in which nothing fails") {
  const Scenario scenario = scenario_with_job(R"({"steps": 1200, "start": {"time": "0 s"},
      "checkpoint": {"storage_bandwidth": "1000 TB/s", "node_bandwidth": "1000 TB/s", "kept": 2},
      "failures": {"gpu": 0, "memory": 0, "nic": 0, "network": 0, "node": 0, "software": 0},
      "restart": {"spare_nodes": 2}, "price": {"gpu_hour": 2, "storage_tb_month": 20},
      "power": {"computing": 600, "communicating": 300, "idle": 100, "node": 1000, "pue": 1.5, "kg_co2_per_kwh": 0.4}})");
  const JobResult result = simulate_job(scenario, report_of(scenario), {.draws = 3});
  // 10 h · 528 GPUs · 2 + 2 · 2.45 TB · 20 · 10 / 730.5 = 10,561.3
  CHECK(result.cost->median == doctest::Approx(10'561.3).epsilon(1e-4));
  // 512 (400 + 60 + 13.33) W + 16 · 100 W + 66 · 1000 W = 309.9 kW; · 10 h · 1.5 = 4.649 MWh
  CHECK(result.energy_mwh->median == doctest::Approx(4.649).epsilon(1e-3));
  CHECK(result.tonnes_co2->median == doctest::Approx(4.649 * 0.4).epsilon(1e-3));
}

TEST_CASE("GPUs of a node that the plan does not use idle") {
  const auto energy = [](const std::string& tensor) {
    const Scenario scenario = read_scenario(
        source_dir() / "scenarios/gpt-39b-512xa100.json", Library{source_dir()},
        {.overrides = {{"/nodes", "1"},
                       {"/model/layers", "2"},
                       {"/parallel", R"({"pipeline": 1, "data": 1, "tensor": )" + tensor + "}"},
                       {"/job", R"({"steps": 3600, "step_time": "1 s", "start": {"time": "0 s"},
                          "checkpoint": {"storage_bandwidth": "1000 TB/s", "node_bandwidth": "1000 TB/s"},
                          "failures": {"gpu": 0, "memory": 0, "nic": 0, "network": 0, "node": 0, "software": 0},
                          "power": {"computing": 400, "communicating": 400, "idle": 100}})"}}});
    Report report = report_of(scenario);
    report.breakdown = {};
    return simulate_job(scenario, report, {.draws = 1}).energy_mwh->median;
  };
  // An hour: 8 · 400 W, and 2 · 400 W + 6 · 100 W
  CHECK(energy("8") == doctest::Approx(3.2e-3).epsilon(1e-3));
  CHECK(energy("2") == doctest::Approx(1.4e-3).epsilon(1e-3));
}

/// 1,200 steps of 30 s, 10 h; nothing fails, and nothing but steps takes time.
const char* const only_steps = R"({"steps": 1200, "start": {"time": "0 s"},
    "checkpoint": {"storage_bandwidth": "1000 TB/s", "node_bandwidth": "1000 TB/s", "kept": 1},
    "failures": {"gpu": 0, "memory": 0, "nic": 0, "network": 0, "node": 0, "software": 0},
    "price": {"gpu_hour": 2},
    "power": {"computing": 600, "communicating": 300, "idle": 100, "node": 1000, "kg_co2_per_kwh": 0.5}})";

TEST_CASE("days, money and energy of a job carry the interval of its step") {
  const Scenario scenario = scenario_with_job(only_steps);
  Report report = report_of(scenario);
  report.iteration_time_interval = {Seconds{24}, Seconds{45}};
  report.assumptions.push_back({"prediction interval", "90 %", "9 runs", Evidence::measured});
  const JobResult result = simulate_job(scenario, report, {.draws = 3});
  // 30 s in 24 to 45: 0.8 to 1.5 times 10 h, 512 GPUs and their price and power
  const double days = 10.0 / 24;
  CHECK(result.days.median == doctest::Approx(days).epsilon(1e-4));
  CHECK(result.days.low == doctest::Approx(0.8 * days).epsilon(1e-4));
  CHECK(result.days.high == doctest::Approx(1.5 * days).epsilon(1e-4));
  CHECK(result.days.of_run.high == doctest::Approx(days).epsilon(1e-4));
  CHECK(result.cost->low == doctest::Approx(0.8 * 512 * 10 * 2).epsilon(1e-4));
  CHECK(result.cost->of_step.high == doctest::Approx(1.5 * 512 * 10 * 2).epsilon(1e-4));
  CHECK(result.energy_mwh->high == doctest::Approx(1.5 * result.energy_mwh->median).epsilon(1e-4));
  CHECK(result.tonnes_co2->high == doctest::Approx(0.5 * result.energy_mwh->high));
  const std::string text = text_of(job_document(result));
  // Below a day, in hours.
  CHECK(text.find("\n  hours ") != std::string::npos);
  CHECK(text.find("90 % of runs: 8.00 to 15.0\n") != std::string::npos);
  CHECK(text.find("steps of 30.00 s, 90 % between 24.00 s and 45.00 s; 3 draws\n") !=
        std::string::npos);
  CHECK(text.find("The interval of the step rests on 9 runs.\n") != std::string::npos);
  const std::string json = json_of(job_document(result));
  CHECK(json.find("of_which_step") != std::string::npos);
  CHECK(json.find("of_which_run") != std::string::npos);
  const std::string page = page_of(job_document(result));
  for (const std::string shown : {"tensor 8", "/step_interval_s/0", "The whole scenario"})
    CHECK(page.find(shown) != std::string::npos);
}

TEST_CASE(
    "a job whose step is given, or of which nothing was measured, has no interval of its step") {
  const auto json = [](const std::string& job, bool measured) {
    const Scenario scenario = scenario_with_job(job);
    Report report = report_of(scenario);
    if (measured) report.iteration_time_interval = {Seconds{24}, Seconds{45}};
    return json_of(job_document(simulate_job(scenario, report, {.draws = 3})));
  };
  CHECK(json(R"({"steps": 1200})", false).find("of_which_step") == std::string::npos);
  CHECK(json(R"({"steps": 1200, "step_time": "30 s"})", true).find("of_which_step") ==
        std::string::npos);
}

TEST_CASE("the error of the step does not touch starts and checkpoints") {
  const Scenario scenario = scenario_with_job(R"({"steps": 20000, "start": {"time": "100000 s"},
      "checkpoint": {"storage_bandwidth": "1000 TB/s", "node_bandwidth": "1000 TB/s"},
      "failures": {"gpu": 0, "memory": 0, "nic": 0, "network": 0, "node": 0, "software": 0}})");
  Report report = report_of(scenario);
  const JobModel model = make_job(scenario, report).model;
  const JobModel longer = *with_longer_steps(model, 1.5);
  CHECK(longer.step.front() == 45'000'000'000);
  CHECK(longer.start == model.start);
  CHECK(longer.stall == model.stall);
  CHECK(longer.checkpoint_every == model.checkpoint_every);
  report.iteration_time_interval = {Seconds{30}, Seconds{45}};
  const JobResult result = simulate_job(scenario, report, {.draws = 2});
  // 100,000 s and 20,000 · 30 s, or 20,000 · 45 s: 700,000 or 1,000,000 s
  CHECK(result.days.low == doctest::Approx(700'000.0 / 86'400).epsilon(1e-4));
  CHECK(result.days.high == doctest::Approx(1'000'000.0 / 86'400).epsilon(1e-4));
}

TEST_CASE("an interval of a step with whose slow end the job does not end is left out") {
  // A checkpoint takes 1,200 steps: 10 h at the predicted step, and half a failure; at a thousand times that no period ever ends.
  const Scenario scenario = scenario_with_job(R"({"steps": 2400, "checkpoint": {"interval": "10 h"},
      "start": {"time": "1 min"}, "restart": {"spare_nodes": 64},
      "failures": {"gpu": 0.8, "memory": 0, "nic": 0, "network": 0, "node": 0, "software": 0}})");
  Report report = report_of(scenario);
  report.iteration_time_interval = {Seconds{29}, Seconds{30'000}};
  const JobResult result = simulate_job(scenario, report, {.draws = 2});
  CHECK(!result.step_interval);
  CHECK(result.days.high == result.days.of_run.high);
  CHECK(text_of(job_document(result)).find("the interval of the step is left out") !=
        std::string::npos);
}

TEST_CASE("a result is the same for any number of threads") {
  const Scenario scenario = scenario_with_job(R"({"tokens": 1e12, "failures": {"gpu": 1}})");
  Report report = report_of(scenario);
  report.iteration_time_interval = {Seconds{28}, Seconds{35}};
  const auto text = [&](std::size_t threads) {
    const JobResult result =
        simulate_job(scenario, report, {.draws = 100, .seed = 9, .at_once = threads});
    return json_of(job_document(result)) + job_csv(result);
  };
  CHECK(text(1) == text(2));
  CHECK(text(1) == text(5));
  CHECK(text(1).find(R"("schema": "windtunnel/job-v1")") != std::string::npos);
}

TEST_CASE("a job of more than 95 years is refused, whatever takes them") {
  const auto check = [](const std::string& job) {
    const Scenario scenario = scenario_with_job(job);
    CHECK_THROWS_WITH_AS(make_job(scenario, report_of(scenario)),
                         doctest::Contains("more than 95 years"), InputError);
  };
  // 1e8 · 30 s; 1e5 evaluations of a day; 1e5 checkpoints of 2.45e12 bytes / 1 MB/s
  check(R"({"steps": 100000000})");
  check(R"({"steps": 100000, "evaluation": {"every": 1, "time": "24 h"}})");
  for (const std::string kind : {"synchronous", "asynchronous"})
    check(R"({"steps": 100000, "checkpoint": {"interval": "1 s", "storage_bandwidth": "1 MB/s",
              "kind": ")" +
          kind + "\"}}");
}

TEST_CASE("a job says how long it is once") {
  CHECK_THROWS_WITH_AS(scenario_with_job(R"({"tokens": 1e12, "steps": 5})"),
                       doctest::Contains("tokens and steps both say"), InputError);
  CHECK_THROWS_WITH_AS(scenario_with_job("{}"), doctest::Contains("neither tokens nor steps"),
                       InputError);
  const Scenario plain =
      read_scenario(source_dir() / "scenarios/gpt3-175b-512xa100.json", Library{source_dir()});
  CHECK_THROWS_WITH_AS(job_block_of(plain), doctest::Contains("no job block"), InputError);
}

}  // namespace
}  // namespace windtunnel
