#!/usr/bin/env bash
# Proves that check_layers.sh fails on each breach it names, in a small tree of its own, and passes without.
set -euo pipefail
check=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")/check_layers.sh")
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
failures=0

fresh_tree() {
  rm -rf "$tree"
  mkdir -p "$tree"/{tools,bindings,sim/{core,plan,engine,platform,sweep,search,studies}}
  echo '#include "core/id.hpp"' >"$tree/sim/plan/plan.hpp"
  echo '#include <simgrid/s4u.hpp>' >"$tree/sim/engine/simgrid_engine.cpp"
  echo '#include <boost/graph/adjacency_list.hpp>' >"$tree/sim/platform/mesh_rings.cpp"
  echo '#include <nlohmann/json.hpp>' >"$tree/sim/plan/schema_test.cpp"
  printf 'windtunnel_layer(plan SOURCES plan.cpp DEPENDS core\n  platform)\n' >"$tree/sim/plan/CMakeLists.txt"
  echo '#include "plan/plan.hpp"' >"$tree/tools/main.cpp"
  echo '#include "search/rank.hpp"' >"$tree/sim/studies/method.cpp"
}

# expect MESSAGE FILE LINE: with LINE in FILE the check must fail and say MESSAGE.
expect() {
  local said
  fresh_tree
  echo "$3" >>"$tree/$2"
  if said=$("$check" "$tree"); then
    echo "not found: $2 with $3"
    failures=$((failures + 1))
  elif [[ $said != *"$1"* ]]; then
    echo "expected '$1' for $2 with $3, but the check said: $said"
    failures=$((failures + 1))
  fi
}

fresh_tree
"$check" "$tree" || { echo "a good tree is refused"; failures=1; }
expect "plan must not see engine" sim/plan/plan.cpp '#include "engine/engine.hpp"'
expect "plan must not see engine" sim/plan/plan_test.cpp '#  include "engine/engine.hpp"'
expect "sweep must not see search" sim/sweep/sweep.cpp '#include "search/rank.hpp"'
expect "search must not see studies" sim/search/rank.cpp '#include "studies/method.hpp"'
expect 'write includes as "layer/file.hpp"' sim/plan/plan.cpp '#include "plan.hpp"'
expect "SimGrid is for" sim/engine/engine.cpp '#include <simgrid/s4u.hpp>'
expect "SimGrid is for" tools/main.cpp '#include <simgrid/s4u.hpp>'
expect "Boost.Graph is for" sim/plan/plan.cpp '#include <boost/graph/adjacency_list.hpp>'
expect "nlohmann is for" sim/plan/plan.cpp '#include <nlohmann/json.hpp>'
expect "nlohmann is for" sim/plan/plan.hpp '#include <nlohmann/json.hpp>'
expect "nlohmann is for" tools/main.cpp '#include <nlohmann/json.hpp>'
expect "product of parallel degrees" sim/sweep/sweep.cpp 'const int ranks = plan.parallel.tensor * plan.parallel.pipeline;'
expect "product of parallel degrees" sim/sweep/sweep.cpp 'auto n = std::int64_t{parallel.replicas()} * parallel.tensor;'
expect "product of parallel degrees" sim/sweep/sweep.cpp 'const double n = microbatches * double(plan->parallel.expert) * parallel.expert_tensor;'
expect "product of parallel degrees" sim/sweep/sweep.cpp $'const int n = parallel.tensor *\n              parallel.context;'
accept() {
  fresh_tree
  echo "$2" >>"$tree/$1"
  "$check" "$tree" || { echo "refused: $1 with $2"; failures=$((failures + 1)); }
}
accept sim/core/json_parser.cpp '#include <nlohmann/json.hpp>'
accept sim/sweep/row_json.cpp '#include <nlohmann/json.hpp>'
accept sim/plan/plan.cpp 'int ranks() { return parallel.tensor * parallel.pipeline; }'
accept sim/sweep/sweep.cpp 'const auto layers = 2 * parallel.pipeline * per_stage;  // tensor * pipeline'
accept sim/sweep/sweep.cpp 'throw "tensor * pipeline is " + text(tensor.size() * context.device->count);'
expect "plan must not depend on engine" sim/plan/CMakeLists.txt 'windtunnel_layer_test(plan SOURCES a.cpp DEPENDS engine)'
expect "plan must not depend on report" sim/plan/CMakeLists.txt 'target_link_libraries(windtunnel_plan PUBLIC windtunnel_report)'
expect "no such layer: network" sim/plan/CMakeLists.txt 'windtunnel_layer(plan DEPENDS network)'
expect "this folder is the layer plan" sim/plan/CMakeLists.txt 'windtunnel_layer(core SOURCES a.cpp)'

fresh_tree
mkdir "$tree/sim/util"
if "$check" "$tree" >/dev/null; then echo "a folder that is no layer is accepted"; failures=$((failures + 1)); fi

if [[ $failures -gt 0 ]]; then echo "$failures failures"; exit 1; fi
echo "check_layers.sh finds every breach it names"
