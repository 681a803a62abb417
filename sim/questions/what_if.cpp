#include "questions/what_if.hpp"

#include <iterator>

#include "questions/what_if_parts.hpp"

namespace windtunnel {

std::string exact(double number) { return canonical_text(JsonValue(number)); }
std::string exact(BytesPerSecond rate) { return exact(rate / BytesPerSecond{1}) + " B/s"; }
std::string exact(Seconds time) { return exact(time / Seconds{1}) + " s"; }

std::vector<WhatIf> what_ifs(const Scenario& scenario, const Library& library) {
  const NodeKinds kinds(scenario, library);
  std::vector<WhatIf> all;
  for (std::vector<WhatIf> topic :
       {hardware_what_ifs(scenario, kinds), stage_what_ifs(scenario, kinds),
        training_what_ifs(scenario), codec_what_ifs(scenario)})
    all.insert(all.end(), std::make_move_iterator(topic.begin()),
               std::make_move_iterator(topic.end()));
  return all;
}

}  // namespace windtunnel
