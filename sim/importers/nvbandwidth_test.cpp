#include "importers/testing.hpp"

using namespace windtunnel;
using namespace windtunnel::testing;

namespace {

ImportRun copies(const std::string& text, const std::string& base = "dgx-h100") {
  ImportRun run("nvbandwidth");
  run.request.options.base = base;
  run.with("copies.txt", text);
  return run;
}

std::string of_four_h100() { return text_of(sample("nvbandwidth-4xh100.txt")); }

std::string why_not(const std::string& text, const std::string& base = "dgx-h100") {
  return copies(text, base).problem();
}

}  // namespace

TEST_CASE("copies between host and GPUs give the efficiency of the host's link") {
  auto run = copies(of_four_h100());
  const Platform platform = run.platform();
  // All at once: (50.4 + 50.6 + 50.3 + 50.3) / 4 of the 63 GB/s of dgx-h100
  CHECK(platform.node_types[0].host->link_efficiency == doctest::Approx(50.4 / 63));
  CHECK(platform.sources.at("node_types/0/host/link_efficiency").evidence == Evidence::measured);
  CHECK(platform.node_types[0].interconnect.point_to_point.value() == doctest::Approx(120e9));
  CHECK(contains(run.text, "from 180 GB/s (row 2, column 1)"));
  CHECK(contains(run.messages, "point_to_point stays 120 GB/s: copies attain 354 GB/s"));
  CHECK(contains(run.messages, "1 test of which no number is used: device_to_device_latency_sm"));

  // One after the other, both directions: (55.0 + 55.6) / 2
  auto alone = copies(replaced(of_four_h100(), "host_to_all", "host_to_none"));
  CHECK(alone.platform().node_types[0].host->link_efficiency == doctest::Approx(55.3 / 63));
  auto without_host = copies(of_four_h100(), "a100-80gb-4hdr");
  CHECK(contains(without_host.problem(), "the log is of NVIDIA H100 80GB HBM3"));
}

TEST_CASE("copies that are slower than the base's messages between GPUs bound them") {
  const std::string json =
      R"json({"nvbandwidth": {"version": "v0.8", "GPU Device list": ["0: NVIDIA H100 80GB HBM3", "1: NVIDIA H100 80GB HBM3"],
    "testcases": [{"name": "device_to_device_memcpy_read_ce", "status": "Passed", "bandwidth_description": "memcpy CE GPU(row) <- GPU(column) bandwidth (GB/s)",
                   "bandwidth_matrix": [["N/A", "40.5"], [39.5, "N/A"]]},
                  {"name": "host_to_device_latency_sm", "status": "Passed", "bandwidth_description": "memory latency SM CPU(row) <-> GPU(column) (ns)",
                   "bandwidth_matrix": [["772.58", "771.9"]]}]}})json";
  auto run = copies(json);
  const Platform platform = run.platform();
  CHECK(platform.node_types[0].interconnect.point_to_point.value() == doctest::Approx(40e9));
  CHECK(platform.sources.at("node_types/0/interconnect/point_to_point").evidence ==
        Evidence::measured);
  CHECK(platform.node_types[0].host->link_efficiency == doctest::Approx(0.85));
  CHECK(contains(why_not(replaced(json, "\"40.5\"", "\"-40.5\"")),
                 "copies.txt:3:49: error: \"-40.5\" is no rate"));
}

TEST_CASE("output of nvbandwidth that is cut off, or faster than the base's link, is refused") {
  const std::string text = of_four_h100();
  CHECK(contains(why_not(replaced(text, "    180.00", "")), "a row of 3 rates below 4 columns"));
  CHECK(contains(why_not(replaced(text, "180.00", "18O.00")),
                 "\"18O.00\" is no rate of a copy in GB/s"));
  CHECK(contains(why_not(replaced(text, "     50.40", "    550.40")),
                 "copies between host and GPU attain 175 GB/s"));
  CHECK(contains(why_not("nothing of the kind\n"), "no rates of copies by nvbandwidth"));
}
