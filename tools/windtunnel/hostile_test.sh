#!/usr/bin/env bash
# Files from strangers and slips of the user: no input is overwritten, nothing is written that was not asked for, and what a
# stranger wrote reaches no terminal, page, picture or table as anything but text.
#   tools/windtunnel/hostile_test.sh PROGRAM
set -uo pipefail
program=$(realpath -- "${1:?usage: hostile_test.sh PROGRAM}")
here=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
export WINDTUNNEL_DATA=$here/../../sim/scenario/corpus/library NO_COLOR=1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 3
cp "$here/../../sim/scenario/corpus/good/plain.json" plain.json

# shellcheck source=tools/windtunnel/checks.sh
source "$here/checks.sh"

# keeps INPUT OUTPUT ARGUMENT...: the command refuses because both are one file, names both, and leaves it as it was
keeps() {
  local input=$1 output=$2 before
  shift 2
  before=$(sha256sum <"$input")
  exits 2 "$@"
  says "the output $output is the same file as the input $input"
  silent stdout
  is "$input is untouched" test "$(sha256sum <"$input")" = "$before"
}

# No output is a file that is read, under this or another name: every command that writes.
cp plain.json plain.html
ln -s plain.json link.json
ln plain.html twin.html
mkdir folder
cp plain.json folder/report.json
ln -s ../plain.json folder/trace.json.gz
cp "$WINDTUNNEL_DATA/models/tiny.json" model.html
ln model.html twin-model.html
cp "$WINDTUNNEL_DATA/platforms/boxes.json" boxes.json
echo '{"extends": "plain.html", "model": "./model.html"}' >child.json
keeps plain.json link.json run plain.json --trace link.json
keeps link.json plain.json run link.json --trace plain.json
keeps plain.html twin.html run plain.html --report twin.html
keeps folder/report.json folder/report.json run folder/report.json --out folder
keeps plain.json folder/trace.json.gz run plain.json --out folder
keeps plain.html twin.html run child.json --report twin.html
keeps model.html twin-model.html run child.json --report twin-model.html
keeps ./model.html model.html run plain.json --set /model=./model.html --report model.html
mkdir ranks && cp plain.json ranks/rank-0000.json.gz
keeps ranks/rank-0000.json.gz ranks/rank-0000.json.gz run ranks/rank-0000.json.gz --rank-traces ranks
keeps plain.html plain.html explain child.json --report plain.html
keeps plain.html plain.html compare plain.json plain.html --report plain.html
keeps plain.json link.json rank plain.json --emit megatron --host-map link.json
echo '{"extends": "plain.json", "sweep": {"matrix": {"/training/micro_batch": [1, 2]}}}' >swept.html
keeps swept.html swept.html sweep swept.html --out points --report swept.html
is "nothing was begun" test ! -e points
mkdir points && cp swept.html points/results.csv && sed -i 's:plain:../plain:' points/results.csv
keeps points/results.csv points/results.csv sweep points/results.csv --out points
echo '{"version": 1, "stages": 1, "microbatches": 1, "orders": [["F0", "B0"]]}' >schedule.json
keeps ./schedule.json schedule.json schedule draw ./schedule.json --svg schedule.json
printf '\x93NUMPY\x01\x00\x3a\x00%-57s\n\x00\x00\x80\x3f\x00\x00\x00\x40' "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }" >two.npy
keeps two.npy two.npy codec two.npy --codec int8 -o two.npy
printf 'Send,a,b\na,0,1000\nb,900,0\n' >net.csv
keeps net.csv ./net.csv import mpigraph net.csv --base boxes -o ./net.csv
keeps boxes.json boxes.json import mpigraph net.csv --base boxes.json -o boxes.json
cat >set.json <<'END'
{"schema": "windtunnel/measurements-v1", "name": "set", "kind": "iteration", "source": {"citation": "none", "licence": "none"},
 "base": {"version": 1, "model": "tiny", "platform": "./boxes.json", "training": {"global_batch": 64, "micro_batch": 1},
          "parallel": {"tensor": 2, "pipeline": 2, "data": 2}},
 "points": [{"id": "a", "scenario": {}, "measured": {"iteration_time_s": 1.0}}]}
END
cp set.json set.html
keeps ./set.html set.html validate ./set.html --report set.html
keeps ./set.json set.json validate ./set.json --svg set.json
keeps ./set.json set.json calibrate ./set.json --fit emax --residuals set.json
keeps boxes.json boxes.json calibrate ./set.json --fit nic_efficiency --platform ./boxes.json -o boxes.json
keeps ./set.json set.json calibrate ./set.json --memory -o set.json
# A file that is there, but not read, is replaced; residuals are written anew with those of other stacks kept.
cp plain.json old.html
exits 0 run plain.json --report old.html; is "the page is written" grep -q '^<!DOCTYPE html>' old.html
exits 0 run plain.json --report old.html

echo "$checks checks, $failures failed"
[[ $failures -eq 0 ]]
