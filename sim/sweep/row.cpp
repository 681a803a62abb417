#include "sweep/row.hpp"

#include <cmath>
#include <filesystem>
#include <memory>
#include <new>
#include <system_error>
#include <utility>

#include "core/contracts.hpp"
#include "core/hash.hpp"
#include "scenario/interval.hpp"
#include "scenario/measurement_set.hpp"
#include "scenario/unsupported.hpp"

namespace windtunnel {
namespace {

/// Members of an object on one line, in the order given.
class LineText {
 public:
  template <class Value>
  void add(const std::string& key, Value value) {
    add_text(key, canonical_text(JsonValue(JsonValue::Content(std::move(value)))));
  }
  void add_text(const std::string& key, const std::string& text) {
    text_ += (text_.empty() ? "" : ", ") + canonical_text(JsonValue(key)) + ": " + text;
  }
  const std::string& text() const { return text_; }

 private:
  std::string text_;
};

const char* name_of(FailureKind kind) {
  switch (kind) {
    case FailureKind::bad_input:
      return "bad_input";
    case FailureKind::unsupported:
      return "unsupported";
    case FailureKind::environment:
      return "environment";
    case FailureKind::our_bug:
      return "crash";
    case FailureKind::out_of_memory:
      return "out_of_memory";
    case FailureKind::out_of_time:
      return "out_of_time";
  }
  WT_UNREACHABLE();
}

std::string failure_text(const ChildFailure& failure) {
  LineText line;
  line.add("ok", false);
  line.add("failure", std::string(name_of(failure.kind)));
  line.add("error", failure.text);
  return line.text();
}

/// The problems without places in files: the point is the place.
std::string reason(const InputError& error) {
  std::string text;
  for (const Problem& problem : error.problems()) {
    text += (text.empty() ? "" : "; ") + problem.message;
    if (!problem.pointer.empty()) text += " at " + problem.pointer;
    if (!problem.suggestion.empty()) text += " (" + problem.suggestion + ")";
  }
  return text;
}

std::string figures_text(const Report& report, const std::optional<Interval>& interval) {
  LineText line;
  line.add("ok", true);
  line.add("gpus", std::int64_t{report.num_gpus});
  line.add("iteration_time_s", report.iteration_time / Seconds{1});
  if (interval) {
    JsonValue::Array ends;
    ends.emplace_back(interval->low / Seconds{1});
    ends.emplace_back(interval->high / Seconds{1});
    line.add("iteration_time_interval_s", std::move(ends));
  }
  line.add("samples_per_s", report.samples_per_s);
  line.add("tokens_per_s", report.tokens_per_s);
  line.add("model_tflops_per_gpu", report.model_flops_per_gpu / FlopsPerSecond{1e12});
  line.add("mfu", report.mfu);
  line.add("memory_max_bytes", std::round(report.memory.max_total / Bytes{1}));
  line.add("fits", report.memory.fits);
  return line.text();
}

std::vector<EvidenceRegime> evidence_of(const Library& library) {
  const std::filesystem::path file = library.root / "validation" / residuals_file;
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(file, ignored)) return {};
  return read_evidence(file);
}

}  // namespace

RowMaker::RowMaker(const Sweep& sweep, const PointLimits& limits)
    : sweep_(&sweep), limits_(limits), evidence_(evidence_of(sweep.library())) {}

std::string RowMaker::head(std::size_t point, const std::string& id) const {
  LineText line;
  line.add("point", static_cast<std::int64_t>(point));
  line.add("id", id);
  for (const auto& [pointer, value] : sweep_->points().values(point))
    line.add_text(pointer, canonical_text(value));
  return "{" + line.text() + ", ";
}

Candidate RowMaker::read(std::size_t point) const {
  Candidate candidate;
  candidate.point = point;
  candidate.id = id_of_unreadable(*sweep_, point);
  const auto fail = [&](FailureKind kind, std::string text) {
    candidate.scenario.reset();
    candidate.row = head(point, candidate.id) + failure_text({kind, std::move(text)}) + "}";
  };
  try {
    candidate.scenario = sweep_->scenario(point);
    candidate.id = candidate.scenario->hash;
    if (!limits_.memory) candidate.built = build(*candidate.scenario);
  } catch (const UnsupportedError& error) {
    fail(FailureKind::unsupported, reason(error));
  } catch (const InputError& error) {
    fail(FailureKind::bad_input, reason(error));
  } catch (const NotEnoughMemory& error) {
    fail(FailureKind::out_of_memory, error.what());
  } catch (const EnvironmentError& error) {
    fail(FailureKind::environment, error.what());
  } catch (const std::bad_alloc&) {
    fail(FailureKind::out_of_memory, "the scenario is too large to be read");
  } catch (const std::exception& error) {
    fail(FailureKind::our_bug, error.what());
  }
  return candidate;
}

std::string RowMaker::figures(const Scenario& scenario, const BuiltScenario& built) const {
  const Report report = simulate_key_figures(scenario, built);
  std::optional<Interval> interval;
  if (!evidence_.empty())
    interval = interval_from(evidence_, traits_of(scenario), report.iteration_time);
  return figures_text(report, interval);
}

std::string RowMaker::row(Candidate candidate) const {
  if (!candidate.scenario) return std::move(candidate.row);
  ForkedWork work;
  work.count = 1;
  work.most_time = limits_.time;
  work.most_memory = limits_.memory;
  work.work = [&](std::size_t) {
    if (!candidate.built) candidate.built = build(*candidate.scenario);
    return figures(*candidate.scenario, *candidate.built);
  };
  const ChildOutcome outcome = run_forked(work).front();
  const auto* failure = std::get_if<ChildFailure>(&outcome);
  return head(candidate.point, candidate.id) +
         (failure != nullptr ? failure_text(*failure) : std::get<std::string>(outcome)) + "}";
}

std::string RowMaker::failed_row(std::size_t point, const ChildFailure& failure) const {
  return head(point, id_of_unreadable(*sweep_, point)) + failure_text(failure) + "}";
}

std::string id_of_unreadable(const Sweep& sweep, std::size_t point) {
  std::string text = sweep.hash();
  for (const auto& [pointer, value] : sweep.points().values(point))
    text += pointer + "=" + canonical_text(value);
  return fnv1a_128_hex(text);
}

std::optional<Row> parse_row(const std::string& line) {
  Problems problems;
  Row row;
  row.content = parse_json(std::make_shared<const SourceText>(SourceText{"", line}), problems);
  if (!problems.empty() || !row.content.is_object()) return std::nullopt;
  const JsonValue* point = row.content.find("point");
  const JsonValue* ok = row.content.find("ok");
  if (point == nullptr || !point->is_integer() || ok == nullptr || !ok->is_bool())
    return std::nullopt;
  row.point = static_cast<std::size_t>(std::get<std::int64_t>(point->content));
  row.ok = std::get<bool>(ok->content);
  return row;
}

}  // namespace windtunnel
