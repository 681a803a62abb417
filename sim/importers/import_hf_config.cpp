#include <algorithm>
#include <array>
#include <optional>

#include "core/contracts.hpp"
#include "core/file_io.hpp"
#include "core/object_reader.hpp"
#include "importers/importer.hpp"
#include "report/number_text.hpp"
#include "workload/model_json.hpp"
#include "workload/transformer.hpp"

namespace windtunnel {
namespace {

// As the reader of model files has them.
constexpr std::int64_t most_layers = 100'000;
constexpr std::int64_t most_hidden = 1 << 20;
constexpr std::int64_t most_ffn_hidden = 16 * most_hidden;
constexpr std::int64_t most_tokens = 1 << 28;

/// What one architecture calls its sizes, and what it implies. Defaults are those of the
/// configuration classes in HuggingFace's transformers, for configurations leave them out.
struct Architecture {
  const char* model_type;
  const char* family;
  std::vector<const char*> hidden, layers, heads, sequence, ffn;  ///< keys, the first that is there
  bool tied_embeddings;                                           ///< default
  bool rotary, gated_mlp;
  bool qkv_bias = false, qk_norm = false;  ///< where no key says so
  double window_every = 1;  ///< one layer in so many has the window that sliding_window gives
  const char* uses_window = nullptr;  ///< key without which sliding_window means nothing
  const char* experts = nullptr;      ///< key of how many a layer has
  const char* expert_ffn = "moe_intermediate_size";
  const char* shared_ffn =
      nullptr;  ///< key of the width of all shared experts together; else they are counted
  bool has_latent_attention = false;
};

/// The keys of the many that are laid out as LLaMA is.
Architecture like_llama(const char* model_type, bool tied_embeddings = false) {
  return {model_type,
          "llama",
          {"hidden_size"},
          {"num_hidden_layers"},
          {"num_attention_heads"},
          {"max_position_embeddings"},
          {"intermediate_size"},
          tied_embeddings,
          true,
          true};
}

std::vector<Architecture> older_architectures() {
  return {
      {"gpt2",
       "gpt",
       {"n_embd", "hidden_size"},
       {"n_layer", "num_hidden_layers"},
       {"n_head", "num_attention_heads"},
       {"n_positions", "n_ctx", "max_position_embeddings"},
       {"n_inner"},
       true,
       false,
       false},
      {"gpt_neox",
       "neox",
       {"hidden_size"},
       {"num_hidden_layers"},
       {"num_attention_heads"},
       {"max_position_embeddings"},
       {"intermediate_size"},
       false,
       true,
       false},
      {"bloom",
       "bloom",
       {"hidden_size", "n_embed"},
       {"n_layer", "num_hidden_layers"},
       {"n_head", "num_attention_heads"},
       {"seq_length"},
       {},
       true,
       false,
       false},
  };
}

std::vector<Architecture> made_architectures() {
  Architecture qwen2 = like_llama("qwen2");
  qwen2.qkv_bias = true;
  qwen2.uses_window = "use_sliding_window";
  Architecture qwen3 = like_llama("qwen3");
  qwen3.qk_norm = true;
  qwen3.uses_window = "use_sliding_window";
  Architecture gemma2 = like_llama("gemma2", true), gemma3 = like_llama("gemma3_text", true);
  gemma2.window_every = 2;
  gemma3.window_every = 6.0 / 5;
  gemma3.qk_norm = true;
  Architecture qwen2_moe = qwen2, qwen3_moe = qwen3;
  qwen2_moe.model_type = "qwen2_moe";
  qwen3_moe.model_type = "qwen3_moe";
  qwen2_moe.experts = qwen3_moe.experts = "num_experts";
  qwen2_moe.shared_ffn = "shared_expert_intermediate_size";
  Architecture mixtral = like_llama("mixtral"), gpt_oss = like_llama("gpt_oss"),
               deepseek = like_llama("deepseek_v3");
  mixtral.experts = gpt_oss.experts = "num_local_experts";
  mixtral.expert_ffn = gpt_oss.expert_ffn = "intermediate_size";
  gpt_oss.qkv_bias = true;
  gpt_oss.window_every = 2;
  deepseek.experts = "n_routed_experts";
  deepseek.has_latent_attention = true;
  Architecture deepseek_v2 = deepseek, kimi = deepseek;
  deepseek_v2.model_type = "deepseek_v2";
  kimi.model_type = "kimi_k2";
  std::vector<Architecture> all = older_architectures();
  all.insert(all.end(),
             {like_llama("llama"), like_llama("mistral"), like_llama("phi3"), qwen2, qwen3, gemma2,
              gemma3, mixtral, qwen2_moe, qwen3_moe, gpt_oss, deepseek_v2, deepseek, kimi});
  return all;
}

const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> table = made_architectures();
  return table;
}

std::string quoted(const std::string& word) { return "\"" + word + "\""; }

/// Keys that say that the model is of a kind that cannot be simulated.
struct Refusal {
  const char* key;
  const char* why;
};
constexpr std::array<Refusal, 8> refusals{{
    {"num_local_experts", "a mixture of experts, whose keys are not known here"},
    {"num_experts", "a mixture of experts, whose keys are not known here"},
    {"n_routed_experts", "a mixture of experts, whose keys are not known here"},
    {"moe_num_experts", "a mixture of experts, whose keys are not known here"},
    {"kv_lora_rank", "multi-head latent attention, whose keys are not known here"},
    {"q_lora_rank", "multi-head latent attention, whose keys are not known here"},
    {"text_config",
     "a model of several parts (text and images), which is not modelled; import what text_config "
     "holds, as a file of its own, for its text part"},
    {"is_encoder_decoder", "an encoder and a decoder, which is not modelled"},
}};

/// True for a value that switches its key off: absent, null, false, 0.
bool is_off(const JsonValue* value) {
  if (value == nullptr || value->is_null()) return true;
  if (const bool* flag = std::get_if<bool>(&value->content)) return !*flag;
  const auto* number = std::get_if<std::int64_t>(&value->content);
  return number != nullptr && *number == 0;
}

/// Reads one config.json. Keys that do not change sizes are none of its business.
class ConfigReader {
 public:
  ConfigReader(JsonValue& config, Problems& problems) : reader_(config, {}, problems) {}

  /// False: a problem says why the model cannot be imported.
  bool choose_architecture() {
    const JsonValue* const given = reader_.take("model_type");
    std::vector<std::string> names;
    for (const Architecture& each : architectures()) {
      names.emplace_back(each.model_type);
      if (given != nullptr && given->is_string() && given->string() == each.model_type)
        architecture_ = &each;
    }
    for (const Refusal& refusal : refusals)
      if (const JsonValue* value = reader_.take(refusal.key); !is_off(value) && !knows(refusal.key))
        reader_.problem(refusal.key,
                        std::string(refusal.key) + " says that this is " + refusal.why);
    if (!reader_.problems().empty()) return false;
    if (architecture_ != nullptr) return true;
    const std::string type = reader_.required_string("model_type");
    std::string list;
    for (const std::string& name : names) list += (list.empty() ? "" : ", ") + name;
    if (reader_.has("model_type"))
      reader_.problem("model_type", "model_type " + quoted(type) + " is not known here",
                      "known are " + list);
    return false;
  }

  Transformer read(int sequence) {
    Transformer model;
    model.family = architecture_->family;
    model.layers = required(architecture_->layers, most_layers);
    model.hidden = required(architecture_->hidden, most_hidden);
    model.heads = required(architecture_->heads, most_hidden);
    model.vocab = reader_.required_int("vocab_size", 1, most_tokens);
    model.sequence = sequence > 0 ? sequence : read_sequence();
    model.kv_heads = reader_.optional_int("num_key_value_heads", model.heads, 1, most_hidden);
    model.ffn_hidden = read_ffn(model.hidden);
    model.gated_mlp = architecture_->gated_mlp;
    model.rotary = architecture_->rotary;
    model.tied_embeddings =
        reader_.optional_bool("tie_word_embeddings", architecture_->tied_embeddings);
    read_attention(model);
    check_variants(model);
    if (architecture_->experts != nullptr && !is_off(reader_.take(architecture_->experts)))
      model.moe = read_experts();
    if (architecture_->has_latent_attention) model.mla = read_latent_attention();
    if (model.given_head_size == 0 && !model.mla)
      check_divides(architecture_->heads, "hidden size", model.hidden, model.heads);
    check_divides({"num_key_value_heads"}, "heads", model.heads, model.kv_heads);
    return model;
  }

  const char* model_type() const { return architecture_->model_type; }
  std::vector<std::string> notes;

 private:
  /// Whether the architecture has keys for what the key says.
  bool knows(const std::string& key) const {
    if (architecture_ == nullptr) return false;
    const bool latent = key == "kv_lora_rank" || key == "q_lora_rank";
    return latent ? architecture_->has_latent_attention
                  : architecture_->experts != nullptr && key == architecture_->experts;
  }

  Transformer::Experts read_experts() {
    constexpr int most_experts = 1 << 16;
    Transformer::Experts moe;
    moe.experts = reader_.required_int(architecture_->experts, 1, most_experts);
    const char* chosen =
        reader_.has("experts_per_token") ? "experts_per_token" : "num_experts_per_tok";
    moe.top_k = reader_.required_int(chosen, 1, most_experts);
    moe.ffn_hidden = reader_.required_int(architecture_->expert_ffn, 1, most_ffn_hidden);
    moe.shared_ffn_hidden =
        architecture_->shared_ffn != nullptr
            ? reader_.optional_int(architecture_->shared_ffn, 0, 0, most_ffn_hidden)
            : moe.ffn_hidden * reader_.optional_int("n_shared_experts", 0, 0, most_experts);
    moe.dense_layers =
        reader_.optional_int("first_k_dense_replace", first_dense_layers(), 0, most_layers);
    const char* every = reader_.has("moe_layer_freq") ? "moe_layer_freq" : "decoder_sparse_step";
    moe.every = reader_.optional_int(every, 1, 1, most_layers);
    // Experts in groups, of which a token takes some: one group a node, as these models are trained.
    if (reader_.optional_int("n_group", 1, 1, most_experts) > 1)
      moe.node_limit = reader_.optional_int("topk_group", 0, 0, most_experts);
    return moe;
  }

  /// By mlp_only_layers, the numbers of layers without experts; a model file knows such layers at the front only.
  int first_dense_layers() {
    const JsonValue* layers = reader_.take("mlp_only_layers");
    if (layers == nullptr || !layers->is_array()) return 0;
    std::int64_t count = 0;
    for (const JsonValue& layer : layers->array()) {
      const auto* number = std::get_if<std::int64_t>(&layer.content);
      if (number == nullptr || *number != count)
        reader_.problem("mlp_only_layers",
                        "mlp_only_layers has a layer that does not follow on the ones before it, "
                        "counted from 0");
      ++count;
    }
    return static_cast<int>(count);
  }

  Transformer::LatentAttention read_latent_attention() {
    Transformer::LatentAttention latent;
    if (!is_off(reader_.take("q_lora_rank")))
      latent.query_rank = reader_.required_int("q_lora_rank", 1, most_hidden);
    latent.key_value_rank = reader_.required_int("kv_lora_rank", 1, most_hidden);
    latent.key_size = reader_.required_int("qk_nope_head_dim", 1, most_hidden);
    latent.rope_size = reader_.required_int("qk_rope_head_dim", 0, most_hidden);
    latent.value_size = reader_.required_int("v_head_dim", 1, most_hidden);
    return latent;
  }

  std::optional<const char*> present(const std::vector<const char*>& keys) {
    for (const char* key : keys)
      if (reader_.has(key)) return key;
    return std::nullopt;
  }

  int required(const std::vector<const char*>& keys, std::int64_t most) {
    return reader_.required_int(present(keys).value_or(keys.front()), 1, most);
  }

  int read_sequence() {
    if (const auto key = present(architecture_->sequence))
      return reader_.required_int(*key, 1, most_tokens);
    reader_.problem("",
                    "the configuration does not say the sequence length: " +
                        std::string(architecture_->sequence.front()) + " is missing",
                    "give it as --sequence 2048");
    return 1;
  }

  int read_ffn(int hidden) {
    if (const auto key = present(architecture_->ffn))
      return reader_.required_int(*key, 1, most_ffn_hidden);
    if (architecture_->gated_mlp)
      return reader_.required_int("intermediate_size", 1, most_ffn_hidden);
    return 4 * hidden;
  }

  /// Head size, biases, norms and windows.
  void read_attention(Transformer& model) {
    if (!is_off(reader_.take("head_dim")))
      model.given_head_size = reader_.required_int("head_dim", 1, most_hidden);
    model.qk_norm = architecture_->qk_norm;
    if (architecture_->gated_mlp)
      model.qkv_bias = reader_.optional_bool("attention_bias", architecture_->qkv_bias);
    const char* uses = architecture_->uses_window;
    if (is_off(reader_.take("sliding_window")) || (uses != nullptr && is_off(reader_.take(uses))))
      return;
    Transformer::Window window;
    window.size = reader_.required_int("sliding_window", 1, most_tokens);
    window.every = window_every();
    if (window.size < model.sequence) model.window = window;
  }

  /// By layer_types where they are given ("sliding_attention", "full_attention"), else as the architecture has it.
  double window_every() {
    const JsonValue* types = reader_.take("layer_types");
    if (types == nullptr || !types->is_array()) return architecture_->window_every;
    const auto slides = [](const JsonValue& type) {
      return type.is_string() && type.string() == "sliding_attention";
    };
    const auto windows = std::count_if(types->array().begin(), types->array().end(), slides);
    if (windows == 0) return static_cast<double>(most_layers);
    return static_cast<double>(types->array().size()) / static_cast<double>(windows);
  }

  /// Variants that change sizes or work in a way that a model file cannot say.
  void check_variants(const Transformer& model) {
    if (architecture_->gated_mlp && !is_off(reader_.take("mlp_bias")))
      reader_.problem("mlp_bias", "mlp_bias adds biases, which the " +
                                      std::string(architecture_->family) + " family has not");
    if (!is_off(reader_.take("num_nextn_predict_layers")))
      notes.push_back(
          "num_nextn_predict_layers: the layers of multi-token prediction are left out");
    if (!is_off(reader_.take("rope_scaling")))
      notes.push_back("rope_scaling: the sequence is that of the configuration, " +
                      std::to_string(model.sequence) + " tokens; --sequence gives another");
  }

  void check_divides(const std::vector<const char*>& keys, const char* what, int size,
                     int divisor) {
    if (size % divisor == 0) return;
    const std::string key = present(keys).value_or(keys.front());
    reader_.problem(key, key + " " + std::to_string(divisor) + " does not divide the " + what +
                             " " + std::to_string(size));
  }

  ObjectReader reader_;
  const Architecture* architecture_ = nullptr;
};

void set_number(JsonValue& object, const char* key, int value) {
  object.set(key, JsonValue(std::int64_t{value}));
}

JsonValue experts_json(const Transformer::Experts& moe) {
  JsonValue object(JsonValue::Object{});
  set_number(object, "experts", moe.experts);
  set_number(object, "top_k", moe.top_k);
  set_number(object, "ffn_hidden", moe.ffn_hidden);
  if (moe.shared_ffn_hidden > 0) set_number(object, "shared_ffn_hidden", moe.shared_ffn_hidden);
  if (moe.dense_layers > 0) set_number(object, "dense_layers", moe.dense_layers);
  if (moe.every > 1) set_number(object, "every", moe.every);
  if (moe.node_limit > 0) set_number(object, "node_limit", moe.node_limit);
  return object;
}

JsonValue latent_json(const Transformer::LatentAttention& latent) {
  JsonValue object(JsonValue::Object{});
  set_number(object, "query_rank", latent.query_rank);
  set_number(object, "key_value_rank", latent.key_value_rank);
  set_number(object, "key_size", latent.key_size);
  set_number(object, "rope_size", latent.rope_size);
  set_number(object, "value_size", latent.value_size);
  return object;
}

JsonValue model_json(const Transformer& model, const std::string& source) {
  const auto number = [](int value) { return JsonValue(std::int64_t{value}); };
  JsonValue file(JsonValue::Object{});
  file.set("name", JsonValue(model.name));
  file.set("source", JsonValue(source));
  file.set("family", JsonValue(model.family));
  file.set("layers", number(model.layers));
  file.set("hidden", number(model.hidden));
  file.set("heads", number(model.heads));
  file.set("sequence", number(model.sequence));
  file.set("vocab", number(model.vocab));
  file.set("kv_heads", number(model.kv_heads));
  file.set("ffn_hidden", number(model.ffn_hidden));
  file.set("gated_mlp", JsonValue(model.gated_mlp));
  file.set("tied_embeddings", JsonValue(model.tied_embeddings));
  file.set("rotary", JsonValue(model.rotary));
  if (model.given_head_size > 0 && model.given_head_size * model.heads != model.hidden)
    file.set("head_size", number(model.given_head_size));
  if (model.qkv_bias) file.set("qkv_bias", JsonValue(true));
  if (model.qk_norm) file.set("qk_norm", JsonValue(true));
  if (model.moe) file.set("moe", experts_json(*model.moe));
  if (model.mla) file.set("mla", latent_json(*model.mla));
  if (model.window) {
    JsonValue window(JsonValue::Object{});
    window.set("size", number(model.window->size));
    window.set("every", JsonValue(model.window->every));
    file.set("window", std::move(window));
  }
  return file;
}

}  // namespace

Imported import_hf_config(const ImportRequest& request, const Library&) {
  Problems problems;
  JsonValue config = parse_json(read_source_or_stdin(request.inputs.front()), problems);
  problems.throw_if_any();
  ConfigReader reader(config, problems);
  if (!reader.choose_architecture()) problems.throw_if_any();
  Transformer model = reader.read(request.options.sequence);
  problems.throw_if_any();
  model.name = request.output.stem().string();

  const std::string file = file_name_of(request.inputs.front());
  Imported imported;
  imported.document = model_json(model, std::string("HuggingFace configuration ") + file +
                                            ", model_type " + reader.model_type());
  JsonValue copy = imported.document;
  const Transformer read = read_transformer(copy, {}, problems);
  WT_ENSURE(problems.empty());
  const double parameters = total_parameters(read);
  imported.found.set("model_type", JsonValue(std::string(reader.model_type())));
  imported.found.set("parameters", JsonValue(parameters));
  imported.text = file + ": " + reader.model_type() + ", " + fixed_text(parameters / 1e9, 2) +
                  " billion parameters, " + std::to_string(model.layers) + " layers, hidden " +
                  std::to_string(model.hidden) + ", sequence " + std::to_string(model.sequence) +
                  "\n";
  imported.notes = reader.notes;
  return imported;
}

}  // namespace windtunnel
