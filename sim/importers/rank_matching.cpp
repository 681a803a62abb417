#include <algorithm>
#include <charconv>
#include <cmath>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "importers/rank_verdict.hpp"

namespace windtunnel {
namespace {

/// What tells a group from others: how its ranks are written, its name, and the two ends of a message.
struct GroupKey {
  std::string ranks, name;
  bool is_message = false;
  std::int64_t source = -1, destination = -1;
  auto operator<=>(const GroupKey&) const = default;
};

/// One rank's calls in one group, in order.
struct RankCalls {
  std::size_t member = 0;
  std::vector<const CollectiveCall*> calls;
};

struct GroupCalls {
  RankGroup group;
  std::int64_t size = 0;  ///< as the calls say; 0: not said
  bool are_messages = false;
  std::vector<RankCalls> ranks;
};

class RankMatcher {
 public:
  explicit RankMatcher(const std::vector<RankTrace>& ranks) : ranks_(ranks) {}

  MatchedRanks match() {
    collect();
    for (auto& [key, group] : groups_) match(std::move(group));
    align_clocks();
    return std::move(matched_);
  }

 private:
  const std::string& name_in(std::size_t member, std::uint32_t name) const {
    return ranks_[member].names.at(name);
  }

  void collect() {
    for (std::size_t member = 0; member < ranks_.size(); ++member) {
      std::vector<const CollectiveCall*> calls;
      for (const CollectiveCall& call : ranks_[member].calls) calls.push_back(&call);
      std::stable_sort(calls.begin(), calls.end(),
                       [](const auto* a, const auto* b) { return a->begin < b->begin; });
      for (const CollectiveCall* call : calls) add(member, *call);
    }
  }

  void add(std::size_t member, const CollectiveCall& call) {
    const std::optional<GroupKey> key = key_of(member, call);
    if (!key) {
      ++matched_.num_unmatched;
      return;
    }
    GroupCalls& group = groups_[*key];
    group.group.name = key->name;
    group.are_messages = key->is_message;
    group.group.description = name_in(member, call.description);
    group.size = std::max(group.size, size_of(*key, call));
    if (group.ranks.empty() || group.ranks.back().member != member)
      group.ranks.push_back({member, {}});
    group.ranks.back().calls.push_back(&call);
  }

  static std::int64_t size_of(const GroupKey& key, const CollectiveCall& call) {
    if (key.is_message) return 2;
    if (const auto ranks = ranks_in(key.ranks)) return static_cast<std::int64_t>(ranks->size());
    return call.group_size;
  }

  /// Nothing where the ranks of the call are not known.
  std::optional<GroupKey> key_of(std::size_t member, const CollectiveCall& call) const {
    GroupKey key{name_in(member, call.ranks), name_in(member, call.group),
                 call.kind == CollectiveKind::message, -1, -1};
    if (!key.is_message)
      return key.ranks.empty() && key.name.empty() ? std::nullopt : std::optional(key);
    const auto ranks = ranks_in(key.ranks);
    const bool is_pair = (ranks && ranks->size() == 2) || call.group_size == 2;
    if (call.source >= 0 && call.destination >= 0 && call.source != call.destination) {
      std::tie(key.source, key.destination) = std::pair{call.source, call.destination};
      return key;
    }
    return is_pair ? std::optional(key) : std::nullopt;
  }

  void match(GroupCalls group) {
    RankGroup found = group.group;
    for (const RankCalls& rank : group.ranks) found.members.push_back(rank.member);
    const auto num_members = static_cast<std::int64_t>(found.members.size());
    found.is_whole = group.size == num_members;
    const bool too_many = group.size > 0 && num_members > group.size;
    if (found.members.size() < 2 || too_many) {
      for (const RankCalls& rank : group.ranks) matched_.num_unmatched += rank.calls.size();
      return;
    }
    const std::size_t number = matched_.groups.size();
    matched_.groups.push_back(std::move(found));
    // The numbers of messages count each rank's own, to and from all others.
    const bool numbered = !group.are_messages && have_sequence_numbers(group);
    const std::size_t count = group.ranks.front().calls.size();
    const bool same_counts =
        std::all_of(group.ranks.begin(), group.ranks.end(),
                    [&](const RankCalls& rank) { return rank.calls.size() == count; });
    std::map<std::int64_t, std::vector<std::pair<std::size_t, const CollectiveCall*>>> calls;
    for (const RankCalls& rank : group.ranks)
      for (std::size_t i = 0; i < rank.calls.size(); ++i)
        if (numbered || same_counts)
          calls[numbered ? rank.calls[i]->sequence : static_cast<std::int64_t>(i)].emplace_back(
              rank.member, rank.calls[i]);
        else
          ++matched_.num_unmatched;
    for (const auto& [at, parts] : calls) add_match(parts, group.ranks.size(), number);
  }

  static bool have_sequence_numbers(const GroupCalls& group) {
    return std::all_of(group.ranks.begin(), group.ranks.end(), [](const RankCalls& rank) {
      std::set<std::int64_t> numbers;
      return std::all_of(rank.calls.begin(), rank.calls.end(), [&](const CollectiveCall* call) {
        return call->sequence >= 0 && numbers.insert(call->sequence).second;
      });
    });
  }

  void add_match(const std::vector<std::pair<std::size_t, const CollectiveCall*>>& parts,
                 std::size_t size, std::size_t number) {
    const CollectiveCall& first = *parts.front().second;
    const bool agree = std::all_of(parts.begin(), parts.end(), [&](const auto& part) {
      return part.second->kind == first.kind && part.second->bytes == first.bytes;
    });
    if (!agree || parts.size() != size) {
      matched_.num_unmatched += parts.size();
      return;
    }
    MatchedCall call;
    call.group = number;
    call.kind = first.kind;
    call.bytes = first.bytes;
    for (const auto& [member, part] : parts) call.parts.push_back({member, part->begin, part->end});
    matched_.calls.push_back(std::move(call));
  }

  /// How far each rank's ends lie from the mean end of its calls, in each group: the median over calls.
  struct Lead {
    std::size_t group = 0;
    double nanoseconds = 0;
  };

  void align_clocks() {
    std::vector<std::vector<Lead>> leads = leads_of_ranks();
    std::vector<double> offsets(ranks_.size(), 0);
    constexpr int most_sweeps = 300;
    constexpr double settled = 10;  // ns, below what a profiler resolves
    for (int sweep = 0; sweep < most_sweeps; ++sweep) {
      double largest = 0;
      const std::vector<double> group_means = means_of_groups(offsets);
      for (std::size_t member = 0; member < ranks_.size(); ++member) {
        if (leads[member].empty()) continue;
        double sum = 0;
        for (const Lead& lead : leads[member]) sum += lead.nanoseconds + group_means[lead.group];
        const double offset = sum / static_cast<double>(leads[member].size());
        largest = std::max(largest, std::abs(offset - offsets[member]));
        offsets[member] = (offset + offsets[member]) / 2;  // damped: pairs would swing
      }
      if (largest < settled) break;
    }
    for (const double offset : offsets) matched_.clock_offsets.push_back(std::llround(offset));
    for (MatchedCall& call : matched_.calls)
      for (MatchedCall::Part& part : call.parts) {
        part.begin -= matched_.clock_offsets[part.member];
        part.end -= matched_.clock_offsets[part.member];
      }
  }

  std::vector<double> means_of_groups(const std::vector<double>& offsets) const {
    std::vector<double> means;
    for (const RankGroup& group : matched_.groups) {
      double sum = 0;
      for (const std::size_t member : group.members) sum += offsets[member];
      means.push_back(sum / static_cast<double>(group.members.size()));
    }
    return means;
  }

  std::vector<std::vector<Lead>> leads_of_ranks() const {
    std::map<std::pair<std::size_t, std::size_t>, std::vector<double>> leads;  // by rank and group
    for (const MatchedCall& call : matched_.calls) {
      const std::int64_t base = call.parts.front().end;
      double mean = 0;
      for (const auto& part : call.parts) mean += static_cast<double>(part.end - base);
      mean /= static_cast<double>(call.parts.size());
      for (const auto& part : call.parts)
        leads[{part.member, call.group}].push_back(static_cast<double>(part.end - base) - mean);
    }
    std::vector<std::vector<Lead>> found(ranks_.size());
    for (auto& [key, values] : leads) {
      const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
      std::nth_element(values.begin(), middle, values.end());
      found[key.first].push_back({key.second, *middle});
    }
    return found;
  }

  const std::vector<RankTrace>& ranks_;
  std::map<GroupKey, GroupCalls> groups_;
  MatchedRanks matched_;
};

}  // namespace

const MatchedCall::Part& MatchedCall::last() const {
  return *std::max_element(parts.begin(), parts.end(),
                           [](const Part& a, const Part& b) { return a.begin < b.begin; });
}

std::int64_t MatchedCall::lag() const {
  const Part& latest = last();
  std::optional<std::int64_t> before;
  for (const Part& part : parts)
    if (&part != &latest && (!before || part.begin > *before)) before = part.begin;
  return before ? latest.begin - *before : 0;
}

std::int64_t MatchedCall::transfer() const {
  const auto length = [](const Part& part) { return part.end - part.begin; };
  return length(*std::min_element(parts.begin(), parts.end(), [&](const Part& a, const Part& b) {
    return length(a) < length(b);
  }));
}

std::optional<std::vector<std::int64_t>> ranks_in(const std::string& text) {
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return std::nullopt;
  std::vector<std::int64_t> ranks;
  const char *at = text.data() + 1, *const end = text.data() + text.size() - 1;
  while (at < end) {
    std::int64_t rank = 0;
    const auto [next, error] = std::from_chars(at, end, rank);
    if (error != std::errc() || rank < 0) return std::nullopt;
    ranks.push_back(rank);
    at = next;
    while (at < end && (*at == ',' || *at == ' ')) ++at;
  }
  return ranks;
}

MatchedRanks match_ranks(const std::vector<RankTrace>& ranks) { return RankMatcher(ranks).match(); }

}  // namespace windtunnel
