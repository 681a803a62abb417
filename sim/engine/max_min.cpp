#include "engine/max_min.hpp"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/contracts.hpp"

namespace windtunnel::detail {
namespace {

/// After this many repairs a link's load is summed up afresh, so that rounding errors do not accumulate.
constexpr std::uint32_t repairs_between_recounts = 256;

}  // namespace

MaxMin::MaxMin(std::span<const Link> links, std::size_t most_links, std::size_t patience)
    : links_(links.size()),
      earliest_(links.size()),
      shift_(static_cast<unsigned>(
          std::countr_zero(std::bit_ceil(std::max<std::size_t>(most_links, 1))))),
      patience_(patience) {
  for (std::size_t i = 0; i < links.size(); ++i) links_[i].bandwidth = links[i].bandwidth;
}

void MaxMin::make_room(std::uint32_t flow) {
  if (flow < flows_.size()) return;
  flows_.resize(flow + 1);
  group_places_.resize(flow + 1);
  link_of_.resize(flows_.size() << shift_);
  place_.resize(flows_.size() << shift_);
}

void MaxMin::put_on_links(std::uint32_t flow, std::span<const LinkId> up,
                          std::span<const LinkId> down) {
  const std::size_t begin = std::size_t{flow} << shift_;
  std::uint32_t count = 0;
  for (const auto& links : {up, down}) {
    for (const LinkId id : links) {
      const auto link = static_cast<std::uint32_t>(id.index());
      const auto first = link_of_.begin() + static_cast<std::ptrdiff_t>(begin);
      if (std::find(first, first + count, link) != first + count) continue;
      std::vector<Crossing>& crossings = links_[link].crossings;
      link_of_[begin + count] = link;
      place_[begin + count] = static_cast<std::uint32_t>(crossings.size());
      crossings.push_back(static_cast<Crossing>(begin + count));
      ++count;
    }
  }
  WT_EXPECT(count > 0 && count <= std::size_t{1} << shift_);
  flows_[flow].num_links = count;
}

void MaxMin::take_off_link(Crossing crossing) {
  LinkState& link = links_[link_of_[crossing]];
  const Crossing last = link.crossings.back();
  link.crossings.pop_back();
  if (last != crossing) {
    link.crossings[place_[crossing]] = last;
    place_[last] = place_[crossing];
  }
  if (link.crossings.empty()) link.foreign = BytesPerSecond{0};
}

/// A guess: the link on which the flow would get least if it were the one more that the link limits.
std::uint32_t MaxMin::likely_limit(std::uint32_t flow) const {
  std::uint32_t best = 0;
  BytesPerSecond least = unlimited;
  for (const std::uint32_t index : links_of(flow)) {
    const LinkState& link = links_[index];
    const BytesPerSecond free = link.bandwidth - link.foreign;
    const BytesPerSecond even = link.bandwidth / static_cast<double>(link.crossings.size());
    const BytesPerSecond share = std::max(even, free / static_cast<double>(link.num_limited + 1));
    if (share >= least) continue;
    least = share;
    best = index;
  }
  return best;
}

void MaxMin::enter(Seconds now, const NewFlow& flow, std::span<const LinkId> up,
                   std::span<const LinkId> down) {
  make_room(flow.flow);
  put_on_links(flow.flow, up, down);
  ++num_flows_;
  const std::uint32_t limit = likely_limit(flow.flow);
  LinkState& link = links_[limit];
  if (link.num_limited == 0) {
    const BytesPerSecond even = link.bandwidth / static_cast<double>(link.crossings.size());
    link.level = std::max(even, link.bandwidth - link.foreign);
    link.group.set_rate(now, link.level);
    link.overtaken = true;  // perhaps
  }
  join(now, limit, flow.bytes, flow.number, flow.flow);
  mark_dirty(limit, link.level);
  for (const std::uint32_t other : links_of(flow.flow))
    if (other != limit) change_foreign(other, link.level, link.level);
}

void MaxMin::leave(Seconds now, std::uint32_t flow) {
  const std::uint32_t limit = flows_[flow].limit;
  const BytesPerSecond rate = links_[limit].level;
  part(now, flow);
  if (links_[limit].num_limited > 0) mark_dirty(limit, rate);
  for (const std::uint32_t other : links_of(flow))
    if (other != limit) change_foreign(other, -rate, rate);
  const auto begin = static_cast<Crossing>(std::size_t{flow} << shift_);
  for (Crossing i = 0; i < flows_[flow].num_links; ++i) take_off_link(begin + i);
  --num_flows_;
  find_next_ends();  // another may end at the same time
}

void MaxMin::join(Seconds now, std::uint32_t index, Bytes left, std::uint64_t number,
                  std::uint32_t flow) {
  LinkState& link = links_[index];
  ++link.num_limited;
  flows_[flow].limit = index;
  link.group.add(now, left, {Bytes{0}, number, flow}, group_places_);
  mark_changed(index);
}

/// The flow leaves the group of the link that limits it.
FlowGroup::Removed MaxMin::part(Seconds now, std::uint32_t flow) {
  const std::uint32_t index = flows_[flow].limit;
  LinkState& link = links_[index];
  --link.num_limited;
  mark_changed(index);
  if (link.num_limited == 0) link.level = unlimited;
  return link.group.remove(now, flow, group_places_);
}

void MaxMin::mark_dirty(std::uint32_t index, BytesPerSecond level) {
  if (links_[index].dirty) return;
  links_[index].dirty = true;
  dirty_.emplace(level, index);
}

void MaxMin::mark_changed(std::uint32_t index) {
  if (links_[index].changed) return;
  links_[index].changed = true;
  changed_.push_back(index);
}

void MaxMin::change_foreign(std::uint32_t index, BytesPerSecond change, BytesPerSecond level) {
  LinkState& link = links_[index];
  link.foreign += change;
  if (link.num_limited > 0) {
    if (level > link.level * (1 + precision)) link.overtaken = true;
    mark_dirty(index, link.level);
  } else if (link.foreign > link.bandwidth * (1 + precision)) {
    mark_dirty(index, level);
  }
}

void MaxMin::settle(Seconds now) {
  const std::size_t most = (num_flows_ + 1) * patience_;
  for (std::size_t count = 0; !dirty_.empty(); ++count) {
    if (count == most) {
      fill_anew(now);
      break;
    }
    const std::uint32_t link = dirty_.top().second;
    dirty_.pop();
    links_[link].dirty = false;
    repair(now, link);
  }
  find_next_ends();
}

BytesPerSecond MaxMin::level_of(const LinkState& link) const {
  return (link.bandwidth - link.foreign) / static_cast<double>(link.num_limited);
}

void MaxMin::recount(std::uint32_t index) {
  LinkState& link = links_[index];
  link.repairs_until_recount = repairs_between_recounts;
  link.foreign = BytesPerSecond{0};
  for (const Crossing crossing : link.crossings) {
    const std::uint32_t limit = flows_[flow_of(crossing)].limit;
    if (limit != index) link.foreign += links_[limit].level;
  }
}

void MaxMin::repair(Seconds now, std::uint32_t index) {
  ++num_repairs_;
  LinkState& link = links_[index];
  if (link.repairs_until_recount == 0) recount(index);
  --link.repairs_until_recount;
  if (link.num_limited == 0) {
    if (link.foreign > link.bandwidth * (1 + precision)) capture(now, index, find_captured(index));
    return;
  }
  if (level_of(link) > link.level * (1 + precision)) {
    const BytesPerSecond kept = find_released(index);
    release(now, index);
    if (link.num_limited > 0) set_level(now, index, kept);
  }
  const bool overtaken = std::exchange(link.overtaken, false);
  if (link.num_limited > 0 && (overtaken || level_of(link) < link.level * (1 - precision)))
    capture(now, index, find_captured(index));
}

BytesPerSecond MaxMin::find_captured(std::uint32_t index) {
  recount(index);
  const LinkState& link = links_[index];
  moves_.clear();
  BytesPerSecond free = link.bandwidth - link.foreign;
  std::size_t count = link.num_limited;
  // Not above what the level will be: what is faster than that is a candidate.
  const BytesPerSecond floor = count > 0
                                   ? free / static_cast<double>(count)
                                   : link.bandwidth / static_cast<double>(link.crossings.size());
  for (const Crossing crossing : link.crossings) {
    const std::uint32_t flow = flow_of(crossing);
    const std::uint32_t limit = flows_[flow].limit;
    const BytesPerSecond rate = links_[limit].level;
    if (limit == index || rate <= floor * (1 + precision)) continue;
    moves_.push_back({flow, limit, rate});
    free += rate;
    ++count;
  }
  for (bool again = true; again;) {
    again = false;
    const BytesPerSecond level = free / static_cast<double>(count);
    for (std::size_t i = 0; i < moves_.size();) {
      if (moves_[i].rate > level || count == 1) {
        ++i;
        continue;
      }
      free -= moves_[i].rate;
      --count;
      moves_[i] = moves_.back();
      moves_.pop_back();
      again = true;
    }
  }
  return free / static_cast<double>(count);
}

void MaxMin::capture(Seconds now, std::uint32_t index, BytesPerSecond level) {
  LinkState& link = links_[index];
  if (link.num_limited > 0) set_level(now, index, level);
  for (const Move& move : moves_) {
    const FlowGroup::Removed removed = part(now, move.flow);
    link.foreign -= move.rate;
    if (link.num_limited == 0) {
      link.level = level;
      link.group.set_rate(now, level);
    }
    join(now, index, removed.left, removed.number, move.flow);
    for (const std::uint32_t other : links_of(move.flow)) {
      if (other == index) continue;
      change_foreign(other, other == move.link ? level : level - move.rate, level);
    }
  }
}

MaxMin::Move MaxMin::lowest_other(std::uint32_t flow, std::uint32_t index) const {
  Move lowest{flow, index, unlimited};
  for (const std::uint32_t other : links_of(flow)) {
    if (other == index || links_[other].level >= lowest.rate) continue;
    lowest.link = other;
    lowest.rate = links_[other].level;
  }
  return lowest;
}

BytesPerSecond MaxMin::find_released(std::uint32_t index) {
  const LinkState& link = links_[index];
  moves_.clear();
  kept_.clear();
  BytesPerSecond free = link.bandwidth - link.foreign;
  std::size_t count = link.num_limited;
  for (const FlowGroup::Member& member : link.group.members()) {
    const Move lowest = lowest_other(member.flow, index);
    if (lowest.rate < unlimited) kept_.push_back(lowest);
  }
  for (bool again = true; again && count > 0;) {
    again = false;
    const BytesPerSecond level = free / static_cast<double>(count);
    for (std::size_t i = 0; i < kept_.size();) {
      if (kept_[i].rate >= level * (1 - precision)) {
        ++i;
        continue;
      }
      moves_.push_back(kept_[i]);
      free -= kept_[i].rate;
      --count;
      kept_[i] = kept_.back();
      kept_.pop_back();
      again = true;
    }
  }
  return free / static_cast<double>(count);
}

void MaxMin::release(Seconds now, std::uint32_t index) {
  LinkState& link = links_[index];
  const BytesPerSecond before = link.level;
  for (const Move& move : moves_) {
    const FlowGroup::Removed removed = part(now, move.flow);
    link.foreign += move.rate;
    links_[move.link].foreign -= before;
    join(now, move.link, removed.left, removed.number, move.flow);
    mark_dirty(move.link, move.rate);
    for (const std::uint32_t other : links_of(move.flow))
      if (other != index && other != move.link)
        change_foreign(other, move.rate - before, move.rate);
  }
}

void MaxMin::set_level(Seconds now, std::uint32_t index, BytesPerSecond level) {
  LinkState& link = links_[index];
  const BytesPerSecond change = level - link.level;
  link.level = level;
  link.group.set_rate(now, level);
  mark_changed(index);
  for (const FlowGroup::Member& member : link.group.members())
    for (const std::uint32_t other : links_of(member.flow))
      if (other != index) change_foreign(other, change, level);
}

void MaxMin::fill_anew(Seconds now) {
  constexpr std::uint32_t none = 0xFFFFFFFF;
  std::vector<std::pair<std::uint32_t, FlowGroup::Removed>> unfilled;
  std::vector<std::size_t> num_unfilled(links_.size());
  dirty_ = {};
  for (std::size_t i = 0; i < links_.size(); ++i) {
    LinkState& link = links_[i];
    while (!link.group.empty()) {
      const std::uint32_t flow = link.group.first().flow;
      unfilled.emplace_back(flow, part(now, flow));
      flows_[flow].limit = none;
    }
    link.foreign = BytesPerSecond{0};
    num_unfilled[i] = link.crossings.size();
    link.dirty = num_unfilled[i] > 0;
    link.overtaken = false;
    if (link.dirty)
      dirty_.emplace(link.bandwidth / static_cast<double>(num_unfilled[i]),
                     static_cast<std::uint32_t>(i));
  }
  while (!dirty_.empty()) {
    const auto [lowest, index] = dirty_.top();
    dirty_.pop();
    LinkState& link = links_[index];
    link.dirty = false;
    if (num_unfilled[index] == 0) continue;
    const BytesPerSecond level =
        (link.bandwidth - link.foreign) / static_cast<double>(num_unfilled[index]);
    if (level > lowest) {  // others have taken less than this level of it
      mark_dirty(index, level);
      continue;
    }
    link.level = level;
    link.group.set_rate(now, level);
    for (const Crossing crossing : link.crossings) {
      const std::uint32_t flow = flow_of(crossing);
      if (flows_[flow].limit != none) continue;
      flows_[flow].limit = index;
      for (const std::uint32_t other : links_of(flow)) {
        --num_unfilled[other];
        if (other != index) links_[other].foreign += level;
      }
    }
  }
  for (const auto& [flow, removed] : unfilled)
    join(now, flows_[flow].limit, removed.left, removed.number, flow);
}

void MaxMin::find_next_ends() {
  for (const std::uint32_t index : changed_) {
    LinkState& link = links_[index];
    link.changed = false;
    if (link.num_limited == 0) {
      earliest_.erase(index);
    } else {
      earliest_.set(index, link.group.end_of_first(), link.group.first().number);
    }
  }
  changed_.clear();
}

}  // namespace windtunnel::detail
