#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <queue>
#include <set>
#include <span>
#include <tuple>
#include <utility>
#include <vector>

#include "platform/network.hpp"
#include "units/quantity.hpp"

namespace windtunnel::detail {

/// The flows that one link limits. They all have the same rate, so they end in an order that no change of that rate changes: the group
/// counts the bytes that it has served to each member, and a member ends when that count has reached its mark. A new rate costs the same
/// for one member and for a thousand.
class FlowGroup {
 public:
  struct Member {
    Bytes mark{};              ///< ends when so many bytes are served
    std::uint64_t number = 0;  ///< of this flow among all asked for: breaks ties
    std::uint32_t flow = 0;
  };
  /// Index of each flow in its group, by flow.
  using Places = std::vector<std::uint32_t>;

  bool empty() const { return members_.empty(); }
  /// In no order, but the first ends first.
  std::span<const Member> members() const { return members_; }
  const Member& first() const { return members_.front(); }
  Seconds end_of_first() const {
    return since_ + std::max(Bytes{0}, first().mark - served_) / rate_;
  }

  void set_rate(Seconds now, BytesPerSecond rate) {
    serve_until(now);
    rate_ = rate;
  }
  /// A flow that has `left` bytes to go.
  void add(Seconds now, Bytes left, Member member, Places& places) {
    if (members_.empty()) {
      served_ = Bytes{0};
      since_ = now;
    }
    serve_until(now);
    member.mark = served_ + left;
    members_.push_back(member);
    sift_up(members_.size() - 1, member, places);
  }
  struct Removed {
    Bytes left{};
    std::uint64_t number = 0;
  };
  Removed remove(Seconds now, std::uint32_t flow, Places& places) {
    serve_until(now);
    const std::size_t place = places[flow];
    const Member gone = members_[place];
    const Member last = members_.back();
    members_.pop_back();
    if (place < members_.size()) {
      if (place > 0 && before(last, members_[(place - 1) / 2])) {
        sift_up(place, last, places);
      } else {
        sift_down(place, last, places);
      }
    }
    return {std::max(Bytes{0}, gone.mark - served_), gone.number};
  }

 private:
  static bool before(const Member& a, const Member& b) {
    return a.mark != b.mark ? a.mark < b.mark : a.number < b.number;
  }
  void serve_until(Seconds now) {
    if (now == since_) return;
    served_ += rate_ * (now - since_);
    since_ = now;
  }
  void put(std::size_t place, const Member& member, Places& places) {
    members_[place] = member;
    places[member.flow] = static_cast<std::uint32_t>(place);
  }
  void sift_up(std::size_t place, const Member& member, Places& places) {
    for (; place > 0 && before(member, members_[(place - 1) / 2]); place = (place - 1) / 2)
      put(place, members_[(place - 1) / 2], places);
    put(place, member, places);
  }
  void sift_down(std::size_t place, const Member& member, Places& places) {
    for (std::size_t child = 2 * place + 1; child < members_.size(); child = 2 * place + 1) {
      if (child + 1 < members_.size() && before(members_[child + 1], members_[child])) ++child;
      if (!before(members_[child], member)) break;
      put(place, members_[child], places);
      place = child;
    }
    put(place, member, places);
  }

  std::vector<Member> members_;  ///< a binary heap
  Bytes served_{};               ///< to each member, until `since_`, since there was none
  Seconds since_{};
  BytesPerSecond rate_{};
};

/// Finds the link on which the next flow ends: one entry per link.
class EarliestLink {
 public:
  explicit EarliestLink(std::size_t num_links) : of_link_(num_links) {}

  /// Infinite when there is none.
  Seconds next_time() const {
    return entries_.empty() ? Seconds{std::numeric_limits<double>::infinity()}
                            : std::get<Seconds>(*entries_.begin());
  }
  std::uint32_t next_link() const { return std::get<std::uint32_t>(*entries_.begin()); }
  /// The flow `number` ends next on the link, at `time`.
  void set(std::uint32_t link, Seconds time, std::uint64_t number) {
    erase(link);
    of_link_[link] = {time, number, link};
    entries_.insert(*of_link_[link]);
  }
  void erase(std::uint32_t link) {
    if (of_link_[link]) entries_.erase(*std::exchange(of_link_[link], std::nullopt));
  }

 private:
  using Entry = std::tuple<Seconds, std::uint64_t, std::uint32_t>;  ///< numbers break ties
  std::set<Entry> entries_;
  std::vector<std::optional<Entry>> of_link_;
};

/// Flows that share links max-min fairly, and when the next of them ends.
///
/// Each flow is limited by one of its links, and all flows that a link limits have the same rate, the link's level:
///
///   level = (bandwidth - rates of the flows on the link that others limit) / number of flows that it limits
///
/// These are the max-min fair rates, and the only ones, if no link carries more than its bandwidth and no flow on a link that limits
/// some is faster than the link's level: then each flow has a saturated link on which none is faster (Bertsekas & Gallager, Data
/// Networks, 2nd edition 1992, section 6.5.2). A flow that comes or goes breaks this on its own links. These are repaired, the lowest
/// level first; a new level changes what the other links of its flows carry, and those are repaired where that breaks it for them.
/// Links whose level stays are never looked at. Should the repairs go round in circles, all is filled anew, link after link.
///
/// Levels are kept to `precision`, relatively: a link is left alone until what the others did to it sums up to that.
class MaxMin {
 public:
  /// `most_links`: of one flow. After `patience` repairs for each flow all is filled anew.
  MaxMin(std::span<const Link> links, std::size_t most_links, std::size_t patience = 50);

  struct NewFlow {
    std::uint32_t flow = 0;    ///< its place, free until now
    std::uint64_t number = 0;  ///< among all asked for: breaks ties
    Bytes bytes{};
  };
  /// A link that is named twice counts once. Rates are not settled after that.
  void enter(Seconds now, const NewFlow& flow, std::span<const LinkId> up,
             std::span<const LinkId> down);
  void leave(Seconds now, std::uint32_t flow);

  bool settled() const { return dirty_.empty(); }
  void settle(Seconds now);

  /// End of the flow that ends next, at the present rates. Infinite if there is none.
  Seconds next_end() const { return earliest_.next_time(); }
  std::uint32_t next_flow() const { return links_[earliest_.next_link()].group.first().flow; }

  std::size_t num_flows() const { return num_flows_; }
  BytesPerSecond rate(std::uint32_t flow) const { return links_[flows_[flow].limit].level; }
  /// Number of times a link was repaired so far.
  std::uint64_t num_repairs() const { return num_repairs_; }

 private:
  static constexpr double precision = 1e-13;
  static constexpr BytesPerSecond unlimited{std::numeric_limits<double>::infinity()};

  /// A flow on a link: the number of the flow times the most links of one, plus which of its links this is.
  using Crossing = std::uint32_t;
  struct Flow {
    std::uint32_t limit = 0;  ///< the link that limits it
    std::uint32_t num_links = 0;
  };
  struct LinkState {
    BytesPerSecond bandwidth{};
    BytesPerSecond foreign{};  ///< the rates of the flows on it that other links limit
    BytesPerSecond level = unlimited;
    std::uint32_t num_limited = 0;
    std::uint32_t repairs_until_recount = 0;
    bool dirty = false;  ///< waits for its repair
    /// A flow on it that another link limits may be faster than its level.
    bool overtaken = false;
    bool changed = false;  ///< its next end is to be found again
    std::vector<Crossing> crossings;
    FlowGroup group;  ///< the flows that it limits
  };
  /// A flow that may move to another link.
  struct Move {
    std::uint32_t flow = 0;
    std::uint32_t link = 0;  ///< that limits it now, or will
    BytesPerSecond rate{};   ///< the level there
  };

  std::uint32_t flow_of(Crossing crossing) const { return crossing >> shift_; }
  std::span<const std::uint32_t> links_of(std::uint32_t flow) const {
    return {&link_of_[std::size_t{flow} << shift_], flows_[flow].num_links};
  }
  void make_room(std::uint32_t flow);
  void put_on_links(std::uint32_t flow, std::span<const LinkId> up, std::span<const LinkId> down);
  void take_off_link(Crossing crossing);
  std::uint32_t likely_limit(std::uint32_t flow) const;

  void mark_dirty(std::uint32_t link, BytesPerSecond level);
  void mark_changed(std::uint32_t link);
  /// Changes the load of a link by `change`, at about `level`, for a flow that another link limits.
  void change_foreign(std::uint32_t link, BytesPerSecond change, BytesPerSecond level);
  void join(Seconds now, std::uint32_t link, Bytes left, std::uint64_t number, std::uint32_t flow);
  FlowGroup::Removed part(Seconds now, std::uint32_t flow);

  void repair(Seconds now, std::uint32_t link);
  BytesPerSecond level_of(const LinkState& link) const;
  void recount(std::uint32_t link);
  /// The flows on the link that it must limit from now on, in `moves_`, and its level then.
  BytesPerSecond find_captured(std::uint32_t link);
  /// The flows that other links must limit from now on, in `moves_`, and the level of this then.
  BytesPerSecond find_released(std::uint32_t link);
  Move lowest_other(std::uint32_t flow, std::uint32_t link) const;
  void capture(Seconds now, std::uint32_t link, BytesPerSecond level);
  void release(Seconds now, std::uint32_t link);
  void set_level(Seconds now, std::uint32_t link, BytesPerSecond level);
  void fill_anew(Seconds now);
  void find_next_ends();

  std::vector<LinkState> links_;
  EarliestLink earliest_;
  unsigned shift_ = 0;  ///< 2^shift: room for the links of one flow
  std::size_t patience_;
  std::vector<Flow> flows_;
  std::vector<std::uint32_t> link_of_;  ///< by crossing
  std::vector<std::uint32_t> place_;    ///< by crossing: in LinkState::crossings
  FlowGroup::Places group_places_;
  std::size_t num_flows_ = 0;
  std::uint64_t num_repairs_ = 0;
  using Dirty = std::pair<BytesPerSecond, std::uint32_t>;
  /// Levels of links that wait for their repair, the lowest first.
  std::priority_queue<Dirty, std::vector<Dirty>, std::greater<>> dirty_;
  std::vector<std::uint32_t> changed_;
  std::vector<Move> moves_, kept_;
};

}  // namespace windtunnel::detail
