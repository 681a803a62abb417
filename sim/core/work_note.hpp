#pragma once

#include <atomic>
#include <cstdint>

#include "core/interruption.hpp"

namespace windtunnel {

/// Current activity of this process, for the line that it prints when it has been silent for long. Lock-free, since the handler of a timer
/// reads it; state of the process, like the terminal that the line goes to.
struct WorkNote {
  std::atomic<const char*> doing = nullptr;  ///< "simulating"; null: nothing that takes long
  std::atomic<const char*> unit = nullptr;   ///< of `done`: "activities"; null: not counted
  std::atomic<std::uint64_t> done = 0;
};
inline WorkNote work_note;
inline thread_local int num_work_note_scopes = 0;  ///< open in this thread

/// Says what is being done until the end of its scope. A scope inside another one of its thread says nothing: a command that lists points counts points, not
/// the files that each point reads. Both texts live for ever.
class WorkNoteScope {
 public:
  explicit WorkNoteScope(const char* what, const char* unit = nullptr) {
    if (++num_work_note_scopes == 1) note(what, unit);
  }
  ~WorkNoteScope() {
    if (--num_work_note_scopes == 0) note(nullptr, nullptr);
  }
  WorkNoteScope(const WorkNoteScope&) = delete;
  WorkNoteScope& operator=(const WorkNoteScope&) = delete;

 private:
  static void note(const char* what, const char* unit) {
    work_note.doing = what;
    work_note.unit = unit;
    work_note.done = 0;
  }
};

/// Reports progress of the outermost scope. Costs no more than a load and a store; throws if the work is to end.
inline void count_done(std::uint64_t done) {
  constexpr std::uint64_t between_checks = 64;
  if (num_work_note_scopes <= 1) work_note.done.store(done, std::memory_order_relaxed);
  if (done % between_checks == 0) expect_not_interrupted();
}

}  // namespace windtunnel
