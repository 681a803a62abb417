#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "importers/importer.hpp"
#include "importers/launch_settings.hpp"

namespace windtunnel {

/// The meaning of one setting of a training program.
struct LaunchKey {
  const char* key;  ///< as LaunchSetting::key
  const char*
      pointer;  ///< of a scenario, with the keys of a model file below /model; empty: it changes nothing that is simulated
  /// Values and what they are in a scenario, as JSON; "*" is any other value, and a null translation leaves the key out. Without words the value is taken
  /// as it is, where it is not empty.
  using Words = std::vector<std::pair<const char*, const char*>>;
  Words words = {};
};

/// A scenario in the making: what a launch script says, translated.
class LaunchScenario {
 public:
  /// Sets the values of all settings that `keys` translates, and notes those that it does not know. `harmless` are beginnings of keys that change
  /// nothing that is simulated ("lr", "save").
  LaunchScenario(const ImportRequest& request, const Library& library, LaunchSettings settings,
                 const std::vector<LaunchKey>& keys, const std::vector<std::string>& harmless);

  const LaunchSettings& settings() const { return settings_; }
  /// The number at a pointer of the scenario; `fallback` where there is none.
  int at(const std::string& pointer, int fallback) const;
  /// Whether the text at a pointer of the scenario is `text`.
  bool is(const std::string& pointer, std::string_view text) const;
  bool has(const std::string& pointer) const;
  /// Tensor, pipeline and context degrees, multiplied.
  int gpus_of_replica() const;
  /// --gpus, or else what the file says (0: nothing). Throws InputError where neither does.
  int gpus(int said) const;
  void set(const std::string& pointer, JsonValue value);
  void erase(const std::string& pointer);
  void note(std::string text) { imported_.notes.push_back(std::move(text)); }
  void warn(std::string text) { imported_.warnings.push_back(std::move(text)); }

  /// Adds the stack and what follows from the rest (replicas or nodes, the schedule of several chunks, the model's vocabulary), and reads the scenario
  /// as `run` would. Throws InputError where it is none.
  Imported finish(const std::string& software, int gpus);

 private:
  void translate(const LaunchSetting& setting, const LaunchKey& key);
  void choose_model();
  void complete_model(JsonValue& model);
  void place_on(int gpus);

  const ImportRequest& request_;
  const Library& library_;
  LaunchSettings settings_;
  JsonValue tree_{JsonValue::Object{}};
  Imported imported_;
};

}  // namespace windtunnel
