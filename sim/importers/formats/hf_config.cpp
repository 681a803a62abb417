#include <algorithm>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/file_io.hpp"
#include "core/json_build.hpp"
#include "core/json_value.hpp"
#include "core/mapped.hpp"
#include "core/object_reader.hpp"
#include "core/text_list.hpp"
#include "importers/importer.hpp"
#include "importers/log_text.hpp"
#include "importers/tables.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "workload/model_json.hpp"
#include "workload/transformer.hpp"

namespace windtunnel::formats {
namespace {

/// A model_type of HuggingFace's transformers, as tables/hf_families.json describes it; what it is like is in it.
struct HfFamily {
  std::string model_type;
  JsonValue defaults, ours;
  std::string left_out;
};

std::string string_at(const JsonValue& object, const char* key) {
  const JsonValue* value = object.find(key);
  return value != nullptr && value->is_string() ? value->string() : "";
}

/// The tables of tables/hf_families.json.
const JsonValue& hf_tables() {
  static const JsonValue tables = detail::parsed(detail::hf_table, "hf_families");
  return tables;
}

std::optional<HfFamily> named_family(const std::string& model_type) {
  const JsonValue* const said = hf_tables().find("families")->find(model_type);
  if (said == nullptr) return std::nullopt;
  HfFamily family =
      named_family(string_at(*said, "like")).value_or(HfFamily{{}, {}, empty_object(), {}});
  family.model_type = model_type;
  family.left_out = string_at(*said, "left_out");
  if (const JsonValue* const defaults = said->find("defaults")) family.defaults = *defaults;
  if (const JsonValue* const ours = said->find("ours")) merge_json(family.ours, *ours);
  return family;
}

/// Also of the part of a model of several: "qwen3_vl_text".
std::optional<HfFamily> find_hf_family(const std::string& model_type) {
  const auto family = named_family(model_type);
  return family || !model_type.ends_with("_text")
             ? family
             : named_family(model_type.substr(0, model_type.rfind('_')));
}

// As the reader of model files has them.
constexpr std::int64_t most_hidden = 1 << 20;
constexpr std::int64_t most_ffn_hidden = 16 * most_hidden;
constexpr std::int64_t most_tokens = 1 << 28;
constexpr std::int64_t most_experts = 1 << 16;
constexpr std::int64_t most_predicted = 100;

/// Names of one size in configurations; the first is said where none is there.
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
const Names* synonyms_of(const std::string& key) {
  for (const Names* names :
       {&hidden_names, &layer_names, &head_names, &vocab_names, &sequence_names, &ffn_names,
        &head_size_names, &expert_names, &chosen_names})
    if (std::ranges::find(*names, key) != names->end()) return names;
  return nullptr;
}

/// True for a value that switches its key off: absent, null, false, 0, an empty list or object.
bool is_off(const JsonValue* value) {
  if (value == nullptr || value->is_null()) return true;
  if (const bool* flag = std::get_if<bool>(&value->content)) return !*flag;
  if (value->is_array()) return value->array().empty();
  if (value->is_object()) return value->object().empty();
  const auto* number = std::get_if<std::int64_t>(&value->content);
  return number != nullptr && *number == 0;
}

/// The part of a configuration that is the decoder of text: all of it, or a member of a model of several parts.
struct TextPart {
  JsonValue* value;
  std::string key;  ///< of the member; empty: all of it
  std::string pointer() const { return key.empty() ? "" : "/" + key; }
};

/// A problem with member `key` of an object, or with the object. (A reader of the whole would move the part that it holds.)
void report(const JsonValue& object, const std::string& pointer, const std::string& key,
            std::string message, Problems& problems, std::string suggestion = {}) {
  const JsonValue* member = object.find(key);
  problems.add({(member != nullptr ? member : &object)->origin,
                member != nullptr ? pointer_join(pointer, key) : pointer, std::move(message),
                std::move(suggestion)});
}

/// The family of a configuration. None: the problems say why it cannot be simulated.
std::optional<HfFamily> choose_family(const JsonValue& config, const TextPart& part,
                                      Problems& problems) {
  std::vector<std::pair<const JsonValue*, std::string>> objects{{&config, ""}};
  if (part.value != &config) objects.emplace_back(part.value, part.pointer());
  for (const auto& [object, pointer] : objects) {
    for (const auto& [key, origin, what] : hf_tables().find("refused_keys")->object())
      if (!is_off(object->find(key)))
        report(*object, pointer, key, key + " says that this model " + what.string(), problems);
    // Types that are no decoders of text, or no stacks of like layers.
    const std::string type = string_at(*object, "model_type");
    for (const auto& [why, origin, prefixes] : hf_tables().find("refused_types")->object())
      for (const JsonValue& prefix : prefixes.array())
        if (type.starts_with(prefix.string()) && problems.empty())
          report(*object, pointer, "model_type",
                 "model_type \"" + type + "\" says that this model " + why, problems);
  }
  if (!problems.empty()) return std::nullopt;
  const std::string own = string_at(*part.value, "model_type"),
                    of_whole = string_at(config, "model_type");
  if (own.empty() && part.key.empty()) {
    report(config, "", "model_type", "no model_type: this is not the configuration of a model",
           problems, "import the config.json beside the weights");
    return std::nullopt;
  }
  // LLaVA's and others' text parts are LLaMA where they do not say what they are.
  const std::string type = !own.empty() ? own : find_hf_family(of_whole) ? of_whole : "llama";
  auto family = find_hf_family(type);
  if (!family)
    report(*part.value, part.pointer(), "model_type",
           "model_type \"" + type + "\" is not known here", problems,
           "known are " + listed(hf_tables().find("families")->object(),
                                 [](const JsonValue::Member& each) { return each.key; }));
  return family;
}

/// Reads one config.json into a model file.
class ConfigReader {
 public:
  ConfigReader(JsonValue& config, const TextPart& part, const HfFamily& family, Problems& problems)
      : config_(config), part_(part), family_(family) {
    // The class's defaults for keys that are absent. A key that is null has no default: it switches something off.
    for (const JsonValue::Member& member : family_.defaults.object()) {
      const Names* names = synonyms_of(member.key);
      const Names only{member.key.c_str()};
      if (std::ranges::any_of(names != nullptr ? *names : only,
                              [&](const char* name) { return find(name) != nullptr; }))
        continue;
      JsonValue value = member.value;
      value.origin.kind = OriginKind::defaulted;
      part_.value->set(member.key, std::move(value));
      if (member.value.is_number()) defaulted_.push_back(member.key);
    }
    reader_.emplace(*part.value, part.pointer(), problems);
  }

  /// `sequence`: as --sequence has it; 0: the configuration's.
  JsonValue read(int sequence) {
    read_sizes(sequence);
    JsonValue ours = traits();
    if (string_at(ours, "family").empty()) ours.set("family", JsonValue("llama"));
    const std::string family = string_at(ours, "family");
    const bool latent = ours.find("mla") != nullptr && is_on("kv_lora_rank");
    for (const char* key : {"gated_mlp", "rotary"})
      if (ours.find(key) == nullptr) ours.set(key, JsonValue(false));
    // The whole decides for a model of several parts.
    const JsonValue* of_whole = config_.find("tie_word_embeddings");
    const bool ties = !part_.key.empty() && of_whole != nullptr && of_whole->is_bool()
                          ? std::get<bool>(of_whole->content)
                          : reader_->optional_bool("tie_word_embeddings", false);
    const int depths = optional(
        {"num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_modules"}, most_predicted);
    const int size = latent ? 0 : optional(head_size_names, most_hidden);  // 0: hidden over heads
    const bool has_own_size = size > 0 && std::int64_t{size} * heads_ != hidden_;
    JsonValue file = object_of({{"family", family},
                                {"layers", layers_},
                                {"hidden", hidden_},
                                {"heads", heads_},
                                {"sequence", sequence_},
                                {"vocab", vocab_},
                                {"kv_heads", kv_heads_},
                                {"ffn_hidden", ffn_},
                                {"gated_mlp", *ours.find("gated_mlp")},
                                {"rotary", *ours.find("rotary")},
                                {"tied_embeddings", ties},
                                {"mtp_layers", only_if(depths > 0, depths)},
                                {"head_size", only_if(has_own_size, size)}});
    // False is the default, but for the halves of GPT-NeoX's layers, which run in parallel.
    const auto is_default = [&](const JsonValue::Member& member) {
      const bool* flag = std::get_if<bool>(&member.value.content);
      return flag != nullptr && !*flag && (member.key != "parallel_residual" || family != "neox");
    };
    for (const JsonValue::Member& member : ours.object())
      if (member.key != "family" && member.key != "moe" && member.key != "mla" &&
          file.find(member.key) == nullptr && !is_default(member))
        file.set(member.key, member.value);
    if (std::optional<JsonValue> window = read_window()) file.set("window", std::move(*window));
    if (JsonValue* moe = ours.find("moe"); present(expert_names))
      if (std::optional<JsonValue> experts = read_experts(moe))
        file.set("moe", std::move(*experts));
    if (latent) {
      // MiniCPM3 makes values as wide as the hidden size over the heads where nothing is said.
      const int value = optional({"v_head_dim"}, most_hidden);
      file.set("mla",
               object_of({{"query_rank", optional({"q_lora_rank"}, most_hidden)},
                          {"key_value_rank", required({"kv_lora_rank"}, most_hidden)},
                          {"key_size", required({"qk_nope_head_dim"}, most_hidden)},
                          {"rope_size", reader_->required_int("qk_rope_head_dim", 0, most_hidden)},
                          {"value_size", value > 0 ? value : std::max(1, hidden_ / heads_)}}));
    }
    // Variants that change sizes or work in a way that a model file cannot say.
    if (is_on("mlp_bias"))
      reader_->problem("mlp_bias", "mlp_bias adds biases to the feed-forward network, which " +
                                       family_.model_type + " models here have not");
    if (is_on("add_bias_linear"))
      reader_->problem("add_bias_linear",
                       "add_bias_linear adds biases to every product, which "
                       "chatglm models here have not");
    if (is_on("kv_lora_rank") && ours.find("mla") == nullptr)
      reader_->problem("kv_lora_rank",
                       "kv_lora_rank says that this is multi-head latent attention, which " +
                           family_.model_type + " models have not as far as is known here");
    if (latent && is_on("attention_bias"))
      notes.emplace_back("attention_bias: the biases of latent attention are left out");
    add_notes(sequence == 0);
    return file;
  }

  std::vector<std::string> notes;

 private:
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
    kv_heads_ = heads_;
    if (const std::string& type = family_.model_type; type == "chatglm") {
      if (is_on("multi_query_attention"))
        kv_heads_ = required({"multi_query_group_num"}, most_hidden);
    } else if (type == "falcon" && !is_on("new_decoder_architecture") && is_on("multi_query")) {
      kv_heads_ = 1;
    } else if (const int given =
                   optional({"num_key_value_heads", "num_kv_heads", "n_head_kv"}, most_hidden);
               given > 0) {
      kv_heads_ = given;
    }
    const bool latent = is_on("kv_lora_rank");
    if (!present(head_size_names) && !latent)
      check_divides(head_names, "hidden size", hidden_, heads_);
    check_divides({"num_key_value_heads", "multi_query_group_num", "num_kv_heads", "n_head_kv"},
                  "heads", heads_, kv_heads_);
  }

  /// The entries of a model file for the family, with the configuration's switches in it.
  JsonValue traits() {
    JsonValue resolved = empty_object();
    for (const JsonValue::Member& member : family_.ours.object()) {
      const std::string text = member.value.is_string() ? member.value.string() : "";
      if (!text.starts_with('$')) {
        resolved.set(member.key, member.value);
        continue;
      }
      // "$key": whether it is on; "$key?value": the value where it is.
      const std::size_t mark = std::min(text.find('?'), text.size());
      const bool on = is_on(text.substr(1, mark - 1).c_str());
      const std::string word = text.substr(std::min(mark + 1, text.size()));
      if (mark == text.size())
        resolved.set(member.key, JsonValue(on));
      else if (const auto number = whole_in(word); on)
        resolved.set(member.key, number ? JsonValue(*number) : JsonValue(word));
    }
    const std::string& type = family_.model_type;
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

  /// Layers of which some see only a window of the tokens before them.
  std::optional<JsonValue> read_window() {
    int size = 0, from = 0;
    double every = 1;
    if (const int dense = optional({"dense_attention_every_n_layers"}, most_layers); dense > 1) {
      // Phi-3 small: all layers but these attend to whole blocks near a token.
      size = required({"blocksparse_num_local_blocks"}, most_tokens) *
             required({"blocksparse_block_size"}, 1 << 16);
      every = dense / (dense - 1.0);
    } else {
      const JsonValue* uses = find("use_sliding_window");
      if (!is_on("sliding_window") || (uses != nullptr && is_off(uses))) return std::nullopt;
      size = required({"sliding_window"}, most_tokens);
      // By layer_types where they are given, else by a pattern or by the first layer that has a window.
      const JsonValue* types = find("layer_types");
      if (types != nullptr && types->is_array() && !types->array().empty()) {
        const auto slides = mapped(types->array(), [](const JsonValue& type) {
          return type.is_string() && type.string() == "sliding_attention";
        });
        const auto windows = std::ranges::count(slides, true);
        const auto first = std::ranges::find(slides, true) - slides.begin();
        if (windows == 0) return std::nullopt;
        if (first + windows == static_cast<std::ptrdiff_t>(slides.size()))
          from = static_cast<int>(first);
        else
          every = static_cast<double>(slides.size()) / static_cast<double>(windows);
      } else {
        // One layer in so many attends to all tokens, the others have the window.
        const int pattern =
            optional({"sliding_window_pattern", "_sliding_window_pattern"}, most_layers);
        if (pattern > 1) every = pattern / (pattern - 1.0);
        if (is_on("max_window_layers")) from = required({"max_window_layers"}, most_layers);
        if (from > 0 && from >= layers_) {
          notes.push_back("sliding_window: no layer has it, since max_window_layers " +
                          std::to_string(from) + " keeps it from the first so many of " +
                          std::to_string(layers_));
          return std::nullopt;
        }
      }
    }
    if (size >= sequence_) return std::nullopt;
    return object_of({{"size", size}, {"every", every}, {"from_layer", only_if(from > 0, from)}});
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
    // By mlp_only_layers, the numbers of layers without experts; a model file knows such layers at the front only.
    int dense = 0;
    if (const JsonValue* layers = find("mlp_only_layers"); layers != nullptr && layers->is_array())
      for (const JsonValue& layer : layers->array())
        if (!layer.is_integer() || number_of(&layer) != dense++)
          reader_->problem("mlp_only_layers",
                           "mlp_only_layers has a layer that does not follow on the ones before "
                           "it, counted from 0");
    set("dense_layers", reader_->optional_int("first_k_dense_replace", dense, 0, most_layers), 0);
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

  void add_notes(bool own_sequence) {
    if (const char* key = present(sequence_names); own_sequence && key != nullptr) {
      const bool by_class = std::ranges::find(defaulted_, key) != defaulted_.end();
      notes.push_back(
          "sequence " + std::to_string(sequence_) + " tokens: " + key +
          (by_class ? " of the configuration's class" : "") +
          ", the longest that the model takes; --sequence gives the length that you train with");
    }
    std::vector<std::string> others;
    for (const JsonValue::Member& member : config_.object()) {
      const bool is_config = member.key.ends_with("_config") && member.value.is_object() &&
                             member.key != "quantization_config";
      const bool is_vision = member.key == "mm_vision_tower" || member.key == "img_processor";
      if ((is_config || (is_vision && !is_off(&member.value))) && member.key != part_.key)
        others.push_back(member.key);
    }
    if (!part_.key.empty() || !others.empty())
      notes.push_back("the part for text alone" + (part_.key.empty() ? "" : ", " + part_.key) +
                      "; left out: " + (others.empty() ? "nothing else" : listed(others)));
    for (const auto& [key, origin, what] : hf_tables().find("uncounted_keys")->object())
      if (is_on(key.c_str()) || (!part_.key.empty() && !is_off(config_.find(key))))
        notes.push_back(key + ": " + what.string());
    if (!family_.left_out.empty())
      notes.push_back(family_.model_type + ": " + family_.left_out + " are left out");
    std::vector<std::string> of_class;
    const JsonValue* const uses_window = find("use_sliding_window");
    const bool has_no_window = uses_window != nullptr && is_off(uses_window);
    for (const std::string& key : defaulted_)
      if ((own_sequence || synonyms_of(key) != &sequence_names) &&
          !(has_no_window && key.find("window") != std::string::npos))
        of_class.push_back(key + " " + text_for_message(*find(key.c_str())));
    if (!of_class.empty())
      notes.push_back("not in the file, so as the configuration's class has it: " +
                      listed(of_class));
  }

  void check_divides(const Names& names, const char* what, int size, int divisor) {
    if (size == 1 || size % divisor == 0) return;  // 1 stands for a size that could not be read
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
  TextPart part{&config, {}};
  for (const char* key : {"llm_config", "language_config", "text_config"})
    if (JsonValue* member = config.find(key); member != nullptr && member->is_object())
      part = {member, key};
  const std::optional<HfFamily> family = choose_family(config, part, problems);
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

Importer hf_config() {
  return {"hf-config",
          "a model of HuggingFace's, to a model",
          "the config.json of a model",
          {"--sequence"},
          import_hf_config};
}

}  // namespace windtunnel::formats
