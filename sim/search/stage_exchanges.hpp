#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "schedule/pass_groups.hpp"
#include "search/least_times.hpp"

namespace windtunnel {

/// The exchanges between the passes of a stage whose messages wait for both ends (PipelineSend::blocking_pairs): no pass runs during one, and
/// none of its messages is under way before the device enters it.
class StageExchanges {
 public:
  /// Of those up to the last backward pass in the stage's `order`. None where messages leave by themselves, or go other ways than round
  /// and round.
  StageExchanges(const Plan& plan, const std::vector<Step>& order, StageId stage);

  /// The least that all of them take, for the stage's device of one part of one replica: what the passes before have to send, or what those
  /// behind wait for, whichever takes longer.
  Seconds least(const LeastTimes& times, int replica, int part) const;

 private:
  /// Messages between stages: activations, gradients or both.
  struct Messages {
    bool activation = false, gradient = false;
    std::size_t index() const { return (activation ? 1U : 0U) + (gradient ? 2U : 0U); }
  };
  static constexpr std::size_t kinds = 4;  ///< of Messages

  void count(const std::vector<Step>& order);
  Messages sent(PassGroup group) const;
  Messages received(PassGroup group) const;

  const Plan& plan_;
  int stage_;
  /// By what is sent, then what is received.
  std::array<std::array<int, kinds>, kinds> exchanges_{};
  std::array<bool, kinds> is_sent_{}, is_received_{};  ///< in any of them
};

}  // namespace windtunnel
