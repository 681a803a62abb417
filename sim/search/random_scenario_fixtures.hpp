#pragma once

#include <cstddef>
#include <initializer_list>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "core/file_io.hpp"
#include "core/problem.hpp"
#include "lower/program_builder.hpp"
#include "search/search_space.hpp"
#include "search/testing.hpp"

namespace windtunnel {

/// Under sanitizers, where all of them take ten minutes, one in so many is drawn.
#ifdef WINDTUNNEL_SANITIZED
inline constexpr int one_in = 8;
#else
inline constexpr int one_in = 1;
#endif

/// The parts in their order. A list in braces draws them in that order with every compiler, operands of + in whichever it likes.
inline std::string concatenated(std::initializer_list<std::string> parts) {
  std::string whole;
  for (const std::string& part : parts) whole += part;
  return whole;
}

/// Draws scenarios over everything that decides how a plan is simulated: schedules, sharding, overlap, tensor groups across nodes, mixed
/// nodes, uneven links and stages, tapered leaves, placements.
class RandomScenarios {
 public:
  explicit RandomScenarios(unsigned seed) : random_(seed) {}

  /// The text of a scenario that may be illegal.
  std::string draw() {
    const int tensor = pick({1, 1, 2, 2, 4, 8, 16});
    const int pipeline = pick({1, 2, 2, 3, 4, 6, 8});
    const int data = pick({1, 2, 2, 3, 4, 8});
    Parallel parallel;
    parallel.tensor = tensor;
    parallel.pipeline = pipeline;
    parallel.data = data;
    const int micro_batch = pick({1, 2, 4});
    const int microbatches = pick({1, 2, 3, 4, 6, 8, 12, 24});
    const std::string schedule =
        word({"1f1b", "1f1b", "gpipe", "interleaved_1f1b", "zero_bubble_h1", "zero_bubble_v"});
    const bool is_v = schedule == "zero_bubble_v";
    const int chunks = is_v ? 2 : schedule == "interleaved_1f1b" ? pick({1, 2, 2, 3}) : 1;
    const std::string send = is_v ? "eager" : word({"eager", "blocking_pairs"});
    return concatenated(
        {R"({"model": {"layers": )",
         text(pick({12, 24, 48})),
         R"(, "hidden": )",
         text(pick({1024, 4096, 8192})),
         R"(, "heads": 16, "sequence": 1024, "vocab": 51200)",
         R"(, "tied_embeddings": )",
         flag(),
         R"(}, "platform": ")",
         word({"selene-a100", "a100-80gb-4hdr", "dgx1-v100", "jean-zay-v100", "lassen-v100",
               "pipette-a100-hdr", "aws-t4-v100-mixed", "aws-16xt4", "dgx2-v100"}),
         R"(", "software": ")",
         word({"megatron-lm-2020", "megatron-lm-2021", "megatron-lm-2022",
               "megatron-deepspeed-2021", "deepspeed-zero3-2021"}),
         R"(", "training": {"global_batch": )",
         text(data * micro_batch * microbatches),
         R"(, "micro_batch": )",
         text(micro_batch),
         R"(, "recompute": ")",
         word({"none", "selective", "full"}),
         R"("}, "parallel": {"tensor": )",
         text(tensor),
         R"(, "pipeline": )",
         text(pipeline),
         R"(, "data": )",
         text(data),
         R"(, "schedule": ")",
         schedule,
         R"(", "virtual_pipeline": )",
         text(chunks),
         R"(, "sequence_parallel": )",
         flag(),
         R"(, "zero_stage": )",
         text(pipeline == 1 ? pick({0, 1, 2, 3}) : pick({0, 0, 1, 2})),
         R"(, "overlap_gradient_reduce": )",
         flag(),
         R"(, "gradient_ring": ")",
         word({"flat", "hierarchical"}),
         R"(", "rank_order": ")",
         word({"tensor-data-pipeline", "tensor-data-pipeline", "tensor-pipeline-data",
               "pipeline-data-tensor"}),
         R"(", "pipeline_send": ")",
         send,
         "\"",
         placement(static_cast<int>(parallel.num_ranks())),
         "}}"});
  }

  /// Sometimes leaf switches with less than full uplinks, sometimes a slow link.
  std::vector<std::pair<std::string, std::string>> overrides() {
    std::vector<std::pair<std::string, std::string>> list;
    if (pick({0, 0, 1}) == 1)
      list = {{"/platform/fabric/nodes_per_leaf", "2"}, {"/platform/fabric/oversubscription", "4"}};
    return list;
  }

 private:
  int pick(const std::vector<int>& of) { return of[random_() % of.size()]; }
  std::string word(const std::vector<std::string>& of) { return of[random_() % of.size()]; }
  std::string flag() { return word({"true", "false"}); }
  static std::string text(int number) { return std::to_string(number); }

  /// Megatron's order, or on nodes of 8 GPUs the nodes backwards.
  std::string placement(int ranks) {
    if (pick({0, 0, 0, 1}) == 0 || ranks % 8 != 0) return "";
    std::string list;
    for (int rank = 0; rank < ranks; ++rank)
      list += (list.empty() ? "\"" : ", \"") + text((ranks - 1 - rank) / 8) + ":" + text(rank % 8) +
              "\"";
    return ", \"placement\": [" + list + "]";
  }

  std::mt19937 random_;
};

/// The next `count` legal scenarios, each under the text it was read from.
inline std::vector<Scenario> draw_scenarios(RandomScenarios& random, std::size_t count) {
  std::vector<Scenario> scenarios;
  while (scenarios.size() < count) {
    const std::string text = random.draw();
    const auto overrides = random.overrides();
    try {
      scenarios.push_back(scenario_from(text, overrides));
      scenarios.back().name = text;
    } catch (const InputError&) {
      continue;
    }
  }
  return scenarios;
}

/// Draws a model on a shipped platform, with a shipped stack of one of its releases; nodes of an NVLink domain that need not divide them.
class RandomBases {
 public:
  explicit RandomBases(unsigned seed) : random_(seed) {
    for (const std::string& name : shipped_library().names("software")) {
      software_.push_back(name);
      for (const std::string& release : releases_of(name))
        software_.push_back(name + "@" + release);
    }
  }

  /// The next legal one, under the text it was read from.
  Scenario draw() {
    for (;;) {
      const std::string platform = word(shipped_library().names("platforms"));
      const std::string text = draw_text(platform);
      try {
        Scenario scenario = scenario_from(text, overrides(platform));
        scenario.name = text;
        return scenario;
      } catch (const InputError&) {
        continue;
      }
    }
  }

  /// One of the plans around `base` that rank tries without a search block; nothing where the draw is not legal.
  std::optional<Plan> draw_plan(const Scenario& base, const SearchSpace& space) {
    const PlanChoice head = pick(enumerate_heads(base, space));
    auto laid_out = lay_out(base, space, pick(enumerate_plans(base, space, head)));
    if (!std::holds_alternative<Plan>(laid_out)) return std::nullopt;
    return std::get<Plan>(std::move(laid_out));
  }

 private:
  static std::vector<std::string> releases_of(const std::string& software) {
    Problems problems;
    const JsonValue profile = parse_json(
        read_source(shipped_library().root / "platforms/software" / (software + ".json")),
        problems);
    std::vector<std::string> releases;
    if (const JsonValue* list = profile.find("releases"))
      for (const JsonValue& each : list->array()) releases.push_back(each.find("from")->string());
    return releases;
  }

  template <class Value>
  const Value& pick(const std::vector<Value>& of) {
    return of[random_() % of.size()];
  }
  std::string text(const std::vector<int>& of) { return std::to_string(pick(of)); }
  std::string word(const std::vector<std::string>& of) { return pick(of); }

  std::string draw_text(const std::string& platform) {
    const std::string moe =
        pick<int>({0, 1}) == 0
            ? ""
            : concatenated({R"(, "moe": {"experts": )", text({8, 16, 64}),
                            R"(, "top_k": 2, "ffn_hidden": )", text({512, 2048}),
                            R"(, "shared_ffn_hidden": )", text({0, 1024}), R"(, "balance": )",
                            word({R"("balanced")", R"({"zipf": 0.5})"}), "}"});
    const int samples = pick<int>({1, 2, 4, 8}), nodes = pick<int>({1, 2, 3, 4, 6, 8, 12});
    return concatenated({R"({"model": {"layers": )",
                         text({4, 8, 12, 24}),
                         R"(, "hidden": )",
                         text({1024, 4096}),
                         R"(, "heads": 16, "sequence": )",
                         text({1024, 8192}),
                         R"(, "vocab": 51200, "tied_embeddings": )",
                         word({"true", "false"}),
                         moe,
                         R"(}, "platform": ")",
                         platform,
                         R"(", "software": ")",
                         word(software_),
                         R"(", "nodes": )",
                         std::to_string(nodes),
                         R"(, "training": {"global_batch": )",
                         std::to_string(samples * nodes * pick<int>({4, 8})),
                         R"(, "micro_batch": 1, "precision": ")",
                         word({"fp16", "bf16", "bf16", "fp8"}),
                         R"(", "attention": ")",
                         word({"flash", "flash", "standard"}),
                         R"("}, "parallel": {"zero_stage": )",
                         text({0, 1}),
                         "}}"});
  }

  Overrides overrides(const std::string& platform) {
    switch (pick<int>({0, 1, 2, 3})) {
      case 0: {
        if (platform == "aws-t4-v100-mixed") return {};  // nodes of two types share no NVLink
        const std::string nodes = text({2, 3, 5});  // whole domains, over which groups straddle
        return {{"/platform/domain_nodes", nodes}, {"/platform/segment", nodes}};
      }
      case 1:
        return {
            {"/platform/link_overrides",
             R"([{"from": 0, "to": 1, "bandwidth": "5 GB/s", "source": "assumed: a bad cable"}])"}};
      default:
        return {};
    }
  }

  std::mt19937 random_;
  std::vector<std::string> software_;
};

/// Seconds of an iteration of the scenario with this plan in place of its own.
inline double time_of(const Scenario& scenario, const Plan& plan, Detail detail,
                      MakeEngine make_engine) {
  const BuiltPrograms built = build_programs({&scenario.model,
                                              &scenario.platform,
                                              &scenario.nodes,
                                              &scenario.software,
                                              &plan,
                                              Replicas::collapsed_when_exact,
                                              detail,
                                              {}});
  return simulate_programs(built, make_engine).end / Seconds{1};
}

/// Draws one_in of the bases, and plans around each, and calls visit(base, plan) with those that are legal; how many were.
template <class Visit>
int for_each_drawn_plan(RandomBases random, int bases, int plans_of_base, const Visit& visit) {
  int visited = 0;
  for (int i = 0; i < bases / one_in; ++i) {
    const Scenario base = random.draw();
    const SearchSpace space = search_space(base);
    for (int k = 0; k < plans_of_base; ++k) {
      const auto plan = random.draw_plan(base, space);
      if (!plan) continue;
      visit(base, *plan);
      ++visited;
    }
  }
  return visited;
}

}  // namespace windtunnel
