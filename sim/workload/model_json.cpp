#include "workload/model_json.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "core/file_io.hpp"
#include "units/member_reader.hpp"

namespace windtunnel {
namespace {

constexpr int most_hidden =
    1 << 20;  ///< keeps 4 * hidden and products of two sizes far from overflow
constexpr int most_sequence = 1 << 28;  ///< tokens
constexpr int most_vocab = 1 << 28;     ///< words
constexpr int most_predicted = 100;     ///< depths of multi-token prediction

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
  int near = std::min(divisor, size);
  while (size % near != 0) --near;
  reader.problem(key,
                 std::string(size_name) + " " + std::to_string(size) + " is no multiple of " +
                     std::string(key) + " " + std::to_string(divisor),
                 "use a divisor of " + std::to_string(size) + ", such as " + std::to_string(near));
  divisor = 1;
}

using Experts = Transformer::Experts;
const Names<std::string> families{
    {"gpt", "gpt"}, {"neox", "neox"}, {"bloom", "bloom"}, {"llama", "llama"}};

Transformer::Window read_window(ObjectReader reader) {
  Transformer::Window window;
  required(reader, "size", window.size, 1, most_sequence);
  defaulted(reader, "every", window.every, 1, most_layers);
  defaulted(reader, "from_layer", window.from_layer, 0, most_layers);
  reader.reject_unknown_keys();
  return window;
}

Transformer::LatentAttention read_latent_attention(ObjectReader reader) {
  Transformer::LatentAttention latent;
  defaulted(reader, "query_rank", latent.query_rank, 0, most_hidden);
  required(reader, "key_value_rank", latent.key_value_rank, 1, most_hidden);
  required(reader, "key_size", latent.key_size, 1, most_hidden);
  required(reader, "rope_size", latent.rope_size, 0, most_hidden);
  required(reader, "value_size", latent.value_size, 1, most_hidden);
  reader.reject_unknown_keys();
  return latent;
}

double value_of(const JsonValue& number) {
  if (const auto* whole = std::get_if<std::int64_t>(&number.content))
    return static_cast<double>(*whole);
  return std::get<double>(number.content);
}

/// Shares by expert; nothing of what is no list of numbers.
std::vector<double> shares_in(const JsonValue& list, const std::string& pointer,
                              Problems& problems) {
  constexpr double most_share = 1e12;
  std::vector<double> shares;
  if (!list.is_array()) return shares;
  for (std::size_t i = 0; i < list.array().size(); ++i) {
    const JsonValue& each = list.array()[i];
    if (!each.is_number()) return {};
    const double share = value_of(each);
    if (share < 0 || share > most_share)
      problems.add({each.origin, pointer_join(pointer, std::to_string(i)),
                    std::string("a share of tokens is too ") + (share < 0 ? "small" : "large"),
                    "write a number from 0 to 1e12"});
    shares.push_back(std::clamp(share, 0.0, most_share));
  }
  return shares;
}

/// A list of shares, or the path of a file that holds one, from where the path is written.
std::vector<double> read_shares(const JsonValue& value, const std::string& pointer,
                                Problems& problems) {
  if (!value.is_string()) return shares_in(value, pointer, problems);
  std::filesystem::path file = value.string();
  if (value.origin.kind == OriginKind::file && value.origin.source && file.is_relative())
    file = std::filesystem::path(value.origin.source->name).parent_path() / file;
  return shares_in(parse_json(read_source(file), problems), pointer, problems);
}

/// "balanced", "consecutive", or one of {"zipf": 0.5} and {"shares": [3, 1, …]}.
Transformer::ExpertBalance read_balance(ObjectReader& parent, int experts, int top_k) {
  constexpr double most_skew = 10;
  Transformer::ExpertBalance balance;
  const JsonValue* value = parent.take("balance");
  if (value == nullptr || (value->is_string() && value->string() == "balanced")) return balance;
  balance.consecutive = value->is_string() && value->string() == "consecutive";
  if (balance.consecutive) return balance;
  if (!value->is_object()) {
    parent.problem("balance", "is neither \"balanced\" nor \"consecutive\" nor an object",
                   R"(write "balanced", "consecutive", {"zipf": 0.5} or {"shares": [...]})");
    return balance;
  }
  ObjectReader reader = parent.child("balance");
  if (const JsonValue* shares = reader.take("shares")) {
    balance.shares = read_shares(*shares, reader.pointer() + "/shares", reader.problems());
    const auto above_zero = std::count_if(balance.shares.begin(), balance.shares.end(),
                                          [](double share) { return share > 0; });
    if (above_zero < top_k || static_cast<int>(balance.shares.size()) != experts) {
      reader.problem("shares", "expected the shares of tokens of all " + std::to_string(experts) +
                                   " experts, none below 0 and at least " + std::to_string(top_k) +
                                   " above it, since each token goes to so many");
      balance.shares.clear();
    }
  } else {
    balance.zipf = reader.required_number("zipf", 0, most_skew);
  }
  reader.reject_unknown_keys();
  return balance;
}

Experts read_experts(ObjectReader reader, int layers, bool family_has_biases) {
  Experts moe;
  moe.bias = family_has_biases;
  constexpr int most_experts = 1 << 16;
  constexpr double most_capacity = 1e6;
  required(reader, "experts", moe.experts, 1, most_experts);
  required(reader, "top_k", moe.top_k, 1, most_experts);
  required(reader, "ffn_hidden", moe.ffn_hidden, 1, 16 * most_hidden);
  defaulted(reader, "shared_ffn_hidden", moe.shared_ffn_hidden, 0, 16 * most_hidden);
  defaulted(reader, "dense_layers", moe.dense_layers, 0, most_layers);
  defaulted(reader, "every", moe.every, 1, most_layers);
  defaulted(reader, "node_limit", moe.node_limit, 0, most_experts);
  defaulted(reader, "capacity", moe.capacity, 0, most_capacity);
  defaulted(reader, "bias", moe.bias);
  defaulted(reader, "router_bias", moe.router_bias);
  defaulted(reader, "shared_gate", moe.shared_gate);
  moe.balance = read_balance(reader, moe.experts, moe.top_k);
  reader.reject_unknown_keys();
  if (moe.top_k > moe.experts && reader.are_sound({"top_k", "experts"})) {
    reader.problem("top_k", "a token cannot go to " + std::to_string(moe.top_k) + " of " +
                                std::to_string(moe.experts) + " experts");
    moe.top_k = moe.experts;
  }
  if (moe.dense_layers >= layers && reader.are_sound({"dense_layers"})) {
    reader.problem("dense_layers", "dense_layers " + std::to_string(moe.dense_layers) +
                                       " leaves none of the model's " + std::to_string(layers) +
                                       " layers to the experts");
    moe.dense_layers = 0;
  }
  return moe;
}

/// true and "heads" mean the same.
QueryKeyNorm read_qk_norm(ObjectReader& reader) {
  const JsonValue* value = reader.take("qk_norm");
  if (value == nullptr || !value->is_string())
    return reader.optional_bool("qk_norm", false) ? QueryKeyNorm::heads : QueryKeyNorm::none;
  return reader.required_enum<QueryKeyNorm>(
      "qk_norm", {{"heads", QueryKeyNorm::heads}, {"width", QueryKeyNorm::width}});
}

/// Norms, biases and the order of a layer's halves.
void read_layer(ObjectReader& reader, Transformer& model) {
  defaulted(reader, "qkv_bias", model.qkv_bias);
  given(reader, "projection_bias", model.projection_bias);
  given(reader, "norm_bias", model.norm_bias);
  defaulted(reader, "attention_sinks", model.attention_sinks);
  model.qk_norm = read_qk_norm(reader);
  // GPT-NeoX's use_parallel_residual is true by default: GPTNeoXConfig of transformers, models/gpt_neox/configuration_gpt_neox.py.
  // Layers with experts have no parallel halves.
  model.parallel_residual = reader.optional_bool(
      "parallel_residual", model.family == "neox" && reader.take("moe") == nullptr);
  model.norms = reader.optional_int("norms", 2, 1, 4);
  if (model.norms == 3 || (model.norms == 1 && !model.parallel_residual)) {
    reader.problem("norms",
                   model.norms == 3 ? "a layer has 1, 2 or 4 norms, not 3"
                                    : "a layer has 1 norm only where its halves share it",
                   "write 2, one before each half; 4, with one behind each; or 1 and "
                   "\"parallel_residual\": true");
    model.norms = 2;
  }
}

}  // namespace

Transformer read_transformer(JsonValue& value, const std::string& pointer, Problems& problems) {
  ObjectReader reader(value, pointer, problems);
  Transformer model;
  if (reader.written("hidden") == nullptr &&
      (reader.written("architectures") != nullptr || reader.written("model_type") != nullptr))
    reader.reject_kind("this is a model's configuration of Hugging Face, not a model",
                       "windtunnel import hf-config CONFIG.json -o MODEL.json makes one of it");
  read_label(reader, model);
  defaulted(reader, "family", model.family, families);
  required(reader, "layers", model.layers, 1, most_layers);
  required(reader, "hidden", model.hidden, 1, most_hidden);
  required(reader, "heads", model.heads, 1, most_hidden);
  required(reader, "sequence", model.sequence, 1, most_sequence);
  required(reader, "vocab", model.vocab, 1, most_vocab);
  model.kv_heads = model.heads;
  model.ffn_hidden = 4 * model.hidden;
  defaulted(reader, "kv_heads", model.kv_heads, 1, most_hidden);
  defaulted(reader, "ffn_hidden", model.ffn_hidden, 1, 16 * most_hidden);
  defaulted(reader, "gated_mlp", model.gated_mlp);
  defaulted(reader, "tied_embeddings", model.tied_embeddings);
  defaulted(reader, "rotary", model.rotary);
  defaulted(reader, "vocab_divisor", model.vocab_divisor, 1, most_vocab);
  given(reader, "head_size", model.given_head_size, 1, most_hidden);
  read_layer(reader, model);
  if (reader.take("window") != nullptr) model.window = read_window(reader.child("window"));
  if (reader.take("moe") != nullptr)
    model.moe = read_experts(reader.child("moe"), model.layers, model.has_biases());
  if (model.moe && model.parallel_residual) {
    reader.problem("parallel_residual",
                   "layers with experts wait for attention: their halves are not parallel",
                   "write \"parallel_residual\": false");
    model.parallel_residual = false;
  }
  defaulted(reader, "mtp_layers", model.mtp_layers, 0, most_predicted);
  if (reader.take("mla") != nullptr) model.mla = read_latent_attention(reader.child("mla"));
  reader.reject_unknown_keys();
  if (!reader.has("head_size") && !model.mla && reader.are_sound({"heads", "hidden"}))
    check_divides(reader, "heads", model.hidden, "hidden", model.heads);
  if (reader.are_sound({"kv_heads", "heads"}))
    check_divides(reader, "kv_heads", model.heads, "heads", model.kv_heads);
  return model;
}

}  // namespace windtunnel
