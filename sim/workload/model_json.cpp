#include "workload/model_json.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core/object_reader.hpp"

namespace windtunnel {
namespace {

constexpr std::int64_t most_layers = 100'000;
constexpr std::int64_t most_hidden =
    1 << 20;  ///< keeps 4 * hidden and products of two sizes far from overflow
constexpr std::int64_t most_sequence = 1 << 28;  ///< tokens
constexpr std::int64_t most_vocab = 1 << 28;     ///< words

/// Takes the keys that describe the file and not the model.
void read_label(ObjectReader& reader, Transformer& model) {
  reader.take("$schema");
  if (reader.has("source")) reader.required_text("source");
  if (reader.has("name")) model.name = reader.required_string("name");
}

/// A problem at `key` and the stand-in `divisor` = 1 where `size` is no multiple of `divisor`.
void check_divides(ObjectReader& reader, std::string_view key, int size, std::string_view size_name,
                   int& divisor) {
  if (size % divisor == 0) return;
  reader.problem(key, std::string(size_name) + " " + std::to_string(size) + " is no multiple of " +
                          std::string(key) + " " + std::to_string(divisor));
  divisor = 1;
}

}  // namespace

Transformer read_transformer(JsonValue& value, const std::string& pointer, Problems& problems) {
  ObjectReader reader(value, pointer, problems);
  Transformer model;
  read_label(reader, model);
  model.family = reader.optional_enum<std::string>(
      "family", "gpt", {{"gpt", "gpt"}, {"neox", "neox"}, {"bloom", "bloom"}, {"llama", "llama"}});
  model.layers = reader.required_int("layers", 1, most_layers);
  model.hidden = reader.required_int("hidden", 1, most_hidden);
  model.heads = reader.required_int("heads", 1, most_hidden);
  model.sequence = reader.required_int("sequence", 1, most_sequence);
  model.vocab = reader.required_int("vocab", 1, most_vocab);
  model.kv_heads = reader.optional_int("kv_heads", model.heads, 1, most_hidden);
  model.ffn_hidden = reader.optional_int("ffn_hidden", 4 * model.hidden, 1, 16 * most_hidden);
  model.gated_mlp = reader.optional_bool("gated_mlp", false);
  model.tied_embeddings = reader.optional_bool("tied_embeddings", true);
  model.rotary = reader.optional_bool("rotary", false);
  model.vocab_divisor = reader.optional_int("vocab_divisor", 128, 1, most_vocab);
  reader.reject_unknown_keys();
  if (reader.are_sound({"heads", "hidden"}))
    check_divides(reader, "heads", model.hidden, "hidden", model.heads);
  if (reader.are_sound({"kv_heads", "heads"}))
    check_divides(reader, "kv_heads", model.heads, "heads", model.kv_heads);
  return model;
}

}  // namespace windtunnel
