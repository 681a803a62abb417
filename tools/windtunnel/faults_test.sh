#!/usr/bin/env bash
# One system call fails, at each place in turn. The program says why and leaves its outputs as they were, or does without the call; then its
# outputs are those of an undisturbed run. It never ends with a bug of its own.
#   tools/windtunnel/faults_test.sh PROGRAM LIBRARY     LIBRARY: failing_calls_fixtures.cpp
set -uo pipefail
here=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
library=$(realpath -- "${2:?usage: faults_test.sh PROGRAM LIBRARY}")
# shellcheck source=tools/windtunnel/checks.sh
source "$here/checks.sh"
in_scratch "$1"
cp "$here/../../sim/scenario/corpus/good/plain.json" plain.json
sed 's|"parallel"|"sweep": {"matrix": {"/training/micro_batch": [1, 2, 4]}}, "parallel"|' plain.json >sweep.json

# num_calls CALL ARGUMENT...: how often an undisturbed run makes the call
num_calls() {
  rm -f count
  FAIL_CALL=$1 FAIL_COUNT=$PWD/count LD_PRELOAD=$library "$program" "${@:2}" >stdout 2>stderr </dev/null
  head -1 count
}
# fails_at CALL PLACE REASON ARGUMENT...: leaves the exit code in $got
fails_at() {
  got=0
  FAIL_CALL=$1 FAIL_AT=$2 FAIL_ERRNO=$3 LD_PRELOAD=$library "$program" "${@:4}" >stdout 2>stderr </dev/null || got=$?
}
same_files() {  # same_files FOLDER FOLDER: but for the wall time of a report
  diff -r -I wall_s "$1" "$2" >/dev/null
}
places() {  # places NUMBER: all of them, or some forty
  seq 1 $((1 + ($1 - 1) / 40)) "$1"
}
readonly no_space=28 io_error=5 too_many=24 not_now=11
declare -A text=([$no_space]="No space left on device" [$io_error]="Input/output error" [$too_many]="Too many open files" [$not_now]="Resource temporarily unavailable")

# The files of a run: all of them are of the run before, or all of this one.
exits 0 run plain.json --set /name=first --out first --quiet
exits 0 run plain.json --set /name=second --out second --quiet
cp stdout second.txt
for fault in open:$too_many open:$io_error opendir:$too_many readdir:$io_error read:$io_error write:$no_space fsync:$io_error rename:$io_error \
  link:$io_error mkdir:$io_error stat:$io_error pthread_create:$not_now; do
  call=${fault%:*} reason=${fault#*:}
  rm -rf out && cp -r first out
  number=$(num_calls $call run plain.json --set /name=second --out out --quiet)
  for place in $(places "$number"); do
    rm -rf out && cp -r first out
    fails_at $call $place $reason run plain.json --set /name=second --out out --quiet
    what="run, $call fails at $place"
    case $got in
      0) is "$what: the result is whole" cmp -s stdout second.txt; is "$what: the files are whole" same_files out second ;;
      2 | 3) is "$what: the reason is told" grep -qF "${text[$reason]}" stderr
        is "$what: the files are of one run" bash -c "$(declare -f same_files); same_files out first || same_files out second" ;;
      *) complain "$what: exit code $got" ;;
    esac
  done
done

# A sweep that stopped is finished by the next.
exits 0 sweep sweep.json --out whole --jobs 2 --quiet
for fault in open:$too_many read:$io_error write:$no_space fsync:$io_error fdatasync:$io_error rename:$io_error link:$io_error mkdir:$io_error \
  stat:$io_error fork:$not_now pipe2:$too_many; do
  call=${fault%:*} reason=${fault#*:}
  rm -rf out
  number=$(num_calls $call sweep sweep.json --out out --jobs 2 --quiet)
  for place in $(places "$number"); do
    rm -rf out
    fails_at $call $place $reason sweep sweep.json --out out --jobs 2 --quiet
    what="sweep, $call fails at $place"
    is "$what: exit code $got" grep -qx "$got" <(printf '%s\n' 0 1 2 3)
    [[ $got -lt 2 ]] || is "$what: the reason is told" grep -qF "${text[$reason]}" stderr
    is "$what: nothing half-written is left" test -z "$(find . -name '.windtunnel-*')"
    [[ $got -eq 0 ]] || "$program" sweep sweep.json --out out --jobs 2 --quiet --retry-failed >stdout 2>stderr </dev/null
    is "$what: the next one finishes it" cmp -s out/results.jsonl whole/results.jsonl
  done
done

# Threads that the system does not start are done without.
for command in "rank plain.json" "explain plain.json" "run plain.json --steps 4 --set /noise/pass_jitter=0.01" "validate ./set.json"; do
  cat >set.json <<'JSON'
{"schema": "windtunnel/measurements-v1", "name": "set", "kind": "iteration", "source": {"citation": "none", "licence": "none"}, "base": {"extends": "plain.json"},
 "points": [{"id": "a", "scenario": {}, "measured": {"iteration_time_s": 1.0}}, {"id": "b", "scenario": {"training": {"micro_batch": 2}}, "measured": {"iteration_time_s": 1.0}}]}
JSON
  # shellcheck disable=SC2086  # words
  exits 0 $command --json --quiet
  cp stdout whole.txt
  for place in 1+ 2+ 1 2; do
    # shellcheck disable=SC2086
    fails_at pthread_create $place $not_now $command --json --quiet
    is "$command without thread $place exits with 0" test "$got" = 0
    is "$command without thread $place says the same" diff -I wall_s stdout whole.txt
  done
done

echo "$checks checks, $failures failed"
[[ $failures -eq 0 ]]
