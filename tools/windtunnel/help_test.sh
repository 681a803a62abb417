#!/usr/bin/env bash
# Runs every example that the program's help gives, as a shell would, in a folder that holds the files they name. Each must succeed, or end
# with the verdict 1.
#   tools/windtunnel/help_test.sh PROGRAM
set -uo pipefail
program=$(realpath -- "${1:?usage: help_test.sh PROGRAM}")
repository=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 3
mkdir bin
ln -s "$program" bin/windtunnel
export PATH="$scratch/bin:$PATH" WINDTUNNEL_DATA=$repository NO_COLOR=1

# What the examples take for files of the reader's own.
samples=$repository/sim/importers/samples
sed 's/, "data": 8}/}/' "$repository/scenarios/gpt-39b-512xa100.json" >mine.json
cp "$samples/mpigraph-4-nodes.log" mpigraph.log
cp "$samples/hf/llama2-70b.config.json" config.json
cp "$samples/launch-megatron.sh" pretrain.sh
cp "$samples/probe-made-up.json" probe.json
cat >our-gpu.json <<'END'
{"name": "our-gpu", "multiprocessors": 140, "source": "datasheet: ours",
 "peak": {"bf16": "1100 TFLOPS", "source": "datasheet: ours"},
 "memory": {"capacity": "160 GiB", "bandwidth": "4 TB/s", "source": "datasheet: ours"}}
END
cp "$samples/trace-1-step.json.gz" trace.json.gz
cp "$samples/straggler-ST.json.gz" timeline.json.gz
for rank in 0 1; do cp "$samples/trace-v100-rank$rank.json.gz" rank$rank.json.gz; done
cp "$repository/platforms/a100-80gb-4hdr.json" cluster.json
cp "$samples/iterations-4-nodes.json" iterations.json
printf '\x93NUMPY\x01\x00\x76\x00%-117s\n' "{'descr': '<f4', 'fortran_order': False, 'shape': (16, 16), }" >gradient.npy
head -c 1024 /dev/zero >>gradient.npy

runs=0 failures=0
try() {
  local code=0
  runs=$((runs + 1))
  bash -c "$1" >output 2>&1 </dev/null || code=$?
  [[ $code -le 1 ]] && return
  echo "FAILED with exit code $code: $1"
  head -5 output | sed 's/^/    /'
  failures=$((failures + 1))
}

commands=$(windtunnel --help | sed -n '/^Commands:/,/^$/p' | awk 'NR > 1 && NF { print $1 }')
for command in "" $commands; do
  # shellcheck disable=SC2086  # no command: the program's own help
  windtunnel $command --help | sed -n '/^Examples:/,/^$/s/^  \([^ ].*\)/\1/p' >examples
  [[ -s examples ]] || { echo "FAILED: windtunnel $command --help has no examples"; failures=$((failures + 1)); }
  while IFS= read -r example; do try "$example"; done <examples
done
echo "$runs examples run, $failures failures"
[[ $failures -eq 0 && $runs -gt 30 ]]
