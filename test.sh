#!/usr/bin/env bash
# Sets up what is missing, builds everything, and runs every test: in release with GCC, then with clang under the address and
# undefined-behaviour sanitizers; then ten seconds of fuzzing and the format check. The layer law and the commands in the
# documentation are tests of the release build. Exit code 0 only when all passed.
set -euo pipefail

cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")"
# shellcheck source=tools/setup.sh
source tools/setup.sh

if [[ $# -gt 0 ]]; then
  echo "error: test.sh takes no arguments; for some of the tests: ctest --preset release -R NAME" >&2
  exit 2
fi

passed=() failed=()
step() {  # step NAME COMMAND...: runs it and notes how it ended
  local name=$1
  shift
  echo "== $name"
  if "$@"; then passed+=("$name"); else failed+=("$name"); fi
}

build_and_test() {
  configure "$1" always || return 1
  cmake --build --preset "$1" --parallel "$(build_jobs)" || return 1
  rm -f "build/$1/Testing/Temporary/LastTestsFailed.log"
  ctest --preset "$1" --parallel "$(nproc)" --no-tests=error
}

# The output of the tests that failed in build/PRESET, once more: of a long log often only the end is kept.
retell_failures() {
  local folder=build/$1/Testing/Temporary number name
  [[ -s $folder/LastTestsFailed.log ]] || return 0
  while IFS=: read -r number name; do
    echo "== failed in $1: $name"
    awk -v title="^$number/[0-9]+ Test: " '$0 ~ title { told = 1 } told; told && /^<end of output>/ { exit }' "$folder/LastTest.log" |
      tail -60 | cut -c1-400
  done <"$folder/LastTestsFailed.log"
}

# Ten seconds of random scenario files; a crash leaves its input in build/fuzz.
fuzz_smoke() {
  local corpus=build/fuzz/corpus program
  mkdir -p "$corpus"
  program=$(find build/sanitize -type f -name windtunnel_scenario_fuzz -perm -u+x -print -quit)
  [[ -n $program ]] || { echo "windtunnel_scenario_fuzz was not built"; return 1; }
  "$program" -max_total_time=10 -timeout=10 -print_final_stats=1 -verbosity=0 -artifact_prefix=build/fuzz/ \
    "$corpus" sim/scenario/corpus/good sim/scenario/corpus/bad >build/fuzz/log 2>&1 || { tail -40 build/fuzz/log; return 1; }
  grep number_of_executed_units build/fuzz/log
}

format_check() {
  local file wrong=()
  while IFS= read -r -d '' file; do
    "$1" --dry-run -Werror --style=file "$file" 2>/dev/null || wrong+=("$file")
  done < <(find sim tools bindings \( -name '*.hpp' -o -name '*.cpp' \) -print0)
  [[ ${#wrong[@]} -gt 0 ]] || return 0
  printf 'not formatted: %s\n' "${wrong[@]}"
  echo "mend with: $1 -i FILE"
  return 1
}

if [[ ! -d build/sanitize ]]; then
  echo "test.sh builds everything twice: about 40 minutes on two cores this first time, 15 from then on; build/ grows to 2 GB" >&2
fi
install_missing "${packages_to_test[@]}"
step "release tests" build_and_test release
step "sanitizer tests" build_and_test sanitize
step "fuzzing" fuzz_smoke
step "format" format_check clang-format-14

list() { local text; printf -v text '%s, ' "$@"; echo "${text%, }"; }
if [[ ${#failed[@]} -gt 0 ]]; then
  retell_failures release
  retell_failures sanitize
  echo "test.sh: FAILED: $(list "${failed[@]}") (passed: ${#passed[@]}; ${SECONDS} s)"
  exit 1
fi
echo "test.sh: all passed: $(list "${passed[@]}") (${SECONDS} s)"
