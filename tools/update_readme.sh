#!/usr/bin/env bash
# Fills the samples of README.md with what the program prints now:
#   tools/update_readme.sh [PROGRAM]      (default: build/release/windtunnel)
# A sample stands between "<!-- sample:begin COMMAND -->" and "<!-- sample:end -->". What differs from run to run (real
# time) is written as "…", which check_docs.sh accepts.
set -euo pipefail
program=$(realpath -- "${1:-$(dirname -- "${BASH_SOURCE[0]}")/../build/release/windtunnel}")
cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin"
ln -s "$program" "$scratch/bin/windtunnel"
export PATH="$scratch/bin:$PATH" NO_COLOR=1

# Real time: "in 0.31 s (real time)", "simulated in 12 ms", "wall 0.3 s" on the lines that speak of it.
hide_real_time() {
  sed -E '/real time|simulated in|wall/ s/[0-9]+(\.[0-9]+)? (ns|us|µs|ms|s|min)\b/… \2/g'
}

inside=""
while IFS= read -r line; do
  if [[ $line =~ ^'<!-- sample:begin '(.*)' -->'$ ]]; then
    command=${BASH_REMATCH[1]}
    printf '%s\n```console\n$ %s\n' "$line" "$command"
    (bash -c "$command" 2>&1 </dev/null) | hide_real_time
    echo '```'
    inside=yes
  elif [[ $line == '<!-- sample:end -->' ]]; then
    printf '%s\n' "$line"
    inside=""
  elif [[ -z $inside ]]; then
    printf '%s\n' "$line"
  fi
done <README.md >"$scratch/README.md"
if [[ -n $inside ]]; then
  echo "error: README.md has a sample without an end" >&2
  exit 2
fi
if cmp -s "$scratch/README.md" README.md; then
  echo "README.md is up to date"
else
  cat "$scratch/README.md" >README.md
  echo "README.md updated: look at the difference before you commit it"
fi
