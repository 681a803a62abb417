#include <random>
#include <stdexcept>

#include "importers/testing.hpp"

using namespace windtunnel;
using namespace windtunnel::testing;

namespace {

void read_files_of(const ImportRun& run) {
  for (const Importer& each : importers())
    if (run.request.kind == each.name) each.import(run.request, shipped_library());
}

/// A file as it may arrive: cut off, with a part missing or doubled, or with characters changed.
std::string mutated(const std::string& text, std::mt19937& random) {
  const auto below = [&](std::size_t limit) { return static_cast<std::size_t>(random() % limit); };
  constexpr std::size_t most_bytes = 40;
  std::string result = text;
  const std::size_t at = below(text.size()), length = 1 + below(most_bytes);
  switch (random() % 5) {
    case 0:
      return text.substr(0, at);
    case 1:
      return result.erase(at, length);
    case 2:
      return result.insert(at, text.substr(below(text.size()), length));
    case 3:
      result[at] = static_cast<char>(random() % 256);
      return result;
    default:
      constexpr std::string_view pieces[] = {"-",  "N/A", "1e300", "\n",          "nan", " 0 ",
                                             "\t", "\r",  "\x1b[", "99999999999", "X"};
      return result.insert(at, pieces[below(std::size(pieces))]);
  }
}

const Importer& importer_of(const std::string& kind) {
  for (const Importer& importer : importers())
    if (kind == importer.name) return importer;
  throw std::invalid_argument(kind);
}

/// Imports `count` mutations of a sample: each is refused as bad input, or becomes a file that our own
/// reader takes (the importers read back what they make).
void try_mutations(ImportRun& run, const std::filesystem::path& file, int count) {
  const std::string text = text_of(file);
  const Importer& importer = importer_of(run.request.kind);
  std::mt19937 random(7);
  int num_refused = 0;
  for (int i = 0; i < count; ++i) {
    run.request.inputs.clear();
    run.request.output = "result.json";
    const std::string mutation = mutated(text, random);
    CAPTURE(mutation);
    run.with("mutated" + file.extension().string(), mutation);
    try {
      const Imported imported = importer.import(run.request, shipped_library());
      CHECK_FALSE(imported.document.is_null());
    } catch (const InputError&) {
      ++num_refused;
    }
  }
  CHECK(num_refused > count / 20);
  CHECK(num_refused < count);
}

}  // namespace

TEST_CASE("any mpiGraph log is imported whole or refused") {
  ImportRun run("mpigraph");
  run.request.options.base = "a100-80gb-4hdr";
  try_mutations(run, sample("mpigraph-4-nodes.log"), 300);
}

TEST_CASE("any table of rates is imported whole or refused") {
  ImportRun run("mpigraph");
  run.request.options.base = "a100-80gb-4hdr";
  run.request.options.table = "send";
  run.request.options.clean = "phase";
  try_mutations(run, sample("mpigraph-16-nodes-send.csv"), 150);
}

TEST_CASE("any output of nccl-tests is imported whole or refused") {
  ImportRun run("nccl-tests");
  run.request.options.base = "a100-40gb-roce";
  try_mutations(run, sample("all-reduce-2-nodes.log"), 300);
  try_mutations(run, sample("all-reduce-8xa100.log"), 15);
}

TEST_CASE("any file of the probe is imported whole or refused") {
  ImportRun run("probe");
  run.request.options.base = "selene-a100";
  try_mutations(run, sample("probe-made-up.json"), 200);
}

TEST_CASE("any output of nvidia-smi topo is imported whole or refused") {
  ImportRun run("topo");
  run.request.options.base = "a100-80gb-4hdr";
  try_mutations(run, sample("topo-a100.txt"), 300);
}

TEST_CASE("any map of a fabric is imported whole or refused") {
  ImportRun run("ibnetdiscover");
  run.request.options.base = "a100-80gb-4hdr";
  try_mutations(run, sample("ibnetdiscover-4-nodes.txt"), 40);
}

TEST_CASE("any topology of NCCL's is imported whole or refused") {
  ImportRun run("nccl-topo");
  run.request.options.base = "dgx-h100";
  try_mutations(run, sample("nccl-topo-h100.xml"), 40);
}

TEST_CASE("any output of nvbandwidth is imported whole or refused") {
  ImportRun run("nvbandwidth");
  run.request.options.base = "dgx-h100";
  try_mutations(run, sample("nvbandwidth-4xh100.txt"), 40);
}

TEST_CASE("any topology of Slurm's is imported whole or refused") {
  ImportRun run("slurm-topology");
  run.request.options.base = "dgx-h100";
  try_mutations(run, sample("slurm-topology.conf"), 40);
}

TEST_CASE("any configuration is imported whole or refused") {
  ImportRun run("hf-config");
  try_mutations(run, sample("hf/llama2-70b.config.json"), 300);
}

TEST_CASE("any trace is read or refused") {
  ImportRun run("kineto");
  std::mt19937 random(7);
  const std::string text = R"json({"traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 10.5, "dur": 3},
    {"ph": "X", "cat": "gpu_memcpy", "name": "Memcpy DtoH (a)", "pid": 0, "tid": 7, "ts": 20, "dur": 1}]})json";
  int num_refused = 0;
  for (int i = 0; i < 300; ++i) {
    run.request.inputs.clear();
    run.with("trace.json", mutated(text, random));
    try {
      read_files_of(run);
    } catch (const InputError&) {
      ++num_refused;
    }
  }
  CHECK(num_refused > 15);
  CHECK(num_refused < 300);
}

TEST_CASE("any trace of a job's operations, and any ranks' traces, are read or refused") {
  const std::string job =
      R"json([{"ph": "M", "name": "thread_name", "pid": 0, "tid": 0, "args": {"name": "PP rank 0, TP rank 0, compute"}},
    {"ph": "X", "name": "forward-compute", "pid": 0, "tid": 0, "ts": 0, "dur": 30, "args": {"step": 1, "model_chunk": 0, "mb_id": 0, "seq_id": 0}},
    {"ph": "X", "name": "backward-compute", "pid": 0, "tid": 0, "ts": 30, "dur": 60, "args": {"step": 1, "model_chunk": 0, "mb_id": 0, "seq_id": 0}},
    {"ph": "X", "name": "optimizer", "pid": 0, "tid": 0, "ts": 90, "dur": 5, "args": {"step": 1, "model_chunk": -1, "mb_id": -1, "seq_id": 0}}])json";
  const auto rank = [](int number) {
    return R"json({"distributedInfo": {"rank": )json" + std::to_string(number) +
           R"json(, "world_size": 2}, "traceEvents": [
    {"ph": "X", "cat": "kernel", "name": "gemm", "pid": 0, "tid": 7, "ts": 10.5, "dur": 3},
    {"ph": "X", "cat": "kernel", "name": "ncclDevKernel_AllReduce", "pid": 0, "tid": 8, "ts": 20, "dur": 7, "args": {"Collective name": "allreduce",
     "In msg nelems": 1024, "Out msg nelems": 1024, "Group size": 2, "dtype": "Float", "Process Group Name": "0", "Process Group Ranks": "[0, 1]", "Seq": 1}}]})json";
  };
  std::mt19937 random(11);
  int num_refused = 0;
  for (int i = 0; i < 300; ++i) {
    ImportRun replayed("straggler-trace"), matched("kineto");
    replayed.with("job.json", mutated(job, random));
    matched.with("rank0.json", mutated(rank(0), random)).with("rank1.json", rank(1));
    for (const ImportRun* run : {&replayed, &matched}) try {
        read_files_of(*run);
      } catch (const InputError&) {
        ++num_refused;
      }
  }
  CHECK(num_refused > 30);
  CHECK(num_refused < 600);
}

TEST_CASE("any launch script or configuration is imported whole or refused") {
  for (const auto& [kind, name] : {std::pair{"megatron", "launch-megatron.sh"},
                                   {"nemo", "launch-nemo.yaml"},
                                   {"torchtitan", "launch-torchtitan.toml"}}) {
    const std::string importer = kind;
    CAPTURE(importer);
    ImportRun run(importer);
    run.request.options.base = "dgx-h100";
    run.request.options.gpus = 128;
    try_mutations(run, sample(name), 60);
  }
}
