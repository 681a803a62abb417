#!/usr/bin/env bash
# Runs the property tests with fresh seeds:
#   tools/property_tests.sh [--times N] [--cases N] [BUILD]      (default: once, 1,000 cases of each, build/release)
# ctest draws the same cases each time, so that a change is judged by what it changes. This looks for cases that nobody has drawn. A
# failure prints its seed; RC_PARAMS="seed=..." in front of the test program draws it again.
# Exit code: 0 every property held, 1 one did not, 2 bad usage, 3 nothing is built.
set -euo pipefail
cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/.."

times=1 cases=1000 build=build/release
while [[ $# -gt 0 ]]; do
  case $1 in
    -h | --help) sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    --times | --cases)
      [[ ${2-} =~ ^[1-9][0-9]*$ ]] || { echo "error: $1 wants a number" >&2; exit 2; }
      if [[ $1 == --times ]]; then times=$2; else cases=$2; fi
      shift 2 ;;
    -*) echo "error: unknown option $1" >&2; exit 2 ;;
    *) build=$1; shift ;;
  esac
done

failed=0
for ((round = 1; round <= times; ++round)); do
  seed=$(od -An -N4 -tu4 /dev/urandom | tr -d ' ')
  for layer in $(grep -rl "rc::check" sim --include='*_test.cpp' | cut -d/ -f2 | sort -u); do
    program=$build/sim/$layer/windtunnel_${layer}_test
    [[ -x $program ]] || { echo "error: $program is not built (./test.sh builds it)" >&2; exit 3; }
    files=$(grep -rl "rc::check" "sim/$layer" --include='*_test.cpp' | sed 's/^/*/' | paste -sd,)
    RC_PARAMS="seed=$seed max_success=$cases" "$program" -sf="$files" || failed=1
  done
done
exit "$failed"
