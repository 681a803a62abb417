#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/object_reader.hpp"
#include "plan/plan.hpp"
#include "scenario/key_value.hpp"

namespace windtunnel {

/// Largest job that is read: every rank is an entry of a table.
inline constexpr int most_ranks = 1 << 20;

/// The value of a key that a file leaves out.
enum class Absent {
  fallback,  ///< that of a new PlanChoice
  required,
  derived,  ///< found once the rest has been read
};

/// How to start a training program with a plan.
struct LaunchArguments {
  std::vector<std::string> arguments;  ///< "--tensor-model-parallel-size 8", one option each
  std::vector<std::string> notes;      ///< what the arguments do not say about the plan
};

/// One key of `training` or `parallel`. Reader, `--set`, schema, search, launch arguments, labels and the list of
/// choices that evidence compares are made from it; its default is the value that a PlanChoice begins with.
struct Key {
  std::string pointer;  ///< "/parallel/tensor"
  std::string meaning;
  std::string unit = {};
  std::string own_label = {};  ///< in tables and on axes; empty: the key's name
  KeyValue value = {};
  Absent absent = Absent::fallback;
  /// If the default is no fixed value: the function that sets it, and its description in the schema.
  std::function<void(PlanChoice&, const SoftwareProfile&)> fallback = {};
  std::string fallback_words = {};
  std::string example;  ///< JSON
  std::string words_at =
      {};  ///< the definition of the schema that lists the words; empty: they stand at the key
  std::string also = {};  ///< JSON: schemas of what may be written besides `value`
  /// Reads the key, in place of the reader of `value`.
  std::function<void(ObjectReader&, const Key&, PlanChoice&)> read = {};
  /// Adds the launch arguments for the value.
  std::function<void(const Plan&, int value, LaunchArguments&)> launch = {};
  /// Whether this choice matters in a plan, so that it is compared with measured runs. None: it is no choice.
  std::function<bool(const Parallel&)> is_choice = {};

  std::string name() const { return pointer.substr(pointer.rfind('/') + 1); }
  std::string label() const { return own_label.empty() ? name() : own_label; }
};

/// The keys of both blocks, in the order in which messages list them.
const std::vector<Key>& key_table();
/// "microbatch (samples)"; the pointer itself where it is not in the table.
std::string axis_label(const std::string& pointer);

/// A key of the `search` block: the values of a plan's key that `rank` tries.
struct SearchKey {
  const Key* key;  ///< of the same name
  std::string meaning;
  std::string fallback_words;  ///< what is tried when it is left out
  std::string example;         ///< JSON
  bool varies_always = false;  ///< even if it is left out
  /// Whether two plans that differ only in this key behave differently. None: always.
  std::function<bool(const Parallel&)> matters = {};
};

/// In the order in which values vary, the first slowest.
const std::vector<SearchKey>& search_keys();

/// Reads the keys of the block at `reader`.
void read_keys(ObjectReader& reader, PlanChoice& choice, const SoftwareProfile& software);
/// Reports keys of other blocks found at `reader`, with the place where they belong: "global_batch" under "parallel". Call it before
/// unknown keys are rejected, so that they are not reported twice.
void reject_misplaced_keys(ObjectReader& reader);
/// The reader that most keys have.
void read_value(ObjectReader& reader, const Key& key, PlanChoice& choice);

/// What the published schema says of the key.
JsonValue schema_of(const Key& key);
JsonValue schema_of(const SearchKey& key);

/// The value as files write it ("8", "true", "selective"), and as tables show it ("8", "split", "selective").
std::string text_of(const Key& key, int value);
std::string shown_text(const Key& key, int value);

}  // namespace windtunnel
