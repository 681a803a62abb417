#!/usr/bin/env bash
# Sets up what is missing, builds everything, and runs every test: in release, then under the address and
# undefined-behaviour sanitizers; then the format check where clang-format is installed. The layer law and the
# commands in the documentation are tests of the release build. Exit code 0 only when all of it passed.
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
  ctest --preset "$1" --parallel "$(nproc)" --no-tests=error
}

format_check() {
  find sim tools -name '*.hpp' -print0 -o -name '*.cpp' -print0 |
    xargs -0 "$1" --dry-run -Werror --style=file
}

install_missing "${packages_to_test[@]}"
step "release tests" build_and_test release
step "sanitizer tests" build_and_test sanitize
for formatter in clang-format-14 clang-format; do
  if command -v "$formatter" >/dev/null && "$formatter" --version | grep -q 'version 14\.'; then
    step "format" format_check "$formatter"
    break
  fi
done

list() { local text; printf -v text '%s, ' "$@"; echo "${text%, }"; }
if [[ ${#failed[@]} -gt 0 ]]; then
  echo "test.sh: FAILED: $(list "${failed[@]}") (passed: ${#passed[@]}; ${SECONDS} s)"
  exit 1
fi
echo "test.sh: all passed: $(list "${passed[@]}") (${SECONDS} s)"
