#include "search/new_scenario.hpp"

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstddef>
#include <filesystem>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/count_text.hpp"
#include "core/json_value.hpp"
#include "core/option_error.hpp"
#include "core/text_list.hpp"
#include "core/utf8.hpp"
#include "plan/plan_check.hpp"
#include "report/json_object.hpp"
#include "report/number_text.hpp"
#include "report/terminal_text.hpp"
#include "scenario/key_table.hpp"
#include "scenario/overrides.hpp"
#include "scenario/scenario_files.hpp"
#include "scenario/search_block.hpp"
#include "search/rank.hpp"
#include "search/rank_command.hpp"
#include "units/quantity_reader.hpp"

namespace windtunnel {
namespace {

/// Llama 3 begins with batches of 4 M tokens (arXiv:2407.21783, section 3.4.1).
constexpr double tokens_of_a_batch = 4e6;
constexpr std::size_t simulations = 20;

/// A stack, and the precision that it trains in.
struct Stack {
  const char* software;
  const char* precision;
};
/// The newest first: GPUs that have no bf16 take the last.
constexpr std::array stacks{Stack{"megatron-core-2026", "bf16"}, Stack{"megatron-lm-2022", "fp16"}};

/// "llama3-70b" of "models/llama3-70b.json".
std::string stem(const std::string& name) {
  return looks_like_path(name) ? std::filesystem::path(name).stem().string() : name;
}

JsonValue numbers(const std::vector<int>& list) { return array_of(list, json_of<int>); }

/// Expert groups worth a try.
std::vector<int> expert_groups(const Scenario& scenario) {
  constexpr int most = 64;
  std::vector<int> groups;
  for (int group = 1; group <= most && group <= scenario.model.moe->experts; group *= 2)
    groups.push_back(group);
  return groups;
}

/// A number of samples that any number of replicas divides: a power of two for each GPU.
int batch_of(int sequence, int gpus) {
  const double of_gpu = tokens_of_a_batch / sequence / gpus;
  return gpus * static_cast<int>(std::exp2(std::max(0.0, std::round(std::log2(of_gpu)))));
}

/// The key of a search that the pointer names; null: of none.
const Key* axis_at(const std::string& pointer) {
  for (const SearchKey& searched : search_keys())
    if (searched.key->pointer == pointer && searched.key->name() != "precision")
      return searched.key;
  return nullptr;
}

/// Devices have files of their own, which a platform on top of another names whole.
bool is_of_platform(const std::string& pointer) {
  return pointer.starts_with("/platform/") && pointer.find("/device/") == std::string::npos;
}

/// Writes a value that was given into the scenario. Those of the platform go on top of the one that was asked for:
///   "platform": {"extends": "dgx-h100", "node_types": [{"nic_rate": "100 Gbps"}]}
void set_given(JsonValue& tree, const std::string& pointer, const JsonValue& value) {
  if (is_of_platform(pointer)) {
    JsonValue& platform = *tree.find("platform");
    if (!platform.is_object()) platform = object_of({{"extends", JsonValue(platform)}});
    constexpr std::string_view place = "/platform";
    constexpr std::size_t most_types = 100;  // of the command line: a slip fills no memory
    make_room_for_node_type(platform, std::string_view(pointer).substr(place.size()), most_types);
  }
  if (!set_at(tree, pointer, value))
    throw option_error("--set", pointer, "there is no such place",
                       "write it as in /platform/node_types/0/nic_rate");
}

/// Why `new` does not take this --set; empty where it does.
Problem refusal_of(const std::string& pointer, const JsonValue& value) {
  if (!pointer.starts_with('/'))
    return {{}, {}, pointer + " does not begin with /", "write --set /" + pointer + "=VALUE"};
  for (const auto& [taken, option] : {std::pair{"/training/global_batch", "--global-batch"},
                                      {"/training/lora_rank", "--lora-rank"}})
    if (pointer == taken)
      return {{}, {}, pointer + std::string(" has an option"), std::string("write ") + option};
  if (pointer == "/platform/extends")
    return {{}, {}, "the platform has an option", "write --platform"};
  const bool is_of_plan = pointer.starts_with("/training/") || pointer.starts_with("/parallel/");
  const bool is_key = is_of_plan && pointer.find('/', 1) == pointer.rfind('/');
  if ((!is_key && pointer != "/software" && !is_of_platform(pointer)) ||
      pointer == plan_keys::stage_layers)
    return {{},
            {},
            "new takes --set of /software, of keys of /training and /parallel and of /platform "
            "but its devices, not of " +
                pointer,
            "add it to run, or change it in the file that is written"};
  if (value.is_null())
    return {{}, {}, pointer + " has no value", "leave the --set out, or give it a value"};
  return {};
}

/// JSON pointers and what --set gives for them.
using GivenValues = std::vector<std::pair<std::string, JsonValue>>;

GivenValues values_of(const Overrides& overrides, Problems& problems) {
  GivenValues values;
  for (const auto& [pointer, text] : overrides) {
    values.emplace_back(pointer, value_of_override(pointer, text, problems));
    if (Problem refusal = refusal_of(pointer, values.back().second); !refusal.message.empty())
      problems.add(std::move(refusal));
  }
  return values;
}

/// Before the search: each GPU a replica. The axes of the search have their values from its lists.
JsonValue draft(const NewScenarioRequest& request, const GivenValues& given, const Stack& stack,
                int batch) {
  JsonValue training = object_of({{"global_batch", batch},
                                  {"micro_batch", 1},
                                  {"precision", stack.precision},
                                  {"recompute", "full"}});
  if (request.lora_rank) training.set("lora_rank", JsonValue(*request.lora_rank));
  const std::string model = absolute_if_path(request.model);
  JsonValue tree = object_of(
      {{"version", 1},
       {"name",
        stem(request.model) + "-" + std::to_string(request.gpus) + "x" + stem(request.platform)},
       {"model", request.sequence ? object_of({{"extends", model}, {"sequence", *request.sequence}})
                                  : JsonValue(model)},
       {"platform", absolute_if_path(request.platform)},
       {"software", stack.software},
       {"training", std::move(training)},
       {"parallel", object_of({{"tensor", 1}, {"pipeline", 1}, {"data", request.gpus}})}});
  for (const auto& [pointer, value] : given)
    if (axis_at(pointer) == nullptr) set_given(tree, pointer, value);
  return tree;
}

/// The draft with any plan that its batch allows.
Scenario read_draft(const JsonValue& tree, const Library& library) {
  return read_with_any_plan(tree,
                            [&](const std::vector<std::pair<std::string, JsonValue>>& values) {
                              ReadOptions options;
                              options.values = values;
                              return read_scenario(tree, {}, library, options);
                            });
}

/// The draft as the first stack reads it that trains on these GPUs; where none does, what is wrong for the one with the fewest problems.
std::pair<JsonValue, Scenario> readable_draft(const NewScenarioRequest& request,
                                              const GivenValues& given, const Library& library) {
  std::optional<InputError> least;
  for (const Stack& stack : stacks) try {
      JsonValue tree = draft(request, given, stack, request.gpus);
      Scenario scenario = read_draft(tree, library);
      const int batch =
          request.global_batch.value_or(batch_of(scenario.model.sequence, request.gpus));
      tree.find("training")->set("global_batch", JsonValue(batch));
      return {tree, std::move(scenario)};
    } catch (const InputError& error) {
      if (!least || error.problems().size() < least->problems().size()) least = error;
    }
  throw *least;
}

/// A job on more than one node takes whole nodes: refuses other counts, with those next to it.
void check_whole_nodes(const NewScenarioRequest& request, GivenValues given,
                       const Library& library) {
  NewScenarioRequest one_gpu = request;
  one_gpu.gpus = 1;
  std::erase_if(given, [](const auto& each) {
    return each.first != "/software" && !is_of_platform(each.first);
  });
  const Scenario least = readable_draft(one_gpu, given, library).second;
  const auto& types = find_at(least.resolved, "/platform/node_types")->array();
  const int of_node = least.plan.gpus_per_node;
  if (types.size() > 1 || request.gpus <= of_node || request.gpus % of_node == 0) return;
  const int fewer = request.gpus / of_node * of_node;
  throw InputError(
      {{{},
        {},
        count_text(request.gpus, "GPU") + " are " + count_text(fewer / of_node, "node") + " of " +
            std::to_string(of_node) + " and a part of one, and a job on several nodes of " +
            stem(request.platform) + " takes whole ones",
        "--gpus " + std::to_string(fewer) + " or --gpus " + std::to_string(fewer + of_node)}});
}

/// Lists for a search of a second.
JsonValue short_search(const Scenario& scenario, int zero_stage) {
  JsonValue search =
      object_of({{"recompute", array_of(std::vector<std::string>{"none", "selective", "full"})},
                 {"sequence_parallel", array_of(std::array{false, true})},
                 {"virtual_pipeline", numbers({1, 2, 4})},
                 {"schedule", array_of(std::vector<std::string>{"1f1b", "interleaved_1f1b"})},
                 {"zero_stage", numbers({zero_stage})}});
  if (zero_stage == 3 && scenario.software.no_sync)
    search.set("no_sync", array_of(std::array{true, false}));
  if (scenario.model.moe) search.set("expert", numbers(expert_groups(scenario)));
  // Parts of a sequence worth a try: powers of two, of as many tokens as samples usually have.
  constexpr int fewest_tokens = 8192, most = 16;
  std::vector<int> parts{1};
  if (scenario.plan.training.attention == Attention::flash)
    while (parts.back() < most && scenario.model.sequence / parts.back() > fewest_tokens)
      parts.push_back(parts.back() * 2);
  if (parts.size() > 1) search.set("context", numbers(parts));
  return search;
}

/// The draft with these lists: what is given in place of its list, of the others what the stack supports; those of which nothing is left go.
Scenario read_searched(JsonValue tree, JsonValue lists, const GivenValues& given,
                       const Library& library) {
  std::set<std::string> given_axes;
  for (const auto& [pointer, value] : given)
    if (const Key* const axis = axis_at(pointer)) {
      given_axes.insert(axis->name());
      lists.set(axis->name(), JsonValue(JsonValue::Array{value}, {}));
    }
  tree.set("search", lists);
  Scenario scenario = read_draft(tree, library);
  SearchLists& searched = scenario.search.values;
  for (const auto& [key, supported] : supported_values(scenario)) {
    const auto list = searched.find(key);
    if (list == searched.end() || given_axes.contains(key)) continue;
    std::erase_if(list->second, [&values = supported](int value) {
      return std::ranges::find(values, value) == values.end();
    });
    if (list->second.empty()) searched.erase(list);
  }
  return scenario;
}

/// The search that found a plan, or the last that was tried.
struct ShortSearch {
  RankResult found;
  std::size_t considered = 0;
};

/// The fastest plan that is sure to fit; where there is none, one that may fit. ZeRO 3 moves the most bytes, so it is tried last. A batch that
/// was asked for and that no plan takes is refused in terms of the request.
ShortSearch search_plan(const NewScenarioRequest& request, const GivenValues& given,
                        const JsonValue& tree, const Scenario& base, const Library& library) try {
  ShortSearch search;
  for (const MemoryVerdict gravest : {MemoryVerdict::fits, MemoryVerdict::lower_bound}) {
    search.considered = 0;
    for (const int zero_stage : {1, 3}) {
      if (!search.found.plans.empty()) continue;
      const Scenario searched =
          on_segment_of_search(read_searched(tree, short_search(base, zero_stage), given, library));
      if (zero_stage == 3 && !searched.search.values.contains("zero_stage")) continue;
      search.found = rank_plans(searched, {.top = 1, .budget = simulations, .gravest = gravest});
      search.considered += search.found.considered;
    }
    if (!search.found.plans.empty()) break;
  }
  return search;
} catch (const InputError& error) {
  if (!request.global_batch || error.problems().front().pointer != "/training/global_batch") throw;
  throw InputError(
      {{{},
        {},
        "no plan of " + count_text(request.gpus, "GPU") +
            " that was looked at takes a global batch of " +
            count_text(*request.global_batch, "sample"),
        "write --global-batch " + std::to_string(batch_of(base.model.sequence, request.gpus)) +
            ", or another number that replicas divide"}});
}

/// A key with its value, and what it means.
struct CommentedLine {
  std::string code, comment;
};

/// "  \"tensor\": 8,       // ways each layer is split": comments of lines that follow one another stand in one column.
std::string text_of(const std::vector<CommentedLine>& lines) {
  const auto has_comment = [](const CommentedLine& line) { return !line.comment.empty(); };
  std::string text;
  for (auto line = lines.begin(); line != lines.end(); ++line) {
    const auto end = std::find_if_not(line, lines.end(), has_comment);
    int width = 0;
    for (auto each = line; each != end; ++each) width = std::max(width, utf8_count(each->code));
    for (; line != end; ++line)
      text += left_aligned(line->code, width) + "  // " + line->comment + "\n";
    if (line == lines.end()) break;
    text += line->code + "\n";
  }
  return text;
}

/// The first part of what the key means, which is enough next to a value, or that of the value: "what replicas share: 3 weights too".
std::string meaning_of(const std::string& pointer, const std::string& value) {
  constexpr std::size_t long_text = 60;
  std::string meaning;
  for (const Key& key : key_table()) {
    if (key.pointer != pointer) continue;
    meaning = key.meaning.substr(0, key.meaning.find(';'));
    const std::string of_value = "; " + value + " ";
    if (const std::size_t at = key.meaning.find(of_value); at != std::string::npos)
      meaning = meaning.substr(0, meaning.find(':')) + ": " +
                key.meaning.substr(at + 2, key.meaning.find(';', at + 1) - at - 2);
  }
  // "what replicas share: 1 optimizer states" says nothing of 0.
  const std::size_t first = meaning.find(": ");
  const bool is_of_other = first != std::string::npos &&
                           !meaning.substr(first + 2).starts_with(value) &&
                           std::isdigit(static_cast<unsigned char>(meaning[first + 2])) != 0;
  return meaning.size() > long_text || is_of_other ? meaning.substr(0, meaning.find(':')) : meaning;
}

std::string as_file(const JsonValue& document, const std::string& heading, int gpus_per_node) {
  const auto comment_of = [&](const std::string& key) -> std::string {
    if (key == "nodes") return "of " + count_text(gpus_per_node, "GPU") + " each";
    for (const NamedPart& part : named_parts)
      if (key == part.key) return std::string("windtunnel list ") + part.kind->name;
    return {};
  };
  std::vector<CommentedLine> lines;
  const auto& members = document.object();
  for (const JsonValue::Member& member : members) {
    const std::string comma = &member == &members.back() ? "" : ",";
    if (!member.value.is_object()) {
      lines.push_back({"  \"" + member.key + "\": " + canonical_text(member.value) + comma,
                       comment_of(member.key)});
      continue;
    }
    lines.push_back({"  \"" + member.key + "\": {", {}});
    const auto& inner = member.value.object();
    for (const JsonValue::Member& each : inner)
      lines.push_back({"    \"" + each.key + "\": " + canonical_text(each.value) +
                           (&each == &inner.back() ? "" : ","),
                       meaning_of("/" + member.key + "/" + each.key, canonical_text(each.value))});
    lines.push_back({"  }" + comma, {}});
  }
  constexpr int widest_comment = 77;  // of 80 characters
  std::string text;
  for (const std::string& line : detail::wrapped(heading, widest_comment))
    text += "// " + line + "\n";
  return text + "{\n" + text_of(lines) + "}\n";
}

/// The plan that comes nearest, and what else could be done.
Problem none_fits(const NewScenarioRequest& request, const Scenario& base, const RankResult& found,
                  std::size_t considered) {
  const std::optional<RejectedPlan>& nearest = found.nearest;
  const auto is_set = [&](const char* pointer) {
    return std::ranges::any_of(request.overrides,
                               [&](const auto& each) { return each.first == pointer; });
  };
  const bool has_memory = nearest && nearest->memory;
  std::string why;
  if (nearest)
    why = (has_memory ? "; of the nearest, " : "; the first, ") +
          detail::plan_text(nearest->choice.training, nearest->choice.parallel) +
          (has_memory ? ", " + text_of(*nearest->memory)
                      : ": " + joined(nearest->shape, "; ",
                                      [](const PlanRejection& each) { return each.message; }));
  std::string advice = "take more GPUs, GPUs with more memory, or shorter samples (--sequence)";
  if (!request.lora_rank) {
    if (!is_set("/training/exp_avg_dtype"))
      advice +=
          "; --set /training/exp_avg_dtype=bf16 --set /training/exp_avg_sq_dtype=bf16 halves "
          "Adam's moments";
    advice += "; --lora-rank 16 trains adapters alone";
  } else if (!is_set("/training/frozen_dtype"))
    advice +=
        "; --set /software=transformers-2024 --set /training/frozen_dtype=nf4 keeps frozen weights "
        "in four bits";
  return {{},
          {},
          "none of the " + grouped_text(static_cast<double>(considered)) + " plans of " +
              stem(request.model) + " with " + base.software.name + " that were looked at " +
              (has_memory ? "fits on " : "can be laid out on ") + count_text(request.gpus, "GPU") +
              " of " + stem(request.platform) + why,
          has_memory ? advice : "change what --set gives, or --global-batch"};
}

}  // namespace

void check_values_of_new(const Overrides& overrides, Problems& problems) {
  values_of(overrides, problems);
}

NewScenario new_scenario(const NewScenarioRequest& request, const Library& library) {
  Problems problems;
  const GivenValues given = values_of(request.overrides, problems);
  problems.throw_if_any();
  check_whole_nodes(request, given, library);
  const auto [tree, base] = readable_draft(request, given, library);
  const auto [found, considered] = search_plan(request, given, tree, base, library);
  if (found.plans.empty()) throw InputError({none_fits(request, base, found, considered)});
  const RankedPlan& plan = found.plans.front();

  JsonValue document{JsonValue::Object{}};
  for (const char* key : {"version", "name", "model", "platform"})
    document.set(key, *tree.find(key));
  // With whole nodes, the number of replicas follows their number.
  const auto& types = find_at(base.resolved, "/platform/node_types")->array();
  const int gpus_per_node = static_cast<int>(number_of(types.front().find("gpus")).value_or(1));
  const bool has_whole_nodes = request.gpus % gpus_per_node == 0 && types.size() == 1;
  if (has_whole_nodes) document.set("nodes", JsonValue(request.gpus / gpus_per_node));
  document.set("software", *tree.find("software"));
  std::vector<std::string> training{"global_batch", "micro_batch", "precision", "recompute"},
      parallel{"tensor", "pipeline"};
  if (request.lora_rank) training.emplace_back("lora_rank");
  if (plan.choice.parallel.context > 1) parallel.emplace_back("context");
  if (!has_whole_nodes) parallel.emplace_back("data");
  if (plan.choice.parallel.virtual_pipeline > 1)
    parallel.insert(parallel.end(), {"virtual_pipeline", "schedule"});
  parallel.insert(parallel.end(), {"sequence_parallel", "zero_stage"});
  if (base.software.no_sync && plan.choice.parallel.scatters_in_passes() && plan.microbatches > 1)
    parallel.emplace_back("no_sync");
  if (base.model.moe) parallel.emplace_back("expert");
  for (const auto& [block, keys] : {std::pair{"training", training}, {"parallel", parallel}}) {
    JsonValue values{JsonValue::Object{}};
    for (const std::string& name : keys)
      for (const Key& key : key_table())
        if (key.pointer == std::string("/") + block + "/" + name)
          values.set(name, plan_value(key, key.value.get(plan.choice)));
    document.set(block, values);
  }
  if (const std::vector<int>& layers = plan.choice.parallel.stage_layers; !layers.empty())
    document.find("parallel")->set("stage_layers", numbers(layers));
  for (const auto& [pointer, value] : given)
    if (!is_of_platform(pointer)) set_at(document, pointer, value);
  std::string doubt;
  if (plan.memory_verdict != MemoryVerdict::fits)
    doubt = std::string("no plan that was looked at is sure to fit in memory; this one ") +
            (plan.memory_verdict == MemoryVerdict::at_risk
                 ? "is at risk: predictions of memory miss by as much as it leaves free"
                 : "shards weights with ZeRO 3, whose buffers are not all counted");
  // As `run` has it: the plan's own groups decide the segments of NVLink domains.
  const Scenario written = read_scenario(document, {}, library);
  const Seconds time = simulate_plan(written, written.plan).iteration_time;
  const std::string heading = stem(request.model) + " on " + count_text(request.gpus, "GPU") +
                              " of " + stem(request.platform) + ". The plan is the fastest" +
                              (doubt.empty() ? " that is sure to fit" : "") + " of the " +
                              grouped_text(static_cast<double>(considered)) +
                              " that were looked at: " + to_text(time) +
                              " per iteration. `windtunnel rank` looks at more of them." +
                              (doubt.empty() ? "" : " Warning: " + doubt + ".");
  return {document, as_file(document, heading, gpus_per_node), doubt};
}

}  // namespace windtunnel
