#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "schedule/program.hpp"

namespace windtunnel {

/// One step of an order of waiting: an op that takes time or that others wait for, behind the steps it waits for.
struct WaitStep {
  /// It begins when both of these steps have ended. Steps are counted from 1 in the order of the visits; 0 is the start.
  std::uint32_t a = 0, b = 0;
  /// compute; send: its message, from the transfer to the arrival; collective: of all members; record: the event. wait: of no device,
  /// the step is no more than that both have ended.
  const Op* op = nullptr;
  DeviceId device;  ///< whose op it is; of a collective: the first member to enter
  Stream stream = Stream::compute;
};

/// A stream that never ends.
struct StuckStream {
  struct Provider {
    DeviceId device;
    Stream stream;
    const Op* op;
  };
  DeviceId device;
  Stream stream;
  const Op* op;  ///< where it stands
  /// The same op; of an exchange the first message that never arrives, if possible one that some program gives.
  const Op* awaited;
  /// The device that should give what is awaited, and its op; nothing where there is none.
  std::optional<DeviceId> from;
  std::optional<Provider> provider;
  std::size_t entered = 0;  ///< of a collective: how many members have
};

/// By channel: the slots of its messages in the order in which they go.
using MessageOrder = std::vector<std::vector<std::uint32_t>>;

/// The wait relation of `programs`, independent of durations: visits every op that takes time or that others wait for, each after those it
/// waits for. This is the only place except the program simulator that knows the rules; with durations a visitor has the longest path
/// (timeline/critical_path.cpp, search/placement_objective.cpp), without them what can never happen (schedule/schedule_check.cpp,
/// engine/program_check.cpp). The rules:
///  - A stream does one op after the other. A send hands its message over and goes on at once.
///  - A message starts behind the one before it in its channel, and in an exchange when both ends have posted it.
///  - A receive ends when its message has arrived, an exchange when all of its messages have, a wait when its event is recorded.
///  - A collective begins when all members have entered, and ends for all at once.
///
/// Device 0: compute F0, send; device 1: receive, compute F0. The visits:
///     1: compute F0 of device 0   waits for 0, 0
///     2: send of device 0         waits for 1, 0     the message, the first of its channel
///     3: compute F0 of device 1   waits for 0, 2     what its stream did before, and the message
/// An op that waits for more than two steps is preceded by steps that only mean "both have ended".
///
/// Messages of a channel go in the order of `messages`; first come, first served where it is empty, which is what the program simulator does
/// unless two streams of a device send into one channel. Returns the streams that never end, by device and stream.
std::vector<StuckStream> for_each_wait(const ProgramSet& programs,
                                       const std::function<void(const WaitStep&)>& visit,
                                       const MessageOrder& messages = {});

/// Streams that wait each for the next, and the last for the first. The lowest stands first.
using WaitCycle = std::vector<StuckStream>;
/// All there are; none: everyone waits for what nobody gives.
std::vector<WaitCycle> cyclic_waits(const std::vector<StuckStream>& stuck);
/// "stage 1 B0 waits for stage 2 B0, which comes after stage 2 F1, which waits for stage 1 F1, which comes after stage 1 B0", where
/// `name` has names for the ops that streams stand at, and for those that would give what is awaited.
std::string cycle_text(const WaitCycle& cycle,
                       const std::function<std::string(DeviceId, const Op*)>& name);

/// The stages of one pipeline as devices that run their programs, alone in their collectives.
ProgramSet one_pipeline(std::vector<StageProgram> programs);

}  // namespace windtunnel
