#include "importers/hf_families.hpp"

#include <utility>

namespace windtunnel {

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

namespace {

constexpr const char* encoder_and_decoder = "has an encoder and a decoder, which is not modelled";
constexpr const char* encoder =
    "is an encoder, whose tokens see those behind them too; only decoders are modelled";
constexpr const char* image_encoder = "is an encoder of images; only decoders of text are modelled";
constexpr const char* state_space = "has layers of state spaces (Mamba), which are not modelled";
constexpr const char* linear = "has layers of linear attention, which are not modelled";

}  // namespace

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

}  // namespace windtunnel
