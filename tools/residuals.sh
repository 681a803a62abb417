#!/usr/bin/env bash
# Writes validation/residuals.json, from which `windtunnel run` takes its 90 % intervals: for each measured stack the errors on rows
# that were left out, one model size at a time, while the named constants were fitted to the others; and those of whole sets that were
# left out (tools/leave_one_set_out.py); and those of differences, by pairs of rows (windtunnel validate). About five minutes.
#   tools/residuals.sh [PROGRAM]      (default: build/release/windtunnel)
set -euo pipefail
program=$(realpath -- "${1:-$(dirname -- "${BASH_SOURCE[0]}")/../build/release/windtunnel}")
cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT

hold_out() {  # hold_out SET CONSTANTS
  echo "$1: $2" >&2
  "$program" calibrate "$1" --fit "$2" --residuals "$out/residuals.json" --quiet >/dev/null
}

hold_out vtrain-a100-multi-node emax
hold_out megatron-sc21-table1 emax
hold_out korthikanti-table5 emax
hold_out megatron-2020-tensor-scaling emax
hold_out bigscience-a100-176b /software/in_node_collective_slowdown=1..20
hold_out bigscience-v100-logs /platform/node_types/0/compute_efficiency,/platform/node_types/0/pass_spread=0.01..0.2
hold_out llm-foundry-fsdp flash_forward,flash_backward
mv "$out/residuals.json" validation/residuals.json
tools/leave_one_set_out.py "$program"
"$program" validate --residuals validation/residuals.json --quiet >/dev/null
