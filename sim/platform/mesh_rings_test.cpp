#include "platform/mesh_rings.hpp"

#include <doctest/doctest.h>

#include "platform/testing.hpp"

using namespace windtunnel;

TEST_CASE("a DGX-1 has 1, 4 and 6 rings among its first 2, 4 and 8 GPUs") {
  const Interconnect mesh = testing::shipped_platform("dgx1-v100").node_types[0].interconnect;
  CHECK(num_rings(mesh, {0, 1}) == 1);
  CHECK(num_rings(mesh, {0, 1, 2, 3}) == 4);
  CHECK(num_rings(mesh, {0, 1, 2, 3, 4, 5, 6, 7}) == 6);
  CHECK(num_rings(mesh, {4, 5, 6, 7}) == 4);  // the other half is the same
  CHECK(num_rings(mesh, {3, 4}) == 0);        // GPUs 3 and 4 share no lane
}

TEST_CASE("rings of the four-GPU nodes") {
  const Interconnect jean_zay =
      testing::shipped_platform("jean-zay-v100").node_types[0].interconnect;
  CHECK(num_rings(jean_zay, {0, 1}) == 2);
  CHECK(num_rings(jean_zay, {0, 1, 2, 3}) == 6);
  // 6 rings * 20.67 GB/s = 124.02 GB/s; the benchmark shows 124 at 4 GB.
  CHECK(6 * jean_zay.saturated_bandwidth / 124_GBps == doctest::Approx(1).epsilon(1e-3));
  const Interconnect lassen = testing::shipped_platform("lassen-v100").node_types[0].interconnect;
  CHECK(num_rings(lassen, {0, 1}) == 3);
  CHECK(num_rings(lassen, {0, 1, 2, 3}) ==
        1);  // what crosses the sockets, not the 3 lanes of a GPU
}
