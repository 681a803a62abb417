#include "schedule/schedule_file_json.hpp"

#include <charconv>
#include <cstdint>
#include <optional>
#include <string_view>

#include "core/object_reader.hpp"
#include "schedule/schedule_check.hpp"

namespace windtunnel {
namespace {

constexpr std::int64_t file_version = 1;
constexpr std::int64_t most_stages = 1 << 16;
constexpr std::int64_t most_microbatches = 1 << 20;
constexpr std::int64_t most_chunks = 1'000;
constexpr std::int64_t most_passes = 10'000'000;  ///< of all stages together

/// The whole of `digits` as a number.
template <class Number>
std::optional<Number> number_from(std::string_view digits) {
  Number number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc{} || end != digits.data() + digits.size()) return std::nullopt;
  return number;
}

std::optional<Step> step_from(std::string_view token) {
  constexpr std::string_view letters = "FBW";
  constexpr Phase phases[] = {Phase::forward, Phase::backward, Phase::weight_gradient};
  const std::size_t letter = token.empty() ? letters.npos : letters.find(token.front());
  if (letter == letters.npos) return std::nullopt;
  const std::size_t dot = token.find('.');
  const auto microbatch =
      number_from<std::uint32_t>(token.substr(1, dot == token.npos ? dot : dot - 1));
  const auto chunk = dot == token.npos ? std::optional<std::uint16_t>(std::uint16_t{0})
                                       : number_from<std::uint16_t>(token.substr(dot + 1));
  if (!microbatch || !chunk) return std::nullopt;
  return Step{phases[letter], *chunk, *microbatch};
}

class ScheduleFileReader {
 public:
  ScheduleFileReader(JsonValue& value, const std::string& pointer, Problems& problems)
      : reader_(value, pointer, problems), problems_(problems) {}

  ScheduleOrders read() {
    for (const char* key : {"model", "platform", "parallel", "extends"})
      if (reader_.written(key) != nullptr && reader_.written("orders") == nullptr)
        reader_.reject_kind("this is a scenario, not a schedule",
                            "a schedule lists the passes of each stage in \"orders\"");
    read_label();
    OrderShape& shape = orders_.shape;
    shape.stages = reader_.required_int("stages", 1, most_stages);
    shape.microbatches = reader_.required_int("microbatches", 1, most_microbatches);
    shape.chunks = reader_.optional_int("chunks", 1, 1, most_chunks);
    shape.chunk_path = reader_.optional_enum("chunk_path", ChunkPath::loop, chunk_paths_by_name());
    JsonValue* const lists = reader_.require("orders", "a list of passes for each stage");
    reader_.reject_unknown_keys();
    if (is_sound()) check_size();
    if (is_sound()) read_orders(*lists);
    if (is_sound()) report_faults(*lists);
    return std::move(orders_);
  }

 private:
  /// True if the passes, and the keys by which they are read, have no problem.
  bool is_sound() const {
    return reader_.are_sound({"stages", "microbatches", "chunks", "chunk_path", "orders"});
  }

  void read_label() {
    orders_.name = reader_.optional_string("name", "schedule");
    reader_.required_int("version", file_version, file_version);
  }

  void check_size() {
    const OrderShape& shape = orders_.shape;
    if (shape.chunks > 1 && shape.stages == 1)
      reader_.problem("chunks", "several chunks need more than one stage", "write 1");
    else if (std::int64_t{shape.stages} * shape.chunks * shape.microbatches > most_passes)
      reader_.problem("", "more than " + std::to_string(most_passes) + " forward passes",
                      "take fewer stages, chunks or microbatches");
  }

  std::string pointer_of(std::size_t stage) const {
    return pointer_join(pointer_join(reader_.pointer(), "orders"), std::to_string(stage));
  }

  void read_orders(const JsonValue& lists) {
    const auto stages = static_cast<std::size_t>(orders_.shape.stages);
    if (!lists.is_array()) {
      reader_.problem("orders", "orders is " + text_for_message(lists) + ", which is no list",
                      "write a list of passes for each stage");
    } else if (lists.array().size() != stages) {
      reader_.problem("orders", "orders has " + std::to_string(lists.array().size()) +
                                    " lists, but stages is " + std::to_string(stages));
    } else {
      for (std::size_t stage = 0; stage < stages; ++stage) read_order(lists.array()[stage], stage);
    }
  }

  void read_order(const JsonValue& list, std::size_t stage) {
    std::vector<Step>& order = orders_.of_stage.emplace_back();
    if (!list.is_array()) {
      problems_.add({list.origin, pointer_of(stage),
                     "the order of stage " + std::to_string(stage) + " is " +
                         text_for_message(list) + ", which is no list",
                     R"(write ["F0", "B0"])"});
      return;
    }
    for (std::size_t i = 0; i < list.array().size(); ++i) {
      const JsonValue& token = list.array()[i];
      const auto step = token.is_string() ? step_from(token.string()) : std::nullopt;
      if (step)
        order.push_back(*step);
      else
        problems_.add({token.origin, pointer_join(pointer_of(stage), std::to_string(i)),
                       text_for_message(token) + " is no pass",
                       "write F, B or W, the microbatch, and .1 for chunk 1, as in \"F3.1\""});
    }
  }

  void report_faults(const JsonValue& lists) {
    for (const ScheduleFault& fault : check_schedule(orders_)) {
      const std::size_t stage = fault.stage.index();
      const JsonValue& list = lists.array()[stage];
      if (fault.position < list.array().size())
        problems_.add({list.array()[fault.position].origin,
                       pointer_join(pointer_of(stage), std::to_string(fault.position)),
                       fault.message,
                       {}});
      else
        problems_.add({list.origin, pointer_of(stage), fault.message, {}});
    }
  }

  ObjectReader reader_;
  Problems& problems_;
  ScheduleOrders orders_;
};

}  // namespace

ScheduleOrders read_schedule_orders(JsonValue& value, const std::string& pointer,
                                    Problems& problems) {
  return ScheduleFileReader(value, pointer, problems).read();
}

}  // namespace windtunnel
