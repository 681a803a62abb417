#include "core/testing.hpp"
#include "importers/testing.hpp"
#include "workload/model_json.hpp"
#include "workload/transformer.hpp"

using namespace windtunnel;
using namespace windtunnel::testing;

namespace {

Transformer model_in(const std::filesystem::path& file) {
  Problems problems;
  JsonValue value = parse_json(read_source(file), problems);
  Transformer model = read_transformer(value, "", problems);
  problems.throw_if_any();
  return model;
}

std::string problem_of(const std::string& config) {
  ImportRun run("hf-config");
  run.with("config.json", config);
  return run.problem();
}

}  // namespace

TEST_CASE("published configurations become the shipped models") {
  for (const std::string name : {"gpt-neox-20b", "llama2-7b", "llama2-70b", "bloom-176b"}) {
    CAPTURE(name);
    ImportRun run("hf-config");
    run.with(sample("hf/" + name + ".config.json"));
    run.run();
    const Transformer imported = model_in(run.request.output);
    const Transformer shipped = model_in(source_dir() / "models" / (name + ".json"));
    CHECK(total_parameters(imported) == total_parameters(shipped));
    CHECK(model_flops(imported, 1) / model_flops(shipped, 1) == 1);
    CHECK(imported.family == shipped.family);
    CHECK(imported.sequence == shipped.sequence);
  }
}

TEST_CASE("GPT-2's own names are known: 124 million parameters") {
  ImportRun run("hf-config");
  run.with("config.json", R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12,
                              "n_positions": 1024, "n_inner": null, "vocab_size": 50257})");
  run.run();
  // GPT-2 small as published: 124,439,808 parameters
  CHECK(total_parameters(model_in(run.request.output)) == 124'439'808);
}

TEST_CASE("Mistral 7B: grouped heads, and the window that is not modelled is said") {
  ImportRun run("hf-config");
  run.with("config.json", R"({"model_type": "mistral", "hidden_size": 4096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000,
    "max_position_embeddings": 32768, "sliding_window": 4096, "head_dim": 128})");
  run.request.options.sequence = 8192;
  run.run();
  CHECK(contains(run.messages, "sliding_window"));
  const Transformer model = model_in(run.request.output);
  CHECK(model.sequence == 8192);
  // Mistral 7B as published: 7,241,732,096 parameters
  CHECK(total_parameters(model) == 7'241'732'096);
}

TEST_CASE("what cannot be simulated is refused with the reason") {
  CHECK(contains(
      problem_of(R"({"model_type": "mixtral", "num_local_experts": 8})"),
      "config.json:1:48: error: num_local_experts says that this is a mixture of experts"));
  CHECK(contains(
      problem_of(R"({"model_type": "deepseek_v3", "kv_lora_rank": 512, "n_routed_experts": 256})"),
      "multi-head latent attention"));
  CHECK(contains(problem_of(R"({"model_type": "t5", "is_encoder_decoder": true})"),
                 "an encoder and a decoder"));
  CHECK(contains(problem_of(R"({"model_type": "rwkv"})"),
                 "known are gpt2, gpt_neox, llama, mistral, bloom"));
  const std::string llama = R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 8, "intermediate_size": 128, "vocab_size": 100, "max_position_embeddings": 32)";
  CHECK(problem_of(llama + "}").empty());
  CHECK(contains(problem_of(llama + R"(, "attention_bias": true})"), "attention_bias adds biases"));
  CHECK(contains(problem_of(llama + R"(, "head_dim": 16})"),
                 "head_dim 16 times 8 heads is not hidden size 64"));
  CHECK(contains(problem_of(llama + R"(, "num_key_value_heads": 3})"),
                 "does not divide the heads 8"));
}

TEST_CASE("bad configurations are refused with the line") {
  CHECK(contains(problem_of(""), "config.json:1:1"));
  CHECK(contains(problem_of("[]"), "config.json:1:1"));
  CHECK(contains(problem_of(R"({"hidden_size": 1})"), "model_type"));
  CHECK(contains(problem_of("{\"model_type\": \"gpt_neox\",\n \"hidden_size\": -3}"),
                 "config.json:2:17"));
  CHECK(contains(
      problem_of(
          R"({"model_type": "bloom", "hidden_size": 64, "n_layer": 2, "n_head": 8, "vocab_size": 9})"),
      "--sequence"));
  CHECK(contains(
      problem_of(
          R"({"model_type": "bloom", "hidden_size": 65, "n_layer": 2, "n_head": 8, "vocab_size": 9,
                               "seq_length": 8})"),
      "n_head 8 does not divide the hidden size 65"));
}
