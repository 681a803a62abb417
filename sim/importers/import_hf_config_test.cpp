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
    CHECK(layer_matrix_parameters(imported, 1) == layer_matrix_parameters(shipped, 1));
    CHECK(imported.vocab == shipped.vocab);
    CHECK(imported.family == shipped.family);
    CHECK(imported.sequence == shipped.sequence);
  }
}

TEST_CASE("published configurations of models with experts become the shipped models") {
  for (const std::string name : {"deepseek-v3", "qwen3-30b-a3b", "mixtral-8x7b", "gpt-oss-120b"}) {
    CAPTURE(name);
    ImportRun run("hf-config");
    run.with(sample("hf/" + name + ".config.json"));
    run.request.options.sequence = 4096;
    run.run();
    const Transformer imported = model_in(run.request.output);
    const Transformer shipped = model_in(source_dir() / "models" / (name + ".json"));
    CHECK(total_parameters(imported) == total_parameters(shipped));
    CHECK(active_parameters(imported) == active_parameters(shipped));
    REQUIRE(imported.moe);
    CHECK(imported.moe->node_limit == shipped.moe->node_limit);
    CHECK(imported.moe->dense_layers == shipped.moe->dense_layers);
    CHECK(imported.mla.has_value() == shipped.mla.has_value());
    CHECK(imported.window.has_value() == shipped.window.has_value());
    CHECK(imported.qk_norm == shipped.qk_norm);
  }
}

TEST_CASE("other sizes of those families become the shipped models too") {
  struct Sibling {
    std::string sample, name;
    /// What its published configuration has instead.
    std::vector<std::pair<std::string, std::string>> values;
  };
  const std::vector<Sibling> siblings{{"mixtral-8x7b",
                                       "mixtral-8x22b",
                                       {{"hidden_size", "6144"},
                                        {"intermediate_size", "16384"},
                                        {"num_attention_heads", "48"},
                                        {"num_hidden_layers", "56"}}},
                                      {"qwen3-30b-a3b",
                                       "qwen3-235b-a22b",
                                       {{"hidden_size", "4096"},
                                        {"intermediate_size", "12288"},
                                        {"moe_intermediate_size", "1536"},
                                        {"num_attention_heads", "64"},
                                        {"num_hidden_layers", "94"}}},
                                      {"deepseek-v3",
                                       "kimi-k2",
                                       {{"model_type", "\"kimi_k2\""},
                                        {"first_k_dense_replace", "1"},
                                        {"n_group", "1"},
                                        {"topk_group", "1"},
                                        {"n_routed_experts", "384"},
                                        {"num_attention_heads", "64"},
                                        {"num_key_value_heads", "64"},
                                        {"vocab_size", "163840"}}}};
  for (const Sibling& sibling : siblings) {
    CAPTURE(sibling.name);
    std::string config = read_source(sample("hf/" + sibling.sample + ".config.json"))->text;
    for (const auto& [key, value] : sibling.values) {
      const std::size_t begin = config.find("\"" + key + "\": ") + key.size() + 4;
      config.replace(begin, config.find_first_of(",\n", begin) - begin, value);
    }
    ImportRun run("hf-config");
    run.with("config.json", config);
    run.request.options.sequence = 4096;
    run.run();
    const Transformer imported = model_in(run.request.output);
    const Transformer shipped = model_in(source_dir() / "models" / (sibling.name + ".json"));
    CHECK(total_parameters(imported) == total_parameters(shipped));
    CHECK(active_parameters(imported) == active_parameters(shipped));
    CHECK(imported.moe->node_limit == shipped.moe->node_limit);
    CHECK(imported.moe->dense_layers == shipped.moe->dense_layers);
  }
}

TEST_CASE("Qwen1.5-MoE-A2.7B: 14.3 billion parameters, 2.7 billion of them active") {
  const std::string config = R"({"model_type": "qwen2_moe", "hidden_size": 2048,
    "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 16,
    "max_position_embeddings": 8192, "intermediate_size": 5632, "moe_intermediate_size": 1408,
    "shared_expert_intermediate_size": 5632, "num_experts": 60, "num_experts_per_tok": 4,
    "decoder_sparse_step": 1, "vocab_size": 151936, "tie_word_embeddings": false,
    "use_sliding_window": false, "sliding_window": 32768)";
  ImportRun run("hf-config");
  run.with("config.json", config + "}");
  run.run();
  const Transformer model = model_in(run.request.output);
  // As published, but for the gate of the shared experts: one number for each of 2,048 in 24 layers.
  CHECK(total_parameters(model) == 14'315'784'192 - 24 * 2048);
  CHECK(active_parameters(model) / 1e9 == doctest::Approx(2.7).epsilon(0.02));

  ImportRun dense("hf-config");
  dense.with("config.json", config + R"(, "mlp_only_layers": [0, 1]})");
  dense.run();
  CHECK(model_in(dense.request.output).moe->dense_layers == 2);
  CHECK(contains(problem_of(config + R"(, "mlp_only_layers": [0, 3]})"), "mlp_only_layers"));
}

TEST_CASE("experts of an unknown architecture are refused") {
  CHECK(problem_of(R"({"model_type": "llama", "num_experts": 8})").find("mixture of experts") !=
        std::string::npos);
}

TEST_CASE("GPT-2's own names are known: 124 million parameters") {
  ImportRun run("hf-config");
  run.with("config.json", R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12,
                              "n_positions": 1024, "n_inner": null, "vocab_size": 50257})");
  run.run();
  // GPT-2 small as published: 124,439,808 parameters
  CHECK(total_parameters(model_in(run.request.output)) == 124'439'808);
}

TEST_CASE("Mistral 7B: grouped heads and a window in every layer") {
  ImportRun run("hf-config");
  run.with("config.json", R"({"model_type": "mistral", "hidden_size": 4096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000,
    "max_position_embeddings": 32768, "sliding_window": 4096, "head_dim": 128})");
  run.request.options.sequence = 8192;
  run.run();
  const Transformer model = model_in(run.request.output);
  REQUIRE(model.window);
  CHECK(model.window->size == 4096);
  CHECK(model.window->every == 1);
  CHECK(model.sequence == 8192);
  // Mistral 7B as published: 7,241,732,096 parameters
  CHECK(total_parameters(model) == 7'241'732'096);
}

TEST_CASE("Qwen 2.5: biases on queries, keys and values, and a window that is switched off") {
  ImportRun run("hf-config");
  run.with("config.json", R"({"model_type": "qwen2", "hidden_size": 8192, "num_hidden_layers": 80,
    "num_attention_heads": 64, "num_key_value_heads": 8, "intermediate_size": 29568, "vocab_size": 152064,
    "max_position_embeddings": 131072, "sliding_window": 131072, "use_sliding_window": false})");
  run.request.options.sequence = 4096;
  run.run();
  const Transformer model = model_in(run.request.output);
  CHECK(model.qkv_bias);
  CHECK_FALSE(model.window);
  // Qwen2.5-72B as published: 72,706,203,648 parameters
  CHECK(total_parameters(model) == 72'706'203'648);
}

TEST_CASE("Qwen 3: norms of queries and keys, and heads wider than the hidden size") {
  ImportRun run("hf-config");
  run.with("config.json", R"({"model_type": "qwen3", "hidden_size": 5120, "num_hidden_layers": 64,
    "num_attention_heads": 64, "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 25600, "vocab_size": 151936,
    "max_position_embeddings": 40960, "attention_bias": false, "sliding_window": null})");
  run.run();
  const Transformer model = model_in(run.request.output);
  CHECK(model.head_size() == 128);
  CHECK(model.qk_norm);
  CHECK_FALSE(model.qkv_bias);
  // Qwen3-32B as published: 32,762,123,264 parameters
  CHECK(total_parameters(model) == 32'762'123'264);
}

TEST_CASE("Gemma: every second layer has a window, or as many as layer_types says") {
  const std::string gemma =
      R"({"model_type": "gemma2", "hidden_size": 4608, "num_hidden_layers": 46,
    "num_attention_heads": 32, "num_key_value_heads": 16, "head_dim": 128, "intermediate_size": 36864, "vocab_size": 256000,
    "max_position_embeddings": 8192, "sliding_window": 4096)";
  ImportRun run("hf-config");
  run.with("config.json", gemma + "}");
  run.run();
  const Transformer model = model_in(run.request.output);
  REQUIRE(model.window);
  CHECK(model.window->every == 2);
  // gemma-2-27b as published has 27,227,128,320 parameters, two norms a layer among them that are left out here.
  CHECK(total_parameters(model) == 27'227'128'320 - 46 * 2 * 4608);
  ImportRun typed("hf-config");
  typed.with("config.json", gemma + R"(, "layer_types": ["sliding_attention", "sliding_attention",
    "sliding_attention", "full_attention"]})");
  typed.run();
  CHECK(model_in(typed.request.output).window->every == doctest::Approx(4.0 / 3));
}

TEST_CASE("what cannot be simulated is refused with the reason") {
  CHECK(contains(
      problem_of(R"({"model_type": "phimoes", "num_local_experts": 8})"),
      "config.json:1:48: error: num_local_experts says that this is a mixture of experts"));
  CHECK(contains(
      problem_of(R"({"model_type": "minicpm3", "kv_lora_rank": 256, "n_routed_experts": 256})"),
      "multi-head latent attention"));
  CHECK(contains(problem_of(R"({"model_type": "t5", "is_encoder_decoder": true})"),
                 "an encoder and a decoder"));
  CHECK(contains(
      problem_of(R"({"model_type": "rwkv"})"),
      "known are gpt2, gpt_neox, bloom, llama, mistral, phi3, qwen2, qwen3, gemma2, gemma3_text"));
  const std::string llama = R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 8, "intermediate_size": 128, "vocab_size": 100, "max_position_embeddings": 32)";
  CHECK(problem_of(llama + "}").empty());
  CHECK(problem_of(llama + R"(, "attention_bias": true, "head_dim": 16})").empty());
  CHECK(contains(problem_of(llama + R"(, "mlp_bias": true})"), "mlp_bias adds biases"));
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
