#include "search/plan_text.hpp"

#include <charconv>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "core/option_error.hpp"
#include "core/problem.hpp"

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
  static constexpr int largest = 1 << 20;  ///< as in the search block

  [[noreturn]] void refuse(const std::string& why, const std::string& suggestion) const {
    throw option_error("--why", text_, why, suggestion);
  }

  void read_part(std::string_view part) {
    const std::size_t equals = part.find('=');
    const std::string key(part.substr(0, equals));
    const std::string value(equals == std::string_view::npos ? "" : part.substr(equals + 1));
    if (equals == std::string_view::npos)
      refuse("\"" + key + "\" has no \"=\"", "write tensor=8,pipeline=4,micro_batch=2");
    if (int* const number = number_at(key)) {
      *number = parse_number(key, value, key == "zero_stage" ? 0 : 1);
    } else if (key == "schedule") {
      choice_.parallel.schedule = schedule_named(value);
      if (choice_.parallel.schedule == nullptr)
        refuse(key + " is \"" + value + "\"", "one of " + schedule_name_list());
      has_schedule_ = true;
    } else if (key == "recompute") {
      choice_.training.recompute =
          one_of<Recompute>(key, value, {Recompute::none, Recompute::selective, Recompute::full});
    } else if (key == "sequence_parallel" && (value == "true" || value == "false")) {
      choice_.parallel.sequence_parallel = value == "true";
    } else {
      refuse_key(key, value);
    }
  }

  int* number_at(const std::string& key) {
    Parallel& parallel = choice_.parallel;
    if (key == "tensor") return &parallel.tensor;
    if (key == "pipeline") return &parallel.pipeline;
    if (key == "data") return &parallel.data;
    if (key == "micro_batch") return &choice_.training.micro_batch;
    if (key == "virtual_pipeline") return &parallel.virtual_pipeline;
    if (key == "zero_stage") return &parallel.zero_stage;
    return nullptr;
  }

  int parse_number(const std::string& key, const std::string& value, int least) const {
    int number = 0;
    const auto [end, error] = std::from_chars(value.data(), value.data() + value.size(), number);
    const int most = key == "zero_stage" ? 3 : largest;
    if (error == std::errc{} && end == value.data() + value.size() && number >= least &&
        number <= most)
      return number;
    refuse(key + " is \"" + value + "\"",
           "write a whole number from " + std::to_string(least) + " to " + std::to_string(most));
  }

  template <class Enum>
  Enum one_of(const std::string& key, const std::string& value,
              const std::vector<Enum>& values) const {
    std::string known;
    for (const Enum candidate : values) {
      if (value == name_of(candidate)) return candidate;
      known += (known.empty() ? "" : ", ") + std::string(name_of(candidate));
    }
    refuse(key + " is \"" + value + "\"", "one of " + known);
  }

  [[noreturn]] void refuse_key(const std::string& key, const std::string& value) const {
    if (key == "sequence_parallel") refuse(key + " is \"" + value + "\"", "write true or false");
    const std::vector<std::string> keys{"tensor",      "pipeline",         "data",
                                        "micro_batch", "virtual_pipeline", "zero_stage",
                                        "schedule",    "recompute",        "sequence_parallel"};
    const std::string nearest = closest_match(key, keys);
    std::string list = "the keys are";
    for (const std::string& known : keys) list += (known == keys.front() ? " " : ", ") + known;
    refuse("unknown key \"" + key + "\"",
           nearest.empty() ? list : "did you mean \"" + nearest + "\"?");
  }

  /// What follows from the rest: data, the schedule of several chunks, stages of another number.
  void finish() {
    Parallel& parallel = choice_.parallel;
    const std::int64_t ways = std::int64_t{parallel.tensor} * parallel.pipeline;
    if (parallel.data == 0 && space_.gpus % ways == 0)
      parallel.data = static_cast<int>(space_.gpus / ways);
    if (!has_schedule_ && !parallel.schedule->takes(parallel.virtual_pipeline))
      parallel.schedule = default_schedule(parallel.virtual_pipeline);
    if (static_cast<int>(parallel.stage_layers.size()) != parallel.pipeline)
      parallel.stage_layers.clear();
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
