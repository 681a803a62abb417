#!/usr/bin/env bash
# The include law of sim/: a folder is a layer, and a layer sees only those before it.
#   tools/check_layers.sh [ROOT]
# Fails on: a quoted include or a CMake DEPENDS that points the wrong way; a folder that is no layer; SimGrid outside
# sim/engine/simgrid_*; Boost.Graph outside sim/platform; nlohmann outside
# sim/core, *_json.{hpp,cpp} and tests; a product of parallel degrees outside sim/plan and sim/layout, tests
# excepted: Parallel and Layout know which degrees share a group (Parallel::ranks_of_replica()).
set -euo pipefail
root=${1:-$(dirname -- "${BASH_SOURCE[0]}")/..}
cd -- "$root"

# Lowest first; those of `siblings` stand side by side and do not see each other, those of `above` see all.
chain="core units workload platform layout plan operations passes cost schedule memory scenario engine lower timeline report evidence simulate questions"
siblings="search sweep validate calibrate importers codec job noise"
above="studies"

for folder in sim/*/; do
  folder=$(basename "$folder")
  case " $chain $siblings $above " in
    *" $folder "*) ;;
    *) echo "sim/$folder: no layer of this name (tools/check_layers.sh lists them)"; unknown=1 ;;
  esac
done

# Both programs print one line per breach, "file:line: what".
# shellcheck disable=SC2016  # awk, not shell
define='
  BEGIN {
    count = split(chain, names, " ")
    for (i = 1; i <= count; ++i) height[names[i]] = i
    for (i = split(siblings, names, " "); i > 0; --i) height[names[i]] = count + 1
    for (i = split(above, names, " "); i > 0; --i) height[names[i]] = count + 2
  }
  function sees(own, other) { return own == other || height[other] < height[own] }
  function breach(what) { printf "%s:%d: %s\n", FILENAME, FNR, what }
'
# shellcheck disable=SC2016
check_includes=$define'
  !/^[ \t]*#[ \t]*include[ \t]*["<]/ { next }
  {
    quoted = /include[ \t]*"/
    match($0, /["<][^">]*[">]/)
    included = substr($0, RSTART + 1, RLENGTH - 2)
    split(FILENAME, path, "/")
    own = path[1] == "sim" ? path[2] : ""
    file = path[length(path)]
    other = included
    sub(/\/.*/, "", other)
    test = file ~ /_test\.cpp$/

    if (included ~ /^(simgrid|xbt|smpi)\// && !(own == "engine" && file ~ /^simgrid_/))
      breach("SimGrid is for sim/engine/simgrid_* only: " included)
    else if (included ~ /^boost\/graph\// && own != "platform")
      breach("Boost.Graph is for sim/platform only: " included)
    else if (included ~ /^nlohmann\// && !test && own != "core" && file !~ /_json\.[hc]pp$/)
      breach("nlohmann is for sim/core and *_json files only: " included)
    else if (own != "" && quoted && !(other in height))
      breach("write includes as \"layer/file.hpp\": " included)
    else if (own != "" && quoted && !sees(own, other))
      breach(own " must not see " other ": " included)
  }
'
# shellcheck disable=SC2016
check_products=$define'
  BEGIN {
    degree = "([A-Za-z_]+(\\(\\))?(\\.|->))*(tensor|context|pipeline|data|expert|expert_tensor|replicas|gradient_replicas)(\\(\\))?"
    product = "(^|[^A-Za-z0-9_.>])" degree " *\\* *" degree "([^A-Za-z0-9_.(-]|$)"
  }
  FNR == 1 { begun = "" }
  {
    gsub(/\\"/, "")
    gsub(/"[^"]*"/, "")
    sub(/\/\/.*/, "")
    gsub(/(std::int64_t|double|int|static_cast<[^>]*>)[ ]*[({]/, "(")
    while (match($0, /\([A-Za-z_.>-]+(\(\))?[)}]/) && substr($0, RSTART, RLENGTH) !~ /^\(\)/)
      $0 = substr($0, 1, RSTART - 1) " " substr($0, RSTART + 1, RLENGTH - 2) " " substr($0, RSTART + RLENGTH)
    line = begun $0
    if (line ~ product) breach("ask Parallel or Layout for a product of parallel degrees:" line)
    begun = line ~ /\*[ ]*$/ ? line : ""
  }
'
# shellcheck disable=SC2016
check_depends=$define'
  FNR == 1 { split(FILENAME, path, "/"); own = path[2]; in_depends = 0 }
  {
    sub(/#.*/, "")
    gsub(/[()]/, " & ")
    for (i = 1; i <= NF; ++i) {
      if ($i == ")") in_depends = 0
      else if ($i ~ /^[A-Z_]+$/) in_depends = $i == "DEPENDS"
      else if ($i ~ /^windtunnel_layer/ && $(i + 1) == "(") {
        if ($(i + 2) != own) breach("this folder is the layer " own ", not " $(i + 2))
      } else {
        other = $i
        sub(/^windtunnel_/, "", other)
        if ((in_depends || other != $i) && other in height && !sees(own, other))
          breach(own " must not depend on " other)
        if (in_depends && !(other in height)) breach("no such layer: " other)
      }
    }
  }
'
breaches=$(
  find sim tools bindings \( -name '*.hpp' -o -name '*.cpp' \) -print0 | sort -z |
    xargs -0 -r awk -v chain="$chain" -v siblings="$siblings" -v above="$above" "$check_includes"
  find sim tools bindings \( -name '*.hpp' -o -name '*.cpp' \) ! -name '*_test.cpp' \
    ! -path 'sim/plan/*' ! -path 'sim/layout/*' -print0 | sort -z |
    xargs -0 -r awk -v chain="$chain" -v siblings="$siblings" -v above="$above" "$check_products"
  find sim -mindepth 2 -name CMakeLists.txt -print0 | sort -z |
    xargs -0 -r awk -v chain="$chain" -v siblings="$siblings" -v above="$above" "$check_depends"
)
if [[ -n $breaches ]]; then echo "$breaches"; fi
if [[ -n $breaches || -n ${unknown:-} ]]; then exit 1; fi
