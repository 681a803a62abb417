#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

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
  /// Where each flow is in its group, by flow.
  using Places = std::vector<std::uint32_t>;

  bool empty() const { return members_.empty(); }
  std::size_t size() const { return members_.size(); }
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

}  // namespace windtunnel::detail
