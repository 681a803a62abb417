#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/object_reader.hpp"
#include "plan/plan.hpp"
#include "units/member_reader.hpp"

namespace windtunnel {

inline constexpr int most_adapter_rank = 65'536;  ///< of `training/lora_rank`

/// Type and range of a key's value, and where a plan keeps it. A value is an `int` to those who do not ask what it means: the number, 1 for true, the
/// place of the word in `words`.
struct KeyValue {
  enum class Kind { whole_number, flag, word, other };

  Kind kind =
      Kind::other;  ///< other: has a reader of its own, and is neither searched nor set from text
  int least = 0, most = 1;
  std::vector<std::string> words =
      {};  ///< of a flag: what tables call false and true, where that is not "false" and "true"
  std::function<int(const PlanChoice&)> get = {};
  std::function<void(PlanChoice&, int)> set = {};
};

namespace detail {
/// The block of a choice that has a member of `Block`.
template <class Block, class Choice>
auto& block_of(Choice& choice) {
  if constexpr (std::is_same_v<Block, Training>)
    return choice.training;
  else if constexpr (std::is_same_v<Block, Lora>)
    return choice.training.lora;
  else
    return choice.parallel;
}

}  // namespace detail

template <class Block>
KeyValue whole(int Block::*member, int least, int most) {
  return {.kind = KeyValue::Kind::whole_number,
          .least = least,
          .most = most,
          .get = [=](const PlanChoice& choice) { return detail::block_of<Block>(choice).*member; },
          .set = [=](PlanChoice& choice,
                     int value) { detail::block_of<Block>(choice).*member = value; }};
}

/// One of `names`; -1 for a value that has none.
template <class Block, class Value>
KeyValue word(Value Block::*member, const Names<Value>& names = all_names<Value>()) {
  KeyValue value{.kind = KeyValue::Kind::word, .most = static_cast<int>(names.size()) - 1};
  for (const auto& [name, named] : names) value.words.push_back(name);
  value.get = [=](const PlanChoice& choice) {
    const auto found = std::ranges::find_if(names, [&](const auto& each) {
      return each.second == detail::block_of<Block>(choice).*member;
    });
    return found == names.end() ? -1 : static_cast<int>(found - names.begin());
  };
  value.set = [=](PlanChoice& choice, int chosen) {
    detail::block_of<Block>(choice).*member = names.at(static_cast<std::size_t>(chosen)).second;
  };
  return value;
}

/// A whole number that one pass alone reads, with Parallel::setting().
KeyValue setting(const std::string& name, int least, int most);
/// `words`: as of KeyValue.
template <class Block>
KeyValue flag(bool Block::*member, std::vector<std::string> words = {}) {
  return {.kind = KeyValue::Kind::flag,
          .words = std::move(words),
          .get = [=](const PlanChoice& choice) -> int {
            return detail::block_of<Block>(choice).*member;
          },
          .set = [=](PlanChoice& choice,
                     int value) { detail::block_of<Block>(choice).*member = value == 1; }};
}

/// Largest job that is read: every rank is an entry of a table.
inline constexpr int most_ranks = 1 << 20;

/// The value of a key that a file leaves out.
enum class Absent {
  fallback,  ///< that of a new PlanChoice
  required,
  derived,  ///< found once the rest has been read
};

/// Arguments that start a training program with a plan.
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
  /// Its default changes nothing, and is no part of a scenario's hash: that of a scenario from before there was the key stays.
  bool idle_by_default = false;
  /// Reads the key, in place of the reader of `value`.
  std::function<void(ObjectReader&, const Key&, PlanChoice&)> read = {};
  /// Adds the launch arguments for the value.
  std::function<void(const Plan&, int value, LaunchArguments&)> launch = {};
  /// True if this choice matters in a plan, so that it is compared with measured runs. None: it is no choice.
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
  /// True if two plans that differ only in this key behave differently. None: always.
  std::function<bool(const PlanChoice&)> matters = {};
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

/// The value that a plan begins with, as JSON. Not of values that have a reader of their own.
JsonValue default_of(const Key& key);

/// The key's entry in the published schema.
JsonValue schema_of(const Key& key);
JsonValue schema_of(const SearchKey& key);

/// The value as files write it ("8", "true", "selective"), and as tables show it ("8", "split", "selective").
std::string text_of(const Key& key, int value);
std::string shown_text(const Key& key, int value);

}  // namespace windtunnel
