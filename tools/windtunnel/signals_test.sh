#!/usr/bin/env bash
# A command that is interrupted dies of the signal, or says with 75 that it can be resumed: never with a code that is a verdict. What it
# was writing is whole or absent, and nothing half-written is left.
#   tools/windtunnel/signals_test.sh PROGRAM
set -uo pipefail
here=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tools/windtunnel/checks.sh
source "$here/checks.sh"
if ! command -v python3 >/dev/null; then echo "no python3: left out"; exit 0; fi
in_scratch "$@"

# Work that nobody waits for: 500 stages of 30,000 microbatches take minutes.
python3 - <<'END'
import json
base = {"version": 1, "model": {"family": "gpt", "layers": 504, "hidden": 64, "heads": 1, "sequence": 64, "vocab": 64}, "platform": "boxes",
        "training": {"global_batch": 30000, "micro_batch": 1}, "parallel": {"tensor": 1, "pipeline": 504, "data": 1, "schedule": "gpipe"}}
json.dump(base | {"search": {"tensor": [1], "pipeline": [504], "micro_batch": [1], "schedule": ["gpipe"]},
                  "sweep": {"matrix": {"/training/global_batch": [30000, 29999]}}}, open("long.json", "w"))
points = [{"id": name, "group": name, "scenario": {"training": {"global_batch": batch}}, "measured": {"iteration_time_s": 1.0}}
          for name, batch in (("a", 30000), ("b", 29999))]
json.dump({"schema": "windtunnel/measurements-v1", "name": "long", "kind": "iteration",
           "source": {"citation": "none", "licence": "none"}, "base": base, "points": points}, open("long-set.json", "w"))
END
mkfifo endless.json

# ends CODES SIGNAL ARGUMENT...: the program, once it has worked for a second of its own time, gets the signal as from a terminal:
# its children too. A negative code is a signal, as Python has it.
ends() {
  local codes=$1 signal=$2
  shift 2
  checks=$((checks + 1))
  python3 - "$codes" "$signal" "$program" "$@" <<'END' || complain "windtunnel $* ($signal)"
import os, signal, subprocess, sys, time
codes, name, command = [int(code) for code in sys.argv[1].split(",")], sys.argv[2], sys.argv[3:]
out, err = open("stdout", "wb"), open("stderr", "wb")
feeder = None
if "endless.json" in command:  # a trace without an end
    feeder = subprocess.Popen(["sh", "-c", """exec 2>/dev/null >endless.json; printf '{"traceEvents":['; while :; do printf '{"ph":"i"},'; done"""])
process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)

def own_time(group):  # of the process and all its descendants, seconds
    total = 0
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            fields = open(f"/proc/{pid}/stat").read().rsplit(")", 1)[1].split()
        except OSError:
            continue
        if int(fields[2]) == group: total += int(fields[11]) + int(fields[12])
    return total / os.sysconf("SC_CLK_TCK")

deadline = time.time() + 300
while own_time(process.pid) < 1 and process.poll() is None and time.time() < deadline: time.sleep(0.05)
try:
    if process.poll() is not None: sys.exit(f"ended by itself, with {process.returncode}")
    os.killpg(process.pid, getattr(signal, name))
    code = process.wait(60)
    if code not in codes: sys.exit(f"ended with {code}, not {codes}")
finally:
    for each in (process, feeder):
        if each is not None and each.poll() is None: each.kill(); each.wait()
END
  is "no half-written file is left" test -z "$(find . -name '.windtunnel-*')"
}

for signal in SIGINT SIGTERM; do
  number=-2
  [[ $signal = SIGINT ]] || number=-15
  ends $number $signal run long.json
  ends $number $signal run long.json --set /training/global_batch=2000 --trace long.trace.json
  ends $number $signal explain long.json --set /training/global_batch=6000
  ends $number $signal rank long.json
  ends $number $signal compare long.json --toggle /training/recompute --set /training/recompute=full
  ends $number $signal validate ./long-set.json
  ends $number $signal calibrate ./long-set.json --fit emax
  ends 75,$number $signal sweep long.json --out sweep
  ends $number $signal import kineto endless.json
  ends $number $signal codec --synthetic gradient --rows 4096 --columns 4096
  ends $number $signal schedule check 1f1b --stages 1000 --microbatches 2000
done
# What batch systems and limits send.
ends -3 SIGQUIT run long.json --set /training/global_batch=2000 --trace long.trace.json
ends -10 SIGUSR1 run long.json --set /training/global_batch=2000 --trace long.trace.json
ends -12 SIGUSR2 run long.json --set /training/global_batch=2000 --trace long.trace.json
ends -24 SIGXCPU run long.json --set /training/global_batch=2000 --trace long.trace.json
is "no file of a killed run is there" test ! -e long.trace.json

# The files of one run appear together, so that no folder holds files of two runs: here the third of them cannot be written.
cp "$here/../../sim/scenario/corpus/good/plain.json" plain.json
exits 0 run plain.json --set /name=first --out out --quiet
rm out/trace.json.gz && mkdir out/trace.json.gz
exits 3 run plain.json --set /name=second --out out --quiet
is "the report is of the first run" grep -q '"name": "first"' out/report.json
is "the page is of the first run" grep -q '<title>[^<]*first' out/report.html
is "no half-written file is left" test -z "$(find . -name '.windtunnel-*')"

# A limit of the size of files is an error like a full disk.
(ulimit -f 8; got=0; "$program" run plain.json --out limited >stdout 2>stderr </dev/null || got=$?; echo $got >code)
is "too large a file exits with 3" test "$(cat code)" = 3
says "File too large"
is "no half-written file is left" test -z "$(find . -name '.windtunnel-*')"
# Whoever may read a report may read the one that replaces it, and nobody else.
exits 0 run plain.json --report private.html --quiet
for mode in 600 640 400; do
  chmod $mode private.html
  exits 0 run plain.json --report private.html --quiet
  is "the page keeps its permissions" test "$(stat -c %a private.html)" = $mode
done

# The same run gives the same bytes in every file, but for the wall time of the report.
for i in 1 2; do
  exits 0 run plain.json --out same$i --quiet
  exits 0 explain plain.json --report same$i/explain.html --quiet
  exits 0 compare plain.json plain.json --set /training/recompute=full --report same$i/compare.html --quiet
done
for file in report.html trace.json.gz explain.html compare.html; do is "$file is the same twice" cmp same1/$file same2/$file; done
is "report.json is the same twice, wall time apart" cmp <(grep -v wall_s same1/report.json) <(grep -v wall_s same2/report.json)

echo "$checks checks, $failures failed"
[[ $failures -eq 0 ]]
