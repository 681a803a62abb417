#include <algorithm>
#include <array>
#include <charconv>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/file_io.hpp"
#include "core/foreign_json.hpp"
#include "core/json_build.hpp"
#include "core/object_reader.hpp"
#include "core/text_list.hpp"
#include "importers/importer.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "workload/model_json.hpp"
#include "workload/transformer.hpp"

namespace windtunnel {
namespace {

/// A model_type of HuggingFace's transformers: what its configuration class supplies where a config.json says nothing, and what a model file
/// says of every such model. A new family is a line of the table below.
struct HfFamily {
  const char* model_type;
  const char* like;      ///< the model_type whose `ours` this adds to; empty: none
  const char* defaults;  ///< JSON, in the configuration's own keys
  /// JSON, in a model file's keys. "$key" is whether the configuration's key is on, and "$key?value" the value where it is; `moe` and `mla`
  /// stand where the family's experts and latent attention are known.
  const char* ours;
  const char* left_out = "";  ///< what a model file cannot say of it
};

/// A key of a configuration that changes what a model computes. While it is off (absent, null, false, 0, empty) it says nothing.
struct HfKey {
  const char* key;
  const char* what;  ///< what it says
};

// Defaults are those of configuration_*.py, ours of what modeling_*.py builds, in transformers 4.40 to 5.4, each the same in all of them unless
// noted; chatglm, internlm2, mimo, minicpm, minicpm3, phi3small and xverse of the authors' own files on the hub. A class that ties its
// embeddings by default does so because PretrainedConfig does.
const std::vector<HfFamily>& hf_families() {
  static const std::vector<HfFamily> table{
      // clang-format off
      {"gpt2", "", R"({"vocab_size":50257,"n_positions":1024,"n_embd":768,"n_layer":12,"n_head":12,"tie_word_embeddings":true})", R"({"family":"gpt"})"},
      {"gpt_neox", "", R"({"vocab_size":50432,"hidden_size":6144,"num_hidden_layers":44,"num_attention_heads":64,"intermediate_size":24576,"max_position_embeddings":2048,"use_parallel_residual":true,"tie_word_embeddings":false})",
       R"({"family":"neox","rotary":true,"parallel_residual":"$use_parallel_residual"})"},
      {"bloom", "", R"({"vocab_size":250880,"tie_word_embeddings":true})", R"({"family":"bloom"})"},
      {"falcon", "", R"({"vocab_size":65024,"hidden_size":4544,"num_hidden_layers":32,"num_attention_heads":71,"max_position_embeddings":2048,"multi_query":true,"parallel_attn":true,"tie_word_embeddings":true})",
       R"({"family":"$bias?neox","rotary":true,"parallel_residual":"$parallel_attn","norm_bias":true})"},
      {"phi", "", R"({"vocab_size":51200,"hidden_size":2048,"intermediate_size":8192,"num_hidden_layers":24,"num_attention_heads":32,"max_position_embeddings":2048,"tie_word_embeddings":false})",
       R"({"family":"neox","rotary":true,"parallel_residual":true,"norms":1,"qk_norm":"$qk_layernorm"})", "the biases of the output head"},
      {"starcoder2", "", R"({"vocab_size":49152,"hidden_size":3072,"intermediate_size":12288,"num_hidden_layers":30,"num_attention_heads":24,"num_key_value_heads":2,"max_position_embeddings":4096,"use_bias":true,"tie_word_embeddings":true})",
       R"({"family":"$use_bias?neox","rotary":true,"parallel_residual":false,"norm_bias":true})"},
      {"phi3small", "", R"({"vocab_size":100352,"hidden_size":4096,"ff_intermediate_size":14336,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"max_position_embeddings":8192,"tie_word_embeddings":true})",
       R"({"family":"neox","rotary":true,"gated_mlp":true,"parallel_residual":false})", "the vertical strides of its sparse attention, which sees a few tokens beyond the window"},
      {"llama", "", R"({"vocab_size":32000,"hidden_size":4096,"intermediate_size":11008,"num_hidden_layers":32,"num_attention_heads":32,"max_position_embeddings":2048,"tie_word_embeddings":false})",
       R"({"family":"llama","rotary":true,"gated_mlp":true,"qkv_bias":"$attention_bias","projection_bias":"$attention_bias"})"},
      {"llava", "llama", R"({"vocab_size":32000,"hidden_size":4096,"intermediate_size":11008,"num_hidden_layers":32,"num_attention_heads":32,"max_position_embeddings":2048,"tie_word_embeddings":false})", "{}"},
      {"mistral", "llama", R"({"vocab_size":32000,"hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"max_position_embeddings":131072,"sliding_window":4096,"tie_word_embeddings":false})", "{}"},
      {"xverse", "llama", R"({"tie_word_embeddings":false})", "{}"},
      {"minicpm", "llama", R"({"tie_word_embeddings":true})", "{}"},
      {"internlm2", "llama", R"({"vocab_size":103168,"hidden_size":4096,"intermediate_size":11008,"num_hidden_layers":32,"num_attention_heads":32,"max_position_embeddings":2048,"bias":true,"tie_word_embeddings":false})", R"({"qkv_bias":"$bias","projection_bias":"$bias"})"},
      {"granite", "llama", R"({"vocab_size":32000,"hidden_size":4096,"intermediate_size":11008,"num_hidden_layers":32,"num_attention_heads":32,"max_position_embeddings":2048,"tie_word_embeddings":false})", "{}"},
      {"smollm3", "llama", R"({"vocab_size":128256,"hidden_size":2048,"intermediate_size":11008,"num_hidden_layers":36,"num_attention_heads":16,"num_key_value_heads":4,"max_position_embeddings":32768,"use_sliding_window":false,"tie_word_embeddings":true})", "{}"},
      {"phi3", "llama", R"({"vocab_size":32064,"hidden_size":3072,"intermediate_size":8192,"num_hidden_layers":32,"num_attention_heads":32,"max_position_embeddings":4096,"tie_word_embeddings":false})", "{}"},
      {"phi3_v", "llama", R"({"vocab_size":32064,"hidden_size":3072,"intermediate_size":8192,"num_hidden_layers":32,"num_attention_heads":32,"max_position_embeddings":4096,"tie_word_embeddings":false})", "{}"},
      {"stablelm", "llama", R"({"vocab_size":50304,"hidden_size":2560,"intermediate_size":6912,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":32,"max_position_embeddings":4096,"tie_word_embeddings":false})",
       R"({"norm_bias":true,"qkv_bias":"$use_qkv_bias","projection_bias":false,"qk_norm":"$qk_layernorm?width","parallel_residual":"$use_parallel_residual","norms":"$use_parallel_residual?1"})"},
      {"nemotron", "llama", R"({"vocab_size":256000,"hidden_size":6144,"intermediate_size":24576,"num_hidden_layers":32,"num_attention_heads":48,"max_position_embeddings":4096,"tie_word_embeddings":false})", R"({"gated_mlp":false,"norm_bias":true})"},
      {"cohere", "llama", R"({"vocab_size":256000,"hidden_size":8192,"intermediate_size":22528,"num_hidden_layers":40,"num_attention_heads":64,"max_position_embeddings":8192,"tie_word_embeddings":true})",
       R"({"parallel_residual":true,"norms":1,"qk_norm":"$use_qk_norm?width"})"},
      {"cohere2", "cohere", R"({"vocab_size":256000,"hidden_size":8192,"intermediate_size":22528,"num_hidden_layers":40,"num_attention_heads":64,"max_position_embeddings":8192,"sliding_window":4096,"sliding_window_pattern":4,"tie_word_embeddings":true})", "{}"},
      {"olmo2", "llama", R"({"vocab_size":50304,"hidden_size":4096,"intermediate_size":11008,"num_hidden_layers":32,"num_attention_heads":32,"max_position_embeddings":2048,"tie_word_embeddings":false})", R"({"qk_norm":"width"})"},
      {"olmoe", "llama", R"({"vocab_size":50304,"hidden_size":2048,"intermediate_size":2048,"num_hidden_layers":16,"num_attention_heads":16,"max_position_embeddings":4096,"num_experts":64,"num_experts_per_tok":8,"tie_word_embeddings":false})", R"({"qk_norm":"width","moe":{}})"},
      {"chatglm", "", R"({"padded_vocab_size":65024,"hidden_size":4096,"ffn_hidden_size":13696,"num_layers":28,"num_attention_heads":32,"kv_channels":128,"seq_length":2048,"multi_query_group_num":1,"rmsnorm":true,"tie_word_embeddings":false})",
       R"({"family":"llama","rotary":true,"gated_mlp":true,"qkv_bias":"$add_qkv_bias"})"},
      {"glm", "llama", R"({"vocab_size":151552,"hidden_size":4096,"intermediate_size":13696,"num_hidden_layers":40,"num_attention_heads":32,"num_key_value_heads":2,"head_dim":128,"max_position_embeddings":131072,"attention_bias":true,"tie_word_embeddings":false})", R"({"projection_bias":false})"},
      {"glm4", "llama", R"({"vocab_size":151552,"hidden_size":4096,"intermediate_size":13696,"num_hidden_layers":40,"num_attention_heads":32,"num_key_value_heads":2,"head_dim":128,"max_position_embeddings":131072,"tie_word_embeddings":false})", R"({"projection_bias":false,"norms":4})"},
      {"glm4_moe", "llama", R"({"vocab_size":151552,"hidden_size":4096,"intermediate_size":10944,"moe_intermediate_size":1408,"num_hidden_layers":46,"num_attention_heads":96,"num_key_value_heads":8,"max_position_embeddings":131072,"n_routed_experts":128,"n_shared_experts":1,"num_experts_per_tok":8,"first_k_dense_replace":1,"tie_word_embeddings":false})",
       R"({"projection_bias":false,"qk_norm":"$use_qk_norm","moe":{}})"},
      {"gemma", "llama", R"({"vocab_size":256000,"hidden_size":3072,"intermediate_size":24576,"num_hidden_layers":28,"num_attention_heads":16,"num_key_value_heads":16,"head_dim":256,"max_position_embeddings":8192,"tie_word_embeddings":true})", "{}"},
      {"gemma2", "llama", R"({"vocab_size":256000,"hidden_size":2304,"intermediate_size":9216,"num_hidden_layers":26,"num_attention_heads":8,"num_key_value_heads":4,"head_dim":256,"max_position_embeddings":8192,"sliding_window":4096,"sliding_window_pattern":2,"attn_logit_softcapping":50.0,"final_logit_softcapping":30.0,"tie_word_embeddings":true})", R"({"norms":4})"},
      {"gemma3_text", "llama", R"({"vocab_size":262208,"hidden_size":2304,"intermediate_size":9216,"num_hidden_layers":26,"num_attention_heads":8,"num_key_value_heads":4,"head_dim":256,"max_position_embeddings":131072,"sliding_window":4096,"sliding_window_pattern":6,"tie_word_embeddings":true})", R"({"norms":4,"qk_norm":true})"},
      {"qwen2", "llama", R"({"vocab_size":151936,"hidden_size":4096,"intermediate_size":22016,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":32,"max_position_embeddings":32768,"use_sliding_window":false,"sliding_window":4096,"max_window_layers":28,"tie_word_embeddings":false})", R"({"qkv_bias":true,"projection_bias":false})"},
      {"mimo", "qwen2", R"({"vocab_size":151936,"hidden_size":4096,"intermediate_size":22016,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":32,"max_position_embeddings":32768,"use_sliding_window":false,"sliding_window":4096,"max_window_layers":28,"tie_word_embeddings":false})", "{}"},
      {"qwen2_vl", "qwen2", R"({"vocab_size":152064,"hidden_size":8192,"intermediate_size":29568,"num_hidden_layers":80,"num_attention_heads":64,"num_key_value_heads":8,"max_position_embeddings":32768,"use_sliding_window":false,"sliding_window":4096,"max_window_layers":80,"tie_word_embeddings":false})", "{}"},
      {"qwen2_5_vl", "qwen2", R"({"vocab_size":152064,"hidden_size":8192,"intermediate_size":29568,"num_hidden_layers":80,"num_attention_heads":64,"num_key_value_heads":8,"max_position_embeddings":32768,"use_sliding_window":false,"sliding_window":4096,"max_window_layers":80,"tie_word_embeddings":false})", "{}"},
      {"qwen3", "llama", R"({"vocab_size":151936,"hidden_size":4096,"intermediate_size":22016,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":32,"head_dim":128,"max_position_embeddings":32768,"use_sliding_window":false,"sliding_window":4096,"max_window_layers":28,"tie_word_embeddings":false})", R"({"qk_norm":true})"},
      {"qwen3_vl", "qwen3", R"({"vocab_size":151936,"hidden_size":4096,"intermediate_size":22016,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":32,"head_dim":128,"max_position_embeddings":128000,"tie_word_embeddings":false})", "{}"},
      {"mixtral", "llama", R"({"vocab_size":32000,"hidden_size":4096,"intermediate_size":14336,"num_hidden_layers":32,"num_attention_heads":32,"num_key_value_heads":8,"max_position_embeddings":131072,"num_local_experts":8,"num_experts_per_tok":2,"tie_word_embeddings":false})", R"({"moe":{}})"},
      {"qwen2_moe", "qwen2", R"({"vocab_size":151936,"hidden_size":2048,"intermediate_size":5632,"moe_intermediate_size":1408,"shared_expert_intermediate_size":5632,"num_hidden_layers":24,"num_attention_heads":16,"num_key_value_heads":16,"max_position_embeddings":32768,"use_sliding_window":false,"sliding_window":4096,"max_window_layers":28,"num_experts":60,"num_experts_per_tok":4,"qkv_bias":true,"tie_word_embeddings":false})",
       R"({"qkv_bias":"$qkv_bias","moe":{"shared_gate":true}})"},
      {"qwen3_moe", "qwen3", R"({"vocab_size":151936,"hidden_size":2048,"intermediate_size":6144,"moe_intermediate_size":768,"num_hidden_layers":24,"num_attention_heads":32,"num_key_value_heads":4,"max_position_embeddings":32768,"use_sliding_window":false,"sliding_window":4096,"max_window_layers":28,"num_experts":128,"num_experts_per_tok":8,"tie_word_embeddings":false})", R"({"moe":{}})"},
      {"qwen3_vl_moe", "qwen3_moe", R"({"vocab_size":151936,"hidden_size":2048,"intermediate_size":5632,"moe_intermediate_size":1408,"num_hidden_layers":24,"num_attention_heads":16,"num_key_value_heads":16,"max_position_embeddings":128000,"num_experts":60,"num_experts_per_tok":4,"tie_word_embeddings":false})", "{}"},
      {"gpt_oss", "llama", R"({"vocab_size":201088,"hidden_size":2880,"intermediate_size":2880,"num_hidden_layers":36,"num_attention_heads":64,"num_key_value_heads":8,"head_dim":64,"max_position_embeddings":131072,"sliding_window":128,"sliding_window_pattern":2,"num_local_experts":128,"num_experts_per_tok":4,"attention_bias":true,"tie_word_embeddings":false})",
       R"({"attention_sinks":true,"moe":{"bias":true,"router_bias":true}})"},
      {"minicpm3", "llama", R"({"vocab_size":73448,"hidden_size":2560,"intermediate_size":6400,"num_hidden_layers":62,"num_attention_heads":40,"max_position_embeddings":32768,"q_lora_rank":768,"kv_lora_rank":256,"qk_nope_head_dim":64,"qk_rope_head_dim":32,"tie_word_embeddings":true})", R"({"mla":{}})"},
      {"deepseek_v2", "llama", R"({"vocab_size":32000,"hidden_size":4096,"intermediate_size":11008,"moe_intermediate_size":1407,"num_hidden_layers":32,"num_attention_heads":32,"max_position_embeddings":2048,"n_routed_experts":64,"n_shared_experts":2,"q_lora_rank":1536,"kv_lora_rank":512,"qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128,"tie_word_embeddings":false})", R"({"moe":{},"mla":{}})"},
      {"deepseek_v3", "deepseek_v2", R"({"vocab_size":129280,"hidden_size":7168,"intermediate_size":18432,"moe_intermediate_size":2048,"num_hidden_layers":61,"num_attention_heads":128,"max_position_embeddings":4096,"n_routed_experts":256,"n_shared_experts":1,"num_experts_per_tok":8,"first_k_dense_replace":3,"n_group":8,"topk_group":4,"q_lora_rank":1536,"kv_lora_rank":512,"qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128,"tie_word_embeddings":false})", "{}"},
      {"kimi_k2", "deepseek_v3", R"({"vocab_size":129280,"hidden_size":7168,"intermediate_size":18432,"moe_intermediate_size":2048,"num_hidden_layers":61,"num_attention_heads":128,"max_position_embeddings":4096,"n_routed_experts":256,"n_shared_experts":1,"num_experts_per_tok":8,"first_k_dense_replace":3,"n_group":8,"topk_group":4,"q_lora_rank":1536,"kv_lora_rank":512,"qk_nope_head_dim":128,"qk_rope_head_dim":64,"v_head_dim":128,"tie_word_embeddings":false})", "{}"},
      // clang-format on
  };
  return table;
}

const HfFamily* find_hf_family(std::string_view model_type) {
  // The part of a model of several: "qwen3_vl_text".
  constexpr std::string_view part = "_text";
  const std::size_t without = model_type.size() - (model_type.ends_with(part) ? part.size() : 0);
  for (const std::string_view type : {model_type, model_type.substr(0, without)})
    for (const HfFamily& family : hf_families())
      if (family.model_type == type) return &family;
  return nullptr;
}

constexpr const char* encoder_and_decoder = "has an encoder and a decoder, which is not modelled";
constexpr const char* encoder =
    "is an encoder, whose tokens see those behind them too; only decoders are modelled";
constexpr const char* image_encoder = "is an encoder of images; only decoders of text are modelled";
constexpr const char* state_space = "has layers of state spaces (Mamba), which are not modelled";
constexpr const char* linear = "has layers of linear attention, which are not modelled";

/// Why models of a type that is no decoder of text, or no stack of like layers, are refused; null: it is none of those.
const char* why_hf_type_is_refused(std::string_view model_type) {
  /// By the beginnings of model types.
  static const std::pair<const char*, std::vector<const char*>> types[]{
      {encoder_and_decoder, {"t5", "mt5", "umt5", "bart", "mbart", "pegasus", "whisper"}},
      {encoder,
       {"bert", "roberta", "xlm-roberta", "distilbert", "electra", "deberta", "modernbert",
        "nomic_bert"}},
      {image_encoder, {"clip", "siglip", "vit", "dinov2"}},
      {state_space,
       {"mamba", "falcon_mamba", "falcon_h1", "jamba", "bamba", "zamba", "nemotron_h",
        "granitemoehybrid"}},
      {linear,
       {"rwkv", "minimax_text_01", "minimax_m1", "kimi_linear", "qwen3_next", "qwen3_5",
        "kimi_k3"}}};
  for (const auto& [why, prefixes] : types)
    for (const char* prefix : prefixes)
      if (model_type.starts_with(prefix)) return why;
  return nullptr;
}

/// Where it is on, the model cannot be written as a model file.
const std::vector<HfKey>& refused_hf_keys() {
  static const std::vector<HfKey> keys{
      {"is_encoder_decoder", encoder_and_decoder},
      {"linear_attn_config", linear},
      {"linear_num_key_heads", linear},
      {"attn_type_list", linear},
      {"hybrid_override_pattern", state_space},
      {"mamba_num_heads", state_space},
      {"mamba_d_state", state_space},
      {"ssm_state_size", state_space},
      {"block_configs",
       "has layers that differ from each other, of which a model file knows one kind"},
      {"index_topk",
       "has sparse attention, whose indexer and choice of tokens are not modelled; take the key "
       "out to "
       "import the model with whole attention"},
      {"compress_ratios", "has attention to compressed keys, which is not modelled"},
      {"cross_attention_layers",
       "has layers that attend to another part of the model, which are not modelled"},
      {"add_cross_attention",
       "has layers that attend to another part of the model, which are not modelled"},
      {"use_cla", "has layers that share the keys of others, which is not modelled"},
      {"num_kv_shared_layers", "has layers that share the keys of others, which is not modelled"},
      {"attention_k_eq_v", "has values that are keys, which is not modelled"},
      {"global_head_dim",
       "has heads whose size differs from layer to layer, which is not modelled"},
      {"hidden_size_per_layer_input", "has embeddings for each layer, which are not modelled"},
      {"attention_chunk_size",
       "has attention within chunks of the sequence, which is not modelled"},
      {"attn_output_gate", "has a gate on attention's output, which is not modelled"},
      {"use_lsh_attention", "has attention by hashing, which is not modelled"},
  };
  return keys;
}

/// It is left out, and that is said.
const std::vector<HfKey>& uncounted_hf_keys() {
  static constexpr const char* predicts =
      "the layers of multi-token prediction are trained as well; write \"mtp_layers\": 0 where "
      "they are not, as transformers does not";
  static const std::vector<HfKey> keys{
      {"num_nextn_predict_layers", predicts},
      {"mtp_num_hidden_layers", predicts},
      {"num_mtp_modules", predicts},
      {"attn_logit_softcapping", "caps on the scores of attention take no time here"},
      {"final_logit_softcapping", "caps on the logits take no time here"},
      {"alibi", "positions by ALiBi take no time here"},
      {"lm_head_bias", "the biases of the output head are left out"},
      {"quantization_config",
       "the weights are quantised for inference; what is trained is the scenario's precision"},
  };
  return keys;
}

// As the reader of model files has them.
constexpr std::int64_t most_layers = 100'000;
constexpr std::int64_t most_hidden = 1 << 20;
constexpr std::int64_t most_ffn_hidden = 16 * most_hidden;
constexpr std::int64_t most_tokens = 1 << 28;
constexpr std::int64_t most_experts = 1 << 16;
constexpr std::int64_t most_predicted = 100;

/// What configurations call one size; the first is said where none is there.
using Names = std::vector<const char*>;
const Names hidden_names{"hidden_size", "n_embd", "n_embed"},
    layer_names{"num_hidden_layers", "n_layer", "num_layers"},
    head_names{"num_attention_heads", "n_head"}, vocab_names{"vocab_size", "padded_vocab_size"},
    sequence_names{"max_position_embeddings", "n_positions", "n_ctx", "seq_length"},
    ffn_names{"intermediate_size", "n_inner", "ffn_hidden_size", "ff_intermediate_size"},
    head_size_names{"head_dim", "kv_channels"},
    expert_names{"num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts"},
    chosen_names{"num_experts_per_tok", "experts_per_token"};

/// The same size in other words: a default is none where the file says it in these.
const Names* names_beside(const std::string& key) {
  for (const Names* names :
       {&hidden_names, &layer_names, &head_names, &vocab_names, &sequence_names, &ffn_names,
        &head_size_names, &expert_names, &chosen_names})
    if (std::find(names->begin(), names->end(), key) != names->end()) return names;
  return nullptr;
}

std::string quoted(const std::string& word) { return "\"" + word + "\""; }

/// True for a value that switches its key off: absent, null, false, 0, an empty list or object.
bool is_off(const JsonValue* value) {
  if (value == nullptr || value->is_null()) return true;
  if (const bool* flag = std::get_if<bool>(&value->content)) return !*flag;
  if (value->is_array()) return value->array().empty();
  if (value->is_object()) return value->object().empty();
  const auto* number = std::get_if<std::int64_t>(&value->content);
  return number != nullptr && *number == 0;
}

JsonValue json_of(const char* text) {
  Problems problems;
  return parse_json(std::make_shared<const SourceText>(SourceText{"hf_families", text}), problems);
}

/// The part of a configuration that is the decoder of text: all of it, or a member of a model of several parts.
struct TextPart {
  JsonValue* value;
  std::string key;  ///< of the member; empty: all of it
  std::string pointer() const { return key.empty() ? "" : "/" + key; }
};

TextPart text_part_of(JsonValue& config) {
  for (const char* key : {"text_config", "language_config", "llm_config"})
    if (JsonValue* part = config.find(key); part != nullptr && part->is_object())
      return {part, key};
  return {&config, {}};
}

std::string string_at(const JsonValue& object, const char* key) {
  const JsonValue* value = object.find(key);
  return value != nullptr && value->is_string() ? value->string() : "";
}

/// A problem with member `key` of an object, or with the object. (A reader of the whole would move the part that it holds.)
void report(const JsonValue& object, const std::string& pointer, const char* key,
            std::string message, Problems& problems, std::string suggestion = {}) {
  const JsonValue* member = *key != '\0' ? object.find(key) : nullptr;
  problems.add({(member != nullptr ? member : &object)->origin,
                member != nullptr ? pointer_join(pointer, key) : pointer, std::move(message),
                std::move(suggestion)});
}

/// The family of a configuration. Null: the problems say why it cannot be simulated.
const HfFamily* choose_family(const JsonValue& config, const TextPart& part, Problems& problems) {
  std::vector<std::pair<const JsonValue*, std::string>> objects{{&config, ""}};
  if (part.value != &config) objects.emplace_back(part.value, part.pointer());
  for (const auto& [object, pointer] : objects) {
    for (const HfKey& refused : refused_hf_keys())
      if (!is_off(object->find(refused.key)))
        report(*object, pointer, refused.key,
               std::string(refused.key) + " says that this model " + refused.what, problems);
    const std::string type = string_at(*object, "model_type");
    if (const char* why = why_hf_type_is_refused(type); why != nullptr && problems.empty())
      report(*object, pointer, "model_type",
             "model_type " + quoted(type) + " says that this model " + why, problems);
  }
  if (!problems.empty()) return nullptr;
  const std::string own = string_at(*part.value, "model_type"),
                    of_whole = string_at(config, "model_type");
  if (own.empty() && part.key.empty()) {
    report(config, "", "model_type", "no model_type: this is not the configuration of a model",
           problems, "import the config.json beside the weights");
    return nullptr;
  }
  // LLaVA's and others' text parts are LLaMA where they do not say what they are.
  const std::string type = !own.empty()                          ? own
                           : find_hf_family(of_whole) != nullptr ? of_whole
                                                                 : "llama";
  if (const HfFamily* family = find_hf_family(type)) return family;
  report(
      *part.value, part.pointer(), "model_type",
      "model_type " + quoted(type) + " is not known here", problems,
      "known are " + listed(hf_families(), [](const HfFamily& each) { return each.model_type; }));
  return nullptr;
}

/// Reads one config.json into a model file.
class ConfigReader {
 public:
  ConfigReader(JsonValue& config, const TextPart& part, const HfFamily& family, Problems& problems)
      : config_(config), part_(part), family_(family) {
    add_defaults();
    reader_.emplace(*part.value, part.pointer(), problems);
  }

  /// `sequence`: as --sequence has it; 0: the configuration's.
  JsonValue read(int sequence) {
    read_sizes(sequence);
    JsonValue ours = traits();
    const std::string family = string_at(ours, "family");
    JsonValue file = object_of({{"family", family.empty() ? "llama" : family},
                                {"layers", layers_},
                                {"hidden", hidden_},
                                {"heads", heads_},
                                {"sequence", sequence_},
                                {"vocab", vocab_},
                                {"kv_heads", kv_heads_},
                                {"ffn_hidden", ffn_}});
    for (const char* key : {"gated_mlp", "rotary"}) {
      const JsonValue* value = ours.find(key);
      file.set(key, value != nullptr ? *value : JsonValue(false));
      ours.erase(key);
    }
    file.set("tied_embeddings", JsonValue(ties_embeddings()));
    if (const int depths =
            optional({"num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules"},
                     most_predicted);
        depths > 0)
      add_members(file, {{"mtp_layers", depths}});
    const bool latent = ours.find("mla") != nullptr && is_on("kv_lora_rank");
    if (const int size = latent ? 0 : head_size(); size > 0)
      add_members(file, {{"head_size", size}});
    // What is false is so by default, but for the halves of GPT-NeoX's layers, which run in parallel.
    const auto is_default = [&](const JsonValue::Member& member) {
      const bool* flag = std::get_if<bool>(&member.value.content);
      return flag != nullptr && !*flag && (member.key != "parallel_residual" || family != "neox");
    };
    for (JsonValue::Member& member : ours.object())
      if (member.key != "family" && member.key != "moe" && member.key != "mla" &&
          !is_default(member))
        file.set(member.key, std::move(member.value));
    if (std::optional<JsonValue> window = read_window()) file.set("window", std::move(*window));
    if (JsonValue* moe = ours.find("moe"); present(expert_names))
      if (std::optional<JsonValue> experts = read_experts(moe))
        file.set("moe", std::move(*experts));
    if (latent) file.set("mla", read_latent_attention());
    check_variants(latent, ours.find("mla") != nullptr);
    add_notes(sequence == 0);
    return file;
  }

  std::vector<std::string> notes;

 private:
  /// The class's defaults for keys that are absent. A key that is null has no default: it switches something off.
  void add_defaults() {
    const JsonValue defaults = json_of(family_.defaults);
    for (const JsonValue::Member& member : defaults.object()) {
      const Names* names = names_beside(member.key);
      const bool said =
          names != nullptr
              ? std::any_of(names->begin(), names->end(),
                            [&](const char* name) { return part_.value->find(name) != nullptr; })
              : part_.value->find(member.key) != nullptr;
      if (said) continue;
      JsonValue value = member.value;
      value.origin.kind = OriginKind::defaulted;
      part_.value->set(member.key, std::move(value));
      if (member.value.is_number()) defaulted_.push_back(member.key);
    }
  }

  const JsonValue* find(const char* key) const { return part_.value->find(key); }
  bool is_on(const char* key) const { return !is_off(find(key)); }
  const char* present(const Names& names) const {
    for (const char* name : names)
      if (is_on(name)) return name;
    return nullptr;
  }
  int required(const Names& names, std::int64_t most) {
    const char* name = present(names);
    return reader_->required_int(name != nullptr ? name : names.front(), 1, most);
  }
  /// 0: off.
  int optional(const Names& names, std::int64_t most) {
    const char* name = present(names);
    return name != nullptr ? reader_->required_int(name, 1, most) : 0;
  }

  void read_sizes(int sequence) {
    layers_ = required(layer_names, most_layers);
    hidden_ = required(hidden_names, most_hidden);
    heads_ = required(head_names, most_hidden);
    vocab_ = required(vocab_names, most_tokens);
    sequence_ = sequence > 0 ? sequence : optional(sequence_names, most_tokens);
    if (sequence_ == 0) {
      reader_->problem(
          "",
          "the configuration does not say the sequence length: none of " +
              std::string("max_position_embeddings, n_positions, n_ctx, seq_length is there"),
          "give it as --sequence 2048");
      sequence_ = 1;
    }
    ffn_ = optional(ffn_names, most_ffn_hidden);
    if (ffn_ == 0) ffn_ = 4 * hidden_;
    kv_heads_ = read_kv_heads();
    const bool latent = is_on("kv_lora_rank");
    if (!present(head_size_names) && !latent)
      check_divides(head_names, "hidden size", hidden_, heads_);
    check_divides({"num_key_value_heads", "multi_query_group_num", "num_kv_heads", "n_head_kv"},
                  "heads", heads_, kv_heads_);
  }

  int read_kv_heads() {
    const std::string type = family_.model_type;
    if (type == "chatglm")
      return is_on("multi_query_attention") ? required({"multi_query_group_num"}, most_hidden)
                                            : heads_;
    if (type == "falcon" && !is_on("new_decoder_architecture") && is_on("multi_query")) return 1;
    const int given = optional({"num_key_value_heads", "num_kv_heads", "n_head_kv"}, most_hidden);
    return given > 0 ? given : heads_;
  }

  /// What a model file says of the family, with the configuration's switches in it.
  JsonValue traits() {
    std::vector<const HfFamily*> line{&family_};
    while (*line.back()->like != '\0') line.push_back(find_hf_family(line.back()->like));
    JsonValue ours(JsonValue::Object{});
    for (auto each = line.rbegin(); each != line.rend(); ++each)
      merge_json(ours, json_of((*each)->ours));
    JsonValue resolved(JsonValue::Object{});
    for (JsonValue::Member& member : ours.object()) {
      if (member.value.is_string() && member.value.string().starts_with('$')) {
        std::optional<JsonValue> value = switched(member.value.string());
        if (value) resolved.set(member.key, std::move(*value));
      } else {
        resolved.set(member.key, std::move(member.value));
      }
    }
    const std::string type = family_.model_type;
    if (type == "falcon") {
      // One norm where the halves share it; two from new_decoder_architecture on, unless num_ln_in_parallel_attn says one.
      const JsonValue* given = find("num_ln_in_parallel_attn");
      const auto* number = given != nullptr ? std::get_if<std::int64_t>(&given->content) : nullptr;
      const bool shared = number != nullptr ? *number == 1 : !is_on("new_decoder_architecture");
      if (is_on("parallel_attn") && shared) resolved.set("norms", JsonValue(std::int64_t{1}));
    }
    if (type == "chatglm" && !is_on("rmsnorm")) resolved.set("norm_bias", JsonValue(true));
    return resolved;
  }

  /// "$key": whether it is on; "$key?value": the value where it is.
  std::optional<JsonValue> switched(const std::string& text) const {
    const std::size_t mark = text.find('?');
    const std::string key = text.substr(1, mark == std::string::npos ? mark : mark - 1);
    const bool on = is_on(key.c_str());
    if (mark == std::string::npos) return on ? std::optional(JsonValue(true)) : JsonValue(false);
    if (!on) return std::nullopt;
    const std::string word = text.substr(mark + 1);
    std::int64_t number = 0;
    const char* const end = word.data() + word.size();
    if (std::from_chars(word.data(), end, number).ptr == end) return JsonValue(number);
    return JsonValue(word);
  }

  bool ties_embeddings() {
    // Of a model of several parts the whole decides.
    const JsonValue* of_whole = config_.find("tie_word_embeddings");
    if (!part_.key.empty() && of_whole != nullptr && of_whole->is_bool())
      return std::get<bool>(of_whole->content);
    return reader_->optional_bool("tie_word_embeddings", false);
  }

  /// 0: the hidden size over the heads.
  int head_size() {
    const int size = optional(head_size_names, most_hidden);
    return size > 0 && std::int64_t{size} * heads_ != hidden_ ? size : 0;
  }

  /// Layers of which some see only a window of the tokens before them.
  std::optional<JsonValue> read_window() {
    int size = 0;
    double every = 1;
    int from = 0;
    if (const int dense = optional({"dense_attention_every_n_layers"}, most_layers); dense > 1) {
      // Phi-3 small: all layers but these attend to whole blocks near a token.
      size = required({"blocksparse_num_local_blocks"}, most_tokens) *
             required({"blocksparse_block_size"}, 1 << 16);
      every = dense / (dense - 1.0);
    } else {
      const JsonValue* uses = find("use_sliding_window");
      if (!is_on("sliding_window") || (uses != nullptr && is_off(uses))) return std::nullopt;
      size = required({"sliding_window"}, most_tokens);
      if (!read_window_layers(every, from)) return std::nullopt;
    }
    if (size >= sequence_) return std::nullopt;
    JsonValue window = object_of({{"size", size}, {"every", every}});
    if (from > 0) window.set("from_layer", JsonValue(std::int64_t{from}));
    return window;
  }

  /// By layer_types where they are given ("sliding_attention", "full_attention"), else by a pattern or by the first layer that has a window.
  /// False: none has it.
  bool read_window_layers(double& every, int& from) {
    const JsonValue* types = find("layer_types");
    if (types != nullptr && types->is_array() && !types->array().empty()) {
      std::vector<bool> slides;
      for (const JsonValue& type : types->array())
        slides.push_back(type.is_string() && type.string() == "sliding_attention");
      const auto windows = std::count(slides.begin(), slides.end(), true);
      const auto first = std::find(slides.begin(), slides.end(), true) - slides.begin();
      if (windows == 0) return false;
      const bool upper = first + windows == static_cast<std::ptrdiff_t>(slides.size());
      from = upper ? static_cast<int>(first) : 0;
      if (!upper) every = static_cast<double>(slides.size()) / static_cast<double>(windows);
      return true;
    }
    // One layer in so many attends to all tokens, the others have the window.
    if (const int pattern =
            optional({"sliding_window_pattern", "_sliding_window_pattern"}, most_layers);
        pattern > 1)
      every = pattern / (pattern - 1.0);
    if (!is_on("max_window_layers")) return true;
    from = required({"max_window_layers"}, most_layers);
    if (from < layers_) return true;
    notes.push_back("sliding_window: no layer has it, since max_window_layers " +
                    std::to_string(from) + " keeps it from the first so many of " +
                    std::to_string(layers_));
    return false;
  }

  /// `ours`: what is known of the family's experts; null: nothing.
  std::optional<JsonValue> read_experts(const JsonValue* ours) {
    const char* key = present(expert_names);
    if (ours == nullptr) {
      reader_->problem(key, std::string(key) + " says that this is a mixture of experts, which " +
                                family_.model_type + " models are not as far as is known here");
      return std::nullopt;
    }
    JsonValue moe(JsonValue::Object{});
    const auto set = [&](const char* name, std::int64_t value, std::int64_t usual) {
      if (value != usual) moe.set(name, JsonValue(value));
    };
    set("experts", reader_->required_int(key, 1, most_experts), 0);
    set("top_k", required(chosen_names, most_experts), 0);
    const int width =
        required(is_on("moe_intermediate_size") ? Names{"moe_intermediate_size"} : ffn_names,
                 most_ffn_hidden);
    set("ffn_hidden", width, 0);
    const bool has_shared_width = find("shared_expert_intermediate_size") != nullptr;
    set("shared_ffn_hidden",
        has_shared_width
            ? optional({"shared_expert_intermediate_size"}, most_ffn_hidden)
            : std::int64_t{width} * reader_->optional_int("n_shared_experts", 0, 0, most_experts),
        0);
    set("dense_layers",
        reader_->optional_int("first_k_dense_replace", first_dense_layers(), 0, most_layers), 0);
    set("every",
        reader_->optional_int(
            reader_->has("moe_layer_freq") ? "moe_layer_freq" : "decoder_sparse_step", 1, 1,
            most_layers),
        1);
    // Experts in groups, of which a token takes some: one group a node, as these models are trained.
    if (reader_->optional_int("n_group", 1, 1, most_experts) > 1)
      set("node_limit", reader_->optional_int("topk_group", 0, 0, most_experts), 0);
    merge_json(moe, *ours);
    return moe;
  }

  /// By mlp_only_layers, the numbers of layers without experts; a model file knows such layers at the front only.
  int first_dense_layers() {
    const JsonValue* layers = find("mlp_only_layers");
    if (layers == nullptr || !layers->is_array()) return 0;
    std::int64_t count = 0;
    for (const JsonValue& layer : layers->array()) {
      const auto* number = std::get_if<std::int64_t>(&layer.content);
      if (number == nullptr || *number != count)
        reader_->problem("mlp_only_layers",
                         "mlp_only_layers has a layer that does not follow on the ones before it, "
                         "counted from 0");
      ++count;
    }
    return static_cast<int>(count);
  }

  JsonValue read_latent_attention() {
    JsonValue mla = empty_object();
    const auto set = [&](const char* key, int value) { add_members(mla, {{key, value}}); };
    set("query_rank", optional({"q_lora_rank"}, most_hidden));
    set("key_value_rank", required({"kv_lora_rank"}, most_hidden));
    set("key_size", required({"qk_nope_head_dim"}, most_hidden));
    set("rope_size", reader_->required_int("qk_rope_head_dim", 0, most_hidden));
    // MiniCPM3 makes values as wide as the hidden size over the heads where nothing is said.
    const int value = optional({"v_head_dim"}, most_hidden);
    set("value_size", value > 0 ? value : std::max(1, hidden_ / heads_));
    return mla;
  }

  /// Variants that change sizes or work in a way that a model file cannot say.
  void check_variants(bool latent, bool knows_latent) {
    if (is_on("mlp_bias"))
      reader_->problem("mlp_bias", "mlp_bias adds biases to the feed-forward network, which " +
                                       std::string(family_.model_type) + " models here have not");
    if (is_on("add_bias_linear"))
      reader_->problem("add_bias_linear",
                       "add_bias_linear adds biases to every product, which "
                       "chatglm models here have not");
    if (is_on("kv_lora_rank") && !knows_latent)
      reader_->problem("kv_lora_rank",
                       "kv_lora_rank says that this is multi-head latent attention, which " +
                           std::string(family_.model_type) +
                           " models have not as far as is known here");
    if (latent && is_on("attention_bias"))
      notes.emplace_back("attention_bias: the biases of latent attention are left out");
  }

  void add_notes(bool own_sequence) {
    if (const char* key = present(sequence_names); own_sequence && key != nullptr) {
      const bool by_class =
          std::find(defaulted_.begin(), defaulted_.end(), key) != defaulted_.end();
      notes.push_back(
          "sequence " + std::to_string(sequence_) + " tokens: " + key +
          (by_class ? " of the configuration's class" : "") +
          ", the longest that the model takes; --sequence gives the length that you train with");
    }
    if (!part_.key.empty() || is_of_several_parts())
      notes.push_back("the part for text alone" + (part_.key.empty() ? "" : ", " + part_.key) +
                      "; left out: " + other_parts());
    for (const HfKey& key : uncounted_hf_keys())
      if (is_on(key.key) || (!part_.key.empty() && !is_off(config_.find(key.key))))
        notes.push_back(std::string(key.key) + ": " + key.what);
    if (*family_.left_out != '\0')
      notes.push_back(std::string(family_.model_type) + ": " + family_.left_out + " are left out");
    std::vector<std::string> of_class;
    for (const std::string& key : defaulted_)
      if (own_sequence || names_beside(key) != &sequence_names)
        of_class.push_back(key + " " + text_for_message(*find(key.c_str())));
    if (!of_class.empty())
      notes.push_back("not in the file, so as the configuration's class has it: " +
                      listed(of_class));
  }

  static bool is_part(const JsonValue::Member& member) {
    return (member.key.ends_with("_config") && member.key != "quantization_config" &&
            member.value.is_object()) ||
           ((member.key == "mm_vision_tower" || member.key == "img_processor") &&
            !is_off(&member.value));
  }
  bool is_of_several_parts() const {
    return std::any_of(config_.object().begin(), config_.object().end(), is_part);
  }
  std::string other_parts() const {
    std::vector<std::string> parts;
    for (const JsonValue::Member& member : config_.object())
      if (is_part(member) && member.key != part_.key) parts.push_back(member.key);
    return parts.empty() ? "nothing else" : listed(parts);
  }

  void check_divides(const Names& names, const char* what, int size, int divisor) {
    if (size % divisor == 0) return;
    const char* name = present(names);
    const std::string key = name != nullptr ? name : names.front();
    reader_->problem(key, key + " " + std::to_string(divisor) + " does not divide the " + what +
                              " " + std::to_string(size));
  }

  JsonValue& config_;
  const TextPart& part_;
  const HfFamily& family_;
  std::optional<ObjectReader> reader_;
  std::vector<std::string> defaulted_;  ///< numbers that the class supplied
  int layers_ = 1, hidden_ = 1, heads_ = 1, vocab_ = 1, sequence_ = 1, kv_heads_ = 1, ffn_ = 1;
};

Imported import_hf_config(const ImportRequest& request, const Library&) {
  Problems problems;
  JsonValue config = parse_foreign_json(read_source_or_stdin(request.inputs.front()), problems);
  if (problems.empty() && !config.is_object()) ObjectReader(config, {}, problems);
  problems.throw_if_any();
  const TextPart part = text_part_of(config);
  const HfFamily* const family = choose_family(config, part, problems);
  problems.throw_if_any();
  ConfigReader reader(config, part, *family, problems);
  const JsonValue sizes = reader.read(request.options.sequence);
  problems.throw_if_any();

  const std::string file = file_name_of(request.inputs.front());
  Imported imported;
  imported.document = object_of(
      {{"name", request.output.stem().string()},
       {"source", "HuggingFace configuration " + file + ", model_type " + family->model_type}});
  for (const JsonValue::Member& member : sizes.object())
    imported.document.set(member.key, member.value);
  JsonValue copy = imported.document;
  const Transformer model = read_transformer(copy, {}, problems);
  problems.throw_if_any();
  const double parameters = total_parameters(model);
  imported.found = object_of({{"model_type", family->model_type}, {"parameters", parameters}});
  imported.text = file + ": " + family->model_type + ", " + fixed_text(parameters / 1e9, 2) +
                  " billion parameters, " + std::to_string(model.layers) + " layers, hidden " +
                  std::to_string(model.hidden) + ", sequence " + std::to_string(model.sequence) +
                  "\n";
  imported.notes = reader.notes;
  return imported;
}

}  // namespace

namespace formats {
Importer hf_config() {
  return {"hf-config",
          "a model of HuggingFace's, to a model",
          "the config.json of a model",
          {"--sequence"},
          Importer::Files::one,
          Importer::Result::file,
          import_hf_config};
}
}  // namespace formats

}  // namespace windtunnel
