#pragma once

#include <cstddef>
#include <vector>

#include "core/enum_array.hpp"
#include "core/enum_names.hpp"
#include "engine/program_simulator.hpp"

namespace windtunnel {

/// Lines of the breakdown. Each instant of a device's compute stream belongs to exactly one.
enum class Line {
  compute,
  tensor_comm,
  pipeline_comm,
  pipeline_bubble,  ///< waiting for what another stage has not sent: a message, or its part of the embedding's gradients
  data_comm,
  embedding_sync,
  codec,
  optimizer,
  other,
  // Left out of documents where there is none:
  expert_comm,
  context_comm,
  peer_wait,  ///< waiting for a collective that slower GPUs have not entered
};
inline constexpr auto all_lines = enumerators<Line>();
inline constexpr int num_lines = static_cast<int>(all_lines.size());

/// True if files have the line even if it is zero.
inline bool is_always_written(Line line) { return line < Line::expert_comm; }

/// The line of a part of a computing span.
Line line_of(Part part);
/// The line of waiting for something that is under way.
Line line_of(Phase cause);
/// The part of a wait in which others had not done theirs: sent the message, or entered the collective. It is counted on `line`; before it
/// (the device's own earlier work on the awaited stream) and after it (what is awaited is under way) the line is line_of(cause).
struct WaitForOthers {
  Seconds begin{}, end{};
  Line line = Line::peer_wait;
};
WaitForOthers wait_for_others(const Waiting& waiting);

/// Time of one device by cause; the lines add up to the time it ended (for the last device: the
/// iteration time).
struct Breakdown {
  EnumArray<Line, Seconds> seconds{};

  Seconds of(Line line) const { return seconds[line]; }
  void add(Line line, Seconds time) { seconds[line] += time; }
  Seconds total() const;
};

/// Adds up the breakdown of every device while a program is simulated.
///
/// A device's time is that of its compute stream; should another stream end later, what that one
/// did from then on counts. (The programs of sim/schedule end with the compute stream; a schedule
/// file need not.)
class BreakdownListener final : public SimulationListener {
 public:
  explicit BreakdownListener(std::size_t num_devices) : devices_(num_devices) {}
  void on_compute(DeviceId, Stream, const Op&, const Work&, Seconds begin, Seconds end) override;
  void on_wait(DeviceId, Stream, const Op&, const Waiting&) override;
  void on_device_end(DeviceId, Seconds end) override;
  const Breakdown& of(DeviceId device) const { return devices_[device.index()].breakdown; }

 private:
  /// A time on a stream, and its line.
  struct Piece {
    Line line;
    Seconds begin, end;
  };
  struct DeviceState {
    Breakdown breakdown;
    Seconds counted{};          ///< everything before this is in the breakdown
    std::vector<Piece> beyond;  ///< what other streams did after that, so far
  };
  void count(DeviceId device, Stream stream, Line line, Seconds begin, Seconds end);

  std::vector<DeviceState> devices_;
};

}  // namespace windtunnel
