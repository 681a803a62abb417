#include "scenario/key_value.hpp"

namespace windtunnel {

KeyValue setting(const std::string& name, int least, int most) {
  return {.kind = KeyValue::Kind::whole_number,
          .least = least,
          .most = most,
          .get = [=](const PlanChoice& choice) { return choice.parallel.setting(name); },
          .set = [=](PlanChoice& choice, int value) { choice.parallel.settings[name] = value; }};
}

KeyValue flag(bool Parallel::*member, std::vector<std::string> words) {
  return {.kind = KeyValue::Kind::flag,
          .words = std::move(words),
          .get = [=](const PlanChoice& choice) { return choice.parallel.*member ? 1 : 0; },
          .set = [=](PlanChoice& choice, int value) { choice.parallel.*member = value == 1; }};
}

}  // namespace windtunnel
