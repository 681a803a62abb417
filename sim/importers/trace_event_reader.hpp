#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/json_stream.hpp"
#include "core/problem.hpp"

/// The events of a trace file, one at a time.
namespace windtunnel::detail {

/// Whether a file that begins like this is a tar archive.
bool is_tar(std::string_view beginning);

enum class EventField { ts, dur, pid, tid, name };

/// An argument of an event that some importer reads. The first are PyTorch's words for a collective, the last those of the
/// traces of ByteDance-Seed/StragglerAnalysis.
enum class EventArgument {
  collective,
  in_elements,
  out_elements,
  element_type,
  group_size,
  group_ranks,
  sequence_number,
  source_rank,
  destination_rank,
  step,
  model_chunk,
  microbatch,
  sequence_id
};
inline constexpr std::size_t num_event_arguments = 13;

/// Frame around the events: an object with "traceEvents", or the list of events itself may be the file.
enum class TraceRoot { object, object_or_list };

/// Fields read of one event: texts as they were written, numbers included; empty where absent.
struct TraceEventText {
  std::string phase, category, name, pid, tid, ts, dur;
  std::string args_name, group_name, group_description;
  std::array<std::string, num_event_arguments> arguments;
  std::int64_t correlation = 0;                  ///< 0: none
  std::map<EventField, std::string> wrong_kind;  ///< "a string" where a number belongs
  std::size_t number = 0;                        ///< in traceEvents
  void clear();
  const std::string& argument(EventArgument which) const {
    return arguments[static_cast<std::size_t>(which)];
  }
  /// An argument that is a whole number.
  std::optional<std::int64_t> number_in(EventArgument which) const;
};

/// Fields of a trace beside its events.
struct TraceHead {
  std::int64_t rank = -1, world_size = -1;
  std::string generator, job;
  std::map<std::int64_t, std::string> gpus;
  std::map<std::string, std::string> group_descriptions;  ///< by the group's name
};

/// Streams a file and hands out its events; complains with file, line and byte.
class TraceEventReader final : public JsonListener {
 public:
  explicit TraceEventReader(TextInput& input, TraceRoot root = TraceRoot::object)
      : input_(input), root_(root) {}
  void read(std::function<void(const TraceEventText&)> take);

  const TraceHead& head() const { return head_; }
  Problems& problems() { return problems_; }

  /// A time in whole nanoseconds; a problem where it is missing, no number, or impossible.
  std::optional<std::int64_t> time(const TraceEventText& event, EventField field);
  /// The same for events that may as well be passed over.
  std::optional<std::int64_t> optional_time(const TraceEventText& event, EventField field) const;
  std::optional<std::int64_t> whole(const TraceEventText& event, EventField field);
  bool has(const TraceEventText& event, EventField field);
  void problem(const std::string& pointer, std::string message, std::string suggestion = {});
  /// A problem that makes reading on senseless; throws what read() catches.
  [[noreturn]] void stop(const std::string& pointer, std::string message,
                         std::string suggestion = {});

  void on_object_begin() override;
  void on_object_end() override;
  void on_array_begin() override;
  void on_array_end() override { pop(); }
  void on_key(std::string& key) override { keys_.back() = std::move(key); }
  void on_string(std::string& value) override { on_value(value, "a string"); }
  void on_number(const std::string& text) override;
  void on_word() override;

 private:
  void push();
  void pop() { keys_.pop_back(); }
  void on_value(const std::string& value, const char* kind);
  void take_event_value(const std::string& value, const char* kind);
  void take_argument(const std::string& value, const char* kind);
  void take_head_value(const std::string& value, const char* kind);
  bool in_events() const { return keys_.size() >= 2 && keys_.front() == "traceEvents"; }

  TextInput& input_;
  TraceRoot root_;
  std::function<void(const TraceEventText&)> take_;
  TraceHead head_;
  TraceEventText event_;
  Problems problems_;
  std::vector<std::string> keys_;               ///< of the open objects; lists have an empty one
  std::string group_name_, group_description_;  ///< of the group of pg_config that is open
  std::int64_t gpu_ = -1;
  std::size_t num_events_ = 0, head_bytes_ = 0;
  bool has_events_ = false;
};

/// Decimal microseconds as whole nanoseconds, exactly ("4458676416788.066"); nothing where the text is
/// no number or beyond 2^62 ns. More decimals than three are rounded; exponents are understood.
std::optional<std::int64_t> to_nanoseconds_exactly(std::string_view microseconds);

}  // namespace windtunnel::detail
