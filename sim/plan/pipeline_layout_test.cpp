#include "plan/pipeline_layout.hpp"

#include <doctest/doctest.h>

namespace windtunnel {
namespace {

using Layers = std::vector<int>;

Layers layers(std::string_view layout) {
  auto read = read_pipeline_layout(layout);
  if (const auto* fault = std::get_if<LayoutFault>(&read)) FAIL(fault->message);
  return std::get<PipelineLayout>(read).layers;
}

/// "column: message".
std::string fault(std::string_view layout) {
  const auto read = read_pipeline_layout(layout);
  if (std::holds_alternative<PipelineLayout>(read)) return "accepted";
  const auto& found = std::get<LayoutFault>(read);
  return std::to_string(found.column) + ": " + found.message;
}

TEST_CASE("a layout's letters are counted by part") {
  CHECK(layers("EL") == Layers{0});
  CHECK(layers("Ett|tL") == Layers{2, 1});
  CHECK(layers("E|tt|t|L") == Layers{0, 2, 1, 0});
  CHECK(layers("E,t t,|,tL") == Layers{2, 1});
}

TEST_CASE("repetitions are unrolled as Megatron-LM's comments show it") {
  // xy(ab|cd|ef)*2,pq -> xyab|cd|efab|cd|efpq
  CHECK(layers("E(tt|t|ttt)*2,tL") == Layers{2, 1, 5, 1, 4});
  // ab,(cd|)*2 -> abcd|cd|
  CHECK(layers("Et,(tt|)*2,L") == Layers{3, 2, 0});
  // (|ab)*2,cd -> |ab|abcd
  CHECK(layers("E(|tt)*2,tL") == Layers{0, 2, 3});
  CHECK(layers("Et*3|t*12L") == Layers{3, 12});
  CHECK(layers("E(t*2|)*3,tL") == Layers{2, 2, 2, 1});
  CHECK(layers("E(t|)*10L").size() == 11);
  // The example of the documentation, its MTP layer with the head: 3, then 29 parts of 2, then the head's.
  const Layers documented = layers("Et*3|(tt|)*29,mL");
  CHECK(documented.size() == 31);
  CHECK(documented.front() == 3);
  CHECK(documented[29] == 2);
  CHECK(documented.back() == 0);
}

TEST_CASE("layers of multi-token prediction are counted apart from those of parts") {
  const auto read = read_pipeline_layout("Et*2|t,m*2,L");
  CHECK(std::get<PipelineLayout>(read).layers == Layers{2, 1});
  CHECK(std::get<PipelineLayout>(read).mtp_layers == 2);
}

TEST_CASE("what is wrong with a layout is told with its column") {
  const std::string apart =
      "multi-token prediction (m) must come just before the loss (L), in its part";
  CHECK(fault("Et*3|(tt|)*2,m|L") == "13: " + apart);
  CHECK(fault("EtmtL") == "2: " + apart);
  CHECK(fault("EtLm") == "2: the loss (L) must come last, and once");
  CHECK(fault("") == "0: the layout is empty");
  CHECK(fault("tt|tL") == "0: the first stage must begin with the embedding (E)");
  CHECK(fault("|EtL") == "1: the embedding (E) must come first, and once");
  CHECK(fault("Et|EtL") == "3: the embedding (E) must come first, and once");
  CHECK(fault("Et|tt") == "4: the last stage must end with the loss (L)");
  CHECK(fault("EtL|t") == "2: the loss (L) must come last, and once");
  CHECK(fault("Etx|L") == "2: there is no layer \"x\"");
  CHECK(fault("Et*|L") == "2: \"*\" needs a whole number from 1 to a million behind it");
  CHECK(fault("Et*0|L") == "2: \"*\" needs a whole number from 1 to a million behind it");
  CHECK(fault("*3EL") == "0: \"*\" has nothing before it to repeat");
  CHECK(fault("E(tt|L") == "1: \"(\" has no \")\"");
  CHECK(fault("Ett)L") == "3: \")\" has no \"(\"");
  CHECK(fault("E((t*1000)*1000)*1000L") == "1: the layout is longer than a million letters");
  CHECK(fault("E" + std::string(200, '(')) == "101: parentheses are more than a hundred deep");
}

}  // namespace
}  // namespace windtunnel
