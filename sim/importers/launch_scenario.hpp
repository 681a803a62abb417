#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/json_value.hpp"
#include "core/problem.hpp"
#include "importers/importer.hpp"
#include "importers/tables.hpp"
#include "report/json_object.hpp"

namespace windtunnel {

/// "num_layers" of "--num_layers" and "++num_layers".
std::string without_dashes(std::string_view text);
/// "num-layers" of "num_layers", "--num-layers" and "++num-layers".
std::string launch_key(std::string_view text);

/// One setting of a training run as its launch script or configuration says it.
struct LaunchSetting {
  std::string written;  ///< its name in the file, without_dashes(): "num_layers"
  std::string value;  ///< as text; empty where a switch has none, and where the file leaves it open
  int line = 0;
  std::string key = launch_key(written);  ///< "num-layers", "trainer.num-nodes"
  bool lacks_value = false;  ///< another option follows, or none, where a script gives it

  /// Prefix of the keys of a launcher's own options (srun, mpirun, #SBATCH), which say how a program is started.
  static constexpr const char* launcher = "launcher-";
  bool is_of_launcher() const { return key.starts_with(launcher); }
  void drop_beginning(std::size_t length) {
    written.erase(0, length);
    key.erase(0, length);
  }
};

/// A test of a script whose outcome cannot be known without running it: of a file, or of what a command prints. It is taken as false.
struct LaunchTest {
  int line = 0;
  std::string text;            ///< "$(nvidia-smi) == *H100*", "-f data.json"
  std::string variable;        ///< that holds the unknown value; empty: none
  std::set<std::string> keys;  ///< of settings that are others where it is true
};

/// A variable of a script whose value cannot be known without running it, as that of N=$(nproc).
struct LaunchVariable {
  std::string name;
  int line = 0;                ///< of the assignment
  bool is_word = true;         ///< and no list of options
  std::set<std::string> keys;  ///< of settings that cannot be known because of it
};

/// True if `text` has a part that cannot be known: "${…}", or "$(…)", which is what a command prints.
bool is_unknown(std::string_view text);

/// All settings of a file, in its order; of a key that comes twice, the last one counts.
struct LaunchSettings {
  std::vector<LaunchSetting> settings;
  std::vector<std::string> notes;  ///< parts of the file that could not be followed
  std::string program = {};        ///< "pretrain_gpt.py", of a script that starts one
  std::vector<LaunchTest> tests = {};
  std::vector<LaunchVariable> variables = {};

  /// The last setting of `key`; null: none.
  const LaunchSetting* find(std::string_view key) const;
  /// Its value; empty where there is none.
  std::string text(std::string_view key) const;
  /// The number that it begins with; 0 where there is none.
  int number(std::string_view key) const;
  /// True if it is given, as a switch or with a value that is not false.
  bool is_on(std::string_view key) const;
};

/// The settings of a shell script that starts a training program: the options of that program and of its launcher (torchrun, srun, deepspeed), and
/// key=value arguments as Hydra takes them.
///
///   TP=${TP:-8}
///   ARGS="--tensor-model-parallel-size $TP --bf16"
///   torchrun --nproc_per_node 8 pretrain_gpt.py $ARGS
///
/// gives nproc-per-node 8, tensor-model-parallel-size 8, bf16. The script is read, never run: assignments, arrays, `${X:-default}`, `$((…))`, here
/// documents, `if`, `case`, loops up to the turn that starts a program, and `shift` are followed. What a command prints is unknown: "$(nvidia-smi)" stands for it. Positional parameters and the environment
/// are empty, but for those that `arguments` gives as the script would be called: "NNODES=4 cluster 7B"; such a variable also takes the place of an unknown value that the script gives it. Of several programs, the one with the most settings of its own counts. Options of `#SBATCH`, and of the
/// srun or mpirun that starts the program, are settings launcher-nodes, launcher-gpus-per-node, launcher-ntasks ("mpirun -np 64"), ….
LaunchSettings read_launch_script(const SourceText& source, const std::string& arguments = {});

/// The leaves of a configuration, keys joined with dots. Of YAML the part that configurations use: maps, scalars, lists of scalars on a line;
/// `${a.b}` and `${multiply:2,${.c}}` of OmegaConf are evaluated; where that cannot be done the value stays as it is written, with its "${". `arguments` says what `${TP}` is: "TP=8".
LaunchSettings read_yaml_settings(const SourceText& source, const std::string& arguments = {});
/// InputError where it is no TOML.
LaunchSettings read_toml_settings(const std::shared_ptr<const SourceText>& source);
LaunchSettings read_json_settings(const JsonValue& document);

/// A scenario in the making: what a launch script says, translated.
class LaunchScenario {
 public:
  /// Sets the values of all settings that the table translates, and notes those that it does not know. Its "keys" have a pointer of the scenario for
  /// LaunchSetting::key, with the keys of a model file below /model; an empty one changes nothing that is simulated. The value is taken as it is, where it is
  /// not empty, or is one of the words below the pointer:
  ///
  ///   {"seq-length": "/model/sequence", "cp-comm-type": {"/parallel/context_method": {"p2p": "ring", "a2a": "all_to_all"}}}
  ///
  /// "*" is any other word; "on" any but false, which is "off". Null leaves the key out. "harmless" has beginnings of keys, or of keys and
  /// values, that change nothing that is simulated ("lr", "save"), "refused" the options and programs of models that cannot be simulated.
  LaunchScenario(const ImportRequest& request, const Library& library, LaunchSettings settings,
                 const detail::Asset& table);

  const LaunchSettings& settings() const { return settings_; }
  std::string text(std::string_view key) const { return settings_.text(key); }
  int number(std::string_view key) const { return settings_.number(key); }
  bool is_on(std::string_view key) const { return settings_.is_on(key); }
  /// The number at a pointer of the scenario; `fallback` where there is none.
  int at(const std::string& pointer, int fallback) const;
  /// True if the text at a pointer of the scenario is `text`.
  bool is(const std::string& pointer, std::string_view text) const;
  bool has(const std::string& pointer) const { return find_at(tree_, pointer) != nullptr; }
  /// True if the model has experts, also if it is named by --model.
  bool has_experts() const;
  /// Family of the model, also if it is named by --model.
  std::string family() const;
  /// True if the model's MLP has a gate, also if it is named by --model.
  bool has_gated_mlp() const;
  /// Tensor, pipeline and context degrees, multiplied.
  int gpus_of_replica() const;
  /// --gpus, or else what the file says (0: nothing). Throws InputError where neither does.
  int gpus(int said) const;
  /// What to give for a number of GPUs or nodes that the file does not say: "give --gpus N", and `more` behind it.
  std::string how_to_give_gpus(const std::string& more = {}) const;
  /// GPUs per node of the base; 0 if its nodes differ.
  int gpus_per_node() const;
  /// Notes that nodes of the base have other than `said` GPUs, as many as the file starts per node (0: it does not say).
  void note_other_nodes(int said, int gpus);
  /// Refuses a script whose options `keys`, of how many nodes or GPUs there are, cannot be known.
  void refuse_unread_counts(const std::vector<std::string>& keys) const;
  template <class Value>
  void set(const std::string& pointer, const Value& value) {
    set_at(tree_, pointer, json_of(value));
    origins_.erase(pointer);
  }
  /// As set(), of a value that follows from the setting of `key`, which messages about the value name.
  template <class Value>
  void set_from(const std::string& key, const std::string& pointer, const Value& value) {
    set(pointer, value);
    origins_[pointer] = key;
  }
  /// Sets what the settings do not say.
  template <class Value>
  void set_default(const std::string& pointer, const Value& value) {
    if (!has(pointer)) set(pointer, value);
  }
  void erase(const std::string& pointer) { erase_at(tree_, pointer); }
  /// Messages have the keys of settings as the file writes them.
  void note(std::string text) { imported_.notes.push_back(with_written_keys(std::move(text))); }
  void warn(std::string text) { imported_.warnings.push_back(with_written_keys(std::move(text))); }
  /// As note(), which errors of the scenario repeat, too: of how many GPUs and nodes there are.
  void note_gpus(const std::string& text);

  /// Adds the stack, with what was set below /software laid over it, and what follows from the rest (replicas or nodes, the schedule of several chunks, the model's vocabulary), and reads the scenario
  /// as `run` would. Throws InputError where it is none.
  Imported finish(const std::string& software, int gpus);

 private:
  /// What the file that --model names, or else the file itself, says of the model.
  JsonValue model() const;
  void refuse_other_models(const JsonValue* refused) const;
  /// "--num-layers", "zero_optimization.stage": the key as the setting is written.
  std::string written_like(const LaunchSetting& setting, std::string key) const;
  /// Throws an InputError about the file: `message` follows its name.
  [[noreturn]] void refuse(const std::string& message, const std::string& hint) const;
  std::string with_written_keys(std::string text) const;
  /// A setting whose value cannot be known.
  struct LeftOut {
    std::string pointer, text;
    std::vector<std::string> variables;  ///< of --args that would say it
  };

  void translate(const LaunchSetting& setting, const JsonValue& meaning);
  void leave_out(const LaunchSetting& setting, const std::string& pointer, const std::string& why);
  /// The setting of a script, with the lines that give its variables such values.
  LeftOut unread(const LaunchSetting& setting) const;
  void refuse_unread(const std::vector<LeftOut>& settings, const std::string& more = {}) const;
  /// " (line 5: seq-length ${SEQ_LEN} cannot be evaluated, …)" of the settings that were left out, and of `pointers` if any are given.
  std::string left_out(const std::vector<std::string>& pointers = {}) const;
  /// `, or --args "SEQ_LEN=VALUE"` for the variables in them.
  std::string or_variables(const std::vector<std::string>& pointers) const;
  static std::vector<LeftOut> those_of(const std::vector<std::string>& pointers,
                                       std::vector<LeftOut> settings);
  static std::string variables_of(const std::vector<LeftOut>& settings);
  void name_origin(Problem& problem) const;
  void judge(const LaunchTest& test, const JsonValue& meanings);
  void choose_vocabulary(const JsonValue& table);
  void choose_model();
  std::string tokenizer() const;

  const ImportRequest& request_;
  const Library& library_;
  LaunchSettings settings_;
  JsonValue tree_{JsonValue::Object{}};
  std::map<std::string, std::string>
      origins_;  ///< by pointer: the key of the setting that its value follows from
  std::vector<LeftOut> unread_, unread_counts_;  ///< of a program; counts_of_gpus() on their own
  std::vector<LeftOut> left_out_;                ///< of a configuration
  std::vector<std::string> no_values_;           ///< "line 5: --seq-length has no value"
  std::string about_gpus_;                       ///< note_gpus()
  std::string near_sizes_;                       ///< "; did you mean --num-layers by layers 32?"
  Imported imported_;
};

namespace formats {
/// The scenario of settings that have Megatron-LM's names: its own options, and the `model` block of NeMo. `software` is the stack, unless
/// --deepspeed says that it is Megatron-DeepSpeed.
Imported megatron_scenario(const ImportRequest& request, const Library& library,
                           LaunchSettings settings, std::string software);
}  // namespace formats

}  // namespace windtunnel
