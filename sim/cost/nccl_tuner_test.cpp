#include "cost/nccl_tuner.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

namespace windtunnel {
namespace {

/// Eight GPUs a node on 370.8 GB/s of NVLink and eight NICs of 48 GB/s.
TunerInput h100(int nodes, Bytes payload) {
  return {payload, 8 * nodes, nodes, 384_GBps, 370.8_GBps, 8, NcclGpu::hopper, true, true};
}
/// On 240 GB/s of NVLink and NICs of 24 GB/s.
TunerInput a100(int nodes, Bytes payload) {
  return {payload, 8 * nodes, nodes, 192_GBps, 240_GBps, 8, NcclGpu::ampere};
}

std::string picked(const TunerInput& input) {
  const std::vector<TunerChoice> choices = tuner_choices(input);
  const TunerChoice& least = *std::min_element(
      choices.begin(), choices.end(), [&](const TunerChoice& a, const TunerChoice& b) {
        return a.time(input.payload) < b.time(input.payload);
      });
  return std::string(least.algorithm) + " " + std::string(least.protocol);
}

TunerChoice choice_of(const TunerInput& input, const std::string& wanted) {
  for (const TunerChoice& choice : tuner_choices(input))
    if (std::string(choice.algorithm) + " " + std::string(choice.protocol) == wanted) return choice;
  return {};
}

TEST_CASE("64 nodes of H200 all-reduce 16 MiB by trees in LL128 and 32 MiB by NVLS trees") {
  // As their log says (NVIDIA/nccl issue 1752).
  CHECK(picked(h100(64, 16_MiB)) == "tree LL128");
  CHECK(picked(h100(64, 32_MiB)) == "NVLS tree Simple");
}

TEST_CASE("two nodes of H100 take NVLS trees, four of them rings for the largest") {
  for (Bytes payload = 2_MiB; payload <= 16_GiB; payload *= 2)
    CHECK(picked(h100(2, payload)) == "NVLS tree Simple");
  CHECK(picked(h100(4, 1_MiB)) == "tree LL128");
  CHECK(picked(h100(4, 128_MiB)) == "NVLS tree Simple");
  CHECK(picked(h100(4, 1_GiB)) == "ring Simple");
}

TEST_CASE("two nodes of A100 take rings in LL128 below 64 MiB and rings above") {
  CHECK(picked(a100(2, 16_MiB)) == "ring LL128");
  CHECK(picked(a100(2, 128_MiB)) == "ring Simple");
  CHECK(picked(a100(2, 8_GiB)) == "ring Simple");
  // 16 NICs of half the rate: channels of trees are no longer what limits them, 192 * 2 out of the node, 240 * 8/7 inside.
  TunerInput sixteen = a100(2, 1_GiB);
  sixteen.channels = 16;
  CHECK(picked(sixteen) == "tree Simple");
  CHECK(choice_of(sixteen, "tree Simple").rate.value() ==
        doctest::Approx(240e9 * 8 / 7 * 0.92 / 2));
  // PCIe has no LL128.
  TunerInput pcie = a100(2, 16_MiB);
  pcie.nvlink = false;
  CHECK(choice_of(pcie, "ring LL128").rate == BytesPerSecond{0});
}

TEST_CASE("what rings and trees are reckoned to take") {
  // 30 steps of 16 GPUs, 2 between nodes: 14 + 28 * 1.9 + 2 * 4 us, and 8 channels of 20 GB/s over 30/16.
  const TunerChoice ring = choice_of(a100(2, 16_MiB), "ring LL128");
  CHECK(ring.latency.value() == doctest::Approx(75.2e-6));
  CHECK(ring.rate.value() == doctest::Approx(160e9 * 16 / 30));
  // 14 steps inside at 1.25 us, 12 levels at 8.5; 8 channels of 29 GB/s, 0.9 of it at 16 MiB.
  const TunerChoice tree = choice_of(h100(64, 16_MiB), "tree LL128");
  CHECK(tree.latency.value() == doctest::Approx(14e-6 + 17.5e-6 + 102e-6));
  CHECK(tree.rate.value() == doctest::Approx(0.9 * 232e9 / 2));
  // Simple pays 1.4 times of its latency, and the network's own twice: 8.4 + 56 * 3.4 + 6 * (14 + 2 * 10) us.
  TunerInput slow = h100(4, 1_GiB);
  slow.network = 10_us;
  CHECK(choice_of(slow, "ring Simple").latency.value() == doctest::Approx(1.4 * 402.8e-6));
  CHECK(choice_of(slow, "NVLS tree Simple").latency.value() == doctest::Approx(25e-6 + 4 * 34e-6));
  CHECK(choice_of(slow, "NVLS tree Simple").rate.value() == doctest::Approx(192e9 * 5 / 6));
}

TEST_CASE("with one GPU a node each hop is exposed") {
  // Two of 30 hops of 16 nodes: 6.6 + 30 * 5.0 us; the NIC's 48 GB/s in 30/16 steps, half of them flags, at most 20.4.
  const TunerInput each{1_MiB, 16, 16, 48_GBps, 370.8_GBps, 1, NcclGpu::hopper};
  CHECK(choice_of(each, "ring LL").latency.value() == doctest::Approx(156.6e-6));
  CHECK(choice_of(each, "ring LL").rate.value() == doctest::Approx(20.4e9 * 16 / 30));
  // 14 + 8 * 8.5 us; two channels of 24 GB/s, less than their limits, at 0.92 * 120/128, a half of it for both directions, of which 0.6 at 1 MiB, and
  // 0.85 for a GPU that is parent, child and leaf at once.
  CHECK(choice_of(each, "tree LL128").latency.value() == doctest::Approx(82e-6));
  CHECK(choice_of(each, "tree LL128").rate.value() ==
        doctest::Approx(48e9 * 0.92 * 120 / 128 / 2 * 0.6 * 0.85));
  // A gather has half the steps: 8.4 + 15 * 14 us, and 48 GB/s over 15/16; PAT 8 + 4 * 14 / 3.5 + 16 * 2.8 us at three quarters.
  TunerInput gather = each;
  gather.work = RingKind::all_gather;
  gather.pat = true;
  CHECK(choice_of(gather, "ring Simple").latency.value() == doctest::Approx(218.4e-6));
  CHECK(choice_of(gather, "ring Simple").rate.value() == doctest::Approx(48e9 * 16 / 15));
  CHECK(choice_of(gather, "PAT Simple").latency.value() == doctest::Approx(68.8e-6));
  CHECK(choice_of(gather, "PAT Simple").rate == 36_GBps);
  CHECK(choice_of(gather, "ring LL").latency.value() == doctest::Approx(6.6e-6 + 15 * 5e-6));
  CHECK(choice_of(gather, "ring LL").rate.value() == doctest::Approx(20.4e9 * 16 / 15));
  // Over two nodes channels inside are faster than the NIC, up to 48 GB/s.
  const TunerInput two{
      1_MiB, 2, 2, 24_GBps, 240_GBps, 1, NcclGpu::ampere, true, false, {}, RingKind::all_gather,
      true};
  CHECK(choice_of(two, "PAT Simple").rate == 36_GBps);
  CHECK(picked(gather) == "PAT Simple");
  gather.payload = 1_GiB;
  CHECK(picked(gather) == "ring Simple");
}

TEST_CASE("eight H100 of a node all-reduce 1 MiB by rings and 2 MiB and more through the switch") {
  // As a log says (NVIDIA/nccl-tests issue 309).
  CHECK_FALSE(tuner_picks_switch(512_kB, 8, 370.8_GBps));
  for (Bytes payload = 2_MiB; payload <= 16_GiB; payload *= 2)
    CHECK(tuner_picks_switch(payload, 8, 370.8_GBps));
  // Among 4 the switch's channels are of 60 GB/s, 200 together; rings have 4/6 of 370.8. Among 5 they are 250 to 231.75.
  CHECK_FALSE(tuner_picks_switch(1_GiB, 4, 370.8_GBps));
  CHECK(tuner_picks_switch(1_GiB, 5, 370.8_GBps));
}

TEST_CASE("a NIC is used in steps") {
  CHECK(nccl_step(50_GBps) == 48_GBps);
  CHECK(nccl_step(25_GBps) == 24_GBps);
  CHECK(nccl_step(12.5_GBps) == 12_GBps);
  CHECK(nccl_step(100_GBps) == 96_GBps);  // two channels
  CHECK(nccl_step(1_GBps) == 1_GBps);
}

}  // namespace
}  // namespace windtunnel
