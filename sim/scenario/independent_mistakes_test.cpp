#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "core/testing.hpp"
#include "scenario/corpus_fixtures.hpp"

namespace windtunnel {
namespace {

namespace fs = std::filesystem;

using Messages = std::vector<std::string>;

JsonValue value_of(const std::string& text) {
  Problems problems;
  JsonValue value =
      parse_json(std::make_shared<const SourceText>(SourceText{"test", text}), problems);
  problems.throw_if_any();
  return value;
}

/// Problems of `text` as a scenario file, in the order in which they are reported.
std::vector<Problem> problems_of(const std::string& text, const Library& library,
                                 const Overrides& overrides = {}) {
  const TemporaryFolder folder;
  try {
    read_scenario(folder.write("question.json", text), library, {overrides, 0});
  } catch (const InputError& error) {
    return error.problems();
  }
  return {};
}

Messages messages_of(const std::string& text, const Library& library,
                     const Overrides& overrides = {}) {
  Messages messages;
  for (const Problem& problem : problems_of(text, library, overrides))
    messages.push_back(problem.message);
  return messages;
}

Library shipped() { return Library{source_dir()}; }

/// A shipped scenario with a model, a platform, a software profile and compression, all in one text, and a search block.
JsonValue whole_scenario() {
  JsonValue tree =
      read_scenario(source_dir() / "scenarios/optimus-cc-8.3b-cb-fe-sc.json", shipped()).resolved;
  tree.set("search", value_of(R"({"tensor": [4, 8], "memory_margin": "5 %"})"));
  return tree;
}

/// Gives the member at `pointer` another key, in its place.
void rename(JsonValue& tree, const std::string& pointer, const std::string& key) {
  const std::size_t slash = pointer.rfind('/');
  for (JsonValue::Member& member : find_at(tree, pointer.substr(0, slash))->object())
    if (member.key == pointer.substr(slash + 1)) member.key = key;
}

struct Mistake {
  std::string name;
  std::function<void(JsonValue&)> make;
  std::string message;
};

Mistake wrong_value(const std::string& pointer, const std::string& json,
                    const std::string& message) {
  return {pointer, [=](JsonValue& tree) { CHECK(set_at(tree, pointer, value_of(json))); }, message};
}

Mistake misspelling(const std::string& pointer, const std::string& key) {
  return {pointer, [=](JsonValue& tree) { rename(tree, pointer, key); },
          "unknown key \"" + key + "\""};
}

/// In the order of their places.
std::vector<Mistake> independent_mistakes() {
  return {
      wrong_value("/model/vocab", "-1", "vocab is -1, which is too small"),
      wrong_value("/platform/node_types/0/device/memory/usable", "\"90 GiB\"",
                  "usable memory 90.0 GiB is more than the capacity 80.0 GiB"),
      misspelling("/platform/node_types/0/nic_rate", "nic_rat"),
      wrong_value("/platform/fabric/latency", "20",
                  "'20' has no unit (could be seconds or microseconds)"),
      wrong_value("/nodes", "16.5", "nodes is 16.5, which is not a whole number"),
      misspelling("/software/launch", "lanch"),
      wrong_value("/training/global_batch", "513",
                  "global_batch 513 is no multiple of data * micro_batch = 4 * 8 = 32"),
      wrong_value(
          "/training/precision", "\"fp61\"",
          "precision is \"fp61\", which is none of fp32, tf32, fp16, bf16, fp8, mxfp8, nvfp4"),
      misspelling("/training/recompute", "recompte"),
      wrong_value("/parallel/tensor", "5", "tensor 5 does not divide the model's 24 heads"),
      wrong_value("/parallel/schedule", "\"1f1bb\"",
                  "schedule is \"1f1bb\", which is none of gpipe, 1f1b, interleaved_1f1b, "
                  "zero_bubble_h1, zero_bubble_v, dualpipe, dualpipe_v"),
      wrong_value("/parallel/zero_prefetch", "2",
                  "zero_prefetch is for zero_stage 3, but zero_stage is 0"),
      wrong_value("/parallel/placement", "\"serch\"",
                  "placement is \"serch\", which is none of megatron, search"),
      wrong_value("/parallel/stage_layers", "[18, 18, 18, 17]",
                  "stage_layers adds up to 71 layers, but the model has 72"),
      wrong_value("/compression/data_gradients/rank", "0", "rank is 0, which is too small"),
      wrong_value("/compression/tensor_activations", R"({"codec": "topk", "density": 0.1})",
                  "topk cannot compress tensor_activations: an activation is used once, whole"),
      wrong_value("/search/tensor", "[0]", "tensor[0] is 0, which is too small"),
  };
}

TEST_CASE("seven mistakes in seven blocks are told at once, each once, in the order of the file") {
  // One mistake a line, from line 3 on.
  const std::string text = R"({
  "version": 1,
  "search": {"memory_margin": 5},
  "compression": {"data_gradients": {"codec": "powersgd", "rank": 0}},
  "parallel": {"tensor": 2, "schedule": "1f1bb",
    "pipeline": 2.5, "data": 2},
  "training": {"global_batch": 64, "microbatch": 1},
  "platform": "boxs",
  "model": {"name": "odd", "layers": 8, "hidden": 100, "heads": 8, "sequence": 128, "vocab": 1000}
})";
  const std::vector<Problem> problems = problems_of(text, test_library());
  const Messages expected{"memory_margin is 5, which is neither a share nor a size",
                          "rank is 0, which is too small",
                          "schedule is \"1f1bb\", which is none of gpipe, 1f1b, interleaved_1f1b, "
                          "zero_bubble_h1, zero_bubble_v, dualpipe, dualpipe_v",
                          "pipeline is 2.5, which is not a whole number",
                          "unknown key \"microbatch\"",
                          "unknown platform \"boxs\"",
                          "hidden 100 is no multiple of heads 8"};
  REQUIRE(problems.size() == expected.size());
  for (std::size_t i = 0; i < expected.size(); ++i) {
    CHECK(problems[i].message == expected[i]);
    CHECK(problems[i].origin.line == static_cast<int>(i) + 3);
  }
}

TEST_CASE("any two independent mistakes are both told, and nothing else") {
  const JsonValue valid = whole_scenario();
  CHECK(messages_of(pretty_text(valid), shipped()) == Messages{});
  const std::vector<Mistake> mistakes = independent_mistakes();
  for (std::size_t i = 0; i < mistakes.size(); ++i) {
    for (std::size_t j = i; j < mistakes.size(); ++j) {
      const std::string both = mistakes[i].name + " and " + mistakes[j].name;
      CAPTURE(both);
      JsonValue tree = valid;
      Messages expected{mistakes[i].message};
      if (j > i) expected.push_back(mistakes[j].message);
      // The later one first, so that no order of making is the order of telling.
      if (j > i) mistakes[j].make(tree);
      mistakes[i].make(tree);
      CHECK(messages_of(pretty_text(tree), shipped()) == expected);
    }
  }
}

TEST_CASE("all of the independent mistakes are told in one round") {
  JsonValue tree = whole_scenario();
  Messages expected;
  for (const Mistake& mistake : independent_mistakes()) {
    mistake.make(tree);
    expected.push_back(mistake.message);
  }
  CHECK(messages_of(pretty_text(tree), shipped()) == expected);
}

/// Pointers of the members of all objects, but for what says where a number comes from.
void collect_members(const JsonValue& value, const std::string& pointer, Messages& pointers) {
  if (value.is_array())
    for (std::size_t i = 0; i < value.array().size(); ++i)
      collect_members(value.array()[i], pointer_join(pointer, std::to_string(i)), pointers);
  if (!value.is_object()) return;
  for (const JsonValue::Member& member : value.object()) {
    const std::string at = pointer_join(pointer, member.key);
    if (member.key == "source" || member.key == "$schema") continue;
    pointers.push_back(at);
    collect_members(member.value, at, pointers);
  }
}

TEST_CASE("a misspelt key is one mistake, whichever key it is") {
  const JsonValue valid = whole_scenario();
  Messages pointers;
  collect_members(valid, {}, pointers);
  REQUIRE(pointers.size() > 100);
  for (const std::string& pointer : pointers) {
    CAPTURE(pointer);
    JsonValue tree = valid;
    const std::string key = pointer.substr(pointer.rfind('/') + 1) + "_";
    rename(tree, pointer, key);
    CHECK(messages_of(pretty_text(tree), shipped()) == Messages{"unknown key \"" + key + "\""});
  }
}

TEST_CASE("a value of the wrong kind is one mistake, whichever value it is") {
  const JsonValue valid = whole_scenario();
  Messages pointers;
  collect_members(valid, {}, pointers);
  for (const std::string& pointer : pointers) {
    CAPTURE(pointer);
    JsonValue tree = valid;
    CHECK(set_at(tree, pointer, value_of("[[true]]")));
    CHECK(messages_of(pretty_text(tree), shipped()).size() == 1);
  }
}

TEST_CASE("one number that does not fit the others is one mistake") {
  const JsonValue valid = whole_scenario();
  for (const auto& change : std::vector<std::pair<std::string, std::string>>{
           {"/model/heads", "23"},
           {"/model/hidden", "3073"},
           {"/model/layers", "71"},
           {"/model/ffn_hidden", "12289"},
           {"/nodes", "15"},
           {"/training/global_batch", "500"},
           {"/training/micro_batch", "7"},
           {"/training/precision", "\"fp61\""},
           {"/parallel/tensor", "7"},
           {"/parallel/tensor", "16"},
           {"/parallel/pipeline", "5"},
           {"/parallel/data", "5"},
           {"/parallel/virtual_pipeline", "4"},
           {"/parallel/zero_stage", "3"},
           {"/parallel/stage_layers", "[18, 18, 18]"},
           {"/parallel/placement", "[\"0:0\"]"},
           {"/compression/data_gradients/stages", "[0, 4]"},
           {"/platform/node_types/0/gpus", "6"},
           {"/platform/node_types/0/interconnect/kind", "\"mesch\""}}) {
    const std::string &pointer = change.first, &value = change.second;
    CAPTURE(pointer);
    CAPTURE(value);
    JsonValue tree = valid;
    CHECK(set_at(tree, pointer, value_of(value)));
    CHECK(messages_of(pretty_text(tree), shipped()).size() == 1);
  }
}

TEST_CASE("problems of the files that a scenario names follow its own, and options come last") {
  const TemporaryFolder folder;
  folder.write("base.json",
               R"({"version": 1, "training": {"global_batch": 6.5, "micro_batch": 1}})");
  folder.write("model.json", R"({"layers": 8,
    "hidden": 64.5, "heads": 8, "sequence": 128, "vocab": 1000})");
  const auto file = folder.write("question.json", R"({"version": 1, "extends": "base.json",
    "model": "model.json", "platform": "boxes",
    "colour": 1})");
  try {
    read_scenario(file, test_library(), {{{"/parallel/data", "x"}, {"parallel.tensor", "1"}}, 0});
    FAIL("accepted");
  } catch (const InputError& error) {
    Messages sources;
    for (const Problem& problem : error.problems())
      sources.push_back(fs::path(problem.origin.source->name).filename());
    CHECK(sources == Messages{"question.json", "base.json", "model.json", "data=x",
                              "--set parallel.tensor=1"});
  }
}

TEST_CASE("what a file that cannot be read would have said is not missed") {
  CHECK(messages_of(R"({"version": 1, "extends": "none.json", "model": "tinny"})", test_library())
            .size() == 2);
  CHECK(messages_of(R"({"version": 1, "trainig": {"global_batch": 64, "micro_batch": 1},
    "model": "tiny", "platform": "boxes", "parallel": {"data": 3}})",
                    test_library()) == Messages{"unknown key \"trainig\""});
}

TEST_CASE("a file that is named twice is wrong once") {
  const TemporaryFolder folder;
  folder.write("base.json", R"({"version": 1, "version": 1})");
  folder.write("left.json", R"({"version": 1, "extends": "base.json"})");
  const auto file =
      folder.write("top.json", R"({"version": 1, "extends": ["left.json", "base.json"],
    "model": "tiny", "platform": "boxes", "training": {"global_batch": 64, "micro_batch": 1}})");
  try {
    read_scenario(file, test_library());
    FAIL("accepted");
  } catch (const InputError& error) {
    CHECK(error.problems().size() == 1);
  }
}

TEST_CASE("every --set that is wrong is told in the order of the command line") {
  const std::string text = R"({"version": 1, "model": "tiny", "platform": "boxes",
    "training": {"global_batch": 64, "micro_batch": 1}})";
  CHECK(messages_of(text, test_library(),
                    {{"/training/precision", "fp61"},
                     {"tensor", "2"},
                     {"/parallel/data", "0"},
                     {"/model", "tinny"},
                     {"/nodes", "{\"a\": }"}})
            .size() == 5);
  const Messages messages =
      messages_of(text, test_library(),
                  {{"/model", "tinny"}, {"/training/precision", "fp61"}, {"/nodes", "x"}});
  REQUIRE(messages.size() == 3);
  CHECK(messages[0].starts_with("unknown model"));
  CHECK(messages[1].starts_with("precision"));
  CHECK(messages[2].starts_with("nodes"));
}

}  // namespace
}  // namespace windtunnel
