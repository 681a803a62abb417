#include <array>
#include <cstdio>
#include <numeric>

#include "core/testing.hpp"
#include "cost/collective_cost.hpp"
#include "importers/testing.hpp"

using namespace windtunnel;
using namespace windtunnel::testing;

namespace {

struct Time {
  double bytes, us;
};

/// Sizes of 1 MiB to 4 GiB, each in the time in which `rate` moves `share` of it, after `latency`.
std::vector<Time> at_rate(double rate, double share = 1, double latency = 20e-6) {
  std::vector<Time> times;
  for (double size = 1 << 20; size < 5e9; size *= 2)
    times.push_back({size, (latency + share * size / rate) * 1e6});
  return times;
}

/// Output of nccl-tests for an all-reduce on `ranks` GPUs of `nodes` nodes.
std::string log_of(const std::vector<Time>& times, int ranks, int nodes = 1,
                   const std::string& program = "all_reduce_perf", double factor = 2) {
  std::string log = "# Collective test starting: " + program + "\n# nThread 1 nGpus 1 minBytes 8\n";
  for (int r = 0; r < ranks; ++r)
    log += "#  Rank " + std::to_string(r) + " Group  0 Pid 7 on node" +
           std::to_string(r * nodes / ranks) + " device  0 [0000:07:00] NVIDIA A100\n";
  log +=
      "#       size         count      type   redop    root     time   algbw   busbw #wrong     "
      "time   algbw   busbw #wrong\n";
  for (const Time& time : times) {
    const double algbw = time.bytes / time.us / 1e3;
    const std::string columns =
        formatted("  %.6g  %.4f  %.4f ", time.us, algbw, algbw * factor * (ranks - 1) / ranks);
    log += formatted("%12.0f  %12.0f", time.bytes, time.bytes / 4) + "  float  sum  -1" + columns +
           "0" + columns + "N/A\n";
  }
  return log + "# Avg bus bandwidth : 1\n";
}

std::vector<Time> modelled(const Interconnect& interconnect, int ranks) {
  std::vector<int> gpus(static_cast<std::size_t>(ranks));
  std::iota(gpus.begin(), gpus.end(), 0);
  std::vector<Time> times;
  for (double size = 1 << 20; size < 5e9; size *= 2)
    times.push_back({size, in_node_all_reduce(interconnect, gpus, Bytes{size}) / 1_us});
  return times;
}

/// The measured times of validation/nccl/allreduce-a100.json on so many GPUs.
std::vector<Time> vtrain_times(int gpus) {
  Problems problems;
  const JsonValue set =
      parse_json(read_source(source_dir() / "validation/nccl/allreduce-a100.json"), problems);
  std::vector<Time> times;
  for (const JsonValue& point : set.find("points")->array())
    if (std::get<std::int64_t>(point.find("gpus")->content) == gpus)
      times.push_back({static_cast<double>(std::get<std::int64_t>(point.find("bytes")->content)),
                       std::get<double>(point.find("measured")->find("time_s")->content) * 1e6});
  return times;
}

/// The A100 platform with other constants inside the node, to start from.
std::string changed_base() {
  std::string text = text_of(source_dir() / "platforms/a100-80gb-4hdr.json");
  text = replaced(text, "240 GB/s", "120 GB/s");
  text = replaced(text, "34.6 us", "10 us");
  text = replaced(text, "4.8 us", "3 us");
  text = replaced(text, "11.4 MiB", "3 MiB");
  text = replaced(text, "\"sharpness\": 0.82", "\"sharpness\": 1.1");
  return replaced(text, "\"group_loss\": 0.39", "\"group_loss\": 0.2");
}

Interconnect shipped() {
  BasePlatform base("a100-80gb-4hdr", shipped_library());
  return base.only_node().interconnect;
}

ImportRun nccl(const std::string& base = "a100-80gb-4hdr") {
  ImportRun run("nccl-tests");
  run.request.options.base = base;
  return run;
}

void check_constants(const Interconnect& found, const Interconnect& wanted, double tolerance) {
  CHECK(found.saturated_bandwidth / wanted.saturated_bandwidth ==
        doctest::Approx(1).epsilon(tolerance));
  CHECK(found.group_loss / wanted.group_loss == doctest::Approx(1).epsilon(tolerance));
  CHECK(found.floor_base / wanted.floor_base == doctest::Approx(1).epsilon(tolerance));
  CHECK(found.floor_per_gpu / wanted.floor_per_gpu == doctest::Approx(1).epsilon(tolerance));
  CHECK(found.half_size / wanted.half_size == doctest::Approx(1).epsilon(tolerance));
  CHECK(found.sharpness / wanted.sharpness == doctest::Approx(1).epsilon(tolerance));
}

}  // namespace

TEST_CASE("constants behind made-up times are found again, from a base that is far off") {
  TemporaryFolder folder;
  auto run = nccl(folder.write("base.json", changed_base()).string());
  for (const int gpus : {2, 4, 8})
    run.with(std::to_string(gpus) + ".log", log_of(modelled(shipped(), gpus), gpus));
  check_constants(run.platform().node_types[0].interconnect, shipped(), 0.01);
}

TEST_CASE("fitted to all-reduces alone, an A100 node has the rate that is shipped, within 2 %") {
  TemporaryFolder folder;
  auto run = nccl(folder.write("base.json", changed_base()).string());
  for (const int gpus : {2, 4, 8})
    run.with(std::to_string(gpus) + ".log", log_of(vtrain_times(gpus), gpus));
  const Platform platform = run.platform();
  // The shipped constants are fitted to every other of these and of gathers and scatters on another node.
  for (const std::vector<int>& gpus : {std::vector{0, 1}, {0, 1, 2, 3, 4, 5, 6, 7}})
    CHECK(saturated_bus_bandwidth(platform.node_types[0].interconnect, gpus) /
              saturated_bus_bandwidth(shipped(), gpus) ==
          doctest::Approx(1).epsilon(0.02));
  const Source& source = platform.sources.at("node_types/0/interconnect/half_size");
  CHECK(source.evidence == Evidence::fitted);
  CHECK(contains(source.text,
                 "nccl-tests all_reduce on 2, 4, 8 GPUs, 2.log, 4.log, 8.log (132 times"));
}

TEST_CASE("a log of eight A100 from elsewhere is fitted to 2 % on average") {
  auto run = nccl();
  run.with(sample("all-reduce-8xa100.log"));
  const Interconnect found = run.platform().node_types[0].interconnect;
  CHECK(contains(run.text, "error 1.9 % on average"));
  // 235 GB/s measured at 8 GiB; 243 / (1 + 0.39/14) = 237
  CHECK(found.saturated_bandwidth / 1_GBps / (1 + found.group_loss / 14) ==
        doctest::Approx(237).epsilon(0.01));
  // The smallest sizes take 34.5 to 36 us.
  CHECK((found.floor_base + found.floor_per_gpu * 8) / 1_us == doctest::Approx(35).epsilon(0.02));
  CHECK(contains(run.messages, "3 sizes below 1 MiB left out"));
}

TEST_CASE("gathers are rings of half the steps") {
  std::vector<Time> times = modelled(shipped(), 8);
  for (Time& time : times)
    time.us =
        in_node_ring(shipped(), {0, 1, 2, 3, 4, 5, 6, 7}, Bytes{time.bytes}, RingKind::all_gather) /
        1_us;
  auto run = nccl();
  run.with("gather.log", log_of(times, 8, 1, "all_gather_perf", 1));
  check_constants(run.platform().node_types[0].interconnect, shipped(), 0.01);
}

TEST_CASE("two nodes give the rate of their network cards") {
  auto run = nccl("a100-40gb-roce");
  run.with(sample("all-reduce-2-nodes.log"));
  const Platform platform = run.platform();
  // 189.6 GB/s of 8 x 25 GB/s: the launch in the file says NCCL_ALGO=Ring
  CHECK(platform.node_types[0].nic_efficiency == doctest::Approx(0.948).epsilon(1e-3));
  CHECK(contains(run.messages, "read as a ring, since the file shows NCCL_ALGO=Ring"));
  CHECK(contains(platform.sources.at("node_types/0/nic_efficiency").text,
                 "nccl-tests all_reduce on 2 nodes of 8 GPUs, all-reduce-2-nodes.log"));
  auto four_cards = nccl("a100-80gb-4hdr");
  four_cards.with(sample("all-reduce-2-nodes.log"));
  CHECK(contains(four_cards.problem(), "a bus bandwidth of 190 GB/s, but the 4 network cards"));
}

TEST_CASE("two nodes are a tree, in which a node sends the payload once") {
  TemporaryFolder folder;
  const std::string base =
      folder
          .write("base.json", replaced(text_of(source_dir() / "platforms/a100-80gb-4hdr.json"),
                                       "200 Gbps", "100 Gbps"))
          .string();
  auto run = nccl(base);
  run.with("tree.log", log_of(at_rate(40e9), 16, 2));
  const Platform platform = run.platform();
  // 40 GB/s of 4 x 12.5; as a ring it would be 1.875 times as much
  CHECK(platform.node_types[0].nic_efficiency == doctest::Approx(0.8).epsilon(0.01));
  CHECK(contains(run.text, "algorithm            a tree\n  a node sends         40.0 GB/s"));
  CHECK(contains(run.messages, "under NCCL_ALGO=Ring the cards would have carried 75.0 GB/s"));
  CHECK(contains(platform.sources.at("node_types/0/nic_efficiency").text,
                 "a tree, of which a node sends 40.0 GB/s"));
  // NCCL itself says what it was told.
  auto told = nccl("a100-80gb-4hdr");
  told.with("ring.log", "node0:7:7 [0] NCCL INFO NCCL_ALGO set by environment to ring\n" +
                            log_of(at_rate(90e9, 1.875), 16, 2));
  CHECK(told.platform().node_types[0].nic_efficiency == doctest::Approx(0.9).epsilon(0.01));
  // One GPU a node has no inside: 7.5 GB over each card either way, whatever the algorithm.
  auto alone = nccl("a100-80gb-4hdr");
  alone.with("alone.log", log_of(at_rate(20e9), 2, 2));
  CHECK(alone.platform().node_types[0].nic_efficiency == doctest::Approx(0.8).epsilon(0.01));
}

TEST_CASE("where the links inside a node set the pace, the cards stay those of the base") {
  auto run = nccl("dgx-h100");
  // 250 GB/s of 8 x 50 leave a node in an NVLS tree; 8 H100 reduce at 423 GB/s of bus bandwidth, 242 GB/s of payload.
  run.with("two.log",
           replaced(log_of(at_rate(250e9), 16, 2), "NVIDIA A100", "NVIDIA H100 80GB HBM3"));
  CHECK(run.platform().node_types[0].nic_efficiency == 0.9);
  CHECK(contains(run.text, "an NVLS tree\n  a node sends         250 GB/s"));
  CHECK(contains(run.text, "nic_efficiency       0.9, as in dgx-h100"));
  CHECK(contains(run.messages, "its network cards carry at least 250 GB/s"));
  // Slower cards show.
  auto slow = nccl("dgx-h100");
  slow.with("two.log",
            replaced(log_of(at_rate(100e9), 16, 2), "NVIDIA A100", "NVIDIA H100 80GB HBM3"));
  CHECK(slow.platform().node_types[0].nic_efficiency == doctest::Approx(0.25).epsilon(0.01));
}

TEST_CASE("trays that share an NVLink domain are inside it") {
  BasePlatform base("gb200-nvl72", shipped_library());
  const auto on_gb200 = [](const std::string& log) {
    return replaced(log, "NVIDIA A100", "NVIDIA GB200");
  };
  auto run = nccl("gb200-nvl72");
  run.with("rack.log", on_gb200(log_of(modelled(base.only_node().interconnect, 72), 72, 18)));
  const Interconnect found = run.platform().node_types[0].interconnect;
  CHECK(found.saturated_bandwidth / base.only_node().interconnect.saturated_bandwidth ==
        doctest::Approx(1).epsilon(0.01));
  CHECK(contains(run.text, "rack.log: inside an NVLink domain, 18 of its nodes"));
  // Two racks: 72 cards of 50 GB/s carry S at 720 GB/s, out of each
  auto racks = nccl("gb200-nvl72");
  racks.with("racks.log", on_gb200(log_of(at_rate(360e9), 144, 36)));
  CHECK(racks.platform().node_types[0].nic_efficiency == doctest::Approx(0.1).epsilon(0.01));
  CHECK(contains(racks.text, "network cards in use 72"));
}

TEST_CASE("exchanges give what a GPU sends to all others, inside a node and out of it") {
  const auto log = [](const std::vector<Time>& times, int ranks, int nodes) {
    return log_of(times, ranks, nodes, "alltoall_perf", 1);
  };
  auto run = nccl("selene-a100");
  run.with("exchange.log", log({{524288000, 524288000 * 0.75 / 200e9 * 1e6}}, 4, 1));
  const Platform inside = run.platform();
  CHECK(inside.node_types[0].interconnect.all_to_all / 1_GBps ==
        doctest::Approx(200).epsilon(1e-3));
  CHECK(contains(inside.sources.at("node_types/0/interconnect/all_to_all").text,
                 "nccl-tests alltoall on 4 GPUs, exchange.log"));
  // Two nodes of 8 GPUs, each sends half to the other: 8/2 S through 8 cards of 25 GB/s
  auto across = nccl("selene-a100");
  across.with("exchange.log", log(at_rate(150e9, 4), 16, 2));
  CHECK(across.platform().node_types[0].nic_efficiency == doctest::Approx(0.75).epsilon(0.01));
}

TEST_CASE("without a list of ranks the bandwidths of an all-reduce tell how many there were") {
  std::string log = log_of(at_rate(180e9, 2), 96, 12);
  const std::size_t first = log.find("#  Rank"), header = log.find("#       size");
  log.erase(first, header - first);
  log.erase(0, log.find('\n') + 1);  // nor a name of the program
  log = replaced(log, "Collective test", "");
  auto run = nccl("selene-a100");
  run.with("readme.log", log);
  const Platform platform = run.platform();
  CHECK(contains(run.messages,
                 "its bus bandwidth is that of 96 GPUs, taken as 12 nodes of selene-a100"));
  // A ring sends 2 * 95/96 S out of a node, in the time of 2 S at 180 GB/s.
  CHECK(platform.node_types[0].nic_efficiency ==
        doctest::Approx(180.0 / 200 * 95 / 96).epsilon(0.01));
}

TEST_CASE("differences from rounding are no wrong values, and a count of them at the end is") {
  const std::string old = replaced(replaced(log_of(modelled(shipped(), 8), 8), "#wrong", "error"),
                                   " N/A\n", " 1e-07\n");
  const std::string rounded = replaced(old, " 0  ", " 2e-07  ");
  auto run = nccl();
  run.with("old.log", rounded + "# Out of bounds values : 0 OK\n");
  run.run();
  CHECK(contains(run.text, "inside one node"));
  auto wrong = nccl();
  wrong.with("old.log", rounded + "# Out of bounds values : 3 FAILED\n");
  CHECK(contains(wrong.problem(), "nccl-tests found 3 wrong values"));
}

TEST_CASE("a network that the largest size does not saturate is taken as it was measured") {
  std::vector<Time> times;
  // busbw = 100 GB/s / (1 + 2^28 B / size), of 4 nodes with 8 GPUs
  for (double size = 1 << 20; size < 1.2e9; size *= 2)
    times.push_back({size, size * 2 * 31 / 32 / 100e9 * (1 + (1 << 28) / size) * 1e6});
  auto run = nccl("selene-a100");
  run.with("four.log", log_of(times, 32, 4));
  const Platform platform = run.platform();
  // 80 GB/s at 1 GiB, of 8 x 25
  CHECK(platform.node_types[0].nic_efficiency == doctest::Approx(0.4).epsilon(1e-3));
  CHECK(contains(run.messages, "does not saturate the network"));
  CHECK_FALSE(contains(run.messages, "fits these times badly"));
}

TEST_CASE("a rate between nodes from times that no curve fits comes with a warning") {
  std::vector<Time> times = at_rate(100e9, 2 * 31 / 32.0);
  for (std::size_t i = 0; i < times.size(); i += 2) times[i].us *= 10;
  auto run = nccl("selene-a100");
  run.with("four.log", log_of(times, 32, 4)).run();
  CHECK(contains(run.messages, "warning: the form fits these times badly"));
}

TEST_CASE("columns of -I and -S, in-place lines, and the older header are read by their names") {
  const std::string plain = log_of(modelled(shipped(), 8), 8);
  auto run = nccl();
  run.with("plain.log", plain);
  run.run();
  const std::string expected = run.text;

  auto stamped = nccl();  // -S
  stamped.with("plain.log", replaced(replaced(plain, "N/A\n", "N/A  2025-01-01 12:00:00\n"),
                                     "#wrong\n", "#wrong timestamp\n"));
  stamped.run();
  CHECK(stamped.text == expected);

  auto each = nccl();  // -I
  std::string text = replaced(plain, "#wrong", "#wrong i_min i_max i_p99 i_cv%");
  text = replaced(replaced(text, "N/A\n", "N/A 1 2 3 4\n"), " 0  ", " 0 1 2 3 4  ");
  each.with("plain.log", text);
  each.run();
  CHECK(each.text == expected);

  auto tagged = nccl();
  tagged.with("plain.log", "\xEF\xBB\xBF" + replaced("node0: NCCL INFO Bootstrap\n" + plain, "\n",
                                                     "\r\n[1,0]<stdout>:"));
  tagged.run();
  CHECK(tagged.text == expected);
}

TEST_CASE("rows that begin with no size are named, and lines of other programs are not") {
  const std::string log = log_of(modelled(shipped(), 8), 8);
  const auto messages = [&](const std::string& text) {
    auto run = nccl("a100-80gb-4hdr");
    run.with("run.log", text).run();
    return run.messages;
  };
  const std::string typed = replaced(log, "1073741824     268435456", "1O73741824     268435456");
  // 11 header lines stand before the row of 1 MiB, and ten rows before that of 1 GiB.
  CHECK(contains(messages(typed),
                 "run.log:22: the line is left out: it looks like a row of the table"));
  // A size, and nothing or no count behind it.
  for (const char* rest : {"garbage", "", "- 1 2"}) {
    const std::size_t row = log.find("  1073741824"), end = log.find('\n', row);
    std::string cut = log;
    cut.replace(row, end - row, std::string("  1073741824 ") + rest);
    CHECK(contains(messages(cut), "run.log:22: the line is left out: it looks like a row"));
  }
  CHECK_FALSE(contains(messages(log + "0\n"), "left out: it looks"));  // behind the table
  CHECK_FALSE(contains(messages(log), "left out: it looks"));
  CHECK_FALSE(contains(messages(replaced(log, "# Avg",
                                         "node0:7:9 [0] NCCL INFO comm 0x1 rank 0\n"
                                         "#\n# Avg")),
                       "left out: it looks"));
}

TEST_CASE("the JSON of -J says the same as the text") {
  const std::vector<Time> times = modelled(shipped(), 8);
  std::string json =
      R"({"version": 2, "args": ["./build/all_reduce_perf", "-J", "x"], "nccl_version": 22703,
    "config": {"nthreads": 1, "ngpus": 8, "parallel_init": "false",
    "devices": [{"rank": 0, "hostname": "n", "device_info": "NVIDIA A100"}]}, "results": [)";
  for (const Time& time : times) {
    const double algbw = time.bytes / time.us / 1e3;
    const std::string columns =
        formatted(R"({"time": %.6g, "alg_bw": %f, "bus_bw": %f, "nwrong": null})", time.us, algbw,
                  algbw * 1.75);
    json += formatted(
                R"({"size": %.0f, "count": 1, "type": "float", "redop": "sum", "root": "    -1", )",
                time.bytes) +
            R"("out_of_place": )" + columns + R"(, "in_place": )" + columns + "},";
  }
  json.back() = ']';
  auto run = nccl();
  run.with("run.json", json + "}");
  check_constants(run.platform().node_types[0].interconnect, shipped(), 0.01);

  const auto refused = [&](const std::string& text) {
    auto bad = nccl();
    bad.with("run.json", text);
    return bad.problem();
  };
  CHECK(contains(refused(json), "run.json:"));  // truncated
  CHECK(contains(refused(replaced(json, "\"time\"", "\"cpu_time\"") + "}"),
                 "run nccl-tests without -C"));
  CHECK(contains(refused(replaced(json, "all_reduce_perf", "sendrecv_perf") + "}"),
                 "sendrecv_perf says nothing"));
}

TEST_CASE("bad logs of nccl-tests are refused with the line, and nothing is written") {
  const std::string good = log_of(modelled(shipped(), 8), 8);
  const auto refused = [](const std::string& text, const std::string& place,
                          const std::string& what) {
    auto run = nccl();
    run.with("bad.log", text);
    const std::string problem = run.problem();
    CAPTURE(problem);
    CHECK(contains(problem, "bad.log:" + place));
    CHECK(contains(problem, what));
  };
  // Lines: 1 name, 2 threads, 3 to 10 ranks, 11 header, 12 to 24 sizes.
  refused("", "1:1", "no table of nccl-tests");
  refused(good.substr(0, good.find('\n', good.find("size"))), "11:", "the table has no line");
  const std::string tagged = replaced(good, "\n  ", "\n[0]  ");
  refused(tagged, "12:", "no row of the table begins with a size and a count");
  const std::size_t second = good.find('\n', good.find("1048576")) + 1;
  refused(good.substr(0, second + 60), "13:", "the file may be truncated");
  refused(good.substr(0, second), "12:", "1 sizes of 1 MiB or more, where a fit needs 5");
  refused(replaced(good, "all_reduce_perf", "sendrecv_perf"), "1:29", "sendrecv_perf says nothing");
  refused(replaced(good, " time ", " cputime "), "11:", "without -C");
  refused(replaced(good, "float  sum  -1  ", "float  sum  -1  -"),
          "12:", "which is no number above 0");
  // A time in milliseconds contradicts its own bandwidth.
  refused(replaced(good, "-1  73  ", "-1  0.073  "),
          "12:", "is a column missing, or in another unit?");
  // Lines of another number of GPUs.
  refused(replaced(good, "#  Rank 7", "# Rang 7"), "12:", "over 7 GPUs makes it");
  refused(replaced(good, "on node0 device  0 [0000:07:00] NVIDIA A100\n#   ",
                   "on node9 device  0 [0000:07:00] NVIDIA A100\n#   "),
          "1:", "different numbers of GPUs");
  refused(good + good, "36:", "a second table begins here");
  refused(replaced(good, "Group  0 Pid 7 on node0 device  0 [0000:07:00] NVIDIA A100\n#   ",
                   "Group  1 Pid 7 on node0 device  0 [0000:07:00] NVIDIA A100\n#   "),
          "1:", "2 groups");
  std::string wrong = good;
  wrong.replace(wrong.find(" 0  "), 4, " 12 ");
  refused(wrong, "12:", "12 wrong values");
}

TEST_CASE("a run inside a node of another GPU than the base's is refused, with its line") {
  const std::string log = log_of(modelled(shipped(), 8), 8);
  auto run = nccl();
  run.with("run.log", replaced(log, "NVIDIA A100", "NVIDIA V100-SXM3-32GB"));
  const std::string problem = run.problem();
  CAPTURE(problem);
  // Line 1 names the program, line 2 the threads, line 3 is of rank 0.
  CHECK(
      contains(problem,
               "run.log:3:58: error: the log is of NVIDIA V100-SXM3-32GB GPUs, but a100-80gb-4hdr "
               "has another model, a100-sxm-80gb"));
  CHECK(contains(problem, "name a --base with V100 GPUs: dgx1-v100, "));
  CHECK_FALSE(contains(problem, "run.log:4"));  // the other ranks say the same

  auto newer = nccl();
  newer.with("run.log", replaced(log, "NVIDIA A100", "NVIDIA B100"));
  CHECK(
      contains(newer.problem(), "no built-in platform has B100 GPUs: write a device file for it"));

  // One rank of eight has another GPU.
  auto mixed = nccl();
  mixed.with("run.log", replaced(log, "device  0 [0000:07:00] NVIDIA A100\n#       size",
                                 "device  0 [0000:07:00] NVIDIA H100 80GB HBM3\n#       size"));
  CHECK(contains(mixed.problem(), "run.log:10:58: error: the log is of NVIDIA H100 80GB HBM3"));
}

TEST_CASE("an A100 of other memory and form is still an A100") {
  auto run = nccl();
  run.with("run.log",
           replaced(log_of(modelled(shipped(), 8), 8), "NVIDIA A100", "NVIDIA A100-PG509-200"));
  run.run();
  CHECK_FALSE(contains(run.messages, "warning: "));
  CHECK(contains(run.messages, "the runs name their GPU NVIDIA A100-PG509-200"));
}

TEST_CASE(
    "a GPU whose model is not known is imported with a warning, one that is not named with a "
    "note") {
  const std::string log = log_of(modelled(shipped(), 8), 8);
  auto run = nccl();
  run.with("run.log", replaced(log, "NVIDIA A100", "NVIDIA Graphics Device"));
  run.run();
  CHECK(contains(run.messages, "import: warning: the GPUs were not compared: "));
  CHECK(contains(run.messages, "run.log:3 names NVIDIA Graphics Device"));
  auto unnamed = nccl();
  unnamed.with("run.log", replaced(log, " [0000:07:00] NVIDIA A100", ""));
  unnamed.run();
  CHECK_FALSE(contains(unnamed.messages, "warning: "));
  CHECK(contains(unnamed.messages, "the runs do not name their GPU"));

  TemporaryFolder folder;
  const std::string renamed =
      replaced(text_of(source_dir() / "platforms/devices/a100-sxm-80gb.json"),
               "\"name\": \"a100-sxm-80gb\"", "\"name\": \"ours\"");
  auto ours =
      nccl(folder
               .write("base.json", replaced(text_of(source_dir() / "platforms/a100-80gb-4hdr.json"),
                                            "\"a100-sxm-80gb\"", renamed))
               .string());
  ours.with("run.log", log);
  ours.run();
  CHECK(contains(ours.messages, "has ours, and the second is no model that is known here"));
}

TEST_CASE("over several nodes another GPU is a warning, since only the network cards are taken") {
  auto run = nccl("a100-40gb-roce");
  run.with("two.log", replaced(text_of(sample("all-reduce-2-nodes.log")), "NVIDIA A100-SXM4-40GB",
                               "NVIDIA H100 80GB HBM3"));
  const Platform platform = run.platform();
  CHECK(platform.node_types[0].nic_efficiency == doctest::Approx(0.948).epsilon(1e-3));
  CHECK(contains(run.messages, "import: warning: "));
  CHECK(contains(run.messages, "two.log:5: the log is of NVIDIA H100 80GB HBM3 GPUs"));
  CHECK(contains(run.messages, "the result is not their platform"));
  CHECK(contains(platform.sources.at("node_types/0/nic_efficiency").text,
                 "; run on NVIDIA H100 80GB HBM3)"));
}

TEST_CASE("the JSON of -J names its GPUs as well") {
  const std::string json =
      R"({"args": ["all_reduce_perf"],
"config": {"nthreads": 1, "ngpus": 1, "devices": [
{"rank": 0, "hostname": "a", "device_info": "NVIDIA A100"},
{"rank": 1, "hostname": "b", "device_info": "NVIDIA H100 80GB HBM3"}]},
"results": [{"size": 1073741824, "out_of_place": {"time": 50000, "alg_bw": 21.475, "bus_bw": 21.475, "nwrong": 0}}]})";
  auto run = nccl();
  run.with("run.json", json);
  run.run();
  CHECK(contains(run.messages, "run.json:4: the log is of NVIDIA H100 80GB HBM3 GPUs"));
}

TEST_CASE("runs that do not go together, or not with the base, are refused") {
  auto mixed = nccl("a100-40gb-roce");
  mixed.with(sample("all-reduce-8xa100.log")).with(sample("all-reduce-2-nodes.log"));
  CHECK(contains(mixed.problem(), "a run over several nodes, and 1 others"));
  auto small = nccl("lassen-v100");
  small.with(sample("all-reduce-8xa100.log"));
  const std::string both = small.problem();  // another GPU, and too many of them
  CHECK(contains(both, "the run is of 8 GPUs of one node, lassen-v100 has 4 a node"));
  CHECK(contains(both, "the log is of NVIDIA A100-SXM4-40GB GPUs, but lassen-v100 has another"));
  auto several = nccl("aws-t4-v100-mixed");
  several.with(sample("all-reduce-8xa100.log"));
  CHECK(contains(several.problem(), "has 2 kinds of node"));
}
