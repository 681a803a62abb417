#!/usr/bin/env bash
# What a sweep promises: every point once and the same bytes, whoever is killed, however many workers, shards or MPI ranks share it.
#   tools/windtunnel/sweep_test.sh PROGRAM [MPI_PROGRAM]
set -uo pipefail
program=$(realpath -- "${1:?usage: sweep_test.sh PROGRAM [MPI_PROGRAM]}")
mpi_program=${2:-}
here=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
export WINDTUNNEL_DATA=$here/../../sim/scenario/corpus/library NO_COLOR=1
scratch=$(mktemp -d)
trap 'umount "$scratch/tiny" 2>/dev/null; chmod -R u+w "$scratch"; rm -rf "$scratch"' EXIT
cd "$scratch" || exit 3

# shellcheck source=tools/windtunnel/checks.sh
source "$here/checks.sh"
same() { is "$1 and $2 are the same" cmp -s "$1" "$2"; }
rows() { cat "$1"/parts/*.jsonl 2>/dev/null | grep -c '}$'; }
# until COMMAND...: waits for it to succeed, 20 s at most
until_true() {
  local i
  for ((i = 0; i < 2000; ++i)); do
    if "$@"; then return 0; fi
    sleep 0.01
  done
  return 1
}
has_rows() { [[ $(rows "$1") -ge $2 ]]; }

# Points of a few milliseconds each, of which some cannot be: 1024 samples do not divide into microbatches of 3.
cat >sweep.json <<'END'
{"version": 1, "name": "many", "model": "tiny", "platform": "boxes",
 "training": {"global_batch": 1024, "micro_batch": 1},
 "parallel": {"tensor": 2, "pipeline": 4},
 "sweep": {"matrix": {"/nodes": [1, 2, 4], "/training/micro_batch": [1, 2, 3, 4],
                      "/platform/node_types/0/nic_rate": ["50 Gbps", "100 Gbps", "400 Gbps"],
                      "/training/recompute": ["none", "full"]},
           "exclude": [{"/nodes": 4, "/training/micro_batch": 4}],
           "include": [{"/nodes": 8, "/training/micro_batch": 1}, {"/nodes": 8, "/training/micro_batch": 3}]}}
END
if grep -q __asan_init "$program"; then readonly is_sanitized=1; else readonly is_sanitized=0; fi
readonly points=68  # 3 * 4 * 3 * 2 - 3 * 2 + 2
readonly bad=19     # micro_batch 3: 3 * 3 * 2, and one included

# The uninterrupted run by one worker, which all others are compared with.
exits 1 sweep sweep.json --out whole --jobs 1
prints "$points points, $((points - bad)) simulated"; prints "$bad failed ($bad bad_input)"
is "every point has one row" test "$(wc -l <whole/results.jsonl)" -eq $points
is "every id is there once" test "$(grep -o '"id": "[0-9a-f]*"' whole/results.jsonl | sort -u | wc -l)" -eq $points
is "every row is JSON" bash -c '! command -v python3 >/dev/null || python3 -c "import json; [json.loads(l) for l in open(\"whole/results.jsonl\")]"'
is "the reason stands in the row" grep -qF 'global_batch' <(grep '"ok": false' whole/results.jsonl)
is "the table has quoted texts and all rows" test "$(grep -c '^[0-9]*,' whole/results.csv)" -eq $points
is "the picture is SVG" grep -q '^<svg ' whole/sweep.svg
is "the manifest is JSON" json_is_whole whole/manifest.json

# Of two different sweeps that begin in one folder, one is done and the other is refused.
sed 's|"many"|"other"|' sweep.json >other.json
for ((i = 0; i < (is_sanitized ? 5 : 25); ++i)); do
  rm -rf shared
  for name in sweep other; do
    { got=0; "$program" sweep $name.json --out shared --jobs 1 --quiet >$name.out 2>$name.err </dev/null || got=$?; echo $got >$name.code; } &
  done
  wait
  winner=sweep loser=other
  [[ $(cat sweep.code) -ne 2 ]] || { winner=other; loser=sweep; }
  is "one of two sweeps is done" test "$(cat $winner.code)" = 1
  is "the other is refused" test "$(cat $loser.code)" = 2
  is "and told why" grep -qF "shared holds results of another sweep" $loser.err
  is "the results are of the one that was done" test "$(wc -l <shared/results.jsonl)" -eq $points
done

# Any number of workers; and again, with nothing left to do.
for jobs in 2 3; do
  exits 1 sweep sweep.json --out jobs$jobs --jobs $jobs
  for file in results.jsonl results.csv sweep.svg; do same jobs$jobs/$file whole/$file; done
done
exits 1 sweep sweep.json --out jobs2; says "$points points are done already, 0 to do"
same jobs2/results.jsonl whole/results.jsonl
exits 1 sweep sweep.json --out jobs2 --json --quiet; is "stdout is JSON" json_is_whole stdout; prints "\"failed\": $bad"
is "stderr is silent" test ! -s stderr

# What is killed in the middle must take longer than it takes to see how far it is: here a second or more, on any machine.
readonly rates=$((is_sanitized ? 5 : 100))
readonly long_points=$((3 * 4 * rates * 2 - rates * 2 + 2))
sed "s|\"50 Gbps\", \"100 Gbps\", \"400 Gbps\"|$(seq -s '", "' 1 $rates | sed 's/[0-9][0-9]*/& Gbps/g; s/.*/"&"/')|" sweep.json >long.json
exits 1 sweep long.json --out long --jobs 2; prints "$long_points points"

# Killed in the middle, with its last line torn: the same command does the rest.
"$program" sweep long.json --out killed --jobs 2 >stdout 2>stderr &
victim=$!
until_true has_rows killed 10
kill -9 $victim; wait $victim 2>/dev/null
before=$(rows killed)
is "it was killed in the middle ($before rows)" test "$before" -lt $long_points
is "no result was half-written" test ! -e killed/results.jsonl
sleep 0.3
is "its workers are gone" test "$(rows killed)" -le $((before + 4))
before=$(rows killed)
part=$(find killed/parts -name '*.jsonl' | head -1)
printf '{"point": 5, "id": "12' >>"$part"
exits 0 sweep long.json --out killed --status; prints "$((long_points - before)) left to do"
exits 1 sweep long.json --out killed --jobs 2; says "unfinished line"; says "$before points are done already"
same killed/results.jsonl long/results.jsonl; same killed/results.csv long/results.csv
is "nothing was done twice" test "$(rows killed)" -eq $long_points

# A worker that is killed is replaced, and nobody notices.
"$program" sweep long.json --out hurt --jobs 2 >stdout 2>stderr &
victim=$!
until_true has_rows hurt 5
kill -9 "$(pgrep -P $victim | head -1)"
wait $victim; is "a killed worker does not end the sweep" test $? -eq 1
same hurt/results.jsonl long/results.jsonl

# Interrupted by a signal: 75, and the same command goes on.
for signal in INT TERM; do
  env --default-signal=INT "$program" sweep long.json --out stopped$signal --jobs 1 >stdout 2>stderr &
  victim=$!
  until_true has_rows stopped$signal 5
  kill -$signal $victim; wait $victim
  is "SIG$signal: 75" test $? -eq 75
  says "interrupted: "; says "goes on from here"
  exits 1 sweep long.json --out stopped$signal
  same stopped$signal/results.jsonl long/results.jsonl
done

# Shards, given or assigned by the environment.
for i in 0 1 2; do exits 1 sweep sweep.json --out shards --shard $i/3; done
same shards/results.jsonl whole/results.jsonl
is "no shard did another's points" test "$(rows shards)" -eq $points
for i in 4 5 6 7; do
  SLURM_ARRAY_TASK_ID=$i SLURM_ARRAY_TASK_COUNT=4 SLURM_ARRAY_TASK_MIN=4 exits 1 sweep sweep.json --out slurm
done
says "by SLURM_ARRAY_TASK_ID"; same slurm/results.jsonl whole/results.jsonl
exits 2 sweep sweep.json --out none --shard 4/3; says "no part of a sweep"

# MPI ranks.
if [[ -n $mpi_program ]]; then
  for option in --help -h; do
    "$mpi_program" $option >stdout 2>stderr; is "windtunnel-mpi $option exits with 0" test $? -eq 0
    prints "mpirun -n RANKS windtunnel-mpi sweep SCENARIO --out DIR"; prints "Examples:"; prints "Exit codes:"; silent stderr
  done
fi
if [[ -n $mpi_program ]] && command -v mpirun >/dev/null; then
  export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  WINDTUNNEL=$program timeout 120 mpirun --oversubscribe -n 3 "$mpi_program" sweep sweep.json --out mpi --report mpi.html >stdout 2>stderr
  is "mpirun exits with 1" test $? -eq 1
  same mpi/results.jsonl whole/results.jsonl; same mpi/results.csv whole/results.csv
  is "rank 0 wrote the page" grep -q '^<!DOCTYPE html>' mpi.html
  is "two ranks wrote" test "$(find mpi/parts -name '*.jsonl' | wc -l)" -eq 2
  is "each point was done by one" test "$(rows mpi)" -eq $points
  WINDTUNNEL=$program timeout 120 mpirun --oversubscribe -n 3 "$mpi_program" sweep none.json --out mpi2 >stdout 2>stderr
  is "mpirun exits with 3" test $? -eq 3; says "none.json"
  is "the message comes once" test "$(grep -c 'none.json' stderr)" -eq 1
else
  echo "left out: MPI ranks (Open MPI is not installed; the packages are openmpi-bin and libopenmpi-dev)"
fi

# Limits of a point: time and memory. What fails is a row, and can be done again.
exits 1 sweep sweep.json --out slow --time-limit "1 us" --shard 0/30; prints "out_of_time"
exits 1 sweep sweep.json --out slow --retry-failed --shard 0/30; prints "2 simulated, 1 failed (1 bad_input)"
if ((is_sanitized)); then
  echo "left out: the memory limit of a point (the address sanitizer's shadow does not fit under one)"
else
  exits 1 sweep sweep.json --out tight --memory-limit "64 MB" --shard 0/30 --set /training/global_batch=4194304 --set /parallel/schedule=gpipe
  is "all of it is a row" test "$(wc -l <tight/results.jsonl)" -eq 3
  is "lack of memory is told" grep -qF '"failure": "out_of_memory"' tight/results.jsonl
fi
exits 2 sweep sweep.json --out none --time-limit 5; says "no unit"
for limit in "0 GB" "1 B" "63 MB" "1e400 B"; do
  exits 2 sweep sweep.json --out none --memory-limit "$limit"; says "--memory-limit"; says "from 64 MB to 1 PB"
done
for limit in "0 s" "1 ns" "241 h" "1e300 s" "1e400 s"; do
  exits 2 sweep sweep.json --out none --time-limit "$limit"; says "--time-limit"; says "from 1 us to 240 h"
done
exits 0 sweep --help; prints "1 us to 240 h"; prints "64 MB to 1 PB"

# The disk is full: 3, nothing lost. Then there is room again.
(
  ulimit -f 2
  "$program" sweep sweep.json --out full --jobs 2 >stdout 2>stderr
); is "a full disk: 3" test $? -eq 3
says "cannot write full/parts/"; says "What is done is safe"
is "some rows are there, none torn" test "$(rows full)" -gt 0 -a "$(rows full)" -eq "$(cat full/parts/*.jsonl | wc -l)"
exits 1 sweep sweep.json --out full
same full/results.jsonl whole/results.jsonl
if mkdir tiny && mount -t tmpfs -o size=64k none tiny 2>/dev/null; then
  exits 3 sweep sweep.json --out tiny/out; says "No space left on device"
  umount tiny
fi
echo file >occupied
exits 3 sweep sweep.json --out occupied; says "occupied"
mkdir unwritable
chmod a-w unwritable
if [[ $(id -u) -ne 0 ]]; then exits 3 sweep sweep.json --out unwritable/out; says "unwritable"; fi

# A folder of something else is left alone.
exits 2 sweep sweep.json --out whole --set /training/global_batch=512; says "holds results of another sweep"; says "take another --out"
same whole/results.jsonl jobs2/results.jsonl
exits 3 sweep sweep.json --out nowhere --status; says "holds no sweep yet"
is "looking makes no folder" test ! -e nowhere

# What a killed process of the same number left behind is in nobody's way: in a container every process has the number of one that was killed.
if unshare --pid --fork true 2>/dev/null; then
  mkdir -p contained
  for i in 0 1 2 3 4 5; do for pid in 1 2 3 4; do echo half >"contained/.windtunnel-$pid-$i.tmp"; done; done
  for i in 1 2; do
    unshare --pid --fork "$program" sweep sweep.json --out contained --jobs 1 >stdout 2>stderr
    is "a resume in a container exits with 1" test $? -eq 1
  done
  same contained/results.jsonl whole/results.jsonl
else
  echo "left out: process numbers that come again (no right to a namespace of them)"
fi

# Rows are no worker's own: named with file and line, left out, and their points done again.
spoil() {  # spoil NAME SED: a whole folder of results whose rows are changed
  cp -r whole "$1"
  sed -i "$2" "$1"/parts/*.jsonl
}
recovers() {  # recovers NAME LINE WHY: reported by --status, fixed by the next run
  local place
  place="$(echo "$1"/parts/*.jsonl):$2: the row is left out: $3"
  exits 1 sweep sweep.json --out "$1" --status; says "warning: $place"; prints "1 left to do"
  exits 1 sweep sweep.json --out "$1"; says "warning: $place"; says "$((points - 1)) points are done already, 1 to do"
  same "$1"/results.jsonl whole/results.jsonl
}
spoil time '1s/"iteration_time_s": /&9/'; recovers time 1 "its checksum does not match"
spoil zero '2s/"id": "[0-9a-f]*"/"id": "0"/; 2s/"iteration_time_s": /&-5/'; recovers zero 2 "its checksum does not match"
spoil bare '3s/, "checksum": "[0-9a-f]*"//'; recovers bare 3 "it has no checksum"
spoil gpus '4s/"gpus": [0-9]*/"gpus": 1e308/'; recovers gpus 4 "its checksum does not match"
cp -r whole added
echo '{"point": 0, "id": "0", "ok": true, "gpus": 8, "iteration_time_s": -5}' >added/parts/a.jsonl
exits 1 sweep sweep.json --out added; says "warning: added/parts/a.jsonl:1: the row is left out: it has no checksum"
same added/results.jsonl whole/results.jsonl
cp -r whole odd
mkfifo odd/parts/pipe.jsonl; mkdir odd/parts/folder.jsonl
timeout 60 "$program" sweep sweep.json --out odd --status >stdout 2>stderr
is "pipes and folders among the parts are in nobody's way" test $? -eq 0
for name in pipe folder; do says "warning: odd/parts/$name.jsonl is left out: it is no regular file"; done
same odd/results.jsonl whole/results.jsonl
sed 's/manifest-v2/manifest-v1/' whole/manifest.json >added/manifest.json
exits 2 sweep sweep.json --out added; says "an older windtunnel, whose rows carry no checksums"

# An input that changed in between: the folder is another sweep's.
cp -r "$WINDTUNNEL_DATA" data
cp data/models/tiny.json mine.json
cp data/platforms/devices/card.json mycard.json
cat >inputs.json <<'END'
{"version": 1, "name": "inputs", "model": "tiny", "platform": "boxes", "nodes": 2,
 "training": {"global_batch": 64, "micro_batch": 1}, "parallel": {"tensor": 2, "pipeline": 4},
 "sweep": {"matrix": {"/model": ["tiny", "./mine.json"], "/platform": ["boxes", "pair"],
                      "/platform/node_types/0/device": ["card", "./mycard.json"]}}}
END
export WINDTUNNEL_DATA=$scratch/data
exits 0 sweep inputs.json --out inputs
exits 0 sweep inputs.json --out inputs; says "points are done already, 0 to do"
refused() { exits 2 sweep inputs.json --out inputs; says "holds results of another sweep"; }
mkdir data/validation
cp "$here/../../validation/residuals.json" data/validation; refused
rm -r data/validation
sed -i 's/"layers": [0-9]*/"layers": 16/' mine.json; refused
cp data/models/tiny.json mine.json
for file in mycard.json data/platforms/devices/card.json; do
  sed -i 's/"bandwidth_efficiency": 0.8/"bandwidth_efficiency": 0.7/' $file; refused
  sed -i 's/"bandwidth_efficiency": 0.7/"bandwidth_efficiency": 0.8/' $file
done
export WINDTUNNEL_DATA=$here/../../sim/scenario/corpus/library
exits 0 sweep inputs.json --out inputs; says "points are done already, 0 to do"

# --status ends while rows arrive.
mkdir live
cp -r whole/manifest.json whole/parts live
(while :; do cat whole/parts/*.jsonl >>live/parts/more.jsonl; sleep 0.01; done) &
writer=$!
until_true test -s live/parts/more.jsonl
timeout 20 "$program" sweep sweep.json --out live --status >stdout 2>stderr
is "looking ends while rows arrive" test $? -eq 0
is "rows still arrive" kill $writer
wait $writer 2>/dev/null
same live/results.jsonl whole/results.jsonl

# Without doing anything.
exits 0 sweep sweep.json --dry-run; prints "$points points: 72 combinations, 6 excluded, 2 included; $bad cannot be simulated"
is "it lists all" test "$(grep -c '^[0-9]* .*/nodes=' stdout)" -eq $points
exits 0 sweep sweep.json --dry-run --json; is "stdout is JSON" json_is_whole stdout

sed 's/"matrix":.*/"matrix": {"\/nodes": [1]}}}/; /"\/platform\/node_types/d; /"\/training\/recompute/d; /"exclude"/d; /"include"/d' sweep.json >one.json
exits 0 sweep one.json --dry-run; prints "many: 1 point: 1 combination,"
exits 0 sweep one.json --out one; prints "many: 1 point, 1 simulated"
exits 0 sweep one.json --out one; says "1 point is done already"

# A pointer inside a swept value comes on top of it, whichever is written first; points that are one scenario are named.
cat >nics.json <<'END'
{"version": 1, "name": "nics", "model": "tiny", "platform": "boxes", "nodes": 2,
 "training": {"global_batch": 64, "micro_batch": 1}, "parallel": {"tensor": 2, "pipeline": 4},
 "sweep": {"matrix": {"/platform/node_types/0/nics": [1, 8], "/platform": ["boxes", "pair"], "/name": ["a", "b"]}}}
END
exits 0 sweep nics.json --out nics; prints "warning: 8 points are 4 different scenarios"
prints "points 0 and 1 differ in /name"
is "all four have a time of their own" test "$(grep -o '"iteration_time_s": [0-9.e-]*' nics/results.jsonl | sort -u | wc -l)" -eq 4
exits 0 sweep nics.json --out nics --json; parses; says "warning: 8 points are 4"
exits 0 sweep nics.json --dry-run; prints "4 the same as another"; prints "= point 0"
exits 2 sweep nics.json --out none --set /platform/node_types/0/nics=2; says "the sweep replaces /platform, and with it --set"

# The best plan of a point is the first of rank's there that is sure to fit, with the time that it says.
sed -e 's/"sweep": {"matrix": .*$/"sweep": {"matrix": {"\/nodes": [1, 2]}, "plan": "best", "objective": "time"}}/' \
  -e '/"exclude"\|"include"\|^ *"\/platform\|^ *"\/training/d' sweep.json >best.json
exits 0 sweep best.json --out best --jobs 2
for nodes in 1 2; do
  exits 0 rank best.json --top 1 --json --set "/nodes=$nodes" --set /search/surely_fits=true; ranked=$(grep -o '"iteration_time_s": [0-9.e-]*' stdout)
  is "the plan of $nodes nodes is the first that rank is sure of" grep -qF "\"/nodes\": $nodes, \"ok\": true, \"gpus\": $((nodes * 8)), $ranked" best/results.jsonl
done
is "plans are named" grep -q '"plan": "tensor ' best/results.jsonl
sed 's/"objective": "time"/"objective": "days"/' best.json >days.json
exits 1 sweep days.json --out days; is "what an objective needs is said" grep -qF 'days needs a job block at /sweep/objective' days/results.jsonl
sed 's/"objective": "time"/"objective": "day"/' best.json >day.json
exits 2 sweep day.json --out none; says '"day"'

# Wrong usage and wrong files: 2, at once.
exits 2 sweep sweep.json; says "--out DIR"
exits 2 sweep sweep.json --out none --jobs 0; says "is no whole number from"
exits 2 sweep "$here/../../sim/scenario/corpus/good/plain.json" --out none; says "has no sweep"
sed 's/"pipeline"/"pipelin"/' sweep.json >misspelt.json
exits 2 sweep misspelt.json --out none; says 'did you mean "pipeline"?'
is "nothing is left of them" test ! -e none

echo "$checks checks, $failures failed"
[[ $failures -eq 0 ]]
