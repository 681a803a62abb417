#include "core/testing.hpp"
#include "importers/testing.hpp"
#include "workload/model_json.hpp"
#include "workload/transformer.hpp"

using namespace windtunnel;
using namespace windtunnel::testing;

namespace {

Transformer model_in_file(const std::filesystem::path& file) {
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

TEST_CASE("a window that is off is no default worth a note") {
  ImportRun run("hf-config");
  run.with("config.json", R"({"model_type": "qwen3_moe", "num_hidden_layers": 2})").run();
  CHECK(contains(run.messages, "not in the file"));
  CHECK_FALSE(contains(run.messages, "window"));
}

TEST_CASE("published configurations become the shipped models") {
  for (const std::string name : {"gpt-neox-20b", "llama2-7b", "llama2-70b", "bloom-176b"}) {
    CAPTURE(name);
    ImportRun run("hf-config");
    run.with(sample("hf/" + name + ".config.json"));
    run.run();
    const Transformer imported = model_in_file(run.request.output);
    const Transformer shipped = model_in_file(source_dir() / "models" / (name + ".json"));
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
    const Transformer imported = model_in_file(run.request.output);
    const Transformer shipped = model_in_file(source_dir() / "models" / (name + ".json"));
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
    /// Values of its published configuration.
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
    const Transformer imported = model_in_file(run.request.output);
    const Transformer shipped = model_in_file(source_dir() / "models" / (sibling.name + ".json"));
    CHECK(total_parameters(imported) == total_parameters(shipped));
    CHECK(active_parameters(imported) == active_parameters(shipped));
    CHECK(imported.moe->node_limit == shipped.moe->node_limit);
    CHECK(imported.moe->dense_layers == shipped.moe->dense_layers);
  }
}

TEST_CASE("a size that cannot be read is one error, without what would follow from it") {
  for (const char* key : {"hidden_size", "num_attention_heads", "num_key_value_heads"}) {
    const std::string config = text_of(sample("hf/llama2-70b.config.json"));
    const std::size_t begin =
        config.find("\"" + std::string(key) + "\": ") + std::string(key).size() + 4;
    const std::size_t end = config.find_first_of(",\n", begin);
    const std::string quoted = '"' + config.substr(begin, end - begin) + '"';
    const std::string problem =
        ImportRun("hf-config")
            .with("c.json", std::string(config).replace(begin, end - begin, quoted))
            .problem();
    CHECK(contains(problem, key + (" is " + quoted)));
    CHECK_FALSE(contains(problem, "does not divide"));
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
  const Transformer model = model_in_file(run.request.output);
  CHECK(total_parameters(model) == 14'315'784'192);  // as published
  CHECK(active_parameters(model) / 1e9 == doctest::Approx(2.7).epsilon(0.02));

  ImportRun dense("hf-config");
  dense.with("config.json", config + R"(, "mlp_only_layers": [0, 1]})");
  dense.run();
  CHECK(model_in_file(dense.request.output).moe->dense_layers == 2);
  CHECK(contains(problem_of(config + R"(, "mlp_only_layers": [0, 3]})"), "mlp_only_layers"));
}

TEST_CASE("GPT-2's own names are known: 124 million parameters") {
  ImportRun run("hf-config");
  run.with("config.json", R"({"model_type": "gpt2", "n_embd": 768, "n_layer": 12, "n_head": 12,
                              "n_positions": 1024, "n_inner": null, "vocab_size": 50257})");
  run.run();
  // GPT-2 small as published: 124,439,808 parameters
  CHECK(total_parameters(model_in_file(run.request.output)) == 124'439'808);
}

TEST_CASE("Mistral 7B: grouped heads and a window in every layer") {
  ImportRun run("hf-config");
  run.with("config.json", R"({"model_type": "mistral", "hidden_size": 4096, "num_hidden_layers": 32,
    "num_attention_heads": 32, "num_key_value_heads": 8, "intermediate_size": 14336, "vocab_size": 32000,
    "max_position_embeddings": 32768, "sliding_window": 4096, "head_dim": 128})");
  run.request.options.sequence = 8192;
  run.run();
  const Transformer model = model_in_file(run.request.output);
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
  const Transformer model = model_in_file(run.request.output);
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
  const Transformer model = model_in_file(run.request.output);
  CHECK(model.head_size() == 128);
  CHECK(model.qk_norm == QueryKeyNorm::heads);
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
  const Transformer model = model_in_file(run.request.output);
  REQUIRE(model.window);
  CHECK(model.window->every == 2);
  CHECK(total_parameters(model) == 27'227'128'320);  // gemma-2-27b as published
  ImportRun typed("hf-config");
  typed.with("config.json", gemma + R"(, "layer_types": ["sliding_attention", "sliding_attention",
    "sliding_attention", "full_attention"]})");
  typed.run();
  CHECK(model_in_file(typed.request.output).window->every == doctest::Approx(4.0 / 3));
}

namespace {

struct Counted {
  std::string what;
  const char* config;
  double parameters;
};

/// Values left out of a configuration are supplied by its class, so few keys are needed.
const std::vector<Counted>& counted() {
  static const std::vector<Counted> models{
      // clang-format off
      {"gemma-3-4b, its text part with a file's own three sizes", R"({"model_type":"gemma3_text","hidden_size":2560,"intermediate_size":10240,"num_hidden_layers":34,"sliding_window":1024})", 3'880'263'168},
      {"gemma-3-1b", R"({"model_type":"gemma3_text","hidden_size":1152,"intermediate_size":6912,"num_attention_heads":4,"num_key_value_heads":1,"vocab_size":262144,"sliding_window":512})", 999'885'952},
      {"gemma-2-2b", R"({"model_type":"gemma2"})", 2'614'341'888},
      {"gemma-2-9b", R"({"model_type":"gemma2","hidden_size":3584,"intermediate_size":14336,"num_hidden_layers":42,"num_attention_heads":16,"num_key_value_heads":8})", 9'241'705'984},
      {"gemma-7b", R"({"model_type":"gemma"})", 8'537'680'896},
      {"gpt-oss-20b", R"({"model_type":"gpt_oss","num_hidden_layers":24,"num_local_experts":32})", 20'914'757'184},
      {"Qwen2-57B-A14B", R"({"model_type":"qwen2_moe","hidden_size":3584,"intermediate_size":18944,"num_hidden_layers":28,"num_attention_heads":28,"num_key_value_heads":4,"num_experts":64,"num_experts_per_tok":8,"moe_intermediate_size":2560,"shared_expert_intermediate_size":20480})", 57'408'658'944},
      {"falcon-7b", R"({"model_type":"falcon"})", 6'921'720'704},
      {"falcon-40b", R"({"model_type":"falcon","hidden_size":8192,"num_attention_heads":128,"num_hidden_layers":60,"num_kv_heads":8,"new_decoder_architecture":true})", 41'303'293'952},
      {"OLMo-2-7B", R"({"model_type":"olmo2","vocab_size":100352})", 7'298'617'344},
      {"OLMoE-1B-7B", R"({"model_type":"olmoe","intermediate_size":1024})", 6'919'161'856},
      {"granite-3.0-8b", R"({"model_type":"granite","num_hidden_layers":40,"num_key_value_heads":8,"intermediate_size":12800,"vocab_size":49155,"tie_word_embeddings":true})", 8'170'848'256},
      {"internlm2-7b", R"({"model_type":"internlm2","vocab_size":92544,"num_key_value_heads":8,"intermediate_size":14336,"bias":false})", 7'737'708'544},
      {"MiMo-7B, counted without its layer of multi-token prediction", R"({"model_type":"mimo","num_hidden_layers":36,"intermediate_size":11008,"num_key_value_heads":8,"head_dim":128,"vocab_size":151680,"num_nextn_predict_layers":1})", 7'622'619'136},
      {"SmolLM3-3B", R"({"model_type":"smollm3"})", 3'075'098'624},
      {"phi-2 without the 51,200 biases of its head", R"({"model_type":"phi","hidden_size":2560,"intermediate_size":10240,"num_hidden_layers":32})", 2'779'683'840 - 51'200},
      {"phi-3-small", R"({"model_type":"phi3small","dense_attention_every_n_layers":2,"blocksparse_num_local_blocks":16,"blocksparse_block_size":64})", 7'392'272'384},
      {"stablelm-3b-4e1t", R"({"model_type":"stablelm"})", 2'795'443'200},
      {"starcoder2-3b", R"({"model_type":"starcoder2"})", 3'030'371'328},
      {"c4ai-command-r-v01", R"({"model_type":"cohere"})", 34'980'831'232},
      {"chatglm3-6b", R"({"model_type":"chatglm","multi_query_attention":true,"multi_query_group_num":2,"add_qkv_bias":true})", 6'243'584'000},
      {"glm-4-9b", R"({"model_type":"chatglm","multi_query_attention":true,"multi_query_group_num":2,"add_qkv_bias":true,"num_layers":40,"padded_vocab_size":151552,"seq_length":8192})", 9'399'951'360},
      {"GLM-4.5-Air, counted without multi-token prediction", R"({"model_type":"glm4_moe","attention_bias":true,"head_dim":128,"num_nextn_predict_layers":1})", 106'852'245'504},
      {"Nemotron-4-15B", R"({"model_type":"nemotron","num_key_value_heads":8})", 15'628'775'424},
      {"MiniCPM3-4B", R"({"model_type":"minicpm3"})", 4'073'875'968},
      {"Qwen2-VL-7B, its text part", R"({"model_type":"qwen2_vl","hidden_size":3584,"intermediate_size":18944,"num_hidden_layers":28,"num_attention_heads":28,"num_key_value_heads":4,"vision_config":{"depth":32}})", 7'615'616'512},
      {"llava-1.5-7b, of whose text part only the vocabulary is written", R"({"model_type":"llava","text_config":{"vocab_size":32064},"vision_config":{"hidden_size":1024}})", 6'738'415'616 + 2 * 64 * 4096},
      {"the text part of janus", R"({"model_type":"multi_modality","language_config":{"model_type":"llama","hidden_size":2048,"intermediate_size":5632,"num_hidden_layers":24,"num_attention_heads":16,"vocab_size":102400,"max_position_embeddings":16384}})", 1'652'656'128},
      {"the text part of deepseek-vl2-tiny, without latent attention", R"({"model_type":"deepseek_vl_v2","language_config":{"model_type":"deepseek_v2","hidden_size":1280,"intermediate_size":6848,"moe_intermediate_size":896,"num_hidden_layers":12,"num_attention_heads":10,"first_k_dense_replace":1,"kv_lora_rank":null,"q_lora_rank":null,"num_experts_per_tok":6,"vocab_size":129280}})", 2'934'734'080},
      {"gemma-3-27b, whose text part says neither heads' size nor vocabulary", R"({"model_type":"gemma3","text_config":{"model_type":"gemma3_text","head_dim":128,"hidden_size":5376,"intermediate_size":21504,"num_attention_heads":32,"num_hidden_layers":62,"num_key_value_heads":16},"vision_config":{"hidden_size":1152}})", 27'009'346'304},
      {"Qwen3-VL-30B-A3B, its text part, which is Qwen3-30B-A3B", R"({"model_type":"qwen3_vl_moe","tie_word_embeddings":false,"text_config":{"model_type":"qwen3_vl_moe_text","head_dim":128,"moe_intermediate_size":768,"num_attention_heads":32,"num_experts":128,"num_experts_per_tok":8,"num_hidden_layers":48,"num_key_value_heads":4}})", 30'532'122'624},
      // clang-format on
  };
  return models;
}

}  // namespace

TEST_CASE("families have the parameters that their publishers count") {
  for (const Counted& each : counted()) {
    CAPTURE(each.what);
    ImportRun run("hf-config");
    run.with("config.json", each.config);
    run.run();
    CHECK(total_parameters(model_in_file(run.request.output)) == each.parameters);
  }
}

TEST_CASE("what the class of a configuration supplied, and where the sequence is from, is said") {
  ImportRun run("hf-config");
  run.with("config.json",
           R"({"model_type": "gemma3_text", "hidden_size": 2560, "num_hidden_layers": 34,
                              "sliding_window": 1024, "vocab_size": 262208})");
  run.run();
  const Transformer model = model_in_file(run.request.output);
  CHECK(model.kv_heads == 4);
  CHECK(model.head_size() == 256);
  CHECK(contains(run.messages,
                 "not in the file, so as the configuration's class has it: "
                 "intermediate_size 9216, num_attention_heads 8, num_key_value_heads 4"));
  CHECK(contains(run.messages,
                 "sequence 131072 tokens: max_position_embeddings of the configuration's class"));
  run.request.options.sequence = 8192;
  run.run();
  CHECK_FALSE(contains(run.messages, "max_position_embeddings"));
  CHECK(contains(run.text, "sequence 8192"));

  ImportRun own("hf-config");
  own.with(sample("hf/llama2-7b.config.json"));
  own.run();
  CHECK(contains(own.messages, "sequence 4096 tokens: max_position_embeddings, the longest"));
}

TEST_CASE("only layers from max_window_layers on have Qwen's window") {
  const auto window_of = [](const std::string& more) {
    ImportRun run("hf-config");
    run.with("config.json",
             R"({"model_type": "qwen2", "num_hidden_layers": 32, "use_sliding_window": true)" +
                 more + "}");
    run.run();
    return std::pair{model_in_file(run.request.output).window, run.messages};
  };
  const auto [upper, unsaid] = window_of(R"(, "max_window_layers": 20)");
  REQUIRE(upper);
  CHECK(upper->size == 4096);
  CHECK(upper->from_layer == 20);
  CHECK(upper->every == 1);
  const auto [none, said] = window_of(R"(, "max_window_layers": 32)");
  CHECK_FALSE(none);
  CHECK(contains(said, "max_window_layers 32 keeps it from the first so many of 32"));
  // By layers, which decide where they are given.
  const auto [listed, unsaid_too] =
      window_of(R"(, "max_window_layers": 32, "layer_types": ["full_attention",
      "full_attention", "sliding_attention"])");
  REQUIRE(listed);
  CHECK(listed->from_layer == 2);
}

TEST_CASE("halves that run in parallel are written, and those of GPT-NeoX that do not") {
  const auto parallel_in = [](const std::string& config) {
    ImportRun run("hf-config");
    run.with("config.json", config);
    run.run();
    return model_in_file(run.request.output).parallel_residual;
  };
  CHECK(parallel_in(R"({"model_type": "gpt_neox"})"));
  CHECK_FALSE(parallel_in(R"({"model_type": "gpt_neox", "use_parallel_residual": false})"));
  CHECK(parallel_in(R"({"model_type": "falcon"})"));
  CHECK(parallel_in(R"({"model_type": "cohere"})"));
  CHECK_FALSE(parallel_in(R"({"model_type": "llama"})"));
}

TEST_CASE("parts of a model that are not text, and keys that are not counted, are named") {
  ImportRun run("hf-config");
  run.with("config.json",
           R"({"model_type": "qwen3_vl", "text_config": {"model_type": "qwen3_vl_text",
      "num_nextn_predict_layers": 1}, "vision_config": {"depth": 27}, "quantization_config": {"bits": 8}})");
  run.run();
  CHECK(contains(run.messages, "the part for text alone, text_config; left out: vision_config"));
  CHECK(contains(run.messages, "num_nextn_predict_layers: the layers of multi-token prediction"));
  CHECK(contains(run.messages, "quantization_config: "));
}

TEST_CASE("what cannot be simulated is refused with the reason") {
  const std::vector<std::pair<const char*, const char*>> refused{
      {R"({"model_type": "t5", "d_model": 512})", "an encoder and a decoder"},
      {R"({"model_type": "llama", "is_encoder_decoder": true})", "an encoder and a decoder"},
      {R"({"model_type": "bert", "hidden_size": 768})", "tokens see those behind them too"},
      {R"({"model_type": "clip_vision_model"})", "an encoder of images"},
      {R"({"model_type": "nemotron_h", "time_step_limit": [0.0, Infinity]})", "Mamba"},
      {R"({"model_type": "llama", "hybrid_override_pattern": "MEM*"})", "Mamba"},
      {R"({"model_type": "qwen3_5", "text_config": {"model_type": "qwen3_5_text"}})",
       "linear attention"},
      {R"({"model_type": "new", "attn_type_list": [0, 1]})", "linear attention"},
      {R"({"model_type": "nemotron-nas", "block_configs": [{}]})",
       "layers that differ from each other"},
      {R"({"model_type": "deepseek_v32", "index_topk": 2048})", "indexer"},
      {R"({"model_type": "mllama", "text_config": {"cross_attention_layers": [3]}})",
       "attend to another part"},
      {R"({"model_type": "hunyuan", "use_cla": true})", "share the keys of others"},
      {R"({"model_type": "gemma4", "text_config": {"attention_k_eq_v": true}})",
       "values that are keys"},
      {R"({"model_type": "llama", "num_experts": 8})",
       "mixture of experts, which llama models are not"},
      {R"({"model_type": "llama", "kv_lora_rank": 256})",
       "latent attention, which llama models have not"},
      {R"({"model_type": "chatglm", "add_bias_linear": true})", "add_bias_linear adds biases"},
      {R"({"prompts": {}})", "no model_type: this is not the configuration of a model"},
      {R"({"model_type": "never_seen"})", "is not known here"}};
  for (const auto& [text, reason] : refused) {
    const std::string config = text;
    CAPTURE(config);
    CHECK(contains(problem_of(config), reason));
  }
  CHECK(
      contains(problem_of(R"({"model_type": "gemma4", "text_config": {"attention_k_eq_v": true}})"),
               "config.json:1:62: error: attention_k_eq_v says"));
  const std::string llama = R"({"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2,
    "num_attention_heads": 8, "intermediate_size": 128, "vocab_size": 100, "max_position_embeddings": 32)";
  CHECK(problem_of(llama + "}").empty());
  CHECK(problem_of(llama + R"(, "attention_bias": true, "head_dim": 16})").empty());
  CHECK(contains(problem_of(llama + R"(, "mlp_bias": true})"), "mlp_bias adds biases"));
  CHECK(contains(problem_of(llama + R"(, "num_key_value_heads": 3})"),
                 "does not divide the heads 8"));
}

TEST_CASE("keys that are not read may be as many as they like, and numbers that are none") {
  std::string config =
      R"({"model_type": "llama", "time_step_limit": [0.0, Infinity], "quantization_config": {"quantized_layers": {"l0": 0)";
  for (int i = 1; i <= 10'000; ++i) config += ", \"l" + std::to_string(i) + "\": 0";
  CHECK(problem_of(config + "}}}").empty());
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
