#!/usr/bin/env bash
# How the work of `windtunnel run` grows with the cluster: instructions at n and 4 n nodes, counted by valgrind, so that no clock decides.
#   tools/growth.sh PROGRAM     fails where they grow faster than n^1.3
# Plans: weights gathered in each layer (ZeRO 3), experts across nodes, every replica simulated because of one slow link behind tapered leaf
# switches, and a placement search.
set -euo pipefail
[[ $# -eq 1 && -x $1 ]] || { echo "usage: tools/growth.sh PROGRAM" >&2; exit 2; }
program=$(realpath -- "$1")
most=1.3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

zero_3() {  # zero_3 NODES
  cat <<END
{"version": 1, "model": "llama2-7b", "platform": "dgx-h100", "nodes": $1, "software": "composer-fsdp-2023",
 "training": {"global_batch": $((8 * $1)), "micro_batch": 1, "precision": "bf16"}, "parallel": {"data": $((8 * $1)), "zero_stage": 3}}
END
}
experts() {
  cat <<END
{"version": 1, "model": "deepseek-v3", "platform": "dgx-h100", "nodes": $1, "software": "megatron-core-2026@0",
 "training": {"global_batch": $((16 * $1)), "micro_batch": 1, "attention": "flash", "precision": "bf16"},
 "parallel": {"pipeline": 16, "data": $(($1 / 2)), "expert": 64, "zero_stage": 1,
              "stage_layers": [4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 1]}}
END
}
slow_link() {
  cat <<END
{"version": 1, "model": "gpt-39b", "nodes": $1, "software": "megatron-lm-2021",
 "platform": {"extends": "a100-80gb-4hdr", "name": "tapered",
              "fabric": {"nodes_per_leaf": 16, "oversubscription": 4, "source": "assumed: for the benchmark"},
              "link_overrides": [{"from": 0, "to": 1, "bandwidth": "20 GB/s", "source": "assumed: for the benchmark"}]},
 "training": {"global_batch": $((16 * $1)), "micro_batch": 1, "precision": "fp16", "recompute": "full"},
 "parallel": {"tensor": 4, "pipeline": 8, "data": $(($1 / 4))}}
END
}
placement() {
  cat <<END
{"version": 1, "model": "gpt3-175b", "nodes": $1, "software": "megatron-lm-2021",
 "platform": {"extends": "selene-a100", "name": "one slow link",
              "link_overrides": [{"from": 0, "to": 1, "bandwidth": "5 GB/s", "source": "assumed: for the benchmark"}]},
 "training": {"global_batch": $((3 * $1)), "micro_batch": 1, "precision": "fp16", "recompute": "full"},
 "parallel": {"tensor": 8, "pipeline": 16, "data": $(($1 / 16)), "placement": "search"}}
END
}

instructions() {  # instructions PLAN NODES
  "$1" "$2" >"$scratch/plan.json"
  # A plan that does not fit in memory ends in 1, and is simulated all the same.
  valgrind --tool=cachegrind --cache-sim=no --cachegrind-out-file=/dev/null \
    "$program" run "$scratch/plan.json" --engine native --quiet >"$scratch/out" 2>"$scratch/log" || [[ $? -eq 1 ]]
  grep -q 'per iteration' "$scratch/out" || { cat "$scratch/log" >&2; exit 1; }
  awk '/I +refs:/ { gsub(",", "", $NF); print $NF }' "$scratch/log"
}

failures=0
while read -r plan nodes; do
  few=$(instructions "$plan" "$nodes")
  many=$(instructions "$plan" $((4 * nodes)))
  awk -v plan="$plan" -v nodes="$nodes" -v few="$few" -v many="$many" -v most="$most" 'BEGIN {
    power = log(many / few) / log(4)
    printf "%-10s %5d to %5d nodes: %6.0f to %6.0f million instructions, n^%.2f\n", plan, nodes, 4 * nodes, few / 1e6, many / 1e6, power
    exit power > most }' || failures=$((failures + 1))
done <<END
zero_3 256
experts 256
slow_link 64
placement 16
END
[[ $failures -eq 0 ]] || { echo "$failures of them grow faster than n^$most"; exit 1; }
