#include "engine/max_min.hpp"

#include <algorithm>
#include <bit>

#include "core/contracts.hpp"

namespace windtunnel::detail {
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
  dirty_.push_back({level, index});
  std::push_heap(dirty_.begin(), dirty_.end(), HigherLevel{});
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
    std::pop_heap(dirty_.begin(), dirty_.end(), HigherLevel{});
    const std::uint32_t link = dirty_.back().link;
    dirty_.pop_back();
    links_[link].dirty = false;
    repair(now, link);
  }
  find_next_ends();
}

void MaxMin::find_next_ends() {
  for (const std::uint32_t index : changed_) {
    LinkState& link = links_[index];
    link.changed = false;
    if (link.num_limited == 0) {
      earliest_.erase(index);
    } else {
      earliest_.set({link.group.end_of_first(), link.group.first().number, index});
    }
  }
  changed_.clear();
}

}  // namespace windtunnel::detail
