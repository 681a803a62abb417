#pragma once

#include <algorithm>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "plan/plan.hpp"
#include "units/member_reader.hpp"

namespace windtunnel {

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
KeyValue word(Value Block::*member, const Names<Value>& names) {
  KeyValue value{.kind = KeyValue::Kind::word, .most = static_cast<int>(names.size()) - 1};
  for (const auto& [name, named] : names) value.words.push_back(name);
  value.get = [=](const PlanChoice& choice) {
    const auto found = std::find_if(names.begin(), names.end(), [&](const auto& each) {
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

}  // namespace windtunnel
