#!/usr/bin/env bash
# Writes the tables of docs/compression.md anew:
#   tools/compression_magnitude.sh [PROGRAM]      (default: build/release/windtunnel)
# It runs the Optimus-CC and hybrid scenarios, looks for the bandwidth at which Optimus-CC gains most, and
# replaces what stands between the lines "<!-- magnitude:begin -->" and "<!-- magnitude:end -->".
set -euo pipefail
program=$(realpath -- "${1:-$(dirname -- "${BASH_SOURCE[0]}")/../build/release/windtunnel}")
cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export WINDTUNNEL_DATA=$PWD

# time_of SCENARIO [OPTIONS...]: seconds of an iteration
time_of() {
  local scenario=$1
  shift
  "$program" run "scenarios/$scenario.json" --quiet --json "$@" |
    awk -F'[:,]' '/"iteration_time_s":/ { print $2; exit }'
}

# speed-up of B over A in percent, with one decimal
gain() { awk -v a="$1" -v b="$2" 'BEGIN { printf "%+.1f", 100 * (a / b - 1) }'; }

nic_GBps=25 # one HDR adapter

# most SCENARIO SCENARIO_COMPRESSED: the largest gain at any of these rates, all traffic alike, and where
most() {
  local share
  for share in 1 0.7 0.5 0.35 0.25 0.18 0.12 0.08 0.05 0.03 0.015 0.005; do
    local nic=/platform/node_types/0/nic_efficiency=$share
    echo "$share $(time_of "$1" --set "$nic") $(time_of "$2" --set "$nic")"
  done | awk -v nic="$nic_GBps" '
    { gain = 100 * ($2 / $3 - 1); if (NR == 1 || gain > best) { best = gain; at = nic * $1 } }
    END { printf "%+.1f %% at %.1f GB/s", best, at }'
}

{
  echo "| Optimus-CC | simulated: s | against base | most at one bandwidth for all |"
  echo "|---|---|---|---|"
  while read -r model variant; do
    if [[ $variant == -cb ]]; then base=$(time_of "optimus-cc-$model"); fi
    time=$(time_of "optimus-cc-$model$variant")
    name=$(tr '[:lower:]' '[:upper:]' <<<"$model${variant//-/ + }")
    printf '| %s | %.3f | %s %% | %s |\n' "$name" "$time" "$(gain "$base" "$time")" \
      "$(most "optimus-cc-$model" "optimus-cc-$model$variant")"
  done <<'ROWS'
2.5b -cb
2.5b -cb-fe
2.5b -cb-fe-sc
8.3b -cb
8.3b -cb-fe
8.3b -cb-fe-sc
ROWS
  echo
  echo "| 192 V100 of Lassen | simulated: samples/s | against baseline | published | with MPC at 25 and 30 GB/s |"
  echo "|---|---|---|---|---|"
  slow=(--set "/platform/node_types/0/device/codecs/mpc_encode=25 GB/s" --set "/platform/node_types/0/device/codecs/mpc_decode=30 GB/s")
  base=$(time_of hybrid-neox20b-lassen)
  while read -r variant claim; do
    time=$(time_of "hybrid-neox20b-lassen-$variant")
    printf '| %s | %.3f | %s %% | %s | %s %% |\n' "$variant" \
      "$(awk -v t="$time" 'BEGIN { print 768 / t }')" "$(gain "$base" "$time")" "${claim//_/ }" \
      "$(gain "$base" "$(time_of "hybrid-neox20b-lassen-$variant" "${slow[@]}")")"
  done <<'ROWS'
naive-zfp +23.6_%_(fitted)
zhybrid +12.7_to_+20.4_%
mzhybrid +4.4_%
naive-mpc none
ROWS
} >"$scratch/tables"

awk -v tables="$scratch/tables" '
  /^<!-- magnitude:begin -->$/ { print; while ((getline line < tables) > 0) print line; skipping = 1 }
  /^<!-- magnitude:end -->$/ { skipping = 0 }
  !skipping && !/^<!-- magnitude:begin -->$/ { print }
' docs/compression.md >"$scratch/document"
cp "$scratch/document" docs/compression.md
