#include "search/plan_text.hpp"

#include <charconv>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/option_error.hpp"
#include "core/problem.hpp"
#include "plan/plan_check.hpp"
#include "scenario/key_table.hpp"

namespace windtunnel {
namespace {

/// Reads the parts of one --why.
class PlanTextReader {
 public:
  PlanTextReader(const std::string& text, const Scenario& base, const SearchSpace& space)
      : text_(text), space_(space), choice_{base.plan.training, base.plan.parallel} {
    choice_.parallel.data = 0;
  }

  PlanChoice read() {
    std::string_view rest = text_;
    while (!rest.empty()) {
      const std::size_t comma = rest.find(',');
      read_part(rest.substr(0, comma));
      rest = comma == std::string_view::npos ? std::string_view{} : rest.substr(comma + 1);
    }
    finish();
    return std::move(choice_);
  }

 private:
  [[noreturn]] void refuse(const std::string& why, const std::string& suggestion) const {
    throw option_error("--why", text_, why, suggestion);
  }

  void read_part(std::string_view part) {
    const std::size_t equals = part.find('=');
    const std::string key(part.substr(0, equals));
    const std::string value(equals == std::string_view::npos ? "" : part.substr(equals + 1));
    if (equals == std::string_view::npos)
      refuse("\"" + key + "\" has no \"=\"", "write tensor=8,pipeline=4,micro_batch=2");
    const Key& known = key_named(key);
    known.value.set(choice_, value_of(known, value));
    has_schedule_ = has_schedule_ || known.pointer == plan_keys::schedule;
  }

  const Key& key_named(const std::string& name) const {
    std::vector<std::string> names;
    std::string list = "the keys are";
    for (const SearchKey& searched : search_keys()) {
      names.push_back(searched.key->name());
      if (names.back() == name) return *searched.key;
      list += (names.size() == 1 ? " " : ", ") + names.back();
    }
    const std::string nearest = closest_match(name, names);
    refuse("unknown key \"" + name + "\"",
           nearest.empty() ? list : "did you mean \"" + nearest + "\"?");
  }

  int value_of(const Key& key, const std::string& text) const {
    const KeyValue& value = key.value;
    std::string wanted = "write true or false";
    if (value.kind == KeyValue::Kind::whole_number) {
      int number = 0;
      const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
      if (error == std::errc{} && end == text.data() + text.size() && number >= value.least &&
          number <= value.most)
        return number;
      wanted = "write a whole number from " + std::to_string(value.least) + " to " +
               std::to_string(value.most);
    } else {
      for (int i = 0; i <= value.most; ++i)
        if (text == text_of(key, i)) return i;
      if (value.kind == KeyValue::Kind::word)
        for (const std::string& word : value.words)
          wanted = (&word == &value.words.front() ? "one of " : wanted + ", ") + word;
    }
    refuse(key.name() + " is \"" + text + "\"", wanted);
  }

  /// What follows from the rest: data, the schedule of several chunks, stages of another number.
  void finish() {
    Parallel& parallel = choice_.parallel;
    const std::int64_t ways = parallel.ranks_of_replica();
    if (parallel.data == 0 && space_.gpus % ways == 0)
      parallel.data = static_cast<int>(space_.gpus / ways);
    if (!has_schedule_ && !parallel.schedule->takes(parallel.virtual_pipeline))
      parallel.schedule = default_schedule(parallel.virtual_pipeline);
    if (static_cast<int>(parallel.stage_layers.size()) != parallel.pipeline)
      parallel.stage_layers.clear();
    if (static_cast<int>(parallel.position_layers.size()) !=
        parallel.pipeline * parallel.virtual_pipeline)
      parallel.position_layers.clear();
  }

  const std::string& text_;
  const SearchSpace& space_;
  PlanChoice choice_;
  bool has_schedule_ = false;
};

}  // namespace

PlanChoice read_plan_text(const std::string& text, const Scenario& base, const SearchSpace& space) {
  return PlanTextReader(text, base, space).read();
}

}  // namespace windtunnel
