#pragma once

#include <algorithm>
#include <cstddef>
#include <limits>
#include <optional>
#include <vector>

#include "engine/program_simulator.hpp"
#include "platform/network.hpp"
#include "timeline/breakdown.hpp"

namespace windtunnel {

/// A pipeline that has come to repeat itself: `period` microbatches later every device does the same `duration` later.
struct SteadyState {
  int period = 0;
  Seconds duration{};
  std::vector<Breakdown> breakdowns;  ///< of a period, by device
  bool messages_met = false;          ///< on a link that can limit them
};

/// Reach of a schedule's passes, as `find` needs it.
struct SteadyShape {
  int microbatches = 0;
  int chunks = 1;  ///< model chunks a device holds
  int step =
      1;  ///< the order of passes repeats after so many microbatches (interleaved: the stages)
  int lag = 1;  ///< a pass depends on passes of at most so many microbatches before
};

/// Detects a steady state while a program is simulated.
///
/// Why what it finds is exact: in the middle of the iteration the order of passes is the same `step` microbatches later, and an op starts
/// when ops of its own and of the last `lag` microbatches have ended, so the times of `lag` consecutive microbatches determine those
/// of the next. When all of them, on every device and channel, come again shifted by one duration, so does everything after them until the
/// order changes at the end (for max-plus systems this is the cyclic regime: Baccelli et al., Synchronization and Linearity, 1992,
/// theorem 3.109).
///
/// Where messages of one pipeline meet on a link that can limit them (engine/link_flows.hpp), what is left of one also depends on those it met.
/// Then find() wants the times of 2 lag microbatches to come again. Passes and messages under way at one time belong to at most lag / 2
/// microbatches in a row. When the first of the 2 lag has ended everywhere, those under way belong to the first quarter; when these have
/// ended, to the first half, and have met none from before the 2 lag. So all that they met came again, and with it their rates, which follow
/// from the messages under way alone (max-min shares). Where messages of different pipelines meet, find() refuses: these are at unlike
/// microbatches, and like ones drift apart.
///
/// `breakdowns` listens too, and is told of everything first.
class SteadyStateListener final : public SimulationListener {
 public:
  SteadyStateListener(const ProgramSet& programs, const Network& network,
                      const BreakdownListener& breakdowns, SteadyShape shape);
  void on_compute(DeviceId, Stream, const Op&, const Work&, Seconds begin, Seconds end) override;
  void on_message(ChannelId, const Op& send, Bytes, Seconds posted, Seconds begin,
                  Seconds end) override;

  /// The shortest period, of at most `longest` microbatches, with which the last microbatches before the pipeline drains repeat.
  std::optional<SteadyState> find(int longest) const;
  /// Number of times kept for a program: memory in units of 8 bytes.
  static std::size_t num_times(const ProgramSet& programs, const SteadyShape& shape);

 private:
  static constexpr Seconds never{std::numeric_limits<double>::quiet_NaN()};
  Seconds& time(std::size_t row, std::uint32_t microbatch);
  /// Microbatches that must come again.
  int window() const { return (messages_met_ ? 2 : 1) * shape_.lag; }
  bool repeats(int period, Seconds duration) const;
  void occupy(PathId path, std::size_t pipeline, Seconds begin, Seconds end);
  int first_draining() const { return shape_.microbatches - shape_.lag; }
  /// Breakdowns are kept after the forward passes of microbatches from this one on, of each device's first chunk.
  int first_kept() const { return std::max(0, first_draining() - shape_.lag - shape_.step); }
  std::size_t place_of_breakdown(std::size_t device, int microbatch) const;
  Breakdown breakdown_of_period(std::size_t device, int period) const;

  const ProgramSet* programs_;
  const BreakdownListener* breakdowns_;
  std::vector<std::vector<LinkId>> links_of_path_;  ///< that can limit a message
  SteadyShape shape_;
  std::vector<Seconds> times_;  ///< of passes by device, chunk and phase, then of messages
  std::vector<Breakdown>
      so_far_;  ///< by device and microbatch, from first_kept() to before the draining
  struct OccupiedLink {
    Seconds busy_until{};
    std::size_t pipeline = none;  ///< whose messages it carries; `several`: of more than one
    bool has_meetings = false;
  };
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max(), several = none - 1;
  std::vector<OccupiedLink> links_;
  std::vector<std::size_t> pipeline_of_;  ///< by device: one of those that channels join
  bool messages_met_ = false;
};

}  // namespace windtunnel
