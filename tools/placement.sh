#!/usr/bin/env bash
# Measures what searched placements are worth and writes the tables of docs/placement.md:
#   tools/placement.sh [BUILD_DIRECTORY]      (default: build/release)
# Takes a minute or two. Only what stands between the markers of the page is replaced. Exits with 1 when a promise of the page does
# not hold: found placements no slower than Megatron's order and the median random one, 5 % gained where two nodes are slow,
# the exhaustive optimum in 95 of 100 seeds.
set -euo pipefail
cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
build=${1:-build/release}
page=docs/placement.md
program=$build/sim/studies/windtunnel_placement_study
if [[ ! -x $program ]]; then
  echo "error: there is no $program. Build it: cmake --preset release && cmake --build --preset release --target windtunnel_placement_study" >&2
  exit 3
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
status=0
"$program" >"$scratch/tables" || status=$?
if [[ $status -gt 1 ]]; then
  exit "$status"
fi
awk -v tables="$scratch/tables" '
  /^<!-- study:begin -->$/ { print; print ""; while ((getline line < tables) > 0) print line; print ""; inside = 1; next }
  /^<!-- study:end -->$/ { inside = 0; ended = 1 }
  !inside
  END { exit !ended }' "$page" >"$scratch/page" ||
  { echo "error: $page has no study:begin and study:end markers" >&2; exit 2; }
if cmp -s "$scratch/page" "$page"; then
  echo "$page is up to date"
else
  cat "$scratch/page" >"$page"
  echo "$page updated: look at the difference before you commit it"
fi
exit "$status"
