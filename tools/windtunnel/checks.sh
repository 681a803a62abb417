# shellcheck shell=bash
# Sourced by the tests of the program: runs "$program" and counts what is not as it should be, in the current folder.

# in_scratch PROGRAM: from here on in an empty folder that goes with the script, with the names of the corpus
in_scratch() {
  program=$(realpath -- "${1:?usage: ${0##*/} PROGRAM}")
  export WINDTUNNEL_DATA=$here/../../sim/scenario/corpus/library NO_COLOR=1
  scratch=$(mktemp -d)
  trap 'chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
  cd "$scratch" || exit 3
}

checks=0 failures=0

complain() {
  echo "FAILED: $1"
  head -5 stdout stderr 2>/dev/null | sed 's/^/    /'
  failures=$((failures + 1))
}
# is WHAT COMMAND...: the command succeeds
is() {
  local what=$1
  shift
  checks=$((checks + 1))
  "$@" || complain "$what"
}
# exits CODE ARGUMENT...: runs the program, leaves stdout and stderr in files
exits() {
  local code=$1 got=0
  shift
  "$program" "$@" >stdout 2>stderr </dev/null || got=$?
  checks=$((checks + 1))
  [[ $got -eq $code ]] || complain "windtunnel $* exits with $got, not $code"
}
says() { is "stderr says: $1" grep -qF -- "$1" stderr; }
prints() { is "stdout says: $1" grep -qF -- "$1" stdout; }
# A slow machine is told every so often that work goes on.
is_silent() { ! grep -qv '^windtunnel: still working after [0-9]* s$' "$1"; }
silent() { is "$1 is empty" is_silent "$1"; }
# Where there is no Python, this part of the checks is left out.
json_is_whole() { ! command -v python3 >/dev/null || python3 -m json.tool "$1" /dev/null; }
parses() { is "stdout is one JSON document" json_is_whole stdout; }
