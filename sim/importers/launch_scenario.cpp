#include "importers/launch_scenario.hpp"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "core/count_text.hpp"
#include "core/file_io.hpp"
#include "core/option_error.hpp"
#include "core/text_list.hpp"
#include "importers/base_platform.hpp"
#include "importers/log_text.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"

namespace windtunnel {
namespace {

/// "8" is a number, "true" a truth value, all else a text.
JsonValue value_of(const std::string& text) {
  if (text == "true" || text == "True") return JsonValue(true);
  if (text == "false" || text == "False") return JsonValue(false);
  if (const auto whole = whole_in(text)) return JsonValue(*whole);
  if (const auto number = number_in(text)) return JsonValue(*number);
  return JsonValue(text);
}

/// What a word of a setting is in a scenario; none where the table does not say.
const JsonValue* translation(const std::string& word, const JsonValue& words) {
  static const JsonValue left_out;
  if (const JsonValue* const on = words.find("on")) {
    if (word != "false" && word != "False") return on;
    const JsonValue* const off = words.find("off");
    return off != nullptr ? off : &left_out;
  }
  const JsonValue* const found = words.find(word);
  return found != nullptr ? found : words.find("*");
}

int int_at(const JsonValue& tree, const std::string& pointer, int fallback) {
  const JsonValue* const value = find_at(tree, pointer);
  return value != nullptr && value->is_integer()
             ? static_cast<int>(std::get<std::int64_t>(value->content))
             : fallback;
}

}  // namespace

LaunchScenario::LaunchScenario(const ImportRequest& request, const Library& library,
                               LaunchSettings settings, const detail::Asset& table)
    : request_(request), library_(library), settings_(std::move(settings)) {
  if (std::ranges::all_of(settings_.settings, &LaunchSetting::is_of_launcher))
    throw option_error("import", request.kind,
                       request.inputs.front().string() + " has no settings of a training program",
                       "give the script that starts it, with its options, or its configuration");
  imported_.notes = settings_.notes;
  const JsonValue known = detail::parsed(table);
  const JsonValue::Array& harmless = known.find("harmless")->array();
  std::vector<std::string> unused;
  std::map<std::string, const LaunchSetting*> last;
  for (const LaunchSetting& setting : settings_.settings) last[setting.key] = &setting;
  const auto is_open = [](const LaunchSetting& setting) {
    return setting.value.find("${") != std::string::npos;
  };
  for (const LaunchSetting& setting : settings_.settings) {
    if (last[setting.key] != &setting) continue;  // given again later
    if (const JsonValue* const meaning = known.find("keys")->find(setting.key))
      is_open(setting) ? note_open(setting, *meaning) : translate(setting, *meaning);
    else if (std::ranges::none_of(harmless, [&](const JsonValue& beginning) {
               return setting.key.starts_with(beginning.string());
             }))
      unused.push_back(setting.key + (setting.value.empty() ? "" : " " + setting.value));
  }
  if (!unused.empty()) note("not used, as no key of a scenario says it: " + listed(unused));
  std::erase_if(settings_.settings, is_open);
}

void LaunchScenario::note_open(const LaunchSetting& setting, const JsonValue& meaning) {
  if (meaning.is_string() && meaning.string().empty()) return;
  note("line " + std::to_string(setting.line) + ": " + setting.key + " " + setting.value +
       " cannot be evaluated, and is left out");
}

void LaunchScenario::translate(const LaunchSetting& setting, const JsonValue& meaning) {
  if (meaning.is_string()) {
    if (meaning.string().empty()) return;
    if (!setting.value.empty()) return set(meaning.string(), value_of(setting.value));
    return note("line " + std::to_string(setting.line) + ": the value of " + setting.key +
                " comes from outside the file, and is left out");
  }
  const auto& [pointer, origin, words] = meaning.object().front();
  if (const JsonValue* const value = translation(setting.value, words)) {
    if (!value->is_null()) set(pointer, JsonValue(value->content));
    return;
  }
  warn("line " + std::to_string(setting.line) + ": " + setting.key + " " + setting.value +
       " cannot be simulated, and is left out");
}

int LaunchScenario::at(const std::string& pointer, int fallback) const {
  return int_at(tree_, pointer, fallback);
}

bool LaunchScenario::has(const std::string& pointer) const {
  return find_at(tree_, pointer) != nullptr;
}

bool LaunchScenario::is(const std::string& pointer, std::string_view text) const {
  const JsonValue* const value = find_at(tree_, pointer);
  return value != nullptr && value->is_string() && value->string() == text;
}

void LaunchScenario::erase(const std::string& pointer) { erase_at(tree_, pointer); }

int LaunchScenario::gpus(int said) const {
  const int gpus = request_.options.gpus > 0 ? request_.options.gpus : said;
  if (gpus > 0) return gpus;
  throw option_error("import", request_.kind,
                     request_.inputs.front().string() + " does not say how many GPUs it runs on",
                     "give --gpus N");
}

/// The model that --model names, or the one whose sizes the file says.
void LaunchScenario::choose_model() {
  const std::string& name = request_.options.model;
  JsonValue sizes = has("/model") ? *find_at(tree_, "/model") : empty_object();
  if (name.empty()) {
    if (sizes.find("layers") == nullptr || sizes.find("hidden") == nullptr)
      throw option_error(
          "import", request_.kind,
          request_.inputs.front().string() + " does not say the model's layers and hidden size",
          "give --model MODEL: a name that `windtunnel list models` prints, or a "
          "path (import hf-config makes such a file)");
    complete_model(sizes);
    return set("/model", sizes);
  }
  JsonValue model = file_of_option("--model", name, model_files, library_);
  const int sequence = int_at(sizes, "/sequence", int_at(model, "/sequence", 0));
  if (sequence == int_at(model, "/sequence", 0)) return set("/model", absolute_if_path(name));
  add_members(model, {{"sequence", sequence}});
  set("/model", model);
}

/// A script seldom says the vocabulary: it is that of a model of the library with the same sizes.
void LaunchScenario::complete_model(JsonValue& model) {
  add_members(model, {{"name", request_.output.stem().string()},
                      {"source", request_.kind + " settings of " +
                                     request_.inputs.front().filename().string()}});
  if (model.find("family") == nullptr)
    add_members(model, {{"family", model.find("gated_mlp") != nullptr ? "llama" : "gpt"}});
  if (model.find("vocab") != nullptr) return;
  // Of several, the one with the same sequence: Llama 2 and 3 of 70 B differ in it.
  std::string alike;
  JsonValue vocabulary;
  for (const std::string& name : library_.names("models")) {
    const JsonValue known = file_of_option("--model", name, model_files, library_);
    const auto has_same = [&](const char* size, int otherwise) {
      return int_at(known, size, otherwise) == int_at(model, size, otherwise);
    };
    const bool has_same_sizes =
        has_same("/layers", 0) && has_same("/hidden", 0) && has_same("/heads", 0) &&
        has_same("/kv_heads", int_at(model, "/heads", 0)) && has_same("/moe/experts", 0);
    if (!has_same_sizes || (!alike.empty() && !has_same("/sequence", 0))) continue;
    alike = name;
    vocabulary = *known.find("vocab");
  }
  if (!alike.empty()) {
    model.set("vocab", vocabulary);
    return note("the size of the vocabulary is that of " + alike +
                ", whose layers have the same sizes");
  }
  // Tokenizers of GPT-2 (arXiv:2005.14165) and Llama 2 (arXiv:2307.09288).
  const int assumed = model.find("family")->string() == "llama" ? 32000 : 50257;
  add_members(model, {{"vocab", assumed}});
  warn("the file does not say the size of the vocabulary; " + count_text(assumed, "token") +
       " are assumed: see /model/vocab");
}

int LaunchScenario::gpus_per_node() const {
  const BasePlatform base(request_.options.base, library_);
  const std::vector<NodeType>& types = base.platform().node_types;
  return types.size() == 1 ? types.front().gpus : 0;
}

/// Whole nodes where the GPUs are some; else the replicas alone.
void LaunchScenario::place_on(int gpus) {
  const int of_node = gpus_per_node();
  if (of_node > 0 && gpus % of_node == 0) return set("/nodes", gpus / of_node);
  set("/parallel/data", gpus / gpus_of_replica());
}

int LaunchScenario::gpus_of_replica() const {
  return std::max(
      1, at("/parallel/tensor", 1) * at("/parallel/pipeline", 1) * at("/parallel/context", 1));
}

bool LaunchScenario::has_experts() const {
  const std::string& name = request_.options.model;
  if (name.empty()) return has("/model/moe");
  return file_of_option("--model", name, model_files, library_).find("moe") != nullptr;
}

Imported LaunchScenario::finish(const std::string& software, int gpus) {
  if (gpus % gpus_of_replica() != 0)
    throw option_error(
        "import", request_.kind,
        count_text(gpus, "GPU") + " are no multiple of " + std::to_string(gpus_of_replica()) +
            ", the tensor, pipeline and context degrees of " + request_.inputs.front().string(),
        "give another --gpus N");
  choose_model();
  if (at("/parallel/virtual_pipeline", 1) > 1 && !has("/parallel/schedule"))
    set("/parallel/schedule", "interleaved_1f1b");
  if (at("/parallel/zero_stage", 0) == 3) erase("/parallel/overlap_gradient_reduce");  // always
  place_on(gpus);

  JsonValue document = object_of({{"version", 1}, {"name", request_.output.stem().string()}});
  document.set("model", *find_at(tree_, "/model"));
  add_members(document, {{"platform", absolute_if_path(request_.options.base)}});
  if (has("/nodes")) document.set("nodes", *find_at(tree_, "/nodes"));
  // What the file says of the stack itself is laid over the profile.
  JsonValue stack = object_of({{"extends", software}});
  if (const JsonValue* const own = tree_.find("software"))
    for (const JsonValue::Member& member : own->object()) stack.set(member.key, member.value);
  document.set("software", stack.object().size() > 1 ? stack : JsonValue(software));
  for (const char* block : {"training", "parallel"})
    if (const JsonValue* value = tree_.find(block)) document.set(block, *value);
  const Scenario scenario = [&] {
    try {
      return read_scenario(document, request_.output.parent_path(), library_);
    } catch (const InputError& error) {
      if (request_.options.gpus > 0) throw;
      std::vector<Problem> problems = error.problems();
      problems.front().message += " (on " + count_text(gpus, "GPU") +
                                  ", as the file is read; --gpus N gives another number)";
      throw InputError(std::move(problems));
    }
  }();
  if (!has("/parallel/sequence_parallel") && scenario.plan.parallel.sequence_parallel)
    note("sequence_parallel is on, though the file does not say so: " +
         std::string(scenario.model.moe && scenario.plan.parallel.tensor > 1
                         ? "no stack runs experts with tensor parallelism otherwise"
                         : "it is the default of " + software));
  imported_.document = document;
  const double parameters = total_parameters(scenario.model);
  imported_.found = object_of({{"gpus", gpus}, {"parameters", parameters}, {"software", software}});
  imported_.text = file_name_of(request_.inputs.front()) + ": " + fixed_text(parameters / 1e9, 2) +
                   " billion parameters on " + count_text(gpus, "GPU") + "; `windtunnel run " +
                   request_.output.string() + "` simulates an iteration\n";
  return std::move(imported_);
}

}  // namespace windtunnel
