#include "workload/model_json.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

#include "core/file_io.hpp"
#include "core/testing.hpp"

using namespace windtunnel;

namespace {

JsonValue parse(std::string text, Problems& problems) {
  for (char& c : text)
    if (c == '\'') c = '"';
  return parse_json(std::make_shared<const SourceText>(SourceText{"model.json", text}), problems);
}

std::vector<std::string> problems_of(const std::string& text) {
  Problems problems;
  JsonValue value = parse(text, problems);
  read_transformer(value, "/model", problems);
  std::vector<std::string> messages;
  for (const Problem& problem : problems.all())
    messages.push_back(problem.message + " at " + problem.pointer);
  return messages;
}

using Messages = std::vector<std::string>;

}  // namespace

TEST_CASE("a model takes the interface's defaults, and shows them as defaulted") {
  Problems problems;
  JsonValue value =
      parse("{'family':'gpt','layers':48,'hidden':8192,'heads':64,'sequence':2048,'vocab':50257}",
            problems);
  const Transformer model = read_transformer(value, "/model", problems);
  CHECK(problems.empty());
  CHECK(model.layers == 48);
  CHECK(model.kv_heads == 64);
  CHECK(model.ffn_hidden == 32768);
  CHECK_FALSE(model.gated_mlp);
  CHECK(model.tied_embeddings);
  CHECK_FALSE(model.rotary);
  CHECK(model.vocab_divisor == 128);
  REQUIRE(value.find("ffn_hidden") != nullptr);
  CHECK(value.find("ffn_hidden")->origin.kind == OriginKind::defaulted);
}

TEST_CASE("given values replace the defaults") {
  Problems problems;
  JsonValue value = parse(
      "{'name':'l','source':'s','$schema':'x','layers':80,'hidden':8192,'heads':64,'kv_heads':8,"
      "'sequence':4096,'vocab':32000,'ffn_hidden':28672,'gated_mlp':true,'tied_embeddings':false,"
      "'rotary':true,'vocab_divisor':1}",
      problems);
  const Transformer model = read_transformer(value, "/model", problems);
  CHECK(problems.empty());
  CHECK(model.name == "l");
  CHECK(model.kv_heads == 8);
  CHECK(model.ffn_hidden == 28672);
  CHECK(model.gated_mlp);
  CHECK_FALSE(model.tied_embeddings);
  CHECK(model.rotary);
  CHECK(model.vocab_divisor == 1);
}

TEST_CASE("sizes that do not divide are refused with the numbers") {
  CHECK(problems_of("{'layers':2,'hidden':100,'heads':12,'sequence':8,'vocab':9}") ==
        Messages{"hidden 100 is no multiple of heads 12 at /model/heads"});
  CHECK(problems_of("{'layers':2,'hidden':96,'heads':12,'kv_heads':5,'sequence':8,'vocab':9}") ==
        Messages{"heads 12 is no multiple of kv_heads 5 at /model/kv_heads"});
}

TEST_CASE("a misspelt key is one problem, and nothing follows from it") {
  CHECK(problems_of("{'layers':2,'hiden':96,'heads':12,'sequence':8,'vocab':9}") ==
        Messages{"unknown key \"hiden\" at /model"});
  CHECK(problems_of("{'layers':2,'width':96,'heads':12,'sequence':8,'vocab':9}") ==
        Messages{"missing key \"hidden\" at /model", "unknown key \"width\" at /model"});
}

TEST_CASE(
    "what is wrong next to sizes that do not divide is told with them, and one size is blamed "
    "once") {
  CHECK(problems_of("{'layers':2.5,'hidden':100,'heads':12,'kv_heads':5,'sequence':8,'vocab':9}") ==
        Messages{"layers is 2.5, which is not a whole number at /model/layers",
                 "hidden 100 is no multiple of heads 12 at /model/heads"});
}

TEST_CASE("a configuration of Hugging Face is one problem, which says how to import it") {
  CHECK(problems_of("{'model_type':'qwen3','hidden_size':96,'num_hidden_layers':2}") ==
        Messages{"this is a model's configuration of Hugging Face, not a model at /model"});
}

TEST_CASE("wrong types are refused") {
  CHECK(problems_of("{'layers':2.7,'hidden':96,'heads':12,'sequence':8,'vocab':9}").size() == 1);
  CHECK(problems_of("{'layers':true,'hidden':96,'heads':12,'sequence':8,'vocab':9}").size() == 1);
  CHECK(problems_of("{'layers':0,'hidden':96,'heads':12,'sequence':8,'vocab':9}").size() == 1);
  CHECK(problems_of("'gpt'").size() == 1);
}

namespace {

Transformer shipped(const std::string& name) {
  Problems problems;
  JsonValue value = parse_json(read_source(source_dir() / "models" / (name + ".json")), problems);
  Transformer model = read_transformer(value, "", problems);
  problems.throw_if_any();
  return model;
}

}  // namespace

TEST_CASE("models with experts have the published counts, in all and for one token") {
  struct Published {
    const char* name;
    double total, active, tolerance;  ///< in billions; the tolerance is that of the rounded figures
  };
  // Jiang et al. 2024: 47 B (46.7), 13 B (12.9) active; Mistral AI: 141 B (140.6), 39 B; Qwen3: 30.5 B, 3.3 B and 235 B, 22 B; DeepSeek-V3:
  // 671 B, 37 B; Kimi K2: 1.04 T (1,026 without rounding up), 32.6 B; gpt-oss: 116.83 B, 5.13 B, which counts the embedding once.
  const std::vector<Published> published{
      {"mixtral-8x7b", 46.7, 12.9, 0.005},          {"mixtral-8x22b", 140.6, 39.1, 0.005},
      {"qwen3-30b-a3b", 30.53, 3.35, 0.01},         {"qwen3-235b-a22b", 235.1, 22.2, 0.01},
      {"deepseek-v3", 671.0, 37.5, 0.005},          {"kimi-k2", 1026.4, 32.9, 0.01},
      {"gpt-oss-120b", 116.83, 5.13 + 0.579, 0.005}};
  for (const Published& each : published) {
    CAPTURE(each.name);
    const Transformer model = shipped(each.name);
    CHECK(total_parameters(model) / 1e9 == doctest::Approx(each.total).epsilon(each.tolerance));
    CHECK(active_parameters(model) / 1e9 == doctest::Approx(each.active).epsilon(each.tolerance));
  }
}

TEST_CASE("DeepSeek-V3, parameter by parameter") {
  // Attention, 7168 wide: into the latent vectors 7168 (1536 + 512 + 64), norms 1536 + 512, out of them 1536 * 128 * 192 and
  // 512 * 128 * 256, projection 128 * 128 * 7168; norm 7168.
  const double attention =
      7168.0 * 2112 + 2048 + 1536.0 * 24576 + 512.0 * 32768 + 16384.0 * 7168 + 7168;
  const double expert = 3.0 * 7168 * 2048;
  const double with_experts = 7168 + 7168.0 * 256 + 257 * expert, dense = 7168 + 3.0 * 7168 * 18432;
  const double all = 61 * attention + 58 * with_experts + 3 * dense + 2.0 * 129280 * 7168 + 7168;
  const Transformer model = shipped("deepseek-v3");
  CHECK(total_parameters(model) == all);
  CHECK(active_parameters(model) == all - 58.0 * 248 * expert);
}

TEST_CASE("matrices of a layer add up to its weights, with latent attention and experts too") {
  const auto elements = [](const std::vector<MatrixShape>& shapes) {
    double sum = 0;
    for (const MatrixShape& shape : shapes) sum += shape.rows * shape.columns;
    return sum;
  };
  for (const char* name :
       {"llama3-8b", "gpt3-175b", "qwen3-30b-a3b", "deepseek-v3", "gpt-oss-120b"})
    for (const int tensor : {1, 8}) {
      CAPTURE(name);
      const Transformer model = shipped(name);
      const double with_experts =
          model.moe ? model.expert_layers(0, model.layers) / static_cast<double>(model.layers) : 0;
      const int shared = model.moe ? model.moe->shared_ffn_hidden : 0;
      CHECK(elements(attention_shapes(model, tensor)) +
                elements(mlp_shapes(model, model.ffn_hidden, tensor)) * (1 - with_experts) +
                elements(mlp_shapes(model, shared, tensor)) * with_experts ==
            doctest::Approx(layer_matrix_parameters(model, tensor)).epsilon(1e-12));
      if (model.moe) {
        Transformer unbiased = model;
        unbiased.moe->bias = false;
        CHECK(elements(mlp_shapes(model, model.moe->ffn_hidden, 1)) * model.moe->experts ==
              doctest::Approx(expert_parameters(unbiased)).epsilon(1e-12));
      }
    }
}

TEST_CASE("models with other norms and biases have their published parameters") {
  struct Published {
    const char* text;
    double parameters;
  };
  // By the module definitions of transformers, and as the publishers count them.
  const Published models[] = {
      // Falcon 7B: one LayerNorm, with a bias, for both halves; 40B: one each
      {"'layers':32,'hidden':4544,'heads':71,'kv_heads':1,'sequence':2048,'vocab':65024,"
       "'rotary':true,'norm_bias':true,'norms':1,'parallel_residual':true",
       6'921'720'704},
      {"'layers':60,'hidden':8192,'heads':128,'kv_heads':8,'sequence':2048,'vocab':65024,"
       "'rotary':true,'norm_bias':true,'parallel_residual':true",
       41'303'293'952},
      // Gemma 2 2B, Gemma 3 1B
      {"'layers':26,'hidden':2304,'heads':8,'kv_heads':4,'head_size':256,'ffn_hidden':9216,"
       "'gated_mlp':true,'sequence':8192,'vocab':256000,'rotary':true,'norms':4",
       2'614'341'888},
      {"'layers':26,'hidden':1152,'heads':4,'kv_heads':1,'head_size':256,'ffn_hidden':6912,"
       "'gated_mlp':true,'sequence':32768,'vocab':262144,'rotary':true,'norms':4,'qk_norm':true",
       999'885'952},
      // OLMo 2 7B, and OLMoE: norms of all heads at once
      {"'layers':32,'hidden':4096,'heads':32,'ffn_hidden':11008,'gated_mlp':true,'sequence':4096,"
       "'vocab':100352,'rotary':true,'tied_embeddings':false,'qk_norm':'width'",
       7'298'617'344},
      {"'layers':16,'hidden':2048,'heads':16,'ffn_hidden':1024,'gated_mlp':true,'sequence':4096,"
       "'vocab':50304,'rotary':true,'tied_embeddings':false,'qk_norm':'width',"
       "'moe':{'experts':64,'top_k':8,'ffn_hidden':1024}",
       6'919'161'856},
      // GPT-OSS 20B
      {"'layers':24,'hidden':2880,'heads':64,'kv_heads':8,'head_size':64,'sequence':4096,"
       "'vocab':201088,'gated_mlp':true,'rotary':true,'tied_embeddings':false,'qkv_bias':true,"
       "'projection_bias':true,'attention_sinks':true,'moe':{'experts':32,'top_k':4,"
       "'ffn_hidden':2880,'bias':true,'router_bias':true}",
       20'914'757'184},
      // Qwen2 57B: a gate for the shared experts
      {"'layers':28,'hidden':3584,'heads':28,'kv_heads':4,'sequence':32768,'vocab':151936,"
       "'gated_mlp':true,'rotary':true,'tied_embeddings':false,'qkv_bias':true,'moe':{'experts':64,"
       "'top_k':8,'ffn_hidden':2560,'shared_ffn_hidden':20480,'shared_gate':true}",
       57'408'658'944},
  };
  for (const Published& published : models) {
    CAPTURE(published.text);
    Problems problems;
    JsonValue value = parse(std::string("{'family':'llama',") + published.text + "}", problems);
    const Transformer model = read_transformer(value, "/model", problems);
    CHECK(problems.empty());
    CHECK(total_parameters(model) == published.parameters);
  }
}

TEST_CASE("family says what it has by default, and a key overrides it") {
  const std::string sizes = "'layers':4,'hidden':64,'heads':4,'sequence':8,'vocab':100";
  const auto read = [&sizes](const std::string& more) {
    Problems problems;
    JsonValue value = parse("{" + sizes + more + "}", problems);
    const Transformer model = read_transformer(value, "/model", problems);
    CHECK(problems.empty());
    return model;
  };
  CHECK_FALSE(read("").parallel_residual);
  CHECK(read(",'family':'neox'").parallel_residual);
  CHECK_FALSE(read(",'family':'neox','parallel_residual':false").parallel_residual);
  CHECK(read(",'moe':{'experts':4,'top_k':1,'ffn_hidden':8}").moe->bias);
  CHECK_FALSE(read(",'family':'llama','moe':{'experts':4,'top_k':1,'ffn_hidden':8}").moe->bias);
  CHECK(read(",'qk_norm':true").qk_norm == QueryKeyNorm::heads);
  CHECK(read(",'qk_norm':'width'").qk_norm == QueryKeyNorm::width);
  CHECK(problems_of("{" + sizes + ",'norms':1}") ==
        Messages{"a layer has 1 norm only where its halves share it at /model/norms"});
  CHECK(problems_of("{" + sizes + ",'norms':3}").size() == 1);
  CHECK(read(",'window':{'size':4,'from_layer':100}").window->from_layer == 100);  // none has it
  CHECK(problems_of("{" + sizes +
                    ",'parallel_residual':true,'moe':{'experts':4,'top_k':1,'ffn_hidden':8}}") ==
        Messages{"layers with experts wait for attention: their halves are not parallel at "
                 "/model/parallel_residual"});
  CHECK(problems_of("{" + sizes + ",'family':'neox','moe':{'experts':4,'top_k':1,'ffn_hidden':8}}")
            .empty());  // such a family has them by default, but not with experts
}

TEST_CASE("experts are in the layers that dense_layers and every leave them") {
  Transformer model;
  model.layers = 8;
  model.moe = Transformer::Experts{};
  model.moe->dense_layers = 2;
  model.moe->every = 3;  // layers 2 and 5
  CHECK(model.expert_layers(0, 8) == 2);
  CHECK(model.expert_layers(0, 3) == 1);
  CHECK(model.expert_layers(6, 2) == 0);
}

TEST_CASE("mistakes in experts are told with what may be written") {
  const std::string start =
      "{'layers':4,'hidden':64,'heads':4,'sequence':8,'vocab':100,'moe':{'experts':4,'ffn_hidden':"
      "8,";
  CHECK(problems_of(start + "'top_k':5}}") ==
        Messages{"a token cannot go to 5 of 4 experts at /model/moe/top_k"});
  CHECK(problems_of(start + "'top_k':1,'dense_layers':4}}") ==
        Messages{"dense_layers 4 leaves none of the model's 4 layers to the experts at "
                 "/model/moe/dense_layers"});
  CHECK(
      problems_of(start + "'top_k':1,'balance':'even'}}") ==
      Messages{"is neither \"balanced\" nor \"consecutive\" nor an object at /model/moe/balance"});
  CHECK(
      problems_of(start + "'top_k':1,'balance':{'shares':[1,2]}}}") ==
      Messages{"expected the shares of tokens of all 4 experts, none below 0 and at least 1 above "
               "it, since each token goes to so many at /model/moe/balance/shares"});
  CHECK(problems_of(start + "'top_k':2,'balance':{'shares':[1,0,0,0]}}}").size() == 1);
  CHECK(problems_of(start + "'top_k':2,'balance':{'shares':[1,1,0,0]}}}").empty());
  CHECK(problems_of(start + "'top_k':1,'balance':{'shares':[1,2,0,4]}}}").empty());
  CHECK(problems_of(start + "'top_k':1,'balance':{'zipf':0.5}}}").empty());
}
