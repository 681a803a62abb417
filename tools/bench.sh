#!/usr/bin/env bash
# Measures how fast programs are played, plans searched and sweeps done, and writes the tables of docs/performance.md:
#   tools/bench.sh [BUILD_DIRECTORY]      (default: build/release)
# Medians of 5 repetitions, each a process of its own. Only what stands between the markers of the page is replaced.
set -euo pipefail
cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
build=${1:-build/release}
page=docs/performance.md
program=$(find "$build" -type f -name windtunnel_engine_bench -perm -u+x -print -quit)
if [[ -z $program ]]; then
  echo "error: no windtunnel_engine_bench under $build. Build it: cmake --preset release && cmake --build --preset release --target windtunnel_engine_bench" >&2
  exit 3
fi
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

search_program=$(find "$build" -type f -name windtunnel_search_bench -perm -u+x -print -quit)
if [[ -z $search_program ]]; then
  echo "error: no windtunnel_search_bench under $build. Build it: cmake --build --preset release --target windtunnel_search_bench" >&2
  exit 3
fi
export WINDTUNNEL_DATA=$PWD

"$program" --benchmark_repetitions=5 --benchmark_report_aggregates_only=true \
  --benchmark_out="$scratch/medians.csv" --benchmark_out_format=csv >"$scratch/log" 2>&1 ||
  { cat "$scratch/log" >&2; exit 1; }

"$search_program" --benchmark_filter="^(considered|ranked)" --benchmark_repetitions=5 --benchmark_report_aggregates_only=true \
  --benchmark_out="$scratch/search.csv" --benchmark_out_format=csv >"$scratch/log" 2>&1 ||
  { cat "$scratch/log" >&2; exit 1; }

cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
{
  echo "Machine: $(nproc) × ${cpu:-unknown CPU}."
  echo "Made by \`tools/bench.sh\`: medians of 5 repetitions, each a process of its own; the time includes making the engine."
  echo
  echo "| pipeline × data × microbatches | message | computes + flows | engine | time | ratio to heap | per activity | peak memory |"
  echo "|---|---|---|---|---|---|---|---|"
  # play_pipeline/ENGINE/pipeline:P/data:D/microbatches:M/message_MB:S/iterations:1/manual_time_median
  awk -F, '
    $1 == "name" { for (i = 1; i <= NF; ++i) { gsub(/"/, "", $i); column[$i] = i } next }
    $1 ~ /_median"?$/ {
      name = $1; gsub(/"/, "", name); split(name, part, "/")
      for (i = 3; i <= 6; ++i) { sub(/.*:/, "", part[i]) }
      size = part[3] " × " part[4] " × " part[5] " | " part[6] " MB"
      time = $column["real_time"]
      if (!(size in seen)) { seen[size] = 1; order[++num_sizes] = size }
      activities[size] = $column["computes"] + $column["flows"]
      counts[size] = $column["computes"] + 0 " + " $column["flows"] + 0
      times[size, part[2]] = time
      memory[size, part[2]] = $column["peak_MB"]
    }
    END {
      for (i = 1; i <= num_sizes; ++i) for (e = 1; e <= 2; ++e) {
        size = order[i]; engine = e == 1 ? "heap" : "simgrid"
        time = times[size, engine]
        printf "| %s | %s | %s | %.*f ms | %.1f | %.2f µs | %.0f MB |\n", size, counts[size], engine, time < 10 ? 1 : 0, time,
               time / times[size, "heap"], time * 1e3 / activities[size], memory[size, engine]
      }
    }' "$scratch/medians.csv"

  echo
  echo "Searching for plans (\`windtunnel rank\`). *Considered*: enumerated, laid out, accounted for memory and bounded, on one core."
  echo "*Ranked*: with the simulations that prove the first 20, one a core at a time."
  echo
  echo "| search | plans | bounded | simulated | gap | time | plans a second |"
  echo "|---|---|---|---|---|---|---|"
  # KIND/MODEL/…_median
  awk -F, '
    $1 == "name" { for (i = 1; i <= NF; ++i) { gsub(/"/, "", $i); column[$i] = i } next }
    $1 ~ /_median"?$/ {
      name = $1; gsub(/"/, "", name); split(name, part, "/"); sub(/_/, "-", part[2])
      printf "| %s, %s | %d | %d | %d | %s | %.2f s | %.0f |\n", part[2], part[1], $column["considered"], $column["bounded"],
             $column["simulated"], part[1] == "ranked" ? sprintf("%.1f %%", 100 * $column["gap"]) : "", $column["real_time"] / 1e3,
             $column["candidates_per_second"]
    }' "$scratch/search.csv"
} >"$scratch/table"

sweep_program=$(find "$build" -type f -name windtunnel_sweep_bench -perm -u+x -print -quit)
if [[ -z $sweep_program ]]; then
  echo "error: no windtunnel_sweep_bench under $build. Build it: cmake --build --preset release --target windtunnel_sweep_bench" >&2
  exit 3
fi
"$sweep_program" --benchmark_repetitions=5 --benchmark_report_aggregates_only=true \
  --benchmark_out="$scratch/sweep.csv" --benchmark_out_format=csv >"$scratch/log" 2>&1 ||
  { cat "$scratch/log" >&2; exit 1; }
{
  echo "Made by \`tools/bench.sh\` on the machine above: medians of 5 repetitions."
  echo
  echo "| points | CPU time of a point | points a minute and core |"
  echo "|---|---|---|"
  awk -F, '
    $1 == "name" { for (i = 1; i <= NF; ++i) { gsub(/"/, "", $i); column[$i] = i } next }
    $1 ~ /_median"?$/ {
      name = $1; gsub(/"/, "", name); sub(/\/.*/, "", name)
      printf "| %s | %.2f ms | %d |\n", name, $column["ms_each"], $column["per_minute"]
    }' "$scratch/sweep.csv"
} >"$scratch/sweep-table"

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
replace bench "$scratch/table"
replace sweep-bench "$scratch/sweep-table"
cat "$scratch/table" "$scratch/sweep-table"
