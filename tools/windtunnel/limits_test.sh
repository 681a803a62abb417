#!/usr/bin/env bash
# What the program takes, and how it says no: the limits of docs/limits.md, in four gigabytes of memory, and never silent for ten seconds.
#   tools/windtunnel/limits_test.sh PROGRAM [small]     small: without what sanitizers need too much memory or time for
set -uo pipefail
size=${2:-}
here=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tools/windtunnel/checks.sh
source "$here/checks.sh"
if ! command -v python3 >/dev/null; then echo "no python3: left out"; exit 0; fi
in_scratch "$@"
[[ $size = small ]] || ulimit -v 4000000
# refuses CODE TEXT ARGUMENT...: with that exit code and text on stderr, at once: in ten seconds of the processor
refuses() {
  local code=$1 text=$2
  shift 2
  exits_within 10 "$code" "$@"
  says "$text"
  silent stdout
}
# exits_within SECONDS CODE ARGUMENT...: of processor time
exits_within() {
  local seconds=$1
  shift
  [[ $size = small ]] && seconds=$((10 * seconds))
  (ulimit -t "$seconds"; got=0; "$program" "${@:2}" >stdout 2>stderr </dev/null || got=$?; echo $got >code)
  is "windtunnel ${*:2} exits with $1, in time" test "$(cat code)" = "$1"
}
# documented TEXT: the page says so
documented() { is "docs/limits.md says: $1" grep -qF -- "$1" "$here/../../docs/limits.md"; }

# Files: their size, what they unpack to, and what is in them.
truncate -s 6G sparse.json
for command in run check "show --resolved" explain rank "compare sparse.json" "sweep --dry-run" "schedule check" \
  "import hf-config -o x.json" "import topo --base boxes -o x.json" "import nccl-tests --base boxes -o x.json" "import probe --base boxes -o x.json" \
  "import mpigraph --base boxes -o x.json" "import megatron --base boxes -o x.json"; do
  # shellcheck disable=SC2086  # words
  refuses 2 "larger than 256 MiB" $command sparse.json
done
refuses 2 "larger than 256 MiB" validate ./sparse.json
refuses 2 "larger than 256 MiB" calibrate ./sparse.json --fit emax
[[ $size = small ]] || { "$program" run - >stdout 2>stderr </dev/zero; is "endless standard input exits with 2" test $? -eq 2; says "cannot read <stdin>: it is larger than 256 MiB"; }
documented "256 MiB"
refuses 2 "no JSON at byte" import kineto sparse.json
truncate -s 6G sparse.npy
refuses 2 "larger than 1025 MiB, the most that is read of it (2^27 numbers)" codec sparse.npy
documented "2^27 numbers"
refuses 2 "more than 2^27 numbers" codec --synthetic gradient --rows 65536 --columns 65536
echo '{"extends": "sparse.json"}' >names-sparse.json
refuses 2 "larger than 256 MiB" run names-sparse.json
python3 - <<'END'
import gzip, json
blanks = b" " * (1 << 20)
open("blanks.json", "wb").write(2 * blanks)
open("blanks.txt", "wb").write(2 * blanks)
open("lines.txt", "wb").write(b"\n" * 2_000_000)
open("commas.csv", "wb").write(b"Send,a,b" + b"," * 2_000_000 + b"\n")
open("values.json", "wb").write(b"[" + b"0," * 5_000_000 + b"0]")
open("keys.json", "wb").write(b"{" + b",".join(b'"k%d":0' % i for i in range(20_000)) + b"}")
def packed(name, begin, piece, times, end=b""):
    with gzip.open(name, "wb", 9) as file:
        file.write(begin)
        for _ in range(times): file.write(piece)
        file.write(end)
packed("blanks.json.gz", b'{"traceEvents":[', blanks, 600)
packed("text.json.gz", b'{"traceEvents":[{"ph":"X","cat":"kernel","name":"', blanks, 600)
event = b',{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1,"dur":%d}'
head = b'{"traceEvents":[{"ph":"M","name":"process_name","pid":0,"args":{"name":"x"}}'
packed("events.json.gz", head, (event % 1) * 10_000, 1_100, b"]}")
packed("long.json.gz", head, event % 4_000_000_000_000_000, 3, b"]}")
def scenario(name, stages, batch, **more):
    value = {"version": 1, "model": {"family": "gpt", "layers": stages, "hidden": 1024, "heads": 16, "sequence": 128, "vocab": 1024},
             "platform": "boxes", "training": {"global_batch": batch, "micro_batch": 1},
             "parallel": {"tensor": 1, "pipeline": stages, "data": 1, **more}}
    json.dump(value, open(name, "w"))
scenario("many.json", 4000, 4750)
scenario("more.json", 5000, 4750)
scenario("ranks.json", 1, 1 << 21, data=1 << 21)
def collective(name, nodes):
    json.dump({"schema": "windtunnel/measurements-v1", "name": "set", "kind": "collective", "source": {"citation": "none", "licence": "none"},
               "base": {"version": 1, "platform": "boxes"},
               "points": [{"id": "a", "collective": "all_reduce", "gpus": 1, "nodes": nodes, "bytes": 1e6, "measured": {"time_s": 1.0}}]}, open(name, "w"))
collective("collective.json", 200_000)
END
refuses 2 "there is no JSON value here" run blanks.json
refuses 2 "no table" import topo blanks.txt --base boxes -o x.json
refuses 2 "no <gpu>" import nccl-topo blanks.txt --base boxes -o x.json
refuses 2 "no rates of copies" import nvbandwidth blanks.txt --base boxes -o x.json
refuses 2 "no line that begins with SwitchName=" import slurm-topology blanks.txt --base boxes -o x.json
refuses 2 "no map of a fabric" import ibnetdiscover blanks.txt --base boxes -o x.json
refuses 2 "more than a million lines" import topo lines.txt --base boxes -o x.json
documented "a million lines"
refuses 2 "more" import mpigraph commas.csv --base boxes -o x.json
refuses 2 "more than 4000000 values" run values.json
documented "4 million values"
refuses 2 "more than 10000 keys" run keys.json
documented "10,000 keys"

# Traces that are packed a thousand times over.
if [[ $size != small ]]; then  # the sanitizers take minutes to unpack them
  exits_within 100 2 import kineto blanks.json.gz; says "more than 16 MiB without a whole text or number"
  exits_within 100 2 import kineto events.json.gz; says "more than 10 million pieces of work"; silent stdout
fi
refuses 2 "more than 16 MiB without a whole text or number" import kineto text.json.gz
documented "16 MiB"
documented "10 million"
refuses 2 "add up to more than 146 years" import kineto long.json.gz

# Plans: nodes, passes, and what is kept of them for files.
refuses 2 "the 20 million passes" run more.json
documented "20 million"
[[ $size = small ]] || refuses 2 "is not written to files; the limit is 40000000" run many.json --out many
WINDTUNNEL_DATA=$here/../.. refuses 2 "1000 chunks are too many to simulate operation by operation" run deepseek-v3-2048xh800 --engine native --detail layer \
  --set /model/layers=2000 --set /parallel/stage_layers=null --set /parallel/pipeline=2 --set /parallel/schedule=interleaved_1f1b \
  --set /parallel/virtual_pipeline=1000 --set /nodes=32 --set /training/recompute=full --set /training/recompute_modules=null \
  --set /parallel/tensor=8 --set /parallel/sequence_parallel=true --set /parallel/context=2 --set /parallel/data=8 --set /parallel/expert=16 --set /training/global_batch=64
is "nothing is written" test ! -e many
documented "40 million"
refuses 2 "1048576" run ranks.json
documented "1,048,576"
exits_within 10 1 validate ./collective.json --details; prints "a collective on 200000 nodes of 1 GPUs has more than the 131072 flows"
documented "131,072 GPUs"
refuses 2 "more than 10000000 forward passes" schedule check 1f1b --stages 4000 --microbatches 4750
documented ': 10 million; a kilobyte each'
[[ $size = small ]] || refuses 3 "a schedule of 10000000 forward passes would take about 10.0 GB of memory" schedule check 1f1b --stages 4000 --microbatches 2500

# Less memory than a plan needs is found out before it is taken.
if [[ $size != small ]]; then
  (ulimit -v 1000000; got=0; "$program" run many.json >stdout 2>stderr </dev/null || got=$?; echo $got >code)
  is "too little memory exits with 3" test "$(cat code)" = 3
  says "a pipeline of 19000000 passes would take about 3.2 GB of memory"
fi

# Whoever waits is told so: within ten seconds, and every ten.
if [[ $size != small ]]; then exits_within 300 2 import kineto events.json.gz --quiet; is "one refusal and no more" test "$(wc -l <stderr)" -le 2; fi
mkfifo slow.json
(printf '{"traceEvents":['; sleep 21) >slow.json &
exits 2 import kineto slow.json
wait
is "a line each ten seconds" test "$(grep -c '^windtunnel: still reading a trace after .* s (0 bytes)' stderr)" -eq 2
mkfifo waiting.json
(sleep 11; echo '{}' >waiting.json) &
exits 2 run waiting.json
wait
says "windtunnel: still reading waiting.json after "
python3 - <<'END'
import json
value = json.load(open("more.json"))
value["parallel"] = {}
value["sweep"] = {"matrix": {"/training/global_batch": list(range(1, 3001)), "/model/layers": list(range(1, 3001))}}
json.dump(value, open("points.json", "w"))
END
timeout 12 "$program" sweep points.json --dry-run >stdout 2>stderr </dev/null
says "windtunnel: still listing the points after "

echo "$checks checks, $failures failed"
[[ $failures -eq 0 ]]
