// The compiled half of the Python module `windtunnel`: reads, simulates, searches; results as JSON or as arrays that point into them.
// The public interface is in windtunnel/__init__.py.
#include <pybind11/functional.h>
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <algorithm>
#include <atomic>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include "codec/codec_command.hpp"
#include "core/interruption.hpp"
#include "evidence/evidence.hpp"
#include "evidence/interval.hpp"
#include "importers/importer.hpp"
#include "importers/trace_comparison.hpp"
#include "python_json.hpp"
#include "questions/compare.hpp"
#include "questions/explain.hpp"
#include "report/report_json.hpp"
#include "report/trace_slices.hpp"
#include "scenario/scenario.hpp"
#include "search/placement_search.hpp"
#include "search/rank.hpp"
#include "search/rank_command.hpp"
#include "search/search_space.hpp"
#include "simulate/neighbours.hpp"
#include "simulate/simulate.hpp"
#include "studies/job_run.hpp"
#include "sweep/results.hpp"
#include "sweep/row.hpp"
#include "validate/validate_command.hpp"

namespace py = pybind11;

namespace windtunnel::python {
namespace {

/// The library, and its residuals, read once.
struct LibraryHandle : Library {
  MeasuredErrors errors;

  explicit LibraryHandle(const std::string& root) : Library{root}, errors(read_evidence(*this)) {}
};

/// Pointer and value, as `set={...}` gives them.
using Settings = std::vector<std::pair<std::string, JsonValue>>;

/// The same as `--set` has them.
Overrides overrides_of(const Settings& settings) {
  Overrides overrides;
  for (const auto& [pointer, value] : settings)
    overrides.emplace_back(pointer, canonical_text(value));
  return overrides;
}

Settings settings_of(const py::dict& values) {
  Settings settings;
  for (const auto& [key, value] : values) {
    std::string pointer = text_of(key, "", "a key of set");
    JsonValue converted = to_json_value(value, pointer);
    settings.emplace_back(std::move(pointer), std::move(converted));
  }
  return settings;
}

std::size_t at_once(std::size_t threads) { return threads == 0 ? default_at_once() : threads; }

/// Does long work while other threads of Python run. Ctrl-C ends it with KeyboardInterrupt.
template <class Work>
auto without_gil(const Work& work) {
  const py::gil_scoped_release others_may_run;
  Interruption interruption([] {
    const py::gil_scoped_acquire locked;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
  });
  auto result = work();
  interruption.check();  // where the work took the exception for a result of a part
  return result;
}

/// A scenario whose files have been read: what a thousand simulations of it share.
class ScenarioHandle {
 public:
  ScenarioHandle(std::shared_ptr<const LibraryHandle> library, JsonValue merged,
                 std::filesystem::path folder, std::string name = {})
      : library_(std::move(library)),
        tree_(std::move(merged)),
        folder_(std::move(folder)),
        name_(std::move(name)),
        template_(tree_, folder_, *library_) {}

  Scenario read(Settings settings, std::uint64_t seed,
                LeftToCaller left = LeftToCaller::nothing) const {
    return template_.read({{}, seed, left, std::move(settings)});
  }
  /// The tree with values of `set`, and its sweep.
  JsonValue merged(const Settings& settings, std::uint64_t seed) const {
    return merged_scenario(tree_, folder_, *library_, {overrides_of(settings), seed});
  }
  Sweep sweep(const Settings& settings, std::uint64_t seed) const {
    return Sweep(merged(settings, seed), folder_, *library_, {overrides_of(settings), seed},
                 plan_chooser("/sweep/plan"));
  }
  const LibraryHandle& library() const { return *library_; }
  /// As commands call its file; empty: it is from no file.
  const std::string& name() const { return name_; }

 private:
  std::shared_ptr<const LibraryHandle> library_;
  JsonValue tree_;
  std::filesystem::path folder_;
  std::string name_;
  ScenarioTemplate template_;
};

std::shared_ptr<ScenarioHandle> scenario_of_file(
    const std::shared_ptr<const LibraryHandle>& library, const std::string& file,
    const std::string& name) {
  return without_gil([&] {
    const std::filesystem::path path(file);
    return std::make_shared<ScenarioHandle>(library, merged_scenario(path, *library),
                                            path.parent_path(), name);
  });
}

auto scenario_of_dict(const std::shared_ptr<const LibraryHandle>& library, const py::dict& value,
                      const std::string& folder) {
  return std::make_shared<ScenarioHandle>(library, to_json_value(value, ""), folder);
}

/// A report, and the simulation that its arrays point into.
struct ReportHandle {
  Scenario scenario;  ///< the network refers to its platform
  Simulation simulation;
  const Report& report() const { return simulation.report; }
};

/// Whoever drops the last reference to a simulation need not keep the others from running meanwhile.
void free_without_gil(ReportHandle* handle) {
  const bool holds_lock = PyGILState_Check() != 0;
  std::optional<py::gil_scoped_release> others_may_run;
  if (holds_lock) others_may_run.emplace();
  delete handle;
}

/// SimGrid's clock is never reset.
std::unique_ptr<Engine> make_only_simgrid(const Network& network) {
  static std::atomic<bool> was_made = false;
  if (was_made.exchange(true))
    throw UnsupportedError({{{},
                             {},
                             "engine simgrid simulates once in a process, and has done so",
                             "take native, or a new process"}});
  return make_simgrid_engine(network);
}

std::shared_ptr<ReportHandle> simulate_handle(const ScenarioHandle& handle, const py::dict& values,
                                              const std::string& engine, bool timeline,
                                              std::uint64_t seed) {
  return without_gil([&, settings = settings_of(values)] {
    std::shared_ptr<ReportHandle> result(new ReportHandle, free_without_gil);
    result->scenario = with_neighbours(handle.read(settings, seed, LeftToCaller::neighbours));
    const MakeEngine make_engine = engine == "simgrid" ? make_only_simgrid : engine_named(engine);
    result->simulation =
        simulate(result->scenario, {.make_engine = make_engine, .keep_timeline = timeline});
    if (!handle.library().errors.regimes.empty())
      add_interval(result->scenario, handle.library().errors, result->simulation.report);
    return result;
  });
}

/// The doubles that stand `stride` bytes apart from `first` on, as an array that keeps `owner` alive. No copy.
py::array view(const double* first, std::size_t count, std::size_t stride,
               const py::object& owner) {
  py::array_t<double> array({static_cast<py::ssize_t>(count)}, {static_cast<py::ssize_t>(stride)},
                            first, owner);
  array.attr("flags").attr("writeable") = false;
  return array;
}

/// A member of each element, in SI units.
template <class Element, class Member>
py::array column(const std::vector<Element>& elements, Member member, const py::object& owner) {
  const auto* const first =
      elements.empty() ? nullptr : reinterpret_cast<const double*>(&(elements.front().*member));
  return view(first, elements.size(), sizeof(Element), owner);
}

py::dict stage_times(const py::object& self) {
  const auto& handle = py::cast<const ReportHandle&>(self);
  const std::vector<StageTime>& stages = handle.report().stage_times;
  py::dict columns;
  for (const Line line : all_lines) {
    const auto index = static_cast<std::size_t>(line);
    if (!has_line(handle.report(), line)) continue;
    const auto* const first =
        stages.empty() ? nullptr
                       : reinterpret_cast<const double*>(&stages.front().breakdown.seconds[index]);
    columns[name_of(line)] = view(first, stages.size(), sizeof(StageTime), self);
  }
  columns["end"] = column(stages, &StageTime::end, self);
  return columns;
}

py::dict stage_memory(const py::object& self) {
  const auto& handle = py::cast<const ReportHandle&>(self);
  const std::vector<StageMemory>& stages = handle.report().memory.stages;
  py::dict columns;
  const auto add = [&](const char* name, Bytes StageMemory::*member) {
    columns[name] = column(stages, member, self);
  };
  add("weights", &StageMemory::weights);
  add("gradients", &StageMemory::gradients);
  add("optimizer", &StageMemory::optimizer);
  add("activations", &StageMemory::activations);
  add("buffers", &StageMemory::buffers);
  add("allocated", &StageMemory::allocated);
  add("reserved", &StageMemory::reserved);
  add("context", &StageMemory::context);
  add("total", &StageMemory::total);
  add("usable", &StageMemory::usable);
  return columns;
}

/// The texts of `names` at the places of `codes`, as an array.
py::object texts_of(const std::vector<std::uint8_t>& codes, const std::vector<std::string>& names) {
  return py::module_::import("numpy")
      .attr("array")(py::cast(names))
      .attr("take")(
          py::array_t<std::uint8_t>(static_cast<py::ssize_t>(codes.size()), codes.data()));
}

/// The names of an enumeration as far as its largest value among `codes`.
template <class Value>
std::vector<std::string> names_of(const std::vector<std::uint8_t>& codes) {
  std::vector<std::string> names(1, name_of(Value{}));
  const int last = codes.empty() ? 0 : *std::ranges::max_element(codes);
  for (int i = 1; i <= last; ++i) names.emplace_back(name_of(static_cast<Value>(i)));
  return names;
}

/// Microbatch of a span; none for what belongs to no single one.
std::int64_t microbatch_of(const Span& span) {
  return detail::is_of_microbatch(span.op.phase) ? std::int64_t{span.op.microbatch} : -1;
}

/// The compute spans: device, stage, kind, microbatch, chunk, stream, begin and end of each span.
py::dict timeline(const py::object& self) {
  const auto& spans = py::cast<const ReportHandle&>(self).simulation.timeline.computes;
  py::dict columns;
  columns["begin"] = column(spans, &Span::begin, self);
  columns["end"] = column(spans, &Span::end, self);
  const auto* const first =
      spans.empty() ? nullptr : reinterpret_cast<const std::uint32_t*>(&spans.front().device);
  static_assert(sizeof(DeviceId) == sizeof(std::uint32_t));
  py::array_t<std::uint32_t> devices({static_cast<py::ssize_t>(spans.size())},
                                     {static_cast<py::ssize_t>(sizeof(Span))}, first, self);
  devices.attr("flags").attr("writeable") = false;
  columns["device"] = devices;
  const Plan& plan = py::cast<const ReportHandle&>(self).scenario.plan;
  const auto count = static_cast<py::ssize_t>(spans.size());
  py::array_t<std::int64_t> stages(count), microbatches(count), chunks(count);
  std::vector<std::uint8_t> kinds, streams;
  for (std::size_t i = 0; i < spans.size(); ++i) {
    const Span& span = spans[i];
    const auto place = static_cast<py::ssize_t>(i);
    stages.mutable_at(place) =
        static_cast<std::int64_t>(plan.devices[span.device.index()].stage.index());
    microbatches.mutable_at(place) = microbatch_of(span);
    chunks.mutable_at(place) = span.op.chunk;
    kinds.push_back(static_cast<std::uint8_t>(span.op.phase));
    streams.push_back(static_cast<std::uint8_t>(span.stream));
  }
  columns["stage"] = stages;
  columns["microbatch"] = microbatches;
  columns["chunk"] = chunks;
  columns["kind"] = texts_of(kinds, names_of<Phase>(kinds));
  columns["stream"] = texts_of(streams, names_of<Stream>(streams));
  return columns;
}

std::string rank_text_of(const ScenarioHandle& handle, const py::dict& values, int top,
                         std::size_t threads, std::uint64_t seed) {
  return without_gil([&, settings = settings_of(values)] {
    const Scenario base = with_neighbours(
        on_segment_of_search(handle.read(settings, seed, LeftToCaller::neighbours_and_placement)));
    RankResult result = rank_plans(base, {.top = top, .at_once = at_once(threads)});
    place_ranked_plans(base, result);
    judge_plans(base, handle.library().errors, result);
    return json_of(rank_document(base, result));
  });
}

std::string explain_text_of(const ScenarioHandle& handle, const py::dict& values,
                            std::size_t threads, std::uint64_t seed) {
  return without_gil([&, settings = settings_of(values)] {
    const Scenario scenario =
        prepare_scenario(handle.read(settings, seed, LeftToCaller::neighbours_and_placement));
    Explained explained = explain(scenario, handle.library(), {at_once(threads)});
    if (!handle.name().empty())
      add_commands({handle.name(), overrides_of(settings), seed, "native"}, scenario,
                   explained.explanation);
    return pretty_text(explanation_value(explained.explanation));
  });
}

/// Rows as JSON objects, one a point, with speed-ups where the sweep has a baseline.
std::vector<std::string> sweep_rows(const ScenarioHandle& handle, const py::dict& values,
                                    std::size_t threads, std::uint64_t seed) {
  return without_gil([&, settings = settings_of(values)] {
    const Sweep sweep = handle.sweep(settings, seed);
    const RowMaker maker(sweep, {});
    std::vector<std::string> texts(sweep.points().size());
    run_on_threads(texts.size(), at_once(threads),
                   [&](std::size_t point) { texts[point] = maker.row(point); }, {});
    expect_not_interrupted();
    PartRows rows;
    for (std::size_t point = 0; point < texts.size(); ++point)
      rows.by_point[point] = *parse_row(texts[point]);
    rows = with_speedups(std::move(rows), sweep);
    for (auto& [point, row] : rows.by_point) texts[point] = std::move(row.line);
    return texts;
  });
}

/// `windtunnel job --json`: of each point where the scenario has a sweep.
std::string job_text(const ScenarioHandle& handle, const py::dict& values, std::size_t draws,
                     std::size_t threads, std::uint64_t seed) {
  return without_gil([&, settings = settings_of(values)] {
    const JobOptions options{draws, seed, at_once(threads)};
    const MeasuredErrors& errors = handle.library().errors;
    const JsonValue merged = handle.merged(settings, seed);
    if (const JsonValue* sweep = merged.find("sweep"); sweep != nullptr && !sweep->is_null()) {
      const Sweep points = handle.sweep(settings, seed);
      return json_of(job_points_document(points.name(), run_job_points(points, options, errors)));
    }
    const Scenario scenario =
        prepare_scenario(handle.read(settings, seed, LeftToCaller::neighbours_and_placement));
    return json_of(job_document(run_job(scenario, options, errors).result));
  });
}

/// One side of a comparison: a label with a file, a scenario and its `set`, or the report of a run.
using ComparedSide = std::tuple<std::string, py::object, py::dict>;

/// `windtunnel compare --json`. `toggle`: a pointer that the one scenario is compared without; empty: the scenarios are compared.
std::string compare_text(const std::shared_ptr<const LibraryHandle>& library,
                         const std::vector<ComparedSide>& sides, const std::string& toggle,
                         bool break_even, std::uint64_t seed) {
  struct Side {
    std::string label;
    std::variant<std::string, std::shared_ptr<ScenarioHandle>, JsonValue> content;
    Settings settings;
  };
  std::vector<Side> read;
  for (const auto& [label, content, values] : sides) {
    Side& side = read.emplace_back(Side{label, {}, settings_of(values)});
    if (py::isinstance<py::str>(content) || py::isinstance<py::bytes>(content))
      side.content = py::cast<std::string>(content);
    else if (py::isinstance<py::dict>(content))
      side.content = to_json_value(content, "");
    else
      side.content = py::cast<std::shared_ptr<ScenarioHandle>>(content);
  }
  return without_gil([&] {
    const auto options_of = [&](const Side& side) {
      return ReadOptions{overrides_of(side.settings), seed};
    };
    const auto scenario_of = [&](const ScenarioHandle& handle, const Settings& settings) {
      return with_neighbours(handle.read(settings, seed, LeftToCaller::neighbours));
    };
    std::vector<CompareInput> inputs;
    std::vector<TimelineInput> timelines;
    bool any_trace = false;
    for (const Side& side : read) {
      if (const auto* file = std::get_if<std::string>(&side.content)) {
        if (!toggle.empty()) {
          inputs = toggle_inputs(*file, *library, options_of(side), toggle);
        } else if (is_trace_file(*file)) {
          any_trace = true;
          timelines.push_back({side.label, std::filesystem::path(*file)});
          continue;
        } else {
          inputs.push_back(read_compare_input(*file, *library, options_of(side)));
          inputs.back().label = side.label;
        }
      } else if (const auto* handle = std::get_if<std::shared_ptr<ScenarioHandle>>(&side.content)) {
        if (!toggle.empty()) {
          Settings without = side.settings;
          without.emplace_back(toggled_pointer(toggle), JsonValue());
          inputs = toggle_inputs(scenario_of(**handle, without),
                                 scenario_of(**handle, side.settings), side.label, toggle);
        } else {
          inputs.push_back({side.label, scenario_of(**handle, side.settings)});
        }
      } else {
        inputs.push_back({side.label, std::get<JsonValue>(side.content)});
      }
      if (const auto* scenario = std::get_if<Scenario>(&inputs.back().content))
        timelines.push_back({side.label, *scenario});
    }
    if (!any_trace)
      return comparison_json(
          compare(inputs, *library, break_even ? BreakEvens::simulated : BreakEvens::none));
    if (timelines.size() < read.size())
      throw InputError({{{},
                         {},
                         "a report holds no timeline to lay beside a trace",
                         "give the scenario, or the trace of its run --trace"}});
    return timeline_comparison_json(compare_timelines(timelines, *library));
  });
}

/// `windtunnel codec --json` of a .npy file, or of a synthetic tensor.
std::string codec_text(const std::string& file, const std::string& synthetic, std::size_t rows,
                       std::size_t columns, const std::vector<std::string>& codecs,
                       const std::map<std::string, std::vector<double>>& settings, int messages,
                       std::uint64_t seed) {
  return without_gil([&] {
    std::ostringstream notes;
    return json_of(
        run_codec({file, synthetic, rows, columns, codecs, settings, messages, seed}, notes));
  });
}

/// `windtunnel import KIND INPUT… --json`.
std::string import_text(const LibraryHandle& library, const std::string& kind,
                        const std::vector<std::string>& inputs, const std::string& output,
                        const py::dict& values) {
  const auto text_at = [&](const char* key) {
    return values.contains(key) ? py::cast<std::string>(values[key]) : std::string();
  };
  const auto number_at = [&](const char* key) {
    return values.contains(key) ? py::cast<int>(values[key]) : 0;
  };
  ImportRequest request{
      kind,
      {inputs.begin(), inputs.end()},
      output,
      {text_at("base"), text_at("clean"), text_at("table"), text_at("unit"), number_at("rails"),
       number_at("sequence"), text_at("model"), text_at("args"), number_at("gpus")}};
  return without_gil([&] {
    std::ostringstream result, messages;
    run_import(request, ResultFormat::json, library, result, messages);
    return result.str();
  });
}

/// Which importers there are, and whether each always writes a file.
std::map<std::string, bool> importer_kinds() {
  std::map<std::string, bool> kinds;
  for (const Importer& importer : importers())
    kinds[importer.name] = importer.result == Importer::Result::file;
  return kinds;
}

/// The score of measurement sets, by path or name; none: all of the library's.
std::string validate_text(const LibraryHandle& library, const std::vector<std::string>& sets,
                          const std::vector<std::pair<std::string, std::string>>& overrides,
                          std::size_t threads) {
  return without_gil([&] {
    ValidateRequest request;
    request.sets = sets;
    request.overrides = overrides;
    request.format = ResultFormat::json;
    request.threads = threads;
    std::ostringstream result, messages;
    run_validate(request, library, result, messages);
    return result.str();
  });
}

std::string resolved(const ScenarioHandle& handle, const py::dict& values, std::uint64_t seed) {
  return canonical_text(handle.read(settings_of(values), seed).resolved);
}

void add_report(py::module_& module) {
  py::class_<ReportHandle, std::shared_ptr<ReportHandle>>(module, "ReportHandle")
      .def_property_readonly(
          "iteration_time_s",
          [](const ReportHandle& r) { return r.report().iteration_time.value(); })
      .def_property_readonly("samples_per_s",
                             [](const ReportHandle& r) { return r.report().samples_per_s; })
      .def_property_readonly("tokens_per_s",
                             [](const ReportHandle& r) { return r.report().tokens_per_s; })
      .def_property_readonly("mfu", [](const ReportHandle& r) { return r.report().mfu; })
      .def_property_readonly("hfu", [](const ReportHandle& r) { return r.report().hfu; })
      .def_property_readonly("fits", [](const ReportHandle& r) { return r.report().memory.fits; })
      .def_property_readonly(
          "memory_max_bytes",
          [](const ReportHandle& r) { return r.report().memory.max_total.value(); })
      .def(
          "json",
          [](const ReportHandle& r, bool memory) {
            return to_json(r.report(), memory ? TensorList::written : TensorList::left_out);
          },
          py::arg("memory") = false)
      .def("stage_times", [](const py::object& self) { return stage_times(self); })
      .def("stage_memory", [](const py::object& self) { return stage_memory(self); })
      .def("timeline", [](const py::object& self) { return timeline(self); });
}

/// Messages may name files in bytes that are no Unicode.
py::str text_for_python(const std::string& text) {
  return py::reinterpret_steal<py::str>(
      PyUnicode_DecodeUTF8(text.data(), static_cast<py::ssize_t>(text.size()), "replace"));
}

/// A problem as a dict: pointer, message, suggestion, file, line, column.
py::dict problem_dict(const Problem& problem) {
  py::dict dict;
  dict["pointer"] = text_for_python(problem.pointer);
  dict["message"] = text_for_python(problem.message);
  dict["suggestion"] = text_for_python(problem.suggestion);
  dict["file"] =
      text_for_python(problem.origin.source ? problem.origin.source->name : std::string());
  dict["line"] = problem.origin.line;
  dict["column"] = problem.origin.column;
  return dict;
}

/// Raises the Python class `name` of windtunnel.errors with the text and the problems.
void raise(const char* name, const std::string& text, const py::list& problems) {
  const py::object type = py::module_::import("windtunnel.errors").attr(name);
  const py::object error = type(text_for_python(text), problems);
  PyErr_SetObject(type.ptr(), error.ptr());
}

void translate(std::exception_ptr thrown) {
  try {
    if (thrown) std::rethrow_exception(thrown);
  } catch (const InputError& error) {
    py::list problems;
    for (const Problem& problem : error.problems()) problems.append(problem_dict(problem));
    const bool later = dynamic_cast<const UnsupportedError*>(&error) != nullptr;
    raise(later ? "UnsupportedError" : "InputError", error.what(), problems);
  } catch (const EnvironmentError& error) {
    raise("EnvironmentError", error.what(), py::list());
  } catch (const std::system_error& error) {
    raise("EnvironmentError", error.what(), py::list());
  } catch (const std::bad_alloc&) {
    PyErr_NoMemory();
  } catch (const py::error_already_set&) {
    throw;
  } catch (const py::builtin_exception&) {
    throw;
  } catch (const std::exception& error) {
    raise("InternalError", error.what(), py::list());
  }
}

}  // namespace

PYBIND11_MODULE(_windtunnel, module) {
  module.attr("version") = WINDTUNNEL_VERSION;
  py::register_exception_translator(translate);
  py::class_<LibraryHandle, std::shared_ptr<LibraryHandle>>(module, "Library")
      .def(py::init([](const std::string& root) { return LibraryHandle(root); }))
      .def("names", &LibraryHandle::names);
  py::class_<ScenarioHandle, std::shared_ptr<ScenarioHandle>>(module, "ScenarioHandle");
  add_report(module);
  module.def("scenario_of_file", scenario_of_file);
  module.def("scenario_of_dict", scenario_of_dict);
  module.def("resolved", resolved);
  module.def("simulate", simulate_handle);
  module.def("rank", rank_text_of);
  module.def("explain", explain_text_of);
  module.def("validate", validate_text);
  module.def("sweep", sweep_rows);
  module.def("job", job_text);
  module.def("compare", compare_text);
  module.def("codec", codec_text);
  module.def("import_file", import_text);
  module.def("importers", importer_kinds);
}

}  // namespace windtunnel::python
