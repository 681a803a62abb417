#!/usr/bin/env bash
# Runs every command in the ```console blocks of README.md and docs/*.md and compares what it prints.
#   tools/check_docs.sh PROGRAM [FILE...]
# A line "$ COMMAND" (continued by a last backslash) is run by bash in a copy of the repository without build outputs,
# where `windtunnel` is PROGRAM. It must exit 0; to show a failure, write: windtunnel ...; echo "exit code $?".
# The lines below it, where there are any, must be what it prints on stdout and stderr. In them "…" stands for any
# text, and a line of its own "…" for any number of lines.
set -euo pipefail
if [[ $# -lt 1 || ! -x $1 ]]; then
  echo "usage: tools/check_docs.sh PROGRAM [FILE...]" >&2
  exit 2
fi
program=$(realpath -- "$1")
shift
cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
if [[ $# -eq 0 ]]; then
  set -- README.md
  for file in docs/*.md; do if [[ -f $file ]]; then set -- "$@" "$file"; fi; done
fi

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin" "$scratch/copy"
ln -s "$program" "$scratch/bin/windtunnel"
tar --exclude=./build --exclude=./out --exclude=./.git -cf - . | tar -xf - -C "$scratch/copy"
export PATH="$scratch/bin:$PATH" WINDTUNNEL_DATA="$scratch/copy" NO_COLOR=1

# matches EXPECTED_FILE ACTUAL_FILE
matches() {
  awk '
    FNR == NR { expected[++num_expected] = $0; next }
    { actual[++num_actual] = $0 }
    function line_matches(pattern, text,    parts, count, i, at) {
      count = split(pattern, parts, "…")
      if (count <= 1) return pattern == text
      if (substr(text, 1, length(parts[1])) != parts[1]) return 0
      text = substr(text, length(parts[1]) + 1)
      for (i = 2; i < count; ++i) {
        at = index(text, parts[i])
        if (at == 0) return 0
        text = substr(text, at + length(parts[i]))
      }
      return length(text) >= length(parts[count]) &&
             substr(text, length(text) - length(parts[count]) + 1) == parts[count]
    }
    function rest_matches(e, a) {
      if (e > num_expected) return a > num_actual
      if (expected[e] ~ /^ *… *$/) {
        for (; a <= num_actual + 1; ++a) if (rest_matches(e + 1, a)) return 1
        return 0
      }
      return a <= num_actual && line_matches(expected[e], actual[a]) && rest_matches(e + 1, a + 1)
    }
    END { exit !rest_matches(1, 1) }
  ' "$1" "$2"
}

runs=0 failures=0
fail() {
  echo "$place: $1: $command"
  sed 's/^/    /' "$scratch/actual" | head -40
  failures=$((failures + 1))
}

run_command() {
  local code=0
  [[ -n $command ]] || return 0
  runs=$((runs + 1))
  (cd "$scratch/copy" && bash -c "$command") >"$scratch/actual" 2>&1 </dev/null || code=$?
  if [[ $code -ne 0 ]]; then
    fail "exit code $code"
  elif [[ -s $scratch/expected ]] && ! matches "$scratch/expected" "$scratch/actual"; then
    fail "prints something else"
    diff -u --label documented --label printed "$scratch/expected" "$scratch/actual" | sed 's/^/    /' | head -40 || true
  fi
  command=""
}

for file in "$@"; do
  inside="" number=0 command=""
  while IFS= read -r line || [[ -n $line ]]; do
    number=$((number + 1))
    if [[ -z $inside ]]; then
      if [[ $line == '```console' ]]; then inside=yes; fi
    elif [[ $line == '```' ]]; then
      run_command
      inside=""
    elif [[ $inside == continued ]]; then
      command+=$'\n'$line
      if [[ $line != *\\ ]]; then inside=yes; fi
    elif [[ $line == '$ '* ]]; then
      run_command
      command=${line#'$ '} place=$file:$number
      : >"$scratch/expected"
      if [[ $line == *\\ ]]; then inside=continued; fi
    else
      printf '%s\n' "$line" >>"$scratch/expected"
    fi
  done <"$file"
  if [[ -n $inside ]]; then echo "$file: a console block has no end"; failures=$((failures + 1)); fi
done

if [[ $failures -gt 0 ]]; then
  echo "$failures of $runs documented commands do not do what the documentation says"
  exit 1
fi
echo "$runs documented commands do what the documentation says"
