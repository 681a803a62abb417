#include "importers/trace_event_reader.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <memory>
#include <tuple>
#include <utility>

#include "core/json_value.hpp"
#include "importers/log_text.hpp"

namespace windtunnel::detail {
namespace {

/// Thrown where reading on makes no sense; the problems are noted.
struct Stop {};

constexpr std::size_t event_depth = 3;     ///< root object, list of events, event
constexpr std::size_t argument_depth = 4;  ///< and its args
constexpr std::int64_t latest = std::int64_t{1} << 62;

using Kind = TraceValue::Kind;

std::string pointer_of(const TraceEvent& event, const std::string& key) {
  return "/traceEvents/" + std::to_string(event.number) + "/" + key;
}

const char* words_for(Kind kind) {
  constexpr std::array words{"a number", "a string", "neither text nor number"};
  return words[static_cast<std::size_t>(kind)];
}

/// The last of a key counts.
const TraceValue* find(const std::vector<TraceValue>& values, std::string_view key) {
  const auto found = std::find_if(values.rbegin(), values.rend(),
                                  [&](const TraceValue& each) { return each.key == key; });
  return found == values.rend() ? nullptr : &*found;
}

const std::string nothing;

}  // namespace

std::optional<std::int64_t> to_nanoseconds_exactly(std::string_view text) {
  constexpr int decimals = 3;
  const bool negative = text.starts_with('-');
  std::string_view digits = text.substr(negative ? 1 : 0);
  if (digits.empty()) return std::nullopt;
  if (digits.find_first_not_of("0123456789.") != std::string_view::npos) {
    constexpr double nanoseconds_per_microsecond = 1000;
    const double value =
        number_in(text).value_or(static_cast<double>(latest)) * nanoseconds_per_microsecond;
    if (!(std::abs(value) < static_cast<double>(latest))) return std::nullopt;
    return std::llround(value);
  }
  const std::size_t point = digits.find('.');
  std::string whole(digits.substr(0, point));
  std::string rest(point == std::string_view::npos ? std::string_view() : digits.substr(point + 1));
  const bool round_up = rest.size() > decimals && rest[decimals] >= '5';
  rest.resize(decimals, '0');
  const auto value = whole_in(whole + rest);
  if (!value || *value >= latest) return std::nullopt;
  return (negative ? -1 : 1) * (*value + (round_up ? 1 : 0));
}

bool is_tar(std::string_view beginning) {
  constexpr std::size_t magic_at = 257;  // POSIX.1-1988, ustar header
  return beginning.size() > magic_at && beginning.substr(magic_at).starts_with("ustar");
}

const std::string& TraceEvent::field(std::string_view key) const {
  const TraceValue* value = find(fields, key);
  const bool is_time = key == "ts" || key == "dur", is_place = key == "pid" || key == "tid";
  if (value == nullptr || (!is_place && value->kind != (is_time ? Kind::number : Kind::string)))
    return nothing;
  return value->text;
}

const std::string& TraceEvent::argument(std::string_view key) const {
  const TraceValue* value = find(arguments, key);
  return value == nullptr ? nothing : value->text;
}

std::optional<std::int64_t> TraceEvent::whole_argument(std::string_view key) const {
  return whole_in(argument(key));
}

std::int64_t TraceEvent::correlation() const {
  const TraceValue* value = find(arguments, "correlation");
  return value != nullptr && value->kind == Kind::number ? whole_in(value->text).value_or(0) : 0;
}

void TraceEventReader::read(std::function<void(const TraceEvent&)> take) {
  take_ = std::move(take);
  try {
    if (is_tar(input_.beginning()))
      stop({}, "this is a tar archive, not a trace",
           "unpack it (tar -xf) and import the files in it");
    stream_json(input_, *this);
  } catch (const Stop&) {
    problems_.throw_if_any();
  } catch (const InputError& error) {
    for (const Problem& each : error.problems()) problems_.add(each);
    problems_.throw_if_any();
  }
  if (!has_events_)
    problem({}, "missing key \"traceEvents\": the list of the profiler's events",
            "a trace of PyTorch's profiler has one, written by export_chrome_trace");
}

void TraceEventReader::problem(const std::string& pointer, std::string message,
                               std::string suggestion) {
  const TextInput::Position at = input_.position();
  if (pointer.starts_with("/traceEvents/"))
    message += " in the event that ends at byte " + std::to_string(at.byte);
  Origin origin{OriginKind::file,
                std::make_shared<const SourceText>(SourceText{input_.name(), {}})};
  if (at.byte > 0) std::tie(origin.line, origin.column) = std::pair(at.line, at.column);
  problems_.add({std::move(origin), pointer, std::move(message), std::move(suggestion)});
  if (problems_.size() >= Problems::max_reported) throw Stop{};
}

void TraceEventReader::stop(const std::string& pointer, std::string message,
                            std::string suggestion) {
  problem(pointer, std::move(message), std::move(suggestion));
  throw Stop{};
}

bool TraceEventReader::has(const TraceEvent& event, const std::string& key) {
  if (!event.field(key).empty()) return true;
  const TraceValue* value = find(event.fields, key);
  const bool is_wrong = value != nullptr && (key == "ts" || key == "dur");
  problem(
      pointer_of(event, key),
      !is_wrong
          ? "missing key \"" + key + "\""
          : key + " is " + words_for(value->kind) +
                (value->text.empty() ? "" : " (" + text_for_message(JsonValue(value->text)) + ")"));
  return false;
}

std::optional<std::int64_t> TraceEventReader::optional_time(const TraceEvent& event,
                                                            const std::string& key) const {
  const auto time = to_nanoseconds_exactly(event.field(key));
  return time && *time >= 0 ? time : std::nullopt;
}

std::optional<std::int64_t> TraceEventReader::time(const TraceEvent& event,
                                                   const std::string& key) {
  if (!has(event, key)) return std::nullopt;
  const auto time = optional_time(event, key);
  if (!time)
    problem(pointer_of(event, key), key + " is " + event.field(key),
            "microseconds from 0 belong here");
  return time;
}

std::optional<std::int64_t> TraceEventReader::whole(const TraceEvent& event,
                                                    const std::string& key) {
  if (!has(event, key)) return std::nullopt;
  const auto number = whole_in(event.field(key));
  if (number && *number >= 0) return number;
  problem(pointer_of(event, key), key + " is " + event.field(key),
          "the number of a GPU belongs here");
  return std::nullopt;
}

void TraceEventReader::push() {
  if (keys_.size() == event_depth - 1 && in_events()) {
    event_.fields.clear();
    event_.arguments.clear();
    event_.number = num_events_++;
  }
  if (keys_.size() >= max_json_depth)
    stop({}, "nested deeper than " + std::to_string(max_json_depth) + " levels");
  keys_.emplace_back();
}

void TraceEventReader::on_object_begin() {
  if (keys_.size() == 1 && keys_.front() == "traceEvents")
    stop("/traceEvents", "traceEvents is an object, not a list");
  push();
}

void TraceEventReader::on_array_begin() {
  if (keys_.empty() && root_ == TraceRoot::object_or_list) keys_.emplace_back("traceEvents");
  if (keys_.empty())
    stop({}, "this is a list, not an object with \"traceEvents\"",
         "traces of PyTorch's profiler are objects");
  if (keys_.size() == 1 && keys_.front() == "traceEvents" && std::exchange(has_events_, true))
    stop("/traceEvents", "a second list of events");
  push();
}

void TraceEventReader::on_object_end() {
  keys_.pop_back();
  if (keys_.size() == event_depth - 1 && in_events()) take_(event_);
  if (keys_.size() == event_depth && keys_.front() == "distributedInfo" && !group_name_.empty())
    head_.group_descriptions[std::exchange(group_name_, {})] =
        std::exchange(group_description_, {});
}

void TraceEventReader::on_value(const std::string& value, Kind kind) {
  if (keys_.empty())
    return problem(
        {}, std::string("this is ") + words_for(kind) + ", not an object with \"traceEvents\"");
  if (in_events()) {
    constexpr std::size_t most_members = 1000;  // of one event: no profiler writes so many
    const bool is_argument = keys_.size() == argument_depth && keys_[2] == "args";
    std::vector<TraceValue>& members = is_argument ? event_.arguments : event_.fields;
    if ((is_argument || keys_.size() == event_depth) && members.size() < most_members)
      members.push_back({keys_.back(), value, kind});
    return;
  }
  if (keys_.size() == 1 && keys_.front() == "traceEvents")
    return problem("/traceEvents",
                   std::string("traceEvents is ") + words_for(kind) + ", not a list");
  take_head_value(value, kind);
}

void TraceEventReader::take_head_value(const std::string& value, Kind kind) {
  constexpr std::size_t most_head = std::size_t{64} << 20, least_value = 64;  // bytes
  if ((head_bytes_ += least_value + value.size()) > most_head)
    stop({}, "what stands beside the events is larger than 64 MiB");
  const std::string& part = keys_.front();
  const std::string& key = keys_.back();
  const bool is_number = kind == Kind::number;
  if (part == "distributedInfo" && keys_.size() == 2 && is_number) {
    if (key == "rank") head_.rank = whole_in(value).value_or(-1);
    if (key == "world_size") head_.world_size = whole_in(value).value_or(-1);
  } else if (part == "distributedInfo" && keys_.size() == 4 && keys_[1] == "pg_config") {
    if (key == "pg_name") group_name_ = value;
    if (key == "pg_desc") group_description_ = value;
  } else if (part == "deviceProperties" && keys_.size() == 3) {
    if (key == "id" && is_number) gpu_ = whole_in(value).value_or(-1);
    if (key == "name" && gpu_ >= 0) head_.gpus[gpu_] = value;
  } else if (part == "otherData" && keys_.size() == 2) {
    if (key == "generator") head_.generator = value;
    if (key == "name") head_.job = value;
  }
}

}  // namespace windtunnel::detail
