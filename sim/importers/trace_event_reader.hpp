#pragma once

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

/// True if a file that begins like this is a tar archive.
bool is_tar(std::string_view beginning);

/// Frame around the events: an object with "traceEvents", or the list of events itself may be the file.
enum class TraceRoot { object, object_or_list };

/// A member of an event or of its arguments, as it was written.
struct TraceValue {
  std::string key, text;
  enum class Kind {
    number,
    string,
    word
  } kind = Kind::word;  ///< word: true, false or null, without a text
};

/// One event: the members that are no lists or objects, and those of its "args".
struct TraceEvent {
  std::vector<TraceValue> fields, arguments;
  std::size_t number = 0;  ///< in traceEvents

  /// Texts, numbers included; empty where absent. "ts" and "dur" must be numbers; "ph", "cat" and "name", strings.
  const std::string& field(std::string_view key) const;
  const std::string& argument(std::string_view key) const;
  /// An argument that is a whole number.
  std::optional<std::int64_t> whole_argument(std::string_view key) const;
  /// Correlation number of an event on the CPU and the work it launched; 0: none.
  std::int64_t correlation() const;
};

/// Fields of a trace besides its events.
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
  void read(std::function<void(const TraceEvent&)> take);

  const TraceHead& head() const { return head_; }
  Problems& problems() { return problems_; }

  /// A time in whole nanoseconds; a problem where it is missing, no number, or impossible.
  std::optional<std::int64_t> time(const TraceEvent& event, const std::string& key);
  /// The same for events that may as well be passed over.
  std::optional<std::int64_t> optional_time(const TraceEvent& event, const std::string& key) const;
  std::optional<std::int64_t> whole(const TraceEvent& event, const std::string& key);
  bool has(const TraceEvent& event, const std::string& key);
  void problem(const std::string& pointer, std::string message, std::string suggestion = {});
  /// A problem that makes reading on senseless; throws what read() catches.
  [[noreturn]] void stop(const std::string& pointer, std::string message,
                         std::string suggestion = {});

  void on_object_begin() override;
  void on_object_end() override;
  void on_array_begin() override;
  void on_array_end() override { keys_.pop_back(); }
  void on_key(std::string& key) override { keys_.back() = std::move(key); }
  void on_string(std::string& value) override { on_value(value, TraceValue::Kind::string); }
  void on_number(const std::string& text) override { on_value(text, TraceValue::Kind::number); }
  void on_word() override { on_value({}, TraceValue::Kind::word); }

 private:
  void push();
  void on_value(const std::string& value, TraceValue::Kind kind);
  void take_head_value(const std::string& value, TraceValue::Kind kind);
  bool in_events() const { return keys_.size() >= 2 && keys_.front() == "traceEvents"; }

  TextInput& input_;
  TraceRoot root_;
  std::function<void(const TraceEvent&)> take_;
  TraceHead head_;
  TraceEvent event_;
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
