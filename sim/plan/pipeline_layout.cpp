#include "plan/pipeline_layout.hpp"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <limits>
#include <optional>

#include "core/contracts.hpp"

namespace windtunnel {
namespace {

constexpr Seconds never{std::numeric_limits<double>::infinity()};

enum class Memory { respected, ignored };

/// Something by stage and number of parts.
template <typename Value>
using Table = std::vector<std::vector<Value>>;

/// The least value of stages s.. that hold n parts together, by [s][n]; `combined` makes it of one stage's and the others'.
template <typename Value, typename Combined>
Table<Value> least_values(const Table<Value>& of_stage, Value impossible,
                          const Combined& combined) {
  const std::size_t stages = of_stage.size(), parts = of_stage.front().size() - 1;
  Table<Value> least(stages + 1, std::vector<Value>(parts + 1, impossible));
  least[stages][0] = Value{};
  for (std::size_t s = stages; s-- > 0;)
    for (std::size_t all = 0; all <= parts; ++all)
      for (std::size_t own = 0; own <= all; ++own)
        least[s][all] =
            std::min(least[s][all], combined(of_stage[s][own], least[s + 1][all - own]));
  return least;
}

Table<Seconds> allowed_times(const Table<StageOption>& options, Memory memory) {
  Table<Seconds> times;
  for (const auto& stage : options) {
    times.emplace_back();
    for (const StageOption& option : stage)
      times.back().push_back(memory == Memory::respected && !option.fits ? never : option.time);
  }
  return times;
}

/// Weights whose sum a split minimises, among splits no slower than `slowest`:  t (1 + e t/slowest). The second term is far below
/// the first and only decides between equal sums: the one with the least squares wins.
Table<Seconds> weighed(const Table<Seconds>& times, Seconds slowest) {
  constexpr double evenness = 1e-6;  // e
  Table<Seconds> weights;
  for (const auto& stage : times) {
    weights.emplace_back();
    for (const Seconds time : stage) {
      const bool is_instant = slowest == Seconds{0};
      const Seconds weight = is_instant ? time : time * (1 + evenness * (time / slowest));
      weights.back().push_back(time <= slowest ? weight : never);
    }
  }
  return weights;
}

std::vector<int> split_of_least_sum(const Table<Seconds>& weights) {
  const auto sum = [](Seconds a, Seconds b) { return a + b; };
  const Table<Seconds> least = least_values(weights, never, sum);
  std::vector<int> chosen;
  std::size_t left = weights.front().size() - 1;
  for (std::size_t s = 0; s < weights.size(); ++s) {
    std::size_t own = 0;
    while (sum(weights[s][own], least[s + 1][left - own]) != least[s][left]) ++own;
    chosen.push_back(static_cast<int>(own));
    left -= own;
  }
  WT_ENSURE(left == 0);
  return chosen;
}

std::optional<std::vector<int>> split(const Table<StageOption>& options, Memory memory) {
  const Table<Seconds> times = allowed_times(options, memory);
  const auto slower = [](Seconds a, Seconds b) { return std::max(a, b); };
  const Seconds slowest = least_values(times, never, slower)[0].back();
  if (slowest == never) return std::nullopt;
  return split_of_least_sum(weighed(times, slowest));
}

constexpr std::size_t most_items = 1'000'000;  ///< of the unrolled layout
constexpr int deepest = 100;                   ///< parentheses in parentheses

/// One letter of the unrolled layout, and where it was written.
struct Item {
  char letter;
  std::size_t column;
};
using Items = std::vector<Item>;

/// Thrown inside this file only, from the depth of the parentheses.
struct Refusal {
  LayoutFault fault;
};

class Unroller {
 public:
  explicit Unroller(std::string_view text) : text_(text) {}

  Items unroll() {
    Items items = sequence(0);
    if (at_ < text_.size()) refuse(at_, "\")\" has no \"(\"");
    return items;
  }

 private:
  [[noreturn]] static void refuse(std::size_t column, std::string message,
                                  std::string suggestion = {}) {
    throw Refusal{{column, std::move(message), std::move(suggestion)}};
  }

  Items sequence(int depth) {
    Items items;
    for (skip(); at_ < text_.size() && text_[at_] != ')'; skip()) {
      const std::size_t begin = at_;
      const Items item = text_[at_] == '(' ? group(depth) : Items{letter()};
      const std::size_t times = repetition();
      if (items.size() + item.size() * times > most_items)
        refuse(begin, "the layout is longer than a million letters");
      for (std::size_t i = 0; i < times; ++i) items.insert(items.end(), item.begin(), item.end());
    }
    return items;
  }

  void skip() {
    while (at_ < text_.size() && (text_[at_] == ',' || text_[at_] == ' ')) ++at_;
  }

  Items group(int depth) {
    const std::size_t begin = at_++;
    if (depth == deepest) refuse(begin, "parentheses are more than a hundred deep");
    Items items = sequence(depth + 1);
    if (at_ == text_.size()) refuse(begin, "\"(\" has no \")\"");
    ++at_;
    return items;
  }

  Item letter() {
    const char letter = text_[at_];
    if (letter == '*') refuse(at_, "\"*\" has nothing before it to repeat");
    if (std::string_view("EtmL|").find(letter) == std::string_view::npos)
      refuse(at_, "there is no layer " + quoted(letter),
             "E embedding, t transformer layer, m multi-token prediction, L loss, | next stage");
    return {letter, at_++};
  }

  static std::string quoted(char letter) {
    return letter > ' ' && letter <= '~' ? std::string("\"") + letter + "\"" : "of this letter";
  }

  std::size_t repetition() {
    skip();
    if (at_ == text_.size() || text_[at_] != '*') return 1;
    const std::size_t star = at_++;
    std::uint32_t times = 0;
    const auto [end, error] =
        std::from_chars(text_.data() + at_, text_.data() + text_.size(), times);
    if (error != std::errc{} || times == 0 || times > most_items)
      refuse(star, "\"*\" needs a whole number from 1 to a million behind it", "as in t*3");
    at_ = static_cast<std::size_t>(end - text_.data());
    return times;
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

/// E once and first, L once and last.
std::optional<LayoutFault> fault_of(const Items& items) {
  if (items.empty()) return LayoutFault{0, "the layout is empty", "as in Et*3|t*4|t*3,L"};
  for (std::size_t i = 0; i < items.size(); ++i) {
    const auto [letter, column] = items[i];
    if (letter == 'E' && i > 0)
      return LayoutFault{column, "the embedding (E) must come first, and once", {}};
    if (letter == 'L' && i + 1 < items.size())
      return LayoutFault{column, "the loss (L) must come last, and once", {}};
    const char next = i + 1 < items.size() ? items[i + 1].letter : 'L';
    if (letter == 'm' && next != 'm' && next != 'L')
      return LayoutFault{
          column, "multi-token prediction (m) must come just before the loss (L), in its part", {}};
  }
  if (items.front().letter != 'E')
    return LayoutFault{
        items.front().column, "the first stage must begin with the embedding (E)", {}};
  if (items.back().letter != 'L')
    return LayoutFault{items.back().column, "the last stage must end with the loss (L)", {}};
  return std::nullopt;
}

/// "t*6", "t" or nothing.
std::string layers_text(int layers) {
  if (layers == 0) return "";
  return layers == 1 ? "t" : "t*" + std::to_string(layers);
}

}  // namespace

std::vector<int> split_stages(const std::vector<std::vector<StageOption>>& options) {
  WT_EXPECT(!options.empty() && !options.front().empty());
  for (const auto& stage : options) WT_EXPECT(stage.size() == options.front().size());
  if (auto fitting = split(options, Memory::respected)) return *fitting;
  return *split(options, Memory::ignored);
}

std::variant<PipelineLayout, LayoutFault> read_pipeline_layout(std::string_view layout) {
  try {
    const Items items = Unroller(layout).unroll();
    if (const auto fault = fault_of(items)) return *fault;
    PipelineLayout read{{0}, 0};
    for (const Item& item : items) {
      if (item.letter == '|') read.layers.push_back(0);
      if (item.letter == 't') ++read.layers.back();
      if (item.letter == 'm') ++read.mtp_layers;
    }
    return read;
  } catch (const Refusal& refusal) {
    return refusal.fault;
  }
}

std::string pipeline_layout(const Plan& plan) {
  const ChunkMap map = plan.chunk_map();
  std::string layout = "E";
  for (int position = 0; position < map.num_positions(); ++position) {
    if (position > 0) layout += "|";
    layout += layers_text(plan.chunk_layers(map.at(position)));
  }
  return layout + std::string(static_cast<std::size_t>(plan.mtp_layers), 'm') + "L";
}

}  // namespace windtunnel
