#include "scenario/key_value.hpp"

namespace windtunnel {

KeyValue setting(const std::string& name, int least, int most) {
  return {.kind = KeyValue::Kind::whole_number,
          .least = least,
          .most = most,
          .get = [=](const PlanChoice& choice) { return choice.parallel.setting(name); },
          .set = [=](PlanChoice& choice, int value) { choice.parallel.settings[name] = value; }};
}

}  // namespace windtunnel
