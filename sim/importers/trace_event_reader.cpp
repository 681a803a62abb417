#include "importers/trace_event_reader.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <utility>

#include "core/json_value.hpp"

namespace windtunnel::detail {
namespace {

/// Thrown where reading on makes no sense; the problems are noted.
struct Stop {};

constexpr std::size_t event_depth = 3;     ///< root object, list of events, event
constexpr std::size_t argument_depth = 4;  ///< and its args
constexpr std::int64_t latest = std::int64_t{1} << 62;

const char* name_of(EventField field) {
  switch (field) {
    case EventField::ts:
      return "ts";
    case EventField::dur:
      return "dur";
    case EventField::pid:
      return "pid";
    case EventField::tid:
      return "tid";
    case EventField::name:
      return "name";
  }
  return "";
}

const std::string& text_of(const TraceEventText& event, EventField field) {
  switch (field) {
    case EventField::ts:
      return event.ts;
    case EventField::dur:
      return event.dur;
    case EventField::pid:
      return event.pid;
    case EventField::tid:
      return event.tid;
    case EventField::name:
      break;
  }
  return event.name;
}

std::optional<std::int64_t> to_whole(std::string_view text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::string pointer_of(const TraceEventText& event, EventField field) {
  return "/traceEvents/" + std::to_string(event.number) + "/" + name_of(field);
}

/// The arguments that are read, in the order of EventArgument.
constexpr std::array<std::string_view, num_event_arguments> argument_keys{
    "Collective name",     "In msg nelems", "Out msg nelems", "dtype",    "Group size",
    "Process Group Ranks", "Seq",           "Src Rank",       "Dst Rank", "step",
    "model_chunk",         "mb_id",         "seq_id"};

bool is_number_kind(const char* kind) { return std::string_view(kind) == "a number"; }

}  // namespace

std::optional<std::int64_t> to_nanoseconds_exactly(std::string_view text) {
  constexpr int decimals = 3;
  const bool negative = text.starts_with('-');
  std::string_view digits = text.substr(negative ? 1 : 0);
  if (digits.empty()) return std::nullopt;
  if (digits.find_first_not_of("0123456789.") != std::string_view::npos) {
    double value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
    constexpr double nanoseconds_per_microsecond = 1000;
    value *= nanoseconds_per_microsecond;
    if (!(std::abs(value) < static_cast<double>(latest))) return std::nullopt;
    return std::llround(value);
  }
  const std::size_t point = digits.find('.');
  std::string whole(digits.substr(0, point));
  std::string rest(point == std::string_view::npos ? std::string_view() : digits.substr(point + 1));
  const bool round_up = rest.size() > decimals && rest[decimals] >= '5';
  rest.resize(decimals, '0');
  const auto value = to_whole(whole + rest);
  if (!value || *value >= latest) return std::nullopt;
  return (negative ? -1 : 1) * (*value + (round_up ? 1 : 0));
}

bool is_tar(std::string_view beginning) {
  constexpr std::size_t magic_at = 257;  // POSIX.1-1988, ustar header
  return beginning.size() > magic_at && beginning.substr(magic_at).starts_with("ustar");
}

void TraceEventText::clear() {
  for (std::string* text : {&phase, &category, &name, &pid, &tid, &ts, &dur, &args_name,
                            &group_name, &group_description})
    text->clear();
  for (std::string& text : arguments) text.clear();
  correlation = 0;
  wrong_kind.clear();
}

std::optional<std::int64_t> TraceEventText::number_in(EventArgument which) const {
  return to_whole(argument(which));
}

void TraceEventReader::read(std::function<void(const TraceEventText&)> take) {
  take_ = std::move(take);
  if (is_tar(input_.beginning())) {
    problem({}, "this is a tar archive, not a trace",
            "unpack it (tar -xf) and import the files in it");
    problems_.throw_if_any();
  }
  try {
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
  Problem problem;
  problem.origin.kind = OriginKind::file;
  problem.origin.source = std::make_shared<const SourceText>(SourceText{input_.name(), {}});
  if (at.byte > 0) {
    problem.origin.line = at.line;
    problem.origin.column = at.column;
  }
  problem.pointer = pointer;
  problem.message = std::move(message);
  if (pointer.starts_with("/traceEvents/"))
    problem.message += " in the event that ends at byte " + std::to_string(at.byte);
  problem.suggestion = std::move(suggestion);
  problems_.add(std::move(problem));
  if (problems_.size() >= Problems::max_reported) throw Stop{};
}

void TraceEventReader::stop(const std::string& pointer, std::string message,
                            std::string suggestion) {
  problem(pointer, std::move(message), std::move(suggestion));
  throw Stop{};
}

bool TraceEventReader::has(const TraceEventText& event, EventField field) {
  if (!text_of(event, field).empty()) return true;
  const auto wrong = event.wrong_kind.find(field);
  problem(pointer_of(event, field), wrong == event.wrong_kind.end()
                                        ? std::string("missing key \"") + name_of(field) + "\""
                                        : std::string(name_of(field)) + " is " + wrong->second);
  return false;
}

std::optional<std::int64_t> TraceEventReader::optional_time(const TraceEventText& event,
                                                            EventField field) const {
  const auto time = to_nanoseconds_exactly(text_of(event, field));
  return time && *time >= 0 ? time : std::nullopt;
}

std::optional<std::int64_t> TraceEventReader::time(const TraceEventText& event, EventField field) {
  if (!has(event, field)) return std::nullopt;
  const auto time = optional_time(event, field);
  if (!time)
    problem(pointer_of(event, field), std::string(name_of(field)) + " is " + text_of(event, field),
            "microseconds from 0 belong here");
  return time;
}

std::optional<std::int64_t> TraceEventReader::whole(const TraceEventText& event, EventField field) {
  if (!has(event, field)) return std::nullopt;
  const auto number = to_whole(text_of(event, field));
  if (!number || *number < 0) {
    problem(pointer_of(event, field), std::string(name_of(field)) + " is " + text_of(event, field),
            "the number of a GPU belongs here");
    return std::nullopt;
  }
  return number;
}

void TraceEventReader::push() {
  if (keys_.size() == event_depth - 1 && in_events()) {
    event_.clear();
    event_.number = num_events_++;
  }
  if (keys_.size() >= max_json_depth) {
    stop({}, "nested deeper than " + std::to_string(max_json_depth) + " levels");
  }
  keys_.emplace_back();
}

void TraceEventReader::on_object_begin() {
  if (keys_.size() == 1 && keys_.front() == "traceEvents") {
    stop("/traceEvents", "traceEvents is an object, not a list");
  }
  push();
}

void TraceEventReader::on_array_begin() {
  if (keys_.empty() && root_ == TraceRoot::object_or_list) keys_.emplace_back("traceEvents");
  if (keys_.empty()) {
    stop({}, "this is a list, not an object with \"traceEvents\"",
         "traces of PyTorch's profiler are objects");
  }
  if (keys_.size() == 1 && keys_.front() == "traceEvents") {
    if (std::exchange(has_events_, true)) stop("/traceEvents", "a second list of events");
  }
  push();
}

void TraceEventReader::on_object_end() {
  pop();
  if (keys_.size() == event_depth - 1 && in_events()) take_(event_);
  if (keys_.size() == event_depth && keys_.front() == "distributedInfo" && !group_name_.empty())
    head_.group_descriptions[std::exchange(group_name_, {})] =
        std::exchange(group_description_, {});
}

void TraceEventReader::on_number(const std::string& text) { on_value(text, "a number"); }

void TraceEventReader::on_word() { on_value({}, "neither text nor number"); }

void TraceEventReader::on_value(const std::string& value, const char* kind) {
  if (keys_.empty()) {
    problem({}, std::string("this is ") + kind + ", not an object with \"traceEvents\"");
    return;
  }
  if (in_events()) {
    if (keys_.size() == event_depth) return take_event_value(value, kind);
    if (keys_.size() == argument_depth && keys_[2] == "args") return take_argument(value, kind);
    return;
  }
  if (keys_.size() == 1 && keys_.front() == "traceEvents")
    return problem("/traceEvents", std::string("traceEvents is ") + kind + ", not a list");
  take_head_value(value, kind);
}

void TraceEventReader::take_event_value(const std::string& value, const char* kind) {
  const std::string& key = keys_.back();
  const auto take_number = [&](std::string& text, EventField field) {
    if (is_number_kind(kind))
      text = value;
    else
      event_.wrong_kind[field] =
          kind + (value.empty() ? "" : " (" + text_for_message(JsonValue(value)) + ")");
  };
  const bool is_text = std::string_view(kind) == "a string";
  if (key == "ts") return take_number(event_.ts, EventField::ts);
  if (key == "dur") return take_number(event_.dur, EventField::dur);
  if (key == "pid") event_.pid = value;
  if (key == "tid") event_.tid = value;
  if (!is_text) return;
  if (key == "ph") event_.phase = value;
  if (key == "cat") event_.category = value;
  if (key == "name") event_.name = value;
}

void TraceEventReader::take_argument(const std::string& value, const char* kind) {
  const std::string& key = keys_.back();
  if (key == "correlation") {
    event_.correlation = is_number_kind(kind) ? to_whole(value).value_or(0) : 0;
  } else if (key == "Process Group Name") {
    event_.group_name = value;
  } else if (key == "Process Group Description") {
    event_.group_description = value;
  } else if (key == "name") {
    event_.args_name = value;
  } else if (const auto known = std::find(argument_keys.begin(), argument_keys.end(), key);
             known != argument_keys.end()) {
    event_.arguments[static_cast<std::size_t>(known - argument_keys.begin())] = value;
  }
}

void TraceEventReader::take_head_value(const std::string& value, const char* kind) {
  constexpr std::size_t most_head = std::size_t{64} << 20, least_value = 64;  // bytes
  if ((head_bytes_ += least_value + value.size()) > most_head)
    stop({}, "what stands beside the events is larger than 64 MiB");
  const std::string& part = keys_.front();
  const std::string& key = keys_.back();
  const bool is_number = is_number_kind(kind);
  if (part == "distributedInfo" && keys_.size() == 2 && is_number) {
    if (key == "rank") head_.rank = to_whole(value).value_or(-1);
    if (key == "world_size") head_.world_size = to_whole(value).value_or(-1);
  } else if (part == "distributedInfo" && keys_.size() == 4 && keys_[1] == "pg_config") {
    if (key == "pg_name") group_name_ = value;
    if (key == "pg_desc") group_description_ = value;
  } else if (part == "deviceProperties" && keys_.size() == 3) {
    if (key == "id" && is_number) gpu_ = to_whole(value).value_or(-1);
    if (key == "name" && gpu_ >= 0) head_.gpus[gpu_] = value;
  } else if (part == "otherData" && keys_.size() == 2) {
    if (key == "generator") head_.generator = value;
    if (key == "name") head_.job = value;
  }
}

}  // namespace windtunnel::detail
