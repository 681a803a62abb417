#include "importers/gpu_trace.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <initializer_list>
#include <limits>
#include <optional>
#include <unordered_map>

#include "core/mapped.hpp"
#include "core/utf8.hpp"
#include "core/work_note.hpp"
#include "importers/log_text.hpp"
#include "importers/tables.hpp"
#include "importers/trace_event_reader.hpp"

namespace windtunnel {
namespace {

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// True if one of `words` stands in `text` between characters that are no letters: "tp" in "mesh_tp".
bool has_word(const std::string& text, std::initializer_list<std::string_view> words) {
  const auto is_letter = [&](std::size_t at) {
    return at < text.size() && std::isalpha(static_cast<unsigned char>(text[at])) != 0;
  };
  for (const std::string_view word : words)
    for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1))
      if ((at == 0 || !is_letter(at - 1)) && !is_letter(at + word.size())) return true;
  return false;
}

/// The first kind of a list of tables/kernels.json of which a part is in the name; null: none.
const char* first_match(const std::string& name, const char* list) {
  static const JsonValue table = detail::parsed(detail::kernels_table);
  for (const JsonValue::Member& kind : table.find(list)->object())
    for (const JsonValue& part : kind.value.array())
      if (has(name, part.string())) return kind.key.c_str();
  return nullptr;
}

/// "dispatch" of "void deep_ep::internode::dispatch<false, 8>(int4*)".
std::string function_in(std::string_view kernel) {
  kernel = kernel.substr(0, kernel.find_first_of("<("));
  const std::size_t from = kernel.find_last_of(": ");
  return std::string(from == std::string_view::npos ? kernel : kernel.substr(from + 1));
}

using detail::TraceEvent;
using detail::TraceEventReader;

/// Numbers for names, so that an event holds four bytes of each.
class NameTable {
 public:
  std::uint32_t number_of(const std::string& name) { return find_or_add(name).first; }
  /// The number, and whether the name is new.
  std::pair<std::uint32_t, bool> find_or_add(const std::string& name) {
    const auto [found, is_new] =
        numbers_.try_emplace(name, static_cast<std::uint32_t>(names_.size()));
    if (is_new) names_.push_back(name);
    return {found->second, is_new};
  }
  std::vector<std::string> names() && { return std::move(names_); }
  const std::string& operator[](std::uint32_t number) const { return names_[number]; }

 private:
  std::unordered_map<std::string, std::uint32_t> numbers_;
  std::vector<std::string> names_;
};

/// True if one of the united times holds this moment.
bool holds(const Intervals& times, std::int64_t at) {
  const auto after =
      std::ranges::upper_bound(times, std::pair{at, std::numeric_limits<std::int64_t>::max()});
  return after != times.begin() && at < std::prev(after)->second;
}

struct Launch {
  std::uint32_t thread = 0;
  std::int64_t at = 0;
};

std::optional<GpuWork> work_of(const TraceEvent& event) {
  static const std::map<std::string, GpuWork> works{{"kernel", GpuWork::compute},
                                                    {"gpu_memcpy", GpuWork::copy},
                                                    {"gpu_memset", GpuWork::set},
                                                    {"launch", GpuWork::launching},
                                                    {"bubble", GpuWork::waiting}};
  const auto work = works.find(event.field("cat"));
  return event.field("ph") == "X" && work != works.end() ? std::optional(work->second)
                                                         : std::nullopt;
}

/// The phase that a kernel of our own traces is named after.
ComputePhase phase_named(const std::string& kernel) {
  static const std::map<std::string, ComputePhase> phases{
      {"forward", ComputePhase::forward},
      {"backward", ComputePhase::backward},
      {"weight gradient", ComputePhase::backward},
      {"optimizer", ComputePhase::optimizer},
      {"codec", ComputePhase::codec},
      {"encode", ComputePhase::codec},
      {"decode", ComputePhase::codec}};
  return value_in(phases, kernel, ComputePhase::unknown);
}

/// Bytes of one element by PyTorch's name of its type; 0 where it is unknown.
std::int64_t element_size(const std::string& type) {
  static const std::unordered_map<std::string, std::int64_t> sizes{
      {"Double", 8},   {"Long", 8}, {"Float", 4},         {"Int", 4},
      {"BFloat16", 2}, {"Half", 2}, {"Short", 2},         {"Byte", 1},
      {"Char", 1},     {"Bool", 1}, {"Float8_e4m3fn", 1}, {"Float8_e5m2", 1}};
  return value_in(sizes, type, 0);
}

/// Takes the events of a trace one by one.
class GpuTraceBuilder {
 public:
  explicit GpuTraceBuilder(TraceEventReader& reader) : reader_(reader) {}

  void take(const TraceEvent& event) {
    if (const auto work = work_of(event)) return take_work(event, *work);
    const std::string &phase = event.field("ph"), &name = event.field("name"),
                      &category = event.field("cat");
    if (phase == "M" && name == "process_name") {
      const std::string& process = event.argument("name");
      const auto pid = whole_in(event.field("pid"));
      if (!pid || process.empty()) return;
      keep(process.size());
      trace_.processes[*pid] = process;
    } else if (phase != "X") {
      return;
    } else if (category == "cuda_runtime" || category == "cuda_driver") {
      const auto at = reader_.optional_time(event, "ts");
      if (event.correlation() == 0 || !at) return;
      keep();
      launches_[event.correlation()] = {thread_of(event), *at};
    } else if (category == "user_annotation" && name.starts_with("ProfilerStep#")) {
      const auto begin = reader_.time(event, "ts"), length = reader_.time(event, "dur");
      if (!begin || !length || *length <= 0) return;
      keep(name.size());
      trace_.steps.push_back({name, *begin, *begin + *length});
    } else if (name.starts_with("autograd::engine::evaluate_function")) {
      take_time(event, backward_);
    } else if (name.starts_with("Optimizer.step#")) {
      take_time(event, optimizer_);
    }
  }

  GpuTrace finish() {
    const auto& head = reader_.head();
    trace_.kind = is_simulated() ? TraceKind::simulated : TraceKind::real;
    trace_.rank = head.rank;
    trace_.world_size = head.world_size;
    trace_.job = head.job;
    for (const auto& [number, name] : head.gpus)
      if (trace_.gpu.empty() || (!trace_.events.empty() && number == trace_.events.front().device))
        trace_.gpu = name;
    for (auto* times : {&backward_, &optimizer_})
      for (auto& [thread, of_thread] : *times) of_thread = united(std::move(of_thread));
    for (std::size_t i = 0; !launches_.empty() && i < trace_.events.size(); ++i) {
      GpuEvent& event = trace_.events[i];
      if (event.work != GpuWork::compute && event.work != GpuWork::set) continue;
      const auto found = launches_.find(correlations_[i]);
      if (found == launches_.end()) {
        trace_.unlaunched += event.phase == ComputePhase::unknown;
        continue;
      }
      const Launch& launch = found->second;
      const auto is_within = [&](const std::unordered_map<std::uint32_t, Intervals>& times) {
        const auto thread = times.find(launch.thread);
        return thread != times.end() && holds(thread->second, launch.at);
      };
      event.phase = is_within(optimizer_)  ? ComputePhase::optimizer
                    : is_within(backward_) ? ComputePhase::backward
                                           : ComputePhase::forward;
    }
    std::unordered_map<std::uint32_t, std::uint32_t> described;
    for (const auto& [number, name] : to_describe_)
      if (const auto found = head.group_descriptions.find(name);
          found != head.group_descriptions.end())
        described[number] = names_.number_of(found->second);
    const auto describe = [&](std::uint32_t& group) {
      if (const auto found = described.find(group); found != described.end()) group = found->second;
    };
    for (CollectiveCall& call : trace_.calls) describe(call.description);
    for (GpuEvent& event : trace_.events) {
      if (event.work != GpuWork::communication) continue;
      describe(event.group);
      event.comm = comm_class_of(names_[event.group]);
    }

    // Every process of our traces has the marks; steps that overlap are cut.
    std::vector<TraceStep> marked = std::exchange(trace_.steps, {});
    const auto time_of = [](const TraceStep& step) { return std::pair{step.begin, step.end}; };
    std::ranges::stable_sort(marked, {}, time_of);
    for (TraceStep& step : marked) {
      if (!trace_.steps.empty()) step.begin = std::max(step.begin, trace_.steps.back().end);
      if (step.begin < step.end) trace_.steps.push_back(std::move(step));
    }

    trace_.unknown_kernels.assign(unknown_.begin(), unknown_.end());
    std::ranges::sort(trace_.unknown_kernels, {}, [](const auto& kernel) {
      return std::pair{-kernel.second, kernel.first};
    });
    trace_.names = std::move(names_).names();
    return std::move(trace_);
  }

 private:
  bool is_simulated() const { return reader_.head().generator == "windtunnel"; }

  /// Counts one thing more, with a text of its own or none: what a hostile file repeats without end.
  void keep(std::size_t text = 0) {
    constexpr std::size_t most_kept = 10'000'000;  // some 200 bytes of memory each
    constexpr std::size_t things_of_text = 64;     // bytes, about what a thing takes as well
    kept_ += 1 + text / things_of_text;
    if (kept_ > most_kept)
      reader_.stop("/traceEvents", "more than 10 million pieces of work, launches and names",
                   "record fewer steps");
  }

  void take_work(const TraceEvent& text, GpuWork work) {
    const auto begin = reader_.time(text, "ts"), length = reader_.time(text, "dur");
    const auto device = reader_.whole(text, "pid");
    const bool named = reader_.has(text, "name");
    const bool on_stream = reader_.has(text, "tid");
    if (!begin || !length || !device || !named || !on_stream) return;
    keep();
    sum_ += *length;  // stays below 2^63 ns: no single one is longer than 2^62
    if (sum_ > std::int64_t{1} << 62)
      reader_.stop("/traceEvents", "the durations of all GPU work add up to more than 146 years",
                   "they are microseconds");
    GpuEvent event;
    event.work = work;
    std::string direction;  // "DtoH" of "Memcpy DtoH (Device -> Pinned)"
    if (const std::string& name = text.field("name"); work == GpuWork::copy) {
      const std::size_t from = name.find(' ');
      direction = from == std::string::npos
                      ? "other"
                      : name.substr(from + 1, name.find(' ', from + 1) - from - 1);
    }
    event.kind = work == GpuWork::compute ? kernel_kind(text.field("name"), event.work)
                                          : names_.number_of(direction);
    event.group = names_.number_of({});
    if (event.work == GpuWork::communication) {
      // The description of its group, or the name by which the head describes it.
      const std::string &name = text.argument("Process Group Name"),
                        &description = text.argument("Process Group Description");
      event.group = number_of_name(description.empty() ? name : description);
      if (description.empty() && !name.empty()) to_describe_.emplace(event.group, name);
    }
    event.stream = number_of_name(text.field("tid"));
    event.device = *device;
    trace_.device = text.whole_argument("device").value_or(*device);
    event.begin = *begin;
    event.end = *begin + *length;
    if (event.work == GpuWork::compute) event.phase = phase_named(text.field("name"));
    correlations_.push_back(text.correlation());
    trace_.events.push_back(event);
    if (work == GpuWork::compute) trace_.kernel_time += *length;
    if (event.work == GpuWork::compute && names_[event.kind] == unknown_kernels)
      unknown_[text.field("name")] += *length;
    if (event.work != GpuWork::communication || !names_[event.kind].starts_with("nccl")) return;
    if (is_simulated() && !text.argument("note").empty()) return;  // several calls, drawn as one
    keep();
    const std::string& name = text.argument("Collective name");
    CollectiveCall call;
    call.kind = collective_kind_of(name.empty() ? names_[event.kind] : name);
    call.group = number_of_name(text.argument("Process Group Name"));
    call.description = event.group;
    call.ranks = number_of_name(text.argument("Process Group Ranks"));
    call.group_size = text.whole_argument("Group size").value_or(0);
    constexpr std::int64_t most_elements = std::int64_t{1} << 50;
    const std::int64_t elements = std::max(text.whole_argument("In msg nelems").value_or(0),
                                           text.whole_argument("Out msg nelems").value_or(0));
    if (elements > 0 && elements < most_elements)
      call.bytes = elements * element_size(text.argument("dtype"));
    call.sequence = text.whole_argument("Seq").value_or(-1);
    call.source = text.whole_argument("Src Rank").value_or(-1);
    call.destination = text.whole_argument("Dst Rank").value_or(-1);
    call.begin = event.begin;
    call.end = event.end;
    trace_.calls.push_back(call);
  }

  /// The name of a kernel's kind; `work` becomes communication where it is that.
  std::uint32_t kernel_kind(const std::string& name, GpuWork& work) {
    const auto [found, is_new] = kinds_.try_emplace(name);
    auto& [kind, of_kernel] = found->second;
    if (is_new) {
      keep(name.size());
      const std::string communication = communication_in(name);
      of_kernel = communication.empty() ? GpuWork::compute : GpuWork::communication;
      const char* const computing = compute_kind_of(name);
      const bool is_ours = phase_named(name) != ComputePhase::unknown ||
                           (is_simulated() && computing == unknown_kernels);
      kind = names_.number_of(!communication.empty() ? communication : is_ours ? name : computing);
    }
    work = of_kernel;
    return kind;
  }

  std::uint32_t number_of_name(const std::string& name) {
    const auto [number, is_new] = names_.find_or_add(name);
    if (is_new) keep(name.size());
    return number;
  }

  void take_time(const TraceEvent& event, std::unordered_map<std::uint32_t, Intervals>& times) {
    const auto begin = reader_.optional_time(event, "ts");
    const auto length = reader_.optional_time(event, "dur");
    if (!begin || !length) return;
    keep();
    times[thread_of(event)].emplace_back(*begin, *begin + *length);
  }

  std::uint32_t thread_of(const TraceEvent& event) {
    const std::string name = event.field("pid") + "/" + event.field("tid");
    const auto [number, is_new] = threads_.find_or_add(name);
    if (is_new) keep(name.size() - 1);
    return number;
  }

  TraceEventReader& reader_;
  std::size_t kept_ = 0;  ///< things
  std::int64_t sum_ = 0;  ///< ns, of durations
  GpuTrace trace_;
  NameTable names_, threads_;
  std::unordered_map<std::string, std::pair<std::uint32_t, GpuWork>>
      kinds_;                                              ///< of kernels by name
  std::unordered_map<std::string, std::int64_t> unknown_;  ///< ns, of kernels of unknown names
  std::unordered_map<std::uint32_t, std::string> to_describe_;
  std::vector<std::int64_t> correlations_;  ///< of trace_.events; 0: none
  std::unordered_map<std::int64_t, Launch> launches_;
  std::unordered_map<std::uint32_t, Intervals> backward_, optimizer_;
};

}  // namespace

CommClass comm_class_of(std::string_view description) {
  const std::string text = lower_case(description);
  // Groups over several dimensions at once belong to none of them.
  if (has(text, "context") || has(text, "expert") || has_word(text, {"cp", "ep"}))
    return CommClass::other;
  if (has(text, "embedding")) return CommClass::embedding;
  const bool tensor = has(text, "tensor") || has_word(text, {"tp"});
  const bool pipeline = has(text, "pipeline") || has_word(text, {"pp"});
  const bool data = has_word(text, {"data", "dp", "ddp", "fsdp", "hsdp"});
  if (tensor + pipeline + data != 1) return CommClass::other;
  return tensor ? CommClass::tensor : pipeline ? CommClass::pipeline : CommClass::data;
}

std::string communication_in(std::string_view kernel) {
  if (kernel.starts_with("void ")) kernel.remove_prefix(5);
  if (kernel.starts_with("nccl")) {
    const std::size_t from = kernel.find('_');
    if (from == std::string_view::npos) return "nccl other";
    return "nccl " +
           std::string(kernel.substr(from + 1, kernel.find_first_of("_( ", from + 1) - from - 1));
  }
  const std::string name = lower_case(kernel);
  // An unnamed namespace holds no function: "(anonymous namespace)::multimem_all_reduce_kernel<…>(…)".
  constexpr std::string_view anonymous = "(anonymous namespace)::";
  if (const std::size_t at = kernel.find(anonymous); at != std::string_view::npos)
    kernel.remove_prefix(at + anonymous.size());
  const char* library = first_match(name, "communication");
  if (library == nullptr) return {};
  if (*library != '\0') return std::string(library) + " " + function_in(kernel);
  // Kernels that Inductor made ("triton_poi_fused_all_reduce_4") are called after all that they compute on, and products that reduce
  // their result ("gemm_allreduce") compute as well as communicate.
  return name.starts_with("triton_") || has(name, "gemm") ? "" : function_in(kernel);
}

const char* compute_kind_of(std::string_view kernel) {
  const char* kind = first_match(lower_case(kernel), "compute");
  return kind != nullptr ? kind : unknown_kernels;
}

Intervals united(Intervals intervals) {
  std::ranges::sort(intervals);
  Intervals result;
  for (const auto& each : intervals) {
    if (!result.empty() && each.first <= result.back().second)
      result.back().second = std::max(result.back().second, each.second);
    else
      result.push_back(each);
  }
  return result;
}

const char* name_of(GpuWork work) {
  constexpr std::array names{"compute", "communication", "memcpy",
                             "memset",  "launch gaps",   "bubble"};
  return names[static_cast<std::size_t>(work)];
}

CollectiveKind collective_kind_of(std::string_view name) {
  std::string letters;
  for (const char c : lower_case(name))
    if (std::isalpha(static_cast<unsigned char>(c)) != 0) letters += c;
  constexpr std::pair<const char*, CollectiveKind> kinds[]{
      {"allreduce", CollectiveKind::all_reduce},
      {"allgather", CollectiveKind::all_gather},
      {"reducescatter", CollectiveKind::reduce_scatter},
      {"alltoall", CollectiveKind::all_to_all},
      {"broadcast", CollectiveKind::broadcast},
      {"send", CollectiveKind::message},
      {"recv", CollectiveKind::message}};
  for (const auto& [part, kind] : kinds)
    if (has(letters, part)) return kind;
  return CollectiveKind::other;
}

double bus_factor(CollectiveKind kind, double num_ranks) {
  const double share = (num_ranks - 1) / num_ranks;
  if (kind == CollectiveKind::all_reduce) return 2 * share;
  const bool sends_shares = kind == CollectiveKind::all_gather ||
                            kind == CollectiveKind::reduce_scatter ||
                            kind == CollectiveKind::all_to_all;
  return sends_shares ? share : 1;
}

double GpuTrace::unknown_share() const {
  std::int64_t unknown = 0;
  for (const auto& [name, time] : unknown_kernels) unknown += time;
  return kernel_time > 0 ? static_cast<double>(unknown) / static_cast<double>(kernel_time) : 0;
}

GpuTrace read_gpu_trace(TextInput& input) {
  const WorkNoteScope reading("reading a trace", "bytes");
  TraceEventReader reader(input);
  GpuTraceBuilder builder(reader);
  reader.read([&](const TraceEvent& event) { builder.take(event); });
  GpuTrace trace = builder.finish();
  trace.file = input.name();
  if (trace.events.empty() && reader.problems().empty())
    reader.problem("/traceEvents", "no work of a GPU in the trace",
                   "record it with ProfilerActivity.CUDA");
  reader.problems().throw_if_any();
  return trace;
}

}  // namespace windtunnel
