#!/usr/bin/env bash
# What the program promises at its edges: exit codes, which stream carries what, outputs that are whole or absent.
#   tools/windtunnel/cli_test.sh PROGRAM
set -uo pipefail
here=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tools/windtunnel/checks.sh
source "$here/checks.sh"
in_scratch "$@"
cp "$here/../../sim/scenario/corpus/good/plain.json" plain.json
good=plain.json

# A --set that cannot be read is bad usage for measured points as well.
WINDTUNNEL_DATA=$here/../.. exits 2 validate megatron-2020 --set /nodse=3; says "did you mean"; silent stdout

# Scores of measured sets: a line each on one screen, with --details every row.
sets=(megatron-sc21-table1 korthikanti-table5 megatron-2020-tensor-scaling)
WINDTUNNEL_DATA=$here/../.. exits 0 validate "${sets[@]}"; prints "errors in %"; prints "--details"; silent stderr
is "a screen is enough" test "$(wc -l <stdout)" -le 24
for name in "${sets[@]}"; do is "$name has one line" test "$(grep -c "^  $name " stdout)" -eq 1; done
WINDTUNNEL_DATA=$here/../.. exits 0 validate "${sets[@]}" --quiet; is "quiet is the two tables alone" test "$(wc -l <stdout)" -eq 9
WINDTUNNEL_DATA=$here/../.. exits 0 validate "${sets[@]}" --details; prints "  1.7B-32gpu"; prints "fitted on this set: "

# No line of what people read is wider than COLUMNS; a pipe of JSON is as it was.
fits() {
  local code=0
  COLUMNS=$1 "$program" "${@:2}" >narrow 2>/dev/null </dev/null || code=$?
  is "exit code 0 or 1, not $code: ${*:2}" test "$code" -le 1
  is "something is printed at $1 columns: ${*:2}" test -s narrow
  is "at most $1 columns: ${*:2}" test "$(LC_ALL=C sed 's/[\x80-\xbf]//g' narrow | awk -v most="$1" 'length > most' | wc -l)" -eq 0  # characters, not bytes
}
job=gpt-8.3b-128xa100  # of the real library, as the other words are
for width in 120 80 60; do
  for words in "list models" "list platforms" "list software" "list scenarios" "rank rank-gpt-39b-512xa100 --budget 3" "show --network $job" \
    "collective all-reduce --platform dgx-h100 --gpus 16 --bytes 1MB,1GB" "run $job" "explain $job" "rank $job" "check $job" "compare $job $job" "run $job --memory" "codec --synthetic gradient" "list codecs" \
    "validate megatron-sc21-table1" "validate megatron-sc21-table1 --details" "schedule check 1f1b --stages 4 --microbatches 8"; do
    # shellcheck disable=SC2086  # the words are to be split
    WINDTUNNEL_DATA=$here/../.. fits $width $words
  done
done
# Columns that a narrow terminal has no room for are named; a pipe has all of them.
WINDTUNNEL_DATA=$here/../.. COLUMNS=60 exits 0 rank rank-gpt-39b-512xa100 --budget 3 --quiet; prints "no room for: "; prints "what takes the time"
WINDTUNNEL_DATA=$here/../.. exits 0 rank rank-gpt-39b-512xa100 --budget 3 --quiet; is "a pipe has room" bash -c '! grep -q "no room for" stdout'
# Faults of nodes that the job does not have: every command says so once.
absent='/platform/faults=[{"node": 99, "nic": 0, "share": 0.5, "source": "assumed: a test"}]'
for words in "check $good" "rank $good" "explain $good" "compare $good $good" "run $good --json"; do
  # shellcheck disable=SC2086  # the words are to be split
  exits 0 $words --set "$absent"; says "warning: faults of node 99 change nothing: the job has nodes 0 to"
done
exits 0 check $good --set "$absent" --quiet; silent stderr
exits 0 run $good --set "$absent"; prints "faults of node 99 change nothing"; silent stderr
fits 80 list keys  # the longest pointer has more than 60 characters, and no word is cut
exits 0 run $good --json; cp stdout any.json; COLUMNS=60 exits 0 run $good --json; is "JSON has its own lines" test "$(sed 1,9d stdout | wc -l)" -eq "$(sed 1,9d any.json | wc -l)"

# Results go to stdout, the rest to stderr.
exits 0 run $good; prints "per iteration"; silent stderr
losing=/compression/tensor_activations='{"codec": "fixed", "ratio": 2, "encode_rate": "1 GB/s", "decode_rate": "1 GB/s"}'
exits 0 run $good --json --set "$losing"; parses; says "warning: compression of tensor_activations loses"
exits 0 run $good --json --quiet --set "$losing"; parses; silent stderr
exits 0 --json run $good; parses
exits 0 explain $good; prints "critical path"; prints "What if"; silent stderr
exits 0 explain $good --json; parses; prints "windtunnel/explanation-v1"
exits 2 explain; silent stdout
exits 0 check $good; prints "plain: correct"; silent stderr
exits 0 check $good --json; parses
exits 0 show --resolved $good; prints "// default"; silent stderr
exits 0 show --resolved $good --json; parses
cp stdout resolved.json
exits 0 check resolved.json
for kind in models platforms devices software codecs keys; do exits 0 list $kind; exits 0 list $kind --json; parses; done
export WINDTUNNEL_DATA=$here/../..
exits 0 list models; is "a parameter count in each line" bash -c '! grep -vE "[0-9.]+ [MBT] parameters" stdout'; is "GPT-3's" grep -qE '^gpt3-175b +174.6 B parameters' stdout
is "DeepSeek-V3's, all and those a token passes" grep -qE '^deepseek-v3 +671.0 B parameters, 37.[0-9] B active' stdout
exits 0 list models --json; prints '"parameters": 174'
exits 0 list platforms; is "GPUs and NICs in each line" bash -c '! grep -vE "[0-9]+ x [a-z0-9-]+, [0-9]+ x [0-9]+ Gbps" stdout'; is "Selene's" grep -qE '^selene-a100 +8 x a100-sxm-80gb, 8 x 200 Gbps +Selene' stdout
exits 0 list scenarios; is "a description in each line" bash -c '! grep -vE "^[^ ]+ +[^ ]+ [^ ]+" stdout'
# A first scenario, and a model's or a platform's name in place of one.
exits 0 new --model llama3-8b --platform dgx-h100 --gpus 16 -o first.json; says "wrote first.json; next: windtunnel run first.json"; silent stdout
exits 0 run first.json --engine native --quiet; prints "llama3-8b-16xdgx-h100"
exits 2 new --model llama3-8b --platform dgx-h100 --gpus 16 -o first.json; says "first.json is there already"
exits 0 new --model llama3-8b --platform dgx-h100 --gpus 16 --json; parses
exits 0 new --model llama3-8b --platform dgx-h100 --gpus 16 --global-batch 96 --sequence 4096; prints '"global_batch": 96'; prints '"sequence": 4096'
exits 2 new --model llama3-8b --platform dgx-h100 --gpus 16 --sequence 0; says "--sequence"
exits 2 new --model llama3-8b --platform dgx-h100 --gpus 16 --gpus 32; says "new takes one --gpus"
exits 2 new --model llama3-8b; says "new needs --model, --platform and --gpus"
exits 2 new --model lama3-8b --platform dgx-h100 --gpus 16; says 'did you mean "llama3-8b"?'
exits 2 new --model lama3-8b --platform h100 --gpus 16 --set /nodes=4; says 'did you mean "llama3-8b"?'; says 'there is no platform "h100"'; says "change it in the file"
exits 2 new --model llama3-8b --platform dgx-h100 --gpus 16 --set /nodes=4; says "change it in the file"
exits 2 run llama3-70b; says "llama3-70b is a model, not a scenario. For a scenario with it: windtunnel new --model llama3-70b"
exits 2 explain dgx-h100; says "dgx-h100 is a platform, not a scenario"
if command -v script >/dev/null; then
  printf 'llama3-8\nllama3-8b\nmany\n16\n' | script -qec "'$program' new --platform dgx-h100 --quiet" /dev/null >asked
  is "a terminal is asked for what is left out" grep -q '"name": "llama3-8b-16xdgx-h100"' asked
  is "and again where an answer is none" grep -q 'did you mean "llama3-8b"?' asked
fi
export WINDTUNNEL_DATA=$here/../../sim/scenario/corpus/library
exits 0 --version; is "one line of version" grep -qE '^windtunnel [0-9.]+ \(.+, SimGrid 3\.[0-9.]+\)$' stdout
exits 0 -V; is "-V prints the version" grep -qE '^windtunnel [0-9.]+ ' stdout
exits 0 --help; prints "Usage: windtunnel COMMAND"; silent stderr
cp stdout help.txt
for words in "" -h help "help --quiet"; do
  # shellcheck disable=SC2086  # the words are to be split
  exits 0 $words; is "windtunnel $words prints the help" cmp stdout help.txt; silent stderr
done
commands=$(sed -n '/^Commands:/,/^$/p' help.txt | awk 'NR > 1 && NF { print $1 }')
is "the help lists commands" test "$(wc -w <<<"$commands")" -ge 15
for command in $commands; do
  exits 0 "$command" --help; prints "Usage: windtunnel $command"; silent stderr; fits 80 "$command" --help
  for section in "Options of every command:" "Examples:" "Exit codes:"; do is "$command: $section" grep -qx "$section" stdout; done
  prints "  --json"; prints "  0   done"; cp stdout of_command.txt
  exits 0 help "$command"; is "help $command is $command --help" cmp stdout of_command.txt
done
exits 0 compare --help; prints "Usage: windtunnel compare FILE FILE ...|FILE --toggle /POINTER [OPTIONS]"
exits 0 collective --help; prints "Usage: windtunnel collective KIND --platform PLATFORM [OPTIONS]"
exits 0 run --help; prints "--trace"; prints "  1   done; the plan does not fit"
exits 2 help rnu; says 'unknown command "rnu" (did you mean "run"?)'; silent stdout
exits 2 help run check; says "help takes one COMMAND"
for words in --json -q "--color never"; do
  # shellcheck disable=SC2086  # words
  exits 0 $words; is "windtunnel $words prints the help" cmp stdout help.txt; silent stderr
done
exits 2 --json --unknown; says 'unknown option "--unknown"'; silent stdout

# Colours: as --color says, and by itself on terminals only.
escapes() { grep -q $'\033' stdout; }
exits 0 run $good --color always; is "--color always colours" escapes
exits 0 --color=always explain $good; is "--color always colours" escapes
for choice in auto never; do exits 0 run $good --color $choice; is "--color $choice into a file: none" bash -c '! grep -q $'"'"'\033'"'"' stdout'; done
exits 2 run $good --color yes; says "--color"; silent stdout

# "-" is standard input.
exits 0 run $good; cp stdout of_file.txt
read_stdin() { "$program" "$@" <$good >stdout 2>stderr; }
is "run -" read_stdin run -; is "its numbers are those of the file" cmp <(tail -n +2 stdout) <(tail -n +2 of_file.txt)
is "it is called stdin" grep -qx stdin stdout
for command in check explain "show --resolved" "show --pointers" rank; do
  # shellcheck disable=SC2086
  is "$command -" read_stdin $command -; is "$command - prints a result" test -s stdout
done
is "compare a file with stdin" read_stdin compare $good -; prints "speed-up"
is "compare stdin without a part of it" read_stdin compare - --toggle /training/recompute --set /training/recompute=full
printf '{"traceEvents": [' >cut.json
"$program" import kineto - <cut.json >stdout 2>stderr; is "import kineto - reads stdin" test $? -eq 2; says "the text ends after 17 bytes"
sed 's/"tensor": 2/"tensr": 2/' $good >misspelt.json
"$program" run - </ >stdout 2>stderr; is "run - of a folder exits with 3" test $? -eq 3; says "cannot read <stdin>: Is a directory"
"$program" check - <misspelt.json >stdout 2>stderr; is "check - exits with 2" test $? -eq 2; says "<stdin>:6:"; silent stdout
"$program" schedule check - --json <<<'{"version": 1, "stages": 1, "microbatches": 2, "orders": [["F0", "B0", "F1", "B1"]]}' >stdout 2>stderr
is "schedule check -" test $? -eq 0; prints '"name": "stdin"'; parses
"$program" sweep - --dry-run <<<'{"version": 1, "model": "tiny", "platform": "boxes", "training": {"global_batch": 8, "micro_batch": 1}, "sweep": {"matrix": {"/training/micro_batch": [1, 2]}}}' >stdout 2>stderr
is "sweep -" test $? -eq 0; prints "micro_batch"
"$program" job - --draws 5 --quiet <<<'{"version": 1, "model": "tiny", "platform": "boxes", "training": {"global_batch": 64, "micro_batch": 1}, "parallel": {"tensor": 16}, "job": {"steps": 100, "plan": "best"}}' >stdout 2>stderr
is "job - finds the best plan" test $? -eq 0; prints "on 16 GPUs"; prints "memory fits: stage 7 uses"
exits 2 sweep - --out none --worker; says "name a file"
for command in run check rank "device --from-datasheet" "device --kernels" validate; do
  # shellcheck disable=SC2086
  exits 3 $command ./none.json; says "none.json: No such file or directory"; silent stdout
done
exits 2 device none --kernels; says 'unknown device "none"'

# What --set can change, as --set takes it.
exits 0 show --pointers $good; prints "/parallel/tensor=2"; prints "/model=tiny"; prints "/compression/data_gradients=null"; silent stderr
is "each line is a pointer and a value" bash -c '! grep -vE "^/[^=]+=." stdout'
exits 0 show --pointers $good --json; parses
exits 2 show --pointers --resolved $good; says "one thing"

# Schedules: named or from a file, checked and drawn.
exits 0 schedule check 1f1b --stages 4 --microbatches 8; prints "1f1b: legal"; prints "37.50 %"; silent stderr
exits 0 schedule check interleaved_1f1b --stages 4 --microbatches 8 --virtual 2 --json; parses; prints '"bubble": 0.1875'
exits 0 schedule draw gpipe --stages 2 --microbatches 2 --json; parses
exits 0 schedule draw zero_bubble_h1 --stages 2 --microbatches 2 --svg picture.svg; prints "stage 1"; says "wrote picture.svg"
is "the picture is SVG" grep -q '^<svg ' picture.svg
echo '{"version": 1, "stages": 1, "microbatches": 2, "orders": [["F0", "B1", "F1", "B0"]]}' >mine.json
exits 2 schedule check mine.json; says "mine.json:1:66: error: the schedule never finishes"; silent stdout
exits 2 schedule draw mine.json --svg none.svg; is "nothing is drawn" test ! -e none.svg
exits 2 schedule check mine.json --stages 1; says "says its stages"
exits 2 schedule check 1f2b --stages 1 --microbatches 1; says 'did you mean "1f1b"?'
exits 2 schedule check 1f1b; says "needs --stages and --microbatches"
exits 2 schedule check 1f1b --stages 0 --microbatches 1; says '--stages: "0" is no whole number from 1 to 1048576'
exits 2 schedule check interleaved_1f1b --stages 4 --microbatches 6 --virtual 2; says "multiples of stages"
exits 2 schedule 1f1b; says "check or draw"

# Logs and other tools' files become ours, whole or not at all.
printf 'Send,a,b,c\na,0,1000,900\nb,N/A,0,950\nc,800,850,0\n' >net.csv
exits 0 import mpigraph net.csv --base boxes -o made.json; says "b to a was not measured"; says "wrote made.json"; prints "pairs inferred     1"
is "the platform is JSON" json_is_whole made.json
exits 0 check $good --set /platform=made.json; prints "of made"
exits 0 import mpigraph net.csv --base boxes -o made.json; says "replaced made.json"
exits 0 import mpigraph net.csv --base boxes -o made.json --json --quiet; parses; silent stderr
exits 2 import mpigraph net.csv --base made.json -o x.json --unit GB/s; says "1.00 TB/s for a to b"
printf '{"model_type": "gpt2", "n_embd": 64, "n_layer": 2, "n_head": 4, "n_positions": 32, "vocab_size": 100}' >config.json
exits 0 import hf-config config.json -o my-model.json; prints "gpt2"
exits 0 check $good --set /model=my-model.json --set /parallel/pipeline=1
exits 2 import hf-config config.json -o my-model.json --report model.html; says "import hf-config writes a file, and has no results to show"
importers=$here/../../sim/importers
exits 0 import straggler-trace "$importers/samples/straggler-ST.json.gz" --json --quiet; parses; silent stderr
for trace in "$importers"/samples/trace-*.json.gz; do
  exits 0 import kineto "$trace" --json --quiet; parses; silent stderr
  if command -v python3 >/dev/null; then
    is "another way of counting finds the same totals in $trace" "$importers/trace_totals.py" "$trace" <stdout
  fi
done
exits 0 import kineto "$importers"/samples/trace-v100-*.json.gz; prints "rank 1, GPU 1"; says "launched before the trace began"
exits 2 import kineto config.json; says 'missing key "traceEvents"'
exits 2 import kineto config.json -o x.json; says "where both -o and --base are given"
exits 3 import kineto none.json; says "none.json"

# Which engine simulates: one rule of sharing, the same times, and the report says which it was.
for engine in simgrid native heap; do
  exits 0 run $good --engine $engine --json --quiet; prints "\"name\": \"$engine\""
  grep iteration_time_s <stdout >time.$engine
done
is "the native engine comes to SimGrid's time" cmp time.simgrid time.native
exits 2 run $good --engine fast; says "--engine"
exits 2 check $good --engine native; says "--engine"

# Traces of our own keep the rules of other tools, come back through import, and stand next to real ones in compare.
mkdir ranks
exits 0 run $good --trace own.json.gz --rank-traces ranks --json; says "traces into ranks"; cp stdout own.report.json
exits 0 run $good --set /parallel/pipeline=1 --rank-traces flat --json --quiet; cp stdout flat.report.json
is "a file a device" test -s ranks/rank-0000.json.gz
exits 2 run $good --trace-all; says "belongs to --trace or --out"
exits 2 run $good --memory --steps 3; says "show one iteration"
exits 0 run $good --memory; prints "saved by attention"; prints "in use"
exits 0 run $good --memory --json; parses; prints '"name": "saved by attention"'
exits 0 run $good --trace all.json --trace-all --quiet; is "a small trace has all devices anyhow" cmp all.json <(gzip -dc own.json.gz)
for option in trace rank-traces report out; do exits 2 run $good --$option ""; says "--$option"; silent stdout; done
cp $good report.json
exits 0 run report.json --quiet
exits 2 run report.json --out .; says "is the same file as the input"; rm report.json
if command -v python3 >/dev/null; then
  is "the trace keeps the rules of analysers" "$here/trace_rules.py" ranks/rank-0000.json.gz own.report.json --rank 0 --last
  is "without a pipeline, communication is the report's" \
    "$here/trace_rules.py" flat/rank-0000.json.gz flat.report.json --rank 0 --last --exact
  exits 0 import kineto own.json.gz --json; parses
  is "another way of counting finds the same totals in our own" "$importers/trace_totals.py" own.json.gz <stdout
fi
real=$importers/samples/trace-1-step.json.gz
exits 0 compare "$real" $good; prints "exposed communication"; prints "waiting for others"; silent stderr
exits 0 compare "$real" $good --json; parses; prints '"speedup"'; says "note: timelines hold no memory"
exits 0 compare own.json.gz "$real" $good; prints "C  $good"
exits 0 compare $good own.json.gz --json --quiet; silent stderr; cp stdout same.json
is "a trace and its scenario are the same" grep -qzP '"speedup": \[\s*1.0,\s*1.0' same.json
exits 2 compare "$real" own.report.json; says "a report, which holds no timeline"
exits 1 compare "$real" $good --set /training/recompute=none --set /training/micro_batch=16 --set /model/hidden=32768; prints "B does not fit in memory"
exits 0 compare "$real" $good --report timelines.html --quiet; prints "not computing"
is "the page stands in one file" grep -q "windtunnel/timeline-comparison-v1" timelines.html
exits 2 compare "$real" $good --break-even; says "one of the files is a trace"
exits 2 compare "$real" --toggle compression; says "is a trace"
exits 2 compare "$real" own.json.gz --set /training/global_batch=8; says "all of the files are traces"
exits 2 compare "$real" config.json; silent stdout
gzip -dc "$real" | head -c 90000 >cut.json
exits 2 compare cut.json $good; says "cut.json:"; says "ends after 90000 bytes"; silent stdout
exits 0 import --help; prints "nccl-tests: "; is "import --help has no --set" test -z "$(grep -e --set stdout)"
exits 0 run --help; prints "--set"
exits 2 list models --set /nodes=4; says "list changes no values of a scenario: it takes no --set"
exits 2 import megatron "$importers/samples/launch-megatron.sh" --base boxen -o launched.json; says 'unknown platform "boxen" (did you mean "boxes"?)'
is "a refused import writes nothing" test ! -e launched.json
exits 2 import; says "import needs to be told what: mpigraph, nccl-tests, topo, nccl-topo, ibnetdiscover, slurm-topology, nvbandwidth, probe, hf-config, kineto, straggler-trace, megatron, nemo, torchtitan, deepspeed"; silent stdout
exits 2 import mpigraph; says "needs a file"
exits 2 import mpigraph net.csv --base boxes; says "import mpigraph: error: it needs -o OUT"
exits 2 import mpigraf net.csv -o x.json; says 'did you mean "mpigraph"?'; silent stdout
exits 2 import mpigraph net.csv -o x.json; says "import mpigraph: error: it needs --base"
exits 2 import mpigraph net.csv --base boxs -o x.json; says 'did you mean "boxes"?'
exits 2 import hf-config config.json -o x.json --clean phase; says "has no option --clean"
exits 2 import topo net.csv --base boxes -o x.json; says "net.csv:4:1: error: no table of nvidia-smi"
printf 'Send,a,b\na,0,1000\nb,-5,0\n' >bad.csv
exits 2 import mpigraph bad.csv --base boxes -o x.json; says "bad.csv:3:3: error: a rate of -5"; silent stdout
is "nothing is written" test ! -e x.json
exits 3 import mpigraph none.csv --base boxes -o x.json; says "none.csv"
exits 2 import hf-config config.json -o ./config.json; says "the output ./config.json is the same file as the input config.json"
exits 0 import hf-config config.json -o x.json
exits 2 import hf-config config.json -o x.json --set /hidden=1; says "no --set"
exits 3 import mpigraph net.csv --base boxes -o .

# The probe: its script is the file, byte for byte; what it wrote is imported, or refused where it saw no GPU.
exits 0 probe --script; silent stderr; is "the script is printed byte for byte" cmp stdout "$here/../probe/probe.py"
exits 0 probe --script --quiet; silent stderr
exits 2 probe; says "prints the script that does"; silent stdout
exits 2 probe --script --set /hidden=1; says "no --set"
exits 2 probe --script more; says 'unexpected "more"'
WINDTUNNEL_DATA=$here/../.. exits 0 import probe "$importers/samples/probe-made-up.json" --base selene-a100 -o probed.json --json --quiet; parses; prints '"kind": "probe"'; silent stderr
WINDTUNNEL_DATA=$here/../.. exits 0 run gpt-39b-512xa100 --set /platform=probed.json
WINDTUNNEL_DATA=$here/../.. exits 2 import probe "$importers/samples/probe-cpu.json" --base selene-a100 -o x.json; says "the script found no GPU"; silent stdout
WINDTUNNEL_DATA=$here/../.. exits 2 import probe "$importers/samples/probe-made-up.json" --base dgx1-v100 -o x.json; says "NVIDIA A100-SXM4-80GB"; silent stdout

# A placement that is searched: found, said, and written out; nothing to find where all nodes are equal.
cat >links.json <<'END'
{"version": 1, "model": "tiny", "platform": "boxes", "nodes": 4, "training": {"global_batch": 32, "micro_batch": 1},
 "parallel": {"tensor": 8, "pipeline": 2, "data": 2, "placement": "search"}}
END
exits 0 run links.json; prints "placement searched: nothing better than Megatron's order was found"; silent stderr
slow='[{"from": 0, "to": 1, "bandwidth": "1 GB/s"}]'
exits 0 run links.json --set /platform/link_overrides="$slow"; prints "1.0 GB/s link node0->node1"; silent stderr
exits 0 run links.json --set /platform/link_overrides="$slow" --json; parses; says "placement searched: "; prints '"value": "found by search"'
exits 0 check links.json; silent stderr
exits 0 show --resolved links.json --set /platform/link_overrides="$slow"; prints '// found by search'; cp stdout placed.json
exits 0 check placed.json
exits 0 show --resolved links.json --json; parses; prints '"placement": "megatron"'
# Many steps with noise.
noise='/noise={"pass_jitter": 0.02, "slow_parts": [{"gpu": 1, "slowdown": 1.2}]}'
exits 0 run $good --steps 5 --set "$noise"; prints "95th percentile"; silent stderr
exits 0 run $good --steps 70 --set "$noise" --json --jobs 1; parses; prints '"schema": "windtunnel/steps-v1"'
cp stdout steps
exits 0 run $good --steps 70 --set "$noise" --json --jobs 3; is "the number of jobs changes no step" cmp stdout steps
exits 0 run $good --steps 3 --set "$noise" --csv steps.csv --quiet; is "a row for each step" test "$(wc -l <steps.csv)" = 4
exits 0 run $good --set "$noise"; says "simulates N with it"
exits 2 run $good --steps 3; says "has no noise block"
exits 2 run $good --steps 3 --set /noise=mlperf-smal; says 'unknown noise "mlperf-smal"'
exits 2 run $good --steps 3 --set "$noise" --engine native; says "without --steps"
exits 2 run $good --steps 3 --set "$noise" --out t; says "show one iteration"
exits 0 run $good --steps 3 --set "$noise" --trace t.json --quiet; exits 0 run $good --trace even.json --quiet
most_compute() { "$program" import kineto "$1" --json | python3 -c 'import json, sys; print(round(1e9 * max(gpu["compute_s"] for gpu in json.load(sys.stdin)["found"]["traces"][0]["gpus"])))'; }
is "the trace of the first step has the slow GPU" test "$(most_compute t.json)" -gt "$(most_compute even.json)"
exits 2 run $good --csv steps.csv; says "belongs to --steps"
exits 0 explain $good --steps 3 --set "$noise"; prints "gpu 1, 1.2 times as slow"
exits 0 explain $good --steps 3 --set "$noise" --json; parses; prints '"critical_nodes"'
exits 1 run $good --steps 2 --set "$noise" --set /model/hidden=16384; says "does not fit"
exits 1 explain $good --steps 2 --set "$noise" --set /model/hidden=16384; says "does not fit"
# Rank: the best plans, why one is not among them, and what launches the first.
exits 0 rank $good; prints "plans considered"; prints "the table is proven"; silent stderr
exits 0 rank $good --json; parses; prints '"schema": "windtunnel/rank-v1"'; prints '"method": "simulated"'
cp stdout ranked
exits 0 rank $good --json --jobs 1; is "the number of jobs changes nothing" cmp stdout ranked
exits 0 rank $good --top 1 --set '/search={"tensor": [2], "zero_stage": [0, 1]}'; prints "ZeRO"
exits 0 rank $good --budget 0 --json; prints '"method": "estimated"'; prints '"simulated": 0'
exits 1 rank $good --set /model/hidden=16384; prints "no plan can be recommended"
exits 1 rank $good --set /model/hidden=16384 --json; parses; prints '"plans": []'
exits 0 rank $good --why tensor=2,pipeline=2; prints "per iteration"
exits 1 rank $good --why tensor=3; prints "does not divide"
exits 0 rank $good --why tensor=2 --json; parses; prints '"verdict": "legal"'
exits 0 rank $good --avoid node0; prints "node0 avoided, 1 node: the best plan takes"; silent stderr
exits 0 rank $good --avoid node0,node1 --avoid node2 --json; parses; prints '"nodes": [0, 1, 2]'; prints '"iteration_time_with_nothing_avoided_s"'
exits 2 rank $good --avoid node0 --why tensor=1; says "--avoid belongs to rank without --why and --method"
exits 2 rank $good --avoid nod0; says 'did you mean "node0"?'; silent stdout
exits 2 rank $good --avoid node0 --set '/platform/node_types/0/count=1'; says "0 GPUs on 0 nodes are left"; silent stdout
exits 2 rank $good --why tensor=2,tensor=4; says "tensor is given twice"; silent stdout
exits 2 rank $good --why ""; says "the value is empty"; silent stdout
exits 2 rank $good --why tensr=2; says 'did you mean "tensor"?'; silent stdout
for method in amp varuna pipette megatron; do
  exits 0 rank $good --method $method; prints "What $method would pick"
done
exits 0 rank $good --method amp --json; parses; prints '"cost_of_pick"'
exits 0 rank $good --method amp --json --set /parallel/stage_layers=balanced; prints "amp divide the layers evenly here"
exits 2 rank $good --method best; says "best"; silent stdout
exits 0 rank $good --emit megatron; prints "--tensor-model-parallel-size"; says "--host-map FILE"
WINDTUNNEL_DATA=$here/../.. exits 0 rank rank-gpt-530b-2240xa100 --emit megatron; says "memory at risk"
is "nothing is written" test -z "$(ls ./*.hosts 2>/dev/null)"
exits 0 rank $good --emit megatron --host-map my.hosts --json; parses; prints '"host_map"'; says "wrote my.hosts"
is "the host map has a line a rank" test "$(wc -l <my.hosts)" -eq 9
exits 0 rank $good --avoid node0 --emit megatron --host-map other.hosts; is "no rank on an avoided node" bash -c '! grep -q node0 other.hosts'
exits 0 rank $good --emit deepspeed --quiet; parses; prints '"gradient_accumulation_steps"'; silent stderr
exits 0 rank $good --emit torchtitan --quiet; prints 'tensor_parallel_degree = '
exits 0 rank $good --emit deepspeed --set '/search={"pipeline": [2], "schedule": ["gpipe"]}'; says "does not run the schedule gpipe"
exits 3 rank $good --emit megatron --host-map my.hosts/none
exits 2 rank $good --emit nemo; says "nemo"; silent stdout
exits 2 rank $good --host-map x; says "--host-map belongs to --emit"
exits 2 rank $good --plan 2; says "--plan belongs to --emit"
exits 2 rank $good --emit megatron --plan 900; says "the table has "
exits 2 rank $good --emit megatron --why tensor=2; says "use one of them"
exits 2 rank $good --top 0; says '--top: "0" is no whole number from 1 to 1000000'
exits 2 run $good --engine nativ; says '--engine: "nativ" is none of simgrid, native, heap (did you mean "native"?)'
exits 0 rank $good --emit deepspeed --report plans.html; parses; says "wrote plans.html"; is "the page has the plans" grep -q '<h2>Plans</h2>' plans.html
exits 0 rank $good --why tensor=2 --report why.html --quiet; silent stderr; is "the page says why" grep -q 'more than the best' why.html
exits 0 rank $good --method amp --report amp.html; prints "would pick"; is "the page has the picks" grep -q '<h2>Picks</h2>' amp.html
exits 2 rank $good --report plans.txt; says "does not end in .html"
exits 0 rank links.json --set /parallel/placement=megatron --set /search/placement=search --set /platform/link_overrides="$slow" --top 2; prints "link node0->node1"; prints "placements were searched"
exits 0 rank links.json --set /parallel/placement=megatron --set /search/placement=search --set /platform/link_overrides="$slow" --top 1 --json; parses; prints '"placement_note"'
exits 2 rank $good --set /search/tensr=[1]; says 'did you mean "tensor"?'
# Runs side by side: scenarios, reports, and one scenario without and with a part of it.
echo '{"extends": "plain.json", "training": {"recompute": "full"}}' >recompute.json
exits 0 compare plain.json recompute.json; prints "speed-up"; prints "/training/recompute: none | full"; silent stderr
exits 0 compare plain.json recompute.json plain.json plain.json plain.json --json; parses; prints '"speedup": [1.0, '
exits 0 run $good --json --quiet; cp stdout report.json
exits 0 compare report.json recompute.json; prints "report.json"
exits 0 compare report.json report.json --json; parses; says "one and the same scenario"
exits 0 compare recompute.json --toggle /training/recompute --break-even; prints "without /training/recompute"; prints "slower at every bandwidth"
exits 1 compare $good $good --set /model/hidden=16384; prints "NO"
exits 2 compare; says "two or more FILEs"; silent stdout
exits 2 compare $good; says "second FILE"
exits 2 compare $good $good --toggle compression; says "one FILE"
exits 2 compare $good --toggle compression; says "compresses nothing, so the two runs would be one and the same"; silent stdout
exits 2 compare $good --toggle /compresion; says 'did you mean "compression"?'
exits 0 compare plain.json recompute.json --report compared.html; prints "speed-up"; says "wrote compared.html"
is "the page is HTML" grep -q '^<!DOCTYPE html>' compared.html
exits 0 compare plain.json report.json --report compared.html --json --quiet; parses; silent stderr
exits 0 compare recompute.json --toggle /training/recompute --report compared.html; prints "without /training/recompute"
exits 1 compare $good $good --set /model/hidden=16384 --report large.html; prints "NO"; is "its page is there" test -s large.html
exits 2 compare $good recompute.json --report page.pdf; says "does not end in .html"
exits 2 compare $good --report only.html; says "second FILE"; is "nothing is written" test ! -e only.html
cp plain.json plain.html
exits 2 compare plain.html recompute.json --report plain.html; says "is the same file as the input"
is "the scenario is untouched" cmp plain.json plain.html
echo '{"extends": "plain.json", "sweep": {"matrix": {"/training/micro_batch": [1, 2, 3]}}}' >swept.json
exits 1 sweep swept.json --out points --report swept.html; prints "3 points"; says "wrote swept.html"
is "the page is HTML" grep -q '^<!DOCTYPE html>' swept.html
exits 0 sweep swept.json --out points --status --report status.html --json --quiet; parses; silent stderr
is "both pages show the same" cmp swept.html status.html
exits 2 sweep swept.json --dry-run --report dry.html; says "has none"; is "nothing is written" test ! -e dry.html
exits 2 sweep swept.json --out points --report page.txt; says "does not end in .html"
cp swept.json swept-input.html
exits 2 sweep swept-input.html --out points2 --report swept-input.html; says "is the same file as the input"
is "nothing was begun" test ! -e points2
exits 3 compare $good none.json; says "none.json"; silent stdout
sed -e '/"fits"/d' -e '/"mfu"/d' report.json >half.json
exits 2 compare $good half.json; says '"fits"'; says '"mfu"'; silent stdout

# What codecs do to a tensor.
exits 0 codec --synthetic gradient --rows 32 --columns 32 --codec mpc --codec powersgd --rank 4; prints "synthetic gradient: 32 x 32 float32"; silent stderr
exits 0 codec --synthetic activation --rows 32 --columns 32 --codec int8 --error-feedback 3 --json -o codec.json; parses; says "wrote codec.json"
is "the file is JSON" json_is_whole codec.json
printf '\x93NUMPY\x01\x00\x3a\x00%-57s\n\x00\x00\x80\x3f\x00\x00\x00\x40' "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }" >two.npy
exits 0 codec two.npy --codec int8; prints "two.npy: 1 x 2 float32"
exits 2 codec plain.json; says "no .npy file"; silent stdout
exits 2 codec; says "takes one FILE.npy"
exits 2 codec two.npy --synthetic gradient; says "takes one FILE.npy"
exits 2 codec two.npy --rows 2; says "its own shape"
exits 2 collective all-to-all --platform dgx-h100 --algorithm ring; says "takes no --algorithm"; silent stdout
exits 2 collective all-reduce --platform dgx-h100 --bytes "2 PB"; says "more than 1 PB"; silent stdout
exits 2 codec two.npy --codec zpf; says 'did you mean "zfp"?'
exits 2 codec two.npy --rate 64; says "is no number from"
exits 2 codec two.npy --set /nodes=1; says "no --set"
exits 3 codec none.npy; says "none.npy"; silent stdout

# A constant that stops at its bound is a verdict: said even with --quiet, and no file takes its value.
cat >slow-set.json <<'END'
{"schema": "windtunnel/measurements-v1", "name": "slow", "kind": "iteration", "source": {"citation": "none", "licence": "none"},
 "base": {"version": 1, "model": "tiny", "platform": "boxes", "training": {"global_batch": 64, "micro_batch": 1},
          "parallel": {"tensor": 2, "pipeline": 2, "data": 2}},
 "points": [{"id": "a", "scenario": {}, "measured": {"iteration_time_s": 1000}},
            {"id": "b", "scenario": {"training": {"global_batch": 32}}, "measured": {"iteration_time_s": 500}}]}
END
exits 1 calibrate ./slow-set.json --fit emax --device card -o slow-card.json --residuals slow.json --quiet
says "calibrate: error: emax ends at the lower bound of its range, 0.3 (range 0.3 to 1"; says "not written: slow-card.json and slow.json"
is "no file takes it" test ! -e slow-card.json -a ! -e slow.json

# Global options stand anywhere; --set may be repeated.
exits 0 --set /name=first check $good --set /training/micro_batch=2 --quiet; prints "first: correct"; prints " 16 microbatches"
exits 2 run $good --set '/noise={"pass_jitter":0.1,"pass_jitter":0.2}'; says 'duplicate key "pass_jitter"'
is "what cannot be read is told once" test "$(grep -c 'error: ' stderr)" -eq 1
exits 0 rank $good --set '/noise={"pass_jitter":0.1}' --top 1; says "note: iterations are simulated without noise"
exits 0 compare $good $good --set '/noise={"pass_jitter":0.1}'; says "note: iterations are simulated without noise"
exits 0 run --seed 7 $good --json; prints '"seed": 7'

# Wrong usage: 2, nothing on stdout, a suggestion.
exits 2 rnu $good; says 'unknown command "rnu" (did you mean "run"?)'; silent stdout
exits 2 frobnicate; says "there are run, new, check"
exits 2 run $good --jsn; says 'unknown option "--jsn" (did you mean "--json"?)'
exits 2 run $good --tarce t.json; says '(did you mean "--trace"?)'
exits 2 check $good --trace t.json; says 'unknown option "--trace"'
exits 2 calibrate; says "calibrate needs a SET"; silent stdout
exits 2 calibrate vtrain --memory --fit emax; says "--memory fits no constants"; silent stdout
exits 2 run $good --set /memory_correction=learned; says "which is no path"; silent stdout
exits 2 calibrate vtrain --rows 4 --fit emax; says "it goes with --draws"; silent stdout
exits 2 calibrate vtrain --draws 9; says "--draws tries fits and keeps none"; silent stdout
exits 2 calibrate vtrain --fit emaxx; says 'did you mean "emax"?'; silent stdout
exits 2 calibrate vtrain --fit emax --device a100-sxm-80gb; says "-o OUT is missing"; silent stdout
exits 2 run; says "run needs a FILE"
exits 2 run $good $good; says "run takes one FILE"
# One --set that undoes another is refused, whichever comes first; of the same pointer the last one counts.
nics=/platform/node_types/0/nics
for sets in "--set $nics=8 --set /platform=boxes" "--set /platform=boxes --set $nics=8"; do
  # shellcheck disable=SC2086
  exits 2 run $good $sets; says "--set $nics=8: error: --set /platform replaces the whole that $nics is part of"; silent stdout
done
exits 0 check $good --set /training/micro_batch=4 --set /training/micro_batch=2; prints " 16 microbatches"
exits 2 run $good --set; says "--set needs a value"
exits 2 run $good --trace one.json --trace two.json; says "--trace is given twice"
exits 2 run $good --set /nodes; says 'which has no "="'
exits 2 run $good --set tensor=4; says "did you mean /parallel/tensor?"
exits 2 run $good --set /parallel/tensr=4; says '(did you mean "tensor"?)'
exits 2 run $good --seed -1; says "--seed"
exits 2 run $good --seed 1.5; says "whole number"
exits 2 run $good --report page.pdf; says "does not end in .html"
exits 2 run $good --trace t.txt; says ".json.gz"
exits 0 show $good; prints "// default"
exits 2 list model; says 'did you mean "models"?'
exits 2 list; says "list needs a KIND"
exits 2 run no-such-name; says "no built-in scenario"

# Bad input: 2, with file, line, column and pointer.
echo '{"version": 1, "model": "tiny", "platform": "boxes", "training": {"global_batch": 2.5, "micro_batch": 1}}' >bad.json
exits 2 run bad.json; says "bad.json:1:83: error: global_batch is 2.5"; says "at /training/global_batch"; silent stdout
exits 2 check bad.json --json; silent stdout

# The environment: 3.
exits 3 run none.json; says "none.json"; silent stdout
exits 3 run .
WINDTUNNEL_DATA=/none exits 3 run $good; says "WINDTUNNEL_DATA"

# A negative verdict: 1, with the result.
exits 1 run $good --set /model/hidden=16384; prints "FIT"
exits 1 run $good --set /model/hidden=16384 --json; parses

# Outputs are written whole, under their own name, and said on stderr.
exits 0 run $good --out deep/er --trace t.json; says "wrote deep/er/report.json"; prints "per iteration"
is "report.json is JSON" json_is_whole deep/er/report.json
is "the trace is gzip" gzip -t deep/er/trace.json.gz
is "the trace is JSON" json_is_whole t.json
is "both traces are the same" cmp t.json <(gzip -dc deep/er/trace.json.gz)
is "the page is HTML" grep -q '^<!DOCTYPE html>' deep/er/report.html
is "no other files are left" test "$(find deep -type f | wc -l)" -eq 3
exits 0 run $good --report page.html; says "wrote page.html"; is "the page is HTML" grep -q '^<!DOCTYPE html>' page.html
exits 0 run $good --out deep/er --quiet; silent stderr
exits 0 run $good --trace t.json.gz; is "the trace is gzip" gzip -t t.json.gz

# What cannot be written: 3, and nothing half-written.
echo file >occupied
exits 3 run $good --out occupied; says "occupied"; is "the file is untouched" test "$(cat occupied)" = file
exits 3 run $good --trace none/../occupied/t.json
exits 3 compare $good recompute.json --report occupied/page.html; says "occupied"; is "the file is untouched" test "$(cat occupied)" = file
exits 2 run $good --out twice --report twice/report.html; says "two outputs are the same file: twice/report.html"
exits 2 run $good --out lost --trace ./lost/report.json; says "two outputs are the same file: ./lost/report.json and lost/report.json"
exits 2 run $good --rank-traces twice --trace ./twice/rank-0000.json.gz; says "two outputs are the same file"
is "nothing is written" test ! -e twice/rank-0000.json.gz -a ! -e lost
ln -s linked.json link.json
exits 0 run $good --trace link.json; is "a link to what is not there is followed" test -L link.json -a -s linked.json
exits 3 sweep swept.json --out points --report occupied/page.html; says "occupied"
is "the results of the sweep stay" test -s points/results.csv
mkdir unwritable
chmod a-w unwritable
if [[ $(id -u) -ne 0 ]]; then
  exits 3 run $good --out unwritable; says "unwritable"
  is "nothing is in it" test -z "$(ls -A unwritable)"
elif [[ -d /proc/self ]]; then
  # Root writes where it likes, but not here.
  exits 3 run $good --out /proc/none; says "/proc/none"
  exits 3 compare $good recompute.json --report /proc/none/page.html; says "/proc/none"
fi
if [[ -c /dev/full ]]; then
  "$program" run $good >/dev/full 2>stderr; is "a full disk exits with 3" test $? -eq 3; says "stdout"
  exits 3 run $good --trace /dev/full/t.json
fi
"$program" run $good >&- 2>stderr; is "a closed stdout exits with 3" test $? -eq 3
"$program" run $good 2>&- >stdout; is "a closed stderr is no harm" test $? -eq 0
"$program" run $good --out shut >&- 2>&- <&-; is "all streams closed: 3" test $? -eq 3
is "what it wrote is whole" json_is_whole shut/report.json
("$program" show --resolved $good 2>stderr; echo $? >code) | true
is "a closed pipe is no crash" grep -qE '^(0|3)$' code

# The same input gives the same bytes, real time apart.
"$program" run $good --json --quiet | grep -v wall_s >first
"$program" run $good --json --quiet | grep -v wall_s >second
is "two runs say the same" cmp first second

# Every byte of a result is printed in one document, without colours when it is no terminal.
exits 0 run $good; is "no escape codes" bash -c '! grep -q $'"'"'\033'"'"' stdout'

# Without WINDTUNNEL_DATA the library is found next to the program, or the message says what to do.
(unset WINDTUNNEL_DATA; "$program" list models >stdout 2>stderr); code=$?
is "the library is found or its absence explained" test $code -eq 0 -o $code -eq 3

echo "$checks checks, $failures failed"
[[ $failures -eq 0 ]]
