#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "plan/step.hpp"
#include "schedule/program.hpp"

namespace windtunnel::detail {

/// Appends ops to the streams of a stage's program.
class OpWriter {
 public:
  void add(Stream stream, const Op& op);
  /// A row of the work table on the stream of the kernels.
  void work(Phase phase, std::uint16_t row, const Step& step);
  /// An encoder or decoder.
  void codec(Stream stream, Phase phase, std::uint16_t row, Traffic traffic, const Step& step);
  void collective(Stream stream, std::uint32_t slot, Phase phase, Traffic traffic,
                  const Step& step);
  /// Messages that are posted together, and end together.
  void exchange(const std::vector<Op>& messages);

  std::uint32_t new_event() { return program_.num_events++; }
  /// `kind`: record or wait. The traffic is what the event stands for.
  void event(Stream stream, OpKind kind, std::uint32_t number, Traffic traffic);
  /// `later` goes on when `earlier` has come so far.
  void order(Stream earlier, Stream later, Traffic traffic);

  std::vector<Op>& ops(Stream stream) { return program_.streams[static_cast<std::size_t>(stream)]; }
  StageProgram& program() { return program_; }
  StageProgram take() { return std::move(program_); }

 private:
  StageProgram program_;
};

}  // namespace windtunnel::detail
