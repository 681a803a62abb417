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
};

const std::vector<Architecture>& architectures() {
  static const std::vector<Architecture> table{
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
      {"llama",
       "llama",
       {"hidden_size"},
       {"num_hidden_layers"},
       {"num_attention_heads"},
       {"max_position_embeddings"},
       {"intermediate_size"},
       false,
       true,
       true},
      {"mistral",
       "llama",
       {"hidden_size"},
       {"num_hidden_layers"},
       {"num_attention_heads"},
       {"max_position_embeddings"},
       {"intermediate_size"},
       false,
       true,
       true},
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
  return table;
}

std::string quoted(const std::string& word) { return "\"" + word + "\""; }

/// Keys that say that the model is of a kind that cannot be simulated.
struct Refusal {
  const char* key;
  const char* why;
};
constexpr std::array<Refusal, 8> refusals{{
    {"num_local_experts", "a mixture of experts, which is not modelled"},
    {"num_experts", "a mixture of experts, which is not modelled"},
    {"n_routed_experts", "a mixture of experts, which is not modelled"},
    {"moe_num_experts", "a mixture of experts, which is not modelled"},
    {"kv_lora_rank", "multi-head latent attention, which is not modelled"},
    {"q_lora_rank", "multi-head latent attention, which is not modelled"},
    {"text_config", "a model of several parts (text and images), which is not modelled"},
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
    for (const Refusal& refusal : refusals)
      if (const JsonValue* value = reader_.take(refusal.key); !is_off(value))
        reader_.problem(refusal.key,
                        std::string(refusal.key) + " says that this is " + refusal.why);
    if (!reader_.problems().empty()) return false;
    const std::string type = reader_.required_string("model_type");
    std::vector<std::string> names;
    for (const Architecture& each : architectures()) {
      names.emplace_back(each.model_type);
      if (type == each.model_type) architecture_ = &each;
    }
    if (architecture_ != nullptr) return true;
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
    check_variants(model);
    check_divides(architecture_->heads, "hidden size", model.hidden, model.heads);
    check_divides({"num_key_value_heads"}, "heads", model.heads, model.kv_heads);
    return model;
  }

  const char* model_type() const { return architecture_->model_type; }
  std::vector<std::string> notes;

 private:
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

  /// Variants that change sizes or work in a way that a model file cannot say.
  void check_variants(const Transformer& model) {
    for (const char* key : {"attention_bias", "mlp_bias"})
      if (architecture_->gated_mlp && !is_off(reader_.take(key)))
        reader_.problem(key, std::string(key) + " adds biases, which the " +
                                 std::string(architecture_->family) + " family has not");
    if (!is_off(reader_.take("head_dim"))) {
      const int size = reader_.required_int("head_dim", 1, most_hidden);
      if (static_cast<std::int64_t>(size) * model.heads != model.hidden)
        reader_.problem("head_dim", "head_dim " + std::to_string(size) + " times " +
                                        std::to_string(model.heads) + " heads is not hidden size " +
                                        std::to_string(model.hidden) + ", which is not modelled");
    }
    if (!is_off(reader_.take("sliding_window")))
      notes.push_back("sliding_window: attention is counted over the whole sequence");
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
