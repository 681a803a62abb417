#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "core/json_value.hpp"

namespace windtunnel {

/// One setting of a training run as its launch script or configuration says it.
struct LaunchSetting {
  std::string key;    ///< as launch_key() writes it: "num-layers", "trainer.num-nodes"
  std::string value;  ///< as text; empty where a switch has none, and where the file leaves it open
  int line = 0;

  /// What the keys of a launcher's own options (srun, mpirun, #SBATCH) begin with: they say how a program is started.
  static constexpr const char* launcher = "launcher-";
  bool is_of_launcher() const { return key.starts_with(launcher); }
};

/// All settings of a file, in its order; of a key that comes twice, the last one counts.
struct LaunchSettings {
  std::vector<LaunchSetting> settings;
  std::vector<std::string> notes;  ///< parts of the file that could not be followed
  std::string program = {};        ///< "pretrain_gpt.py", of a script that starts one

  /// The last setting of `key`; null: none.
  const LaunchSetting* find(std::string_view key) const;
  /// Its value; empty where there is none.
  std::string text(std::string_view key) const;
  /// The number that it begins with; 0 where there is none.
  int number(std::string_view key) const;
  /// Whether it is given, as a switch or with a value that is not false.
  bool is_on(std::string_view key) const;
};

/// "num-layers" of "num_layers", "--num-layers" and "++num-layers".
std::string launch_key(std::string_view text);

/// The settings of a shell script that starts a training program: the options of that program and of its launcher (torchrun, srun, deepspeed), and
/// key=value arguments as Hydra takes them.
///
///   TP=${TP:-8}
///   ARGS="--tensor-model-parallel-size $TP --bf16"
///   torchrun --nproc_per_node 8 pretrain_gpt.py $ARGS
///
/// gives nproc-per-node 8, tensor-model-parallel-size 8, bf16. The script is read, never run: assignments, arrays, `${X:-default}`, `$((…))`, here
/// documents, `if`, `case` and the first turn of `for` are followed; what a command prints is unknown and expands to nothing, as do
/// positional parameters and the environment, but for those that `arguments` gives as the script would be called: "NNODES=4 cluster 7B". Of several programs, the one with the most settings of its own counts. Options of `#SBATCH`, and of the
/// srun or mpirun that starts the program, are settings launcher-nodes, launcher-gpus-per-node, launcher-ntasks ("mpirun -np 64"), ….
LaunchSettings read_launch_script(const SourceText& source, const std::string& arguments = {});

/// The leaves of a configuration, keys joined with dots. Of YAML and TOML the part that configurations use: maps, scalars, lists of scalars on a line;
/// `${a.b}` and `${multiply:2,${.c}}` of OmegaConf are evaluated; where that cannot be done the value stays as it is written, with its "${".
LaunchSettings read_yaml_settings(const SourceText& source);
LaunchSettings read_toml_settings(const SourceText& source);
LaunchSettings read_json_settings(const JsonValue& document);

}  // namespace windtunnel
