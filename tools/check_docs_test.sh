#!/usr/bin/env bash
# Proves that check_docs.sh accepts what it should and refuses what it should.
set -euo pipefail
check=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")/check_docs.sh")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0

# expect good|bad: the block on stdin.
expect() {
  local verdict=good
  { echo '```console'; cat; echo '```'; } >"$scratch/page.md"
  "$check" /bin/echo "$scratch/page.md" >"$scratch/said" || verdict=bad
  if [[ $verdict != "$1" ]]; then
    echo "expected $1, got $verdict:"
    cat "$scratch/page.md" "$scratch/said"
    failures=$((failures + 1))
  fi
}

expect good <<<$'$ windtunnel run\nrun'
expect good <<<$'$ windtunnel output not shown'
expect good <<<$'$ windtunnel two \\\n  lines\ntwo lines\n$ false; echo "exit code $?"\nexit code 1'
expect good <<<$'$ windtunnel took 0.12 s\ntook … s'
expect good <<<$'$ printf "a\\nb\\nc\\nd\\n"\na\n…\nd'
expect good <<<$'$ ls README.md >&2\nREADME.md'
expect bad <<<$'$ windtunnel run\nrun more'
expect bad <<<$'$ windtunnel run\nrun\nmore'
expect bad <<<$'$ printf "a\\nb\\n"\na'
expect bad <<<$'$ windtunnel took 0.12 s\ntook … ms'
expect bad <<<$'$ printf "a\\nb\\n"\na\n…\nc'
expect bad <<<$'$ false'
expect bad <<<$'$ true\n```\n```console\n$ false'
# What a command changes stays changed for those below it, also in the next block.
expect good <<<$'$ cd docs\n```\n```console\n$ ls accuracy.md\naccuracy.md'
expect bad <<<$'$ cd docs; ls accuracy.md\naccuracy.md\n$ ls README.md'
expect good <<<$'$ name=value\n$ echo "$name"\nvalue'
expect bad <<<$'$ echo "$name"\nvalue'
expect bad <<<$'$ exit 0\n$ true'
expect bad <<<$'$ if true'

# The next page is read in a shell of its own.
printf '```console\n$ cd docs\n```\n' >"$scratch/first.md"
printf '```console\n$ ls README.md\n```\n' >"$scratch/second.md"
"$check" /bin/echo "$scratch/first.md" "$scratch/second.md" >"$scratch/said" || { cat "$scratch/said"; failures=$((failures + 1)); }

# A line for people is no wider than the terminal, also in a pipe; a long word is let be.
long=$(printf 'word %.0s' {1..17})
expect good <<<"\$ windtunnel ${long:0:79}"
expect bad <<<"\$ windtunnel $long"
expect bad <<<"\$ windtunnel $long | wc -l"
expect good <<<"\$ windtunnel a line with one long word ${long// /-}"
expect good <<<"\$ windtunnel --json $long"

if [[ $failures -gt 0 ]]; then echo "$failures failures"; exit 1; fi
echo "check_docs.sh tells right from wrong"
