#!/usr/bin/env bash
# Measures the speed of simulations, sweeps and the whole program, and writes the table of docs/performance.md:
#   tools/bench.sh [BUILD_DIRECTORY]      (default: build/release)
# Medians, each repetition a process of its own; about five minutes. Only what stands between the markers of the page is replaced.
# Exit codes: 0 done; 1 done, and a goal was missed; 2 the page has no markers; 3 something is not built.
set -euo pipefail
cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
build=${1:-build/release}
page=docs/performance.md
repetitions=5
whole_repetitions=11
export LC_ALL=C.UTF-8 WINDTUNNEL_DATA=$PWD
# shellcheck source=tools/browser.sh
source tools/browser.sh
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
read -r load _ </proc/loadavg

# built NAME: the path of a program of the build
built() {
  local program
  program=$(find "$build" -type f -name "$1" -perm -u+x -print -quit 2>/dev/null)
  if [[ -z $program ]]; then
    echo "error: no $1 under $build. Build it: cmake --preset release && cmake --build --preset release --target $1" >&2
    exit 3
  fi
  echo "$program"
}

# measure PROGRAM TABLE [OPTION...]: medians of a Google Benchmark program
measure() {
  "$1" "${@:3}" --benchmark_repetitions=$repetitions --benchmark_report_aggregates_only=true \
    --benchmark_out="$scratch/$2" --benchmark_out_format=csv >"$scratch/log" 2>&1 ||
    { cat "$scratch/log" >&2; exit 1; }
}

# whole NAME COMMAND...: adds the wall time, in milliseconds, of one run of the command to the table of whole processes
whole() {
  local start=${EPOCHREALTIME/./} end
  "${@:2}" >"$scratch/answer" 2>"$scratch/log" || { cat "$scratch/log" >&2; exit 1; }
  end=${EPOCHREALTIME/./}
  echo "$1 $(((end - start) / 1000)).$(((end - start) / 100 % 10))" >>"$scratch/whole"
}

# cpu NAME COMMAND...: adds the CPU time of one run of the command, in milliseconds, to the same table
cpu() {
  local TIMEFORMAT='%U %S' seconds
  seconds=$({ time "${@:2}" >"$scratch/answer" 2>"$scratch/log"; } 2>&1) || [[ $? -eq 1 ]] || { cat "$scratch/log" >&2; exit 1; }  # 1: does not fit in memory
  awk -v name="$1" '{ print name, ($1 + $2) * 1e3 }' <<<"$seconds" >>"$scratch/whole"
}

# drawn_matrix NODES: a platform of so many nodes with a drawn bandwidth of each pair, 14 to 19 GB/s a rail
drawn_matrix() {
  awk -v nodes="$1" 'BEGIN {
    srand(1)
    printf "{\"extends\": \"pipette-a100-hdr\", \"name\": \"drawn-matrix\", \"node_types\": [{\"count\": %d}],\n", nodes
    printf " \"bandwidth_matrix\": {\"source\": \"assumed: drawn\", \"rails\": 4, \"unit\": \"GB/s\", \"rows\": ["
    for (i = 0; i < nodes; ++i) {
      printf "%s\n[", i == 0 ? "" : ","
      for (j = 0; j < nodes; ++j) printf "%s%.2f", j == 0 ? "" : ",", 14 + 5 * rand()
      printf "]"
    }
    print "]}}"
  }'
}

# kinds_of_node NUMBER: a platform with so many kinds of node, one of each, up to 5 % slower
kinds_of_node() {
  awk -v kinds="$1" 'BEGIN {
    print "{\"name\": \"kinds\", \"fabric\": {\"latency\": \"20 us\", \"collective_latency\": \"10 us\", \"source\": \"assumed: for the benchmark\"},"
    printf " \"node_types\": ["
    for (i = 0; i < kinds; ++i) {
      printf "%s\n{\"device\": \"a100-sxm-80gb\", \"count\": 1, \"gpus\": 8, \"nics\": 4, \"nic_rate\": \"200 Gbps\",", i == 0 ? "" : ","
      printf " \"compute_efficiency\": %.4f, \"source\": \"assumed: for the benchmark\",\n \"interconnect\": {", 1 - i / (20 * kinds)
      printf "\"kind\": \"nvswitch\", \"saturated_bandwidth\": \"252 GB/s\", \"floor_base\": \"28 us\", \"floor_per_gpu\": \"8 us\","
      printf " \"half_size\": \"8 MiB\", \"point_to_point\": \"80 GB/s\", \"point_to_point_latency\": \"10 us\","
      printf " \"source\": \"assumed: for the benchmark\"}}"
    }
    print "]}"
  }'
}

# placed_at_random RANKS: a list of the GPUs of nodes of eight, in a drawn order
placed_at_random() {
  awk -v ranks="$1" 'BEGIN {
    srand(1)
    for (i = 0; i < ranks; ++i) gpu[i] = int(i / 8) ":" i % 8
    for (i = ranks - 1; i > 0; --i) { j = int(rand() * (i + 1)); other = gpu[i]; gpu[i] = gpu[j]; gpu[j] = other }
    for (i = 0; i < ranks; ++i) printf "%s\"%s\"", i == 0 ? "[" : ", ", gpu[i]
    print "]"
  }'
}

engine_program=$(built windtunnel_engine_bench)
sweep_program=$(built windtunnel_sweep_bench)
windtunnel=$(built windtunnel)

measure "$engine_program" engine.csv --benchmark_filter="^simulate_pipeline"
measure "$engine_program" contention.csv --benchmark_filter="^simulate_tapered/.*/tensor:4/"
measure "$sweep_program" sweep.csv
trillion=(gpt3-175b-512xa100 --set /model=gpt-1t --set /nodes=384 --set /training/global_batch=3072
  --set /parallel/pipeline=64 --set /parallel/data=6)
# 8 stages, 8 replicas of 4 samples a microbatch: 256 and 32,768 microbatches
for ((i = 0; i < whole_repetitions; ++i)); do  # in turn, so that whatever else the machine does meets them all
  whole trillion "$windtunnel" run "${trillion[@]}"
  whole trillion_page "$windtunnel" run "${trillion[@]}" --report "$scratch/page.html"
  whole gpt_39b "$windtunnel" run gpt-39b-512xa100
  whole microbatches_256 "$windtunnel" run gpt-39b-512xa100 --set /training/global_batch=$((256 * 32))
  whole microbatches_32768 "$windtunnel" run gpt-39b-512xa100 --set /training/global_batch=$((32768 * 32))
done

# All replicas gather and reduce every layer over leaf switches that hold a quarter of what their nodes send.
cat >"$scratch/fsdp.json" <<'END'
{"version": 1, "model": "llama2-7b", "nodes": 128, "software": "composer-fsdp-2023",
 "platform": {"extends": "dgx-h100", "name": "tapered",
              "fabric": {"nodes_per_leaf": 16, "oversubscription": 4, "source": "assumed: for the benchmark"},
              "link_overrides": [{"from": 0, "to": 1, "bandwidth": "25 GB/s", "source": "assumed: for the benchmark"}]},
 "training": {"global_batch": 1024, "micro_batch": 1, "precision": "bf16", "recompute": "full", "attention": "flash"},
 "parallel": {"tensor": 1, "pipeline": 1, "data": 1024, "zero_stage": 3}}
END
# 61 layers of 256 experts, whose tokens cross eight nodes: by formula, and as flows where a link is slow.
cat >"$scratch/experts.json" <<'END'
{"version": 1, "model": "deepseek-v3", "platform": "dgx-h100", "nodes": 128, "software": "megatron-core-2026@0",
 "training": {"global_batch": 2048, "micro_batch": 1, "attention": "flash", "precision": "bf16"},
 "parallel": {"pipeline": 16, "data": 64, "expert": 64, "zero_stage": 1,
              "stage_layers": [4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 4, 1]}}
END
slow_link='/platform/link_overrides=[{"from": 0, "to": 1, "bandwidth": "25 GB/s", "source": "assumed: for the benchmark"}]'
sed -e 's/llama2-7b/llama2-70b/' -e "s|\"data\": 1024|&, \"placement\": $(placed_at_random 1024)|" "$scratch/fsdp.json" >"$scratch/fsdp_at_random.json"
drawn_matrix 512 >"$scratch/matrix.json"
cat >"$scratch/placement.json" <<'END'
{"version": 1, "model": "gpt3-175b", "platform": "matrix.json", "nodes": 512, "software": "megatron-lm-2021",
 "training": {"global_batch": 1536, "micro_batch": 1, "precision": "fp16", "recompute": "full"},
 "parallel": {"tensor": 8, "pipeline": 16, "data": 32, "placement": "search"}}
END
kinds_of_node 256 >"$scratch/kinds.json"
cat >"$scratch/explain.json" <<'END'
{"version": 1, "model": "gpt-39b", "platform": "kinds.json", "nodes": 256, "software": "megatron-lm-2021",
 "training": {"global_batch": 3072, "micro_batch": 4, "precision": "fp16", "recompute": "full"},
 "parallel": {"tensor": 8, "pipeline": 8, "data": 32}}
END
rank_trillion=(gpt3-175b-512xa100 --set /model=gpt-1t --set /nodes=1536 --set /training/global_batch=3072
  --set /parallel/pipeline=64 --set /parallel/data=24
  --set '/search={"micro_batch": [1, 2, 4], "virtual_pipeline": [1, 2, 4], "recompute": ["none", "selective", "full"],
                  "sequence_parallel": [false, true], "zero_stage": [0, 1]}')
for ((i = 0; i < whole_repetitions; ++i)); do
  whole version "$windtunnel" --version
  whole gpt_39b_native "$windtunnel" run gpt-39b-512xa100 --engine native
  whole rank_39b "$windtunnel" rank rank-gpt-39b-512xa100
  whole rank_530b "$windtunnel" rank rank-gpt-530b-2240xa100
  cpu experts "$windtunnel" run "$scratch/experts.json" --quiet
  cpu experts_uneven "$windtunnel" run "$scratch/experts.json" --quiet --set '/model/moe/balance={"zipf": 0.5}'
  cpu experts_flows "$windtunnel" run "$scratch/experts.json" --quiet --engine native --set "$slow_link"
done
for ((i = 0; i < repetitions; ++i)); do
  whole rank_trillion "$windtunnel" rank "${rank_trillion[@]}"
  whole explain "$windtunnel" explain "$scratch/explain.json" --quiet
  cpu fsdp_at_random "$windtunnel" run "$scratch/fsdp_at_random.json"
done
whole placement "$windtunnel" run "$scratch/placement.json" --quiet
cat >"$scratch/calls.py" <<'END'
import itertools
import threading
import time
import windtunnel as wt

scenario = wt.Scenario("gpt-39b-512xa100")
wt.simulate(scenario)
calls = 1000


def simulate(numbers):
    while (i := next(numbers)) < calls:
        wt.simulate(scenario, set={"/training/global_batch": 1536 + 64 * (i % 8)})


def seconds_on(threads):
    numbers = itertools.count()
    workers = [threading.Thread(target=simulate, args=(numbers,)) for _ in range(threads)]
    start = time.perf_counter()
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return time.perf_counter() - start


start = time.process_time()
simulate(itertools.count())
print("calls_a_second", calls / (time.process_time() - start))
print("two_threads", seconds_on(1) / seconds_on(2))
END
if [[ -e $build/python/windtunnel/__init__.py ]]; then
  for ((i = 0; i < repetitions; ++i)); do PYTHONPATH=$build/python /usr/bin/python3 "$scratch/calls.py" >>"$scratch/whole"; done
fi
if [[ -n $browser ]]; then
  echo "<!doctype html><title>nothing</title>" >"$scratch/blank.html"
  for ((i = 0; i < repetitions; ++i)); do
    whole open_page open_page "file://$scratch/page.html" --dump-dom
    whole open_blank open_page "file://$scratch/blank.html" --dump-dom
  done
  echo "page_MB $(stat -c %s "$scratch/page.html" | awk '{ printf "%.2f", $1 / 1e3 }')" >>"$scratch/whole"
fi

# What the awk programs below share. A line of a benchmark is KIND/ENGINE/NAME:NUMBER/…_median; reads it into row["KIND/…"] and value[].
# shellcheck disable=SC2016  # these are awk's
readonly read_medians='
  FNR == 1 { delete column }
  $1 == "name" { for (i = 1; i <= NF; ++i) { gsub(/"/, "", $i); column[$i] = i } next }
  !/_median"?,/ { next }
  { name = $1; gsub(/"/, "", name); split(name, part, "/") }'

# The goals: what is wanted, what was measured, and whether that is reached.
goals() {
  # shellcheck disable=SC2016
  awk -F, "$read_medians"'
    part[1] == "simulate_pipeline" {
      for (i = 3; i <= 6; ++i) sub(/.*:/, "", part[i])
      size = part[3] "x" part[4] "x" part[5] "x" part[6]
      time[size, part[2]] = $column["real_time"] / 1e3
      memory[size, part[2]] = $column["peak_MB"]
      next
    }
    part[1] == "simulate_tapered" {
      for (i = 4; i <= 6; i += 2) sub(/.*:/, "", part[i])
      tapered[part[4] "x" part[6], part[2]] = $column["real_time"] / 1e3
      rate[part[4] "x" part[6], part[2]] = ($column["computes"] + $column["flows"]) / $column["real_time"] * 1e3
      next
    }
    part[1] == "native" { points_a_minute = $column["per_minute"] }
    function row(what, wanted, measured, reached) {
      printf "%s | %s | %s%s\n", what, wanted, measured, reached ? "" : " **missed**"
    }
    function engine_row(what, size, most_ratio, most_time, most_memory,   ratio, seconds, MB) {
      seconds = time[size, "simgrid"]; ratio = seconds / time[size, "heap"]; MB = memory[size, "simgrid"]
      row(what, sprintf("≤ %d × heap, ≤ %g s, ≤ %d MB", most_ratio, most_time, most_memory),
          sprintf("%.1f × heap, %.2f s, %.0f MB", ratio, seconds, MB),
          seconds > 0 && ratio <= most_ratio && seconds <= most_time && MB > 0 && MB <= most_memory)
    }
    function whole_row(what, name, most) {
      row(what, sprintf("≤ %g s", most), sprintf("%.3f s", whole[name]), whole[name] > 0 && whole[name] <= most)
    }
    END {
      while ((getline line < whole_medians) > 0) { split(line, field, " "); whole[field[1]] = field[2] / 1e3 }
      engine_row("pipeline 64 × data 6 × 512 microbatches, unequal links (3,072 GPUs; 781 k activities)", "64x6x512x50", 3, 0.25, 60)
      engine_row("16,384 simulated devices × 64 microbatches (131 k GPUs at tensor 8)", "64x256x64x50", 4, 2, 150)
      whole_row("1T model on 3,072 GPUs, from file to report", "trillion", 0.5)
      printf "the same with the HTML page of every activity (`--report`) | | %.3f s\n", whole["trillion_page"]
      if (whole["open_page"] > 0)
        row("that page opened and drawn in Chromium", "≤ 2 s, ≤ 5 MB", sprintf("%.2f s (%.2f s with an empty page), %.1f MB",
            whole["open_page"], whole["open_blank"], whole["page_MB"]), whole["open_page"] <= 2 && whole["page_MB"] <= 5)
      falls = rate["512x4", "native"] / rate["16x4", "native"]
      falls = falls > 0 ? 1 / falls : 0
      row("16,384 GPUs whose cards differ, placed at random, leaf switches oversubscribed 4:1 (741 k activities)",
          "≤ 4 s of CPU, ≤ 3 × fewer activities a second than on 512 GPUs",
          sprintf("%.2f s, %.1f ×", tapered["512x4", "native"], falls),
          tapered["512x4", "native"] > 0 && tapered["512x4", "native"] <= 4 && falls > 0 && falls <= 3)
      gain = tapered["64x4", "native"] > 0 ? tapered["64x4", "simgrid"] / tapered["64x4", "native"] : 0
      row("2,048 of them against the solver of SimGrid", "≥ 10 × faster", sprintf("%.0f ×", gain), gain >= 10)
      row("FSDP of 1,024 GPUs placed at random, 80 layers, 4:1 oversubscription, with SimGrid", "≤ 2 s of CPU",
          sprintf("%.2f s", whole["fsdp_at_random"]), whole["fsdp_at_random"] > 0 && whole["fsdp_at_random"] <= 2)
      whole_row("GPT-39B on 512 GPUs with SimGrid", "gpt_39b", 0.06)
      whole_row("the same with `--engine native`", "gpt_39b_native", 0.01)
      whole_row("`windtunnel --version`", "version", 0.003)
      whole_row("`rank` of GPT-39B on 512 GPUs", "rank_39b", 0.05)
      whole_row("`rank` of GPT-530B on 2,240 GPUs", "rank_530b", 0.15)
      whole_row("`rank` of GPT-1T on 12,288 GPUs, 5,292 plans", "rank_trillion", 1)
      whole_row("`explain` with 256 kinds of node", "explain", 5)
      whole_row("DeepSeek-V3 on 1,024 GPUs, 61 layers of 256 experts over 64 of them, CPU time", "experts", 0.2)
      whole_row("the same, tokens not spread evenly (a Zipf exponent of 0.5)", "experts_uneven", 0.2)
      whole_row("the same with one slow link and `--engine native`, 3.6 million flows", "experts_flows", 2)
      whole_row("placement on 512 nodes, a bandwidth for each pair", "placement", 10)
      if (whole["calls_a_second"] > 0)
        row("`simulate` from Python, GPT-39B on 512 GPUs, one key changed", "≥ 1,000 calls a second and core",
            sprintf("%d", whole["calls_a_second"] * 1e3), whole["calls_a_second"] * 1e3 >= 1000)
      if (whole["two_threads"] > 0)
        row("the same with two threads, on two cores", "≥ 1.8 × the calls of one",
            sprintf("%.2f ×", whole["two_threads"] * 1e3), whole["two_threads"] * 1e3 >= 1.8)
      row("sweep, pipeline 8 × data 8, 11.7 k activities on average, start-up included",
          "≥ 60,000 candidates a minute and core", sprintf("%d,%03d", points_a_minute / 1000, points_a_minute % 1000), points_a_minute >= 60000)
      ratio = whole["microbatches_256"] > 0 ? whole["microbatches_32768"] / whole["microbatches_256"] : 0
      row("32,768 microbatches on 8 stages", "≤ 1.2 × the time of 256",
          sprintf("%.2f × (%.3f s, %.3f s)", ratio, whole["microbatches_32768"], whole["microbatches_256"]),
          ratio > 0 && ratio <= 1.2)
    }' whole_medians="$scratch/whole_medians" "$scratch/engine.csv" "$scratch/contention.csv" "$scratch/sweep.csv"
}

# replace MARKER TABLE: puts the table between the markers of the page
replace() {
  awk -v table="$2" -v marker="$1" '
    $0 == "<!-- " marker ":begin -->" { print; while ((getline line < table) > 0) print line; inside = 1; next }
    $0 == "<!-- " marker ":end -->" { inside = 0; ended = 1 }
    !inside
    END { exit !ended }' "$page" >"$scratch/page" ||
    { echo "error: $page has no $1:begin and $1:end markers" >&2; exit 2; }
  cp "$scratch/page" "$page"
}

sort -k1,1 -k2,2n "$scratch/whole" |
  awk '{ ms[$1, ++count[$1]] = $2 } END { for (name in count) print name, ms[name, int((count[name] + 1) / 2)] }' >"$scratch/whole_medians"
cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
{
  echo "Machine: $(nproc) × ${cpu:-unknown CPU}; load average before the start: $load."
  echo "Made by \`tools/bench.sh\`: medians of $repetitions repetitions, of $whole_repetitions for commands, which are timed from start to end."
  echo
  echo "case | wanted | measured"
  echo "---|---|---"
  goals
} >"$scratch/goals"
replace goals-bench "$scratch/goals"
cat "$scratch/goals"
if grep -q '\*\*missed\*\*' "$scratch/goals"; then
  echo "a goal was missed: see the table" >&2
  exit 1
fi
