#pragma once

#include <string>
#include <string_view>
#include <utility>

#include "importers/importer.hpp"
#include "importers/launch_settings.hpp"
#include "importers/tables.hpp"
#include "report/json_object.hpp"

namespace windtunnel {

/// A scenario in the making: what a launch script says, translated.
class LaunchScenario {
 public:
  /// Sets the values of all settings that the table translates, and notes those that it does not know. Its "keys" have a pointer of the scenario for
  /// LaunchSetting::key, with the keys of a model file below /model; an empty one changes nothing that is simulated. The value is taken as it is, where it is
  /// not empty, or is one of the words below the pointer:
  ///
  ///   {"seq-length": "/model/sequence", "cp-comm-type": {"/parallel/context_method": {"p2p": "ring", "a2a": "all_to_all"}}}
  ///
  /// "*" is any other word; "on" any but false, which is "off". Null leaves the key out. "harmless" has beginnings of keys that change nothing
  /// that is simulated ("lr", "save").
  LaunchScenario(const ImportRequest& request, const Library& library, LaunchSettings settings,
                 const detail::Asset& table);

  const LaunchSettings& settings() const { return settings_; }
  std::string text(std::string_view key) const { return settings_.text(key); }
  int number(std::string_view key) const { return settings_.number(key); }
  bool is_on(std::string_view key) const { return settings_.is_on(key); }
  /// The number at a pointer of the scenario; `fallback` where there is none.
  int at(const std::string& pointer, int fallback) const;
  /// Whether the text at a pointer of the scenario is `text`.
  bool is(const std::string& pointer, std::string_view text) const;
  bool has(const std::string& pointer) const;
  /// Whether the model has experts, also where --model names it.
  bool has_experts() const;
  /// Tensor, pipeline and context degrees, multiplied.
  int gpus_of_replica() const;
  /// --gpus, or else what the file says (0: nothing). Throws InputError where neither does.
  int gpus(int said) const;
  /// Of the base's nodes; 0 where they differ.
  int gpus_per_node() const;
  template <class Value>
  void set(const std::string& pointer, const Value& value) {
    set_at(tree_, pointer, json_of(value));
  }
  /// Sets what the settings do not say.
  template <class Value>
  void set_default(const std::string& pointer, const Value& value) {
    if (!has(pointer)) set(pointer, value);
  }
  void erase(const std::string& pointer);
  void note(std::string text) { imported_.notes.push_back(std::move(text)); }
  void warn(std::string text) { imported_.warnings.push_back(std::move(text)); }

  /// Adds the stack, with what was set below /software laid over it, and what follows from the rest (replicas or nodes, the schedule of several chunks, the model's vocabulary), and reads the scenario
  /// as `run` would. Throws InputError where it is none.
  Imported finish(const std::string& software, int gpus);

 private:
  void translate(const LaunchSetting& setting, const JsonValue& meaning);
  /// Says that a value holds a "${…}" that could not be evaluated.
  void note_open(const LaunchSetting& setting, const JsonValue& meaning);
  void choose_model();
  void complete_model(JsonValue& model);
  void place_on(int gpus);

  const ImportRequest& request_;
  const Library& library_;
  LaunchSettings settings_;
  JsonValue tree_{JsonValue::Object{}};
  Imported imported_;
};

/// The scenario of settings that have Megatron-LM's names: its own options, and the `model` block of NeMo. `software` is the stack, unless
/// --deepspeed says that it is Megatron-DeepSpeed.
Imported megatron_scenario(const ImportRequest& request, const Library& library,
                           LaunchSettings settings, std::string software);

}  // namespace windtunnel
