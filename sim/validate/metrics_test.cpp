#include <doctest/doctest.h>

#include "validate/validate.hpp"

namespace windtunnel {
namespace {

ValidatedSet set_with_everything() {
  ValidatedSet set;
  set.comparisons = {{"a", "", Seconds{10}, Seconds{8}, Flops{1}}};
  set.memory = {{"a", MemoryKind::allocated, "", 10_MiB, 11_MiB},
                {"a", MemoryKind::nvidia_smi, "", 10_GiB, 7_GiB}};
  set.timers = {{"a", "forward-compute", Seconds{1}, Seconds{1.5}}};
  set.capacity.refused_that_ran = {"a", "b"};
  return set;
}

double value(const char* name, const ValidatedSet& set) {
  return find_metric(name)->of(set).value();
}

TEST_CASE("each metric is a mean of its own kind") {
  const ValidatedSet set = set_with_everything();
  CHECK(value("mape", set) == doctest::Approx(0.2));
  CHECK(value("bias", set) == doctest::Approx(0.2));  // -0.2, without its sign
  CHECK(value("memory_allocated_mape", set) == doctest::Approx(0.1));
  CHECK(value("memory_smi_mape", set) == doctest::Approx(0.3));
  CHECK(value("memory_mape", set) == doctest::Approx(0.2));  // (0.1 + 0.3) / 2
  CHECK(value("timers_mape", set) == doctest::Approx(0.5));
  CHECK(value("refused_that_ran", set) == 2);
  CHECK(value("missed", set) == 0);
}

TEST_CASE("a set without readings has no metric of them") {
  const ValidatedSet set;
  for (const char* name : {"mape", "memory_mape", "memory_reserved_mape", "timers_mape"})
    CHECK_FALSE(find_metric(name)->of(set).has_value());
  ValidatedSet collectives;
  collectives.kind = MeasurementKind::collective;
  CHECK_FALSE(find_metric("missed")->of(collectives).has_value());
  CHECK(find_metric("accuracy") == nullptr);
}

}  // namespace
}  // namespace windtunnel
