#include <array>
#include <cstdio>
#include <numeric>
#include <random>

#include "cost/collective_cost.hpp"
#include "cost/kernel_cost.hpp"
#include "importers/testing.hpp"

using namespace windtunnel;
using namespace windtunnel::testing;

namespace {

/// Constants that a file is made of, which the import has to recover.
struct Constants {
  Device device;  ///< shape of products, memory, kernel overhead, codecs
  Interconnect inside;
  double nic_efficiency = 0.8;
  BytesPerSecond zfp_encode{}, zfp_decode{};  ///< of 8 bits
};

/// Writes a file of the script with the times that our formulas give; each can be off by a factor drawn between 1 - noise and
/// 1 + noise.
class MadeFile {
 public:
  MadeFile(const Constants& constants, double noise = 0, unsigned seed = 1)
      : constants_(&constants), noise_(noise), random_(seed) {}

  std::string text() {
    add_products();
    add_memory_and_launches();
    add_codecs();
    add_collectives();
    return head + lines_ + "\n  ]\n}\n";
  }

  static constexpr const char* head = R"({
  "schema": "windtunnel/probe-v1",
  "device": "cuda",
  "gpu": "NVIDIA A100-SXM4-80GB",
  "multiprocessors": 108,
  "memory_bytes": 85899345920,
  "driver": "550.54.15",
  "torch": "2.4.0",
  "cuda": "12.4",
  "nccl": "2.20.5",
  "python": "3.11.2",
  "precision": "bf16",
  "ranks": 16,
  "nodes": 2,
  "budget_s": 240.0,
  "elapsed_s": 118.2,
  "skipped": [],
  "measurements": [
)";

 private:
  void add(const std::string& what, Seconds time) {
    const double drawn = 2.0 * static_cast<double>(random_()) / std::mt19937::max() - 1;
    const double seconds = time / 1_s * (1 + noise_ * drawn);
    lines_ +=
        (lines_.empty() ? "    {" : ",\n    {") + what +
        formatted(R"(, "median_s": %.6g, "spread_s": %.2g, "count": 15})", seconds, seconds / 100);
  }

  /// The shapes of the script.
  void add_products() {
    KernelContext context;
    context.device = &constants_->device;
    context.precision = Precision::bf16;
    const auto product = [&](double m, double n, double k, double batch = 1) {
      add(R"("kind": "gemm", "precision": "bf16", )" +
              formatted(R"("m": %.0f, "n": %.0f, "k": %.0f, "batch": %.0f)", m, n, k, batch),
          gemm_time({m, n, k, batch}, context));
    };
    for (const double h : {2048.0, 4096.0, 8192.0})
      for (const double m : {2048.0, 8192.0}) {
        product(m, 3 * h, h);
        product(m, h, h);
        product(m, 4 * h, h);
        product(m, h, 4 * h);
      }
    for (const double k : {256.0, 512.0, 1024.0}) product(8192, 8192, k);
    for (const double m : {512.0, 1024.0, 1536.0, 3072.0}) product(m, m, 8192);
    product(2048, 2048, 128, 64);
    product(2048, 128, 2048, 64);
  }

  void add_memory_and_launches() {
    const Device& device = constants_->device;
    for (const double mib : {256.0, 512.0, 1024.0}) {
      const Bytes traffic = 1_MiB * (2 * mib);
      add(R"("kind": "copy", "bytes": )" + formatted("%.0f", traffic / 1_B),
          memory_time(traffic, device) + device.kernel_overhead);
    }
    add(R"("kind": "launch", "name": "stream")", 5_us);
    add(R"("kind": "launch", "name": "synchronized")", device.codecs->launch);
    add(R"("kind": "launch", "name": "graph")", device.kernel_overhead);
    const FlopsPerSecond peak = device.peak.at(Precision::bf16);
    for (const double size : {64.0, 128.0}) {
      const std::string shape = formatted(
          R"("batch": %.0f, "heads": 32, "sequence": %.0f, "head_size": %.0f)", 2, 4096, size);
      const Flops flops{2 * 2 * 32.0 * 4096 * 4096 * size};
      add(R"("kind": "attention", "direction": "forward", "precision": "bf16", )" + shape,
          flops / (peak * 0.55));
      add(R"("kind": "attention", "direction": "backward", "precision": "bf16", )" + shape,
          flops * 2.5 / (peak * 0.45));
    }
    add(R"("kind": "norm", "rows": 8192, "hidden": 4096, "bytes": 134217728)",
        memory_time(Bytes{134217728}, device));
    add(R"("kind": "optimizer", "name": "adam_fused", "parameters": 67108864, "bytes": 1879048192)",
        memory_time(Bytes{1879048192}, device));
    for (const char* direction : {"to_device", "to_host"})
      add(R"("kind": "host_copy", "direction": ")" + std::string(direction) +
              R"(", "bytes": 268435456)",
          Bytes{268435456} / 25_GBps);
  }

  void add_codec(const std::string& what, BytesPerSecond rate, Seconds overhead) {
    for (const double mib : {1.0, 4.0, 16.0, 64.0}) {
      const Bytes size = 1_MiB * mib;
      add(R"("kind": "codec", )" + what + formatted(R"(, "bytes": %.0f)", size / 1_B),
          overhead + size / rate);
    }
  }

  void add_codecs() {
    const CodecSpeeds& codecs = *constants_->device.codecs;
    for (const double rank : {4.0, 16.0, 32.0})
      add(R"("kind": "codec", "codec": "powersgd", "direction": "orthogonalize", "rows": 4096, "columns": 4096, )" +
              formatted(R"("rank": %.0f, "bytes": 67108864)", rank),
          *codecs.column_step * rank);
    add_codec(R"("codec": "topk", "direction": "encode", "density": 0.01)", *codecs.selection,
              60_us);
    add_codec(R"("codec": "int8", "direction": "encode")", 300_GBps, 30_us);
    add_codec(R"("codec": "mpc_like", "direction": "encode")", *codecs.mpc_encode, 250_us);
    add_codec(R"("codec": "mpc_like", "direction": "decode")", *codecs.mpc_decode, 250_us);
    add_codec(R"("codec": "zfp_like", "direction": "encode", "rate": 8)", constants_->zfp_encode,
              150_us);
    add_codec(R"("codec": "zfp_like", "direction": "decode", "rate": 8)", constants_->zfp_decode,
              150_us);
  }

  void add_collectives() {
    for (const int ranks : {2, 4, 8}) {
      std::vector<int> gpus(static_cast<std::size_t>(ranks));
      std::iota(gpus.begin(), gpus.end(), 0);
      for (double size = 1 << 20; size < 2e9; size *= 2) {
        const auto measured = [&](const char* name, Seconds time) {
          add(R"("kind": "collective", "name": ")" + std::string(name) + "\", " +
                  formatted(R"("ranks": %.0f, "nodes": 1, "bytes": %.0f)", ranks, size),
              time);
        };
        measured("all_reduce", in_node_all_reduce(constants_->inside, gpus, Bytes{size}));
        measured("reduce_scatter",
                 in_node_ring(constants_->inside, gpus, Bytes{size}, RingKind::reduce_scatter));
      }
    }
    // 16 GPUs on two nodes with eight cards of 25 GB/s each.
    const BytesPerSecond cards = 25_GBps * (8 * constants_->nic_efficiency);
    for (double size = 1 << 20; size < 2e9; size *= 2)
      add(R"("kind": "collective", "name": "all_gather", )" +
              formatted(R"("ranks": 16, "nodes": 2, "bytes": %.0f)", size),
          ring_all_reduce_volume(Bytes{size}, 16) / 2 / cards * (1 + 1e6 / size));
  }

  const Constants* constants_;
  double noise_;
  std::mt19937 random_;
  std::string lines_;
};

constexpr const char* base_name = "selene-a100";

/// Constants of the shipped platform.
Constants shipped_constants() {
  BasePlatform base(base_name, shipped_library());
  Constants constants;
  constants.device = base.only_node().device;
  constants.inside = base.only_node().interconnect;
  constants.zfp_encode = 60_GBps;  // below the device's 205 and 250: plain PyTorch is slower
  constants.zfp_decode = 70_GBps;
  return constants;
}

Constants drawn_constants(std::mt19937& random) {
  const auto draw = [&](double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random);
  };
  Constants constants = shipped_constants();
  Device& device = constants.device;
  device.gemm.peak_fraction = draw(0.5, 0.9);
  device.gemm.inner_half_size = draw(80, 600);
  device.gemm.wave_half_size = draw(0.08, 0.8);
  device.memory_efficiency = draw(0.6, 0.95);
  device.kernel_overhead = 1_us * draw(1, 8);
  CodecSpeeds& codecs = *device.codecs;
  codecs.launch = 1_us * draw(5, 40);
  codecs.column_step = 1_us * draw(5, 50);
  codecs.selection = 1_GBps * draw(20, 300);
  codecs.mpc_encode = 1_GBps * draw(100, 300);  // above the base's 90 and 115
  codecs.mpc_decode = 1_GBps * draw(120, 300);
  constants.zfp_encode = 1_GBps * draw(220, 500);  // above 205 and 250
  constants.zfp_decode = 1_GBps * draw(260, 500);
  constants.inside.saturated_bandwidth = 1_GBps * draw(120, 400);
  constants.inside.group_loss = draw(0.2, 1);
  constants.nic_efficiency = draw(0.5, 0.95);
  return constants;
}

ImportRun import_of(const std::string& text) {
  ImportRun run("probe");
  run.request.options.base = base_name;
  run.with("probe.json", text);
  return run;
}

const ZfpSpeed& zfp_of(const Device& device, double rate) {
  for (const ZfpSpeed& speed : device.codecs->zfp)
    if (speed.rate == rate) return speed;
  throw std::invalid_argument("no such rate");
}

/// `tolerance`: of what is fitted; what is read off has four digits.
void check_same(const Platform& platform, const Constants& constants, double tolerance) {
  const NodeType& node = platform.node_types.front();
  const Device &found = node.device, &made = constants.device;
  const auto close = [&](double a, double b, double factor = 1) {
    CHECK(a == doctest::Approx(b).epsilon(tolerance * factor));
  };
  close(found.gemm.peak_fraction, made.gemm.peak_fraction);
  close(found.gemm.inner_half_size, made.gemm.inner_half_size, 3);
  close(found.gemm.wave_half_size, made.gemm.wave_half_size, 3);
  close(found.memory_efficiency, made.memory_efficiency);
  close(found.kernel_overhead / 1_us, made.kernel_overhead / 1_us);
  close(found.codecs->launch / 1_us, made.codecs->launch / 1_us);
  close(*found.codecs->column_step / 1_us, *made.codecs->column_step / 1_us);
  close(*found.codecs->selection / 1_GBps, *made.codecs->selection / 1_GBps, 2);
  close(node.interconnect.saturated_bandwidth / 1_GBps,
        constants.inside.saturated_bandwidth / 1_GBps, 3);
  close(node.nic_efficiency, constants.nic_efficiency, 2);
}

}  // namespace

TEST_CASE("a file of the probe gives back the constants it was made of") {
  std::mt19937 random(11);
  for (int i = 0; i < 12; ++i) {
    CAPTURE(i);
    const Constants constants = drawn_constants(random);
    ImportRun run = import_of(MadeFile(constants).text());
    const Platform platform = run.platform();
    check_same(platform, constants, 0.01);
    const CodecSpeeds& codecs = *platform.node_types.front().device.codecs;
    CHECK(*codecs.mpc_encode / 1_GBps ==
          doctest::Approx(*constants.device.codecs->mpc_encode / 1_GBps).epsilon(0.02));
    CHECK(*codecs.mpc_decode / 1_GBps ==
          doctest::Approx(*constants.device.codecs->mpc_decode / 1_GBps).epsilon(0.02));
    const ZfpSpeed& zfp = zfp_of(platform.node_types.front().device, 8);
    CHECK(zfp.encode / 1_GBps == doctest::Approx(constants.zfp_encode / 1_GBps).epsilon(0.02));
    CHECK(zfp.decode / 1_GBps == doctest::Approx(constants.zfp_decode / 1_GBps).epsilon(0.02));
  }
}

TEST_CASE("times of the probe that scatter by three percent give the constants within ten") {
  std::mt19937 random(12);
  for (unsigned i = 0; i < 6; ++i) {
    CAPTURE(i);
    const Constants constants = drawn_constants(random);
    ImportRun run = import_of(MadeFile(constants, 0.03, i).text());
    check_same(run.platform(), constants, 0.05);
  }
}

TEST_CASE("what the probe measured is said to be measured, on which GPU and with what") {
  ImportRun run = import_of(MadeFile(shipped_constants()).text());
  const Device device = run.platform().node_types.front().device;
  for (const char* key : {"gemm/peak_fraction", "memory/bandwidth_efficiency", "kernel_overhead"}) {
    const Source& source = device.sources.at(key);
    CHECK(source.evidence == Evidence::measured);
    CHECK(contains(source.text, "NVIDIA A100-SXM4-80GB, PyTorch 2.4.0, driver 550.54.15"));
  }
  CHECK(device.codecs->sources.at("launch").evidence == Evidence::measured);
  CHECK(device.sources.at("peak/bf16").evidence == Evidence::datasheet);
  CHECK(device.sources.at("gemm/head_factor").evidence == Evidence::fitted);
  CHECK(contains(run.text, "kernels issued by the host        5.00 us each"));
  CHECK(contains(run.text, "attention forward, head 128, sequence 4096"));
}

TEST_CASE(
    "a codec in plain PyTorch that is slower than the device's is a lower bound, and changes "
    "nothing") {
  ImportRun run = import_of(MadeFile(shipped_constants()).text());
  const Device device = run.platform().node_types.front().device;
  CHECK(zfp_of(device, 8).encode / 1_GBps == doctest::Approx(205));
  CHECK(device.codecs->sources.at("zfp/1/encode").evidence == Evidence::assumed);
  CHECK(contains(run.messages, "only a lower bound"));
  CHECK(contains(run.messages, "zfp 8 bits encode 60.0 GB/s"));
}

TEST_CASE("several files of the probe are one set of measurements") {
  const std::string whole = MadeFile(shipped_constants()).text();
  // The first file keeps what is not collective, the second what is.
  std::string single = whole, node = whole;
  single.replace(single.find(",\n    {\"kind\": \"collective\""), std::string::npos, "\n  ]\n}\n");
  const std::size_t first = node.find("    {\"kind\": \"gemm\"");
  node.erase(first, node.find("    {\"kind\": \"collective\"") - first);
  ImportRun run = import_of(single), both = import_of(single);
  both.with("node.json", node);
  const auto gemm = run.platform().node_types.front().device.gemm;
  CHECK(both.platform().node_types.front().device.gemm.peak_fraction == gemm.peak_fraction);
  CHECK(contains(both.text, "probe.json, node.json"));
  CHECK(contains(both.text, "saturated_bandwidth"));
  CHECK_FALSE(contains(run.text, "saturated_bandwidth"));
}

TEST_CASE("a file of the probe that cannot be meant is refused with its line") {
  const std::string good = MadeFile(shipped_constants()).text();
  const auto refused = [&](const std::string& old, const std::string& fresh) {
    return import_of(replaced(good, old, fresh)).problem();
  };
  CHECK(contains(refused("A100-SXM4-80GB", "H100 80GB HBM3"), "probe.json:4:"));
  CHECK(contains(refused("\"graph\"", "\"graf\""), "graph"));
  CHECK(contains(refused("\"kind\": \"norm\"", "\"kind\": \"norms\""), "norm"));
  CHECK(contains(refused("probe-v1", "probe-v9"), "/schema"));
  CHECK(contains(refused("\"count\": 15", "\"count\": 0"), "count"));
  CHECK(contains(refused("\"ranks\": 16, \"nodes\": 2, \"b", "\"ranks\": 16, \"nodes\": 3, \"b"),
                 "do not divide"));
}

TEST_CASE("products faster than the base's peak are of another GPU") {
  Constants constants = shipped_constants();
  for (auto& [precision, peak] : constants.device.peak) peak = peak * 3;
  CHECK(contains(import_of(MadeFile(constants).text()).problem(), "was faster than a100-sxm-80gb"));
}

TEST_CASE("another number of multiprocessors is warned about") {
  ImportRun run = import_of(replaced(MadeFile(shipped_constants()).text(),
                                     "\"multiprocessors\": 108", "\"multiprocessors\": 42"));
  run.run();
  CHECK(contains(run.messages, "warning: the GPU measured has 42 multiprocessors"));
}

TEST_CASE("what the script wrote without a GPU is read whole, and refused for that alone") {
  ImportRun run("probe");
  run.request.options.base = base_name;
  run.with(sample("probe-cpu.json"));
  const std::string problem = run.problem();
  CHECK(contains(problem, "probe-cpu.json:3:"));
  CHECK(contains(problem, "the script found no GPU"));
  CHECK(problem.find("error:") == problem.rfind("error:"));
}

TEST_CASE("the made-up sample of the probe is what its constants give") {
  CHECK(text_of(sample("probe-made-up.json")) == MadeFile(shipped_constants(), 0.02).text());
}
