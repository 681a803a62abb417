#include "memory/memory_correction.hpp"

#include <cmath>
#include <cstdint>
#include <utility>

#include "core/contracts.hpp"
#include "core/json_build.hpp"
#include "core/object_reader.hpp"

namespace windtunnel {

const std::vector<std::string>& memory_feature_names() {
  static const std::vector<std::string> names{
      "ln gpus",        "ln layers",        "ln hidden",         "ln heads",
      "ln tensor",      "ln pipeline",      "ln data",           "ln (1 + stage layers)",
      "ln micro_batch", "ln microbatches",  "first stage",       "last stage",
      "state share",    "activation share", "ln allocated bytes"};
  return names;
}

std::vector<double> memory_features(const MemoryInputs& inputs, const StageMemory& stage) {
  const Plan& plan = *inputs.plan;
  const double states = (stage.weights + stage.gradients + stage.optimizer) / stage.allocated;
  return {std::log(plan.num_ranks()),
          std::log(inputs.model->layers),
          std::log(inputs.model->hidden),
          std::log(inputs.model->heads),
          std::log(plan.parallel.tensor),
          std::log(plan.parallel.pipeline),
          std::log(plan.parallel.replicas()),
          std::log(1.0 + plan.stage_layers[stage.stage.index()]),
          std::log(plan.training.micro_batch),
          std::log(plan.microbatches),
          plan.has_embedding(stage.stage) ? 1.0 : 0.0,
          plan.has_head(stage.stage) ? 1.0 : 0.0,
          states,
          stage.activations / stage.allocated,
          std::log(stage.allocated / 1_B)};
}

double correction_factor(const MemoryCorrection& correction, const std::vector<double>& features) {
  const std::size_t inputs = features.size();
  WT_EXPECT(correction.mean.size() == inputs && correction.scale.size() == inputs);
  WT_EXPECT(correction.output.size() == correction.hidden.size() + 1);
  if (correction.most == 0) return 1;
  double y = correction.output.back();
  for (std::size_t unit = 0; unit < correction.hidden.size(); ++unit) {
    const std::vector<double>& weights = correction.hidden[unit];
    WT_EXPECT(weights.size() == inputs + 1);
    double sum = weights.back();
    for (std::size_t i = 0; i < inputs; ++i)
      sum += weights[i] * (features[i] - correction.mean[i]) / correction.scale[i];
    y += correction.output[unit] * std::tanh(sum);
  }
  return std::exp(correction.most * std::tanh(y / correction.most));
}

namespace {

constexpr const char* schema_name = "windtunnel/memory-correction-v1";
constexpr double largest = 1e9;
constexpr int most_rows = 1'000'000'000;

/// A list of `count` numbers; a problem, and a list of the right length, when it is something else.
std::vector<double> numbers_of(const JsonValue& value, const std::string& pointer,
                               std::size_t count, Problems& problems) {
  std::vector<double> numbers;
  bool right = value.is_array() && value.array().size() == count;
  for (std::size_t i = 0; right && i < count; ++i) {
    const std::optional<double> number = number_of(&value.array()[i]);
    right = number && std::abs(*number) <= largest;
    numbers.push_back(number.value_or(0));
  }
  if (right) return numbers;
  problems.add({value.origin, pointer,
                "is no list of " + std::to_string(count) + " numbers up to a billion",
                "take the file as calibrate --memory wrote it"});
  return std::vector<double>(count, 1);
}

std::vector<double> numbers_at(ObjectReader& reader, const char* key, std::size_t count) {
  const JsonValue* value = reader.require(key, "a list of numbers");
  if (value == nullptr) return std::vector<double>(count, 1);
  return numbers_of(*value, pointer_join(reader.pointer(), key), count, reader.problems());
}

std::vector<std::string> texts_at(ObjectReader& reader, const char* key) {
  std::vector<std::string> texts;
  const JsonValue* value = reader.require(key, "a list of names");
  if (value == nullptr) return texts;
  bool right = value->is_array();
  if (right)
    for (const JsonValue& entry : value->array()) {
      right = right && entry.is_string();
      if (right) texts.push_back(entry.string());
    }
  if (!right) reader.problem(key, std::string(key) + " is no list of names");
  return texts;
}

void read_network(ObjectReader& reader, MemoryCorrection& correction) {
  const std::size_t inputs = memory_feature_names().size();
  if (texts_at(reader, "features") != memory_feature_names() && reader.has("features"))
    reader.problem("features", "the file was trained on other features than this version has",
                   "train it again with calibrate --memory");
  correction.mean = numbers_at(reader, "mean", inputs);
  correction.scale = numbers_at(reader, "scale", inputs);
  for (const double scale : correction.scale)
    if (scale <= 0) reader.problem("scale", "a scale is not above zero");
  const JsonValue* hidden = reader.require("hidden", "a list of weights for each unit");
  if (hidden != nullptr && hidden->is_array()) {
    for (std::size_t unit = 0; unit < hidden->array().size(); ++unit)
      correction.hidden.push_back(numbers_of(
          hidden->array()[unit], pointer_join(reader.pointer(), "hidden/" + std::to_string(unit)),
          inputs + 1, reader.problems()));
  } else if (hidden != nullptr) {
    reader.problem("hidden", "hidden is no list");
  }
  if (reader.are_sound({"hidden"}) || !reader.has("output"))
    correction.output = numbers_at(reader, "output", correction.hidden.size() + 1);
  else
    reader.take("output");  // one number a hidden unit, and one more
  correction.most = reader.required_number("most", 0, 1);
}

}  // namespace

std::string memory_correction_json(const MemoryCorrection& correction) {
  JsonValue json = empty_object(), held_out = empty_object();
  held_out.set("rows", JsonValue(static_cast<std::int64_t>(correction.held_out.rows)));
  held_out.set("groups", JsonValue(static_cast<std::int64_t>(correction.held_out.groups)));
  held_out.set("analytic_mape", JsonValue(correction.held_out.analytic));
  held_out.set("corrected_mape", JsonValue(correction.held_out.corrected));
  json.set("schema", JsonValue(std::string(schema_name)));
  json.set("software", JsonValue(correction.software));
  json.set("quantity", JsonValue(correction.quantity));
  json.set("sets", array_of(correction.sets));
  json.set("held_out", std::move(held_out));
  json.set("features", array_of(memory_feature_names()));
  json.set("mean", array_of(correction.mean));
  json.set("scale", array_of(correction.scale));
  json.set("hidden", array_of(correction.hidden, [](const auto& unit) { return array_of(unit); }));
  json.set("output", array_of(correction.output));
  json.set("most", JsonValue(correction.most));
  return pretty_text(json) + "\n";
}

MemoryCorrection read_memory_correction(JsonValue& value, const std::string& pointer,
                                        Problems& problems) {
  ObjectReader reader(value, pointer, problems);
  MemoryCorrection correction;
  const std::string schema = reader.required_string("schema");
  if (schema != schema_name && reader.has("schema"))
    reader.problem("schema", "this is no memory correction that this version reads",
                   std::string("write \"") + schema_name + "\"");
  reader.take("name");  // which a scenario gives to the files that it names
  correction.software = reader.required_string("software");
  correction.quantity = reader.required_string("quantity");
  correction.sets = texts_at(reader, "sets");
  {
    ObjectReader held_out = reader.child("held_out");
    correction.held_out.rows =
        static_cast<std::size_t>(held_out.required_int("rows", 0, most_rows));
    correction.held_out.groups =
        static_cast<std::size_t>(held_out.required_int("groups", 0, most_rows));
    correction.held_out.analytic = held_out.required_number("analytic_mape", 0, largest);
    correction.held_out.corrected = held_out.required_number("corrected_mape", 0, largest);
    held_out.reject_unknown_keys();
  }
  read_network(reader, correction);
  reader.reject_unknown_keys();
  return correction;
}

}  // namespace windtunnel
