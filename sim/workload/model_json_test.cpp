#include "workload/model_json.hpp"

#include <doctest/doctest.h>

#include <memory>
#include <string>
#include <vector>

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
    "what is wrong beside sizes that do not divide is told with them, and one size is blamed "
    "once") {
  CHECK(problems_of("{'layers':2.5,'hidden':100,'heads':12,'kv_heads':5,'sequence':8,'vocab':9}") ==
        Messages{"layers is 2.5, which is not a whole number at /model/layers",
                 "hidden 100 is no multiple of heads 12 at /model/heads"});
}

TEST_CASE("wrong types are refused") {
  CHECK(problems_of("{'layers':2.7,'hidden':96,'heads':12,'sequence':8,'vocab':9}").size() == 1);
  CHECK(problems_of("{'layers':true,'hidden':96,'heads':12,'sequence':8,'vocab':9}").size() == 1);
  CHECK(problems_of("{'layers':0,'hidden':96,'heads':12,'sequence':8,'vocab':9}").size() == 1);
  CHECK(problems_of("'gpt'").size() == 1);
}
