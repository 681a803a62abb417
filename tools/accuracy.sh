#!/usr/bin/env bash
# Writes the score card of docs/accuracy.md, the rows of README.md that name a set and its range of errors, and the pictures docs/img/accuracy.svg and docs/img/kernels-*.svg anew:
#   tools/accuracy.sh [PROGRAM]      (default: build/release/windtunnel)
# It runs `windtunnel validate --json` on all sets and replaces what stands between the lines
# "<!-- score card:begin -->" and "<!-- score card:end -->".
set -euo pipefail
program=$(realpath -- "${1:-$(dirname -- "${BASH_SOURCE[0]}")/../build/release/windtunnel}")
cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export WINDTUNNEL_DATA=$PWD

status=0
"$program" validate --quiet --json --svg "$scratch/accuracy.svg" >"$scratch/scores.json" || status=$?
if [[ $status -ne 0 && $status -ne 1 ]]; then
  exit "$status"
fi

# The document has one member a line; those of a set are indented by six blanks, those of its objects by eight.
awk '
function percent(value) { return value == "" ? "" : sprintf("%.1f", 100 * value) }
function signed(value) { return value == "" ? "" : sprintf("%+.1f", 100 * value) }
function number(line) { sub(/^[^:]*: */, "", line); sub(/,$/, "", line); return line }
function key(line) { sub(/^ *"/, "", line); sub(/".*/, "", line); return line }
function plain(line) { line = number(line); gsub(/"/, "", line); return line }
BEGIN {
  rival["vtrain-a100-multi-node"] = "vTrain 14.7 [1]; Calculon 15.3 as shipped [2]"
  rival["megatron-sc21-table1"] = "Calculon 3.7, worst 8.9, its 8 Selene rows [3]"
  rival["korthikanti-table5"] = "Calculon 3.7, worst 8.9, its 8 Selene rows [3]"
  rival["bigscience-a100-176b"] = "none published"
  order_rival["amp-t4"] = "AMP 0.935, on all 47"
  order_rival["amp-t4-v100-mixed"] = "AMP 0.394"
  rival["nccl-allreduce-a100"] = rival["nccl-allreduce-v100"] = "ASTRA-sim 2.8 to 20 on its own [4]"
}
/^  "points": / { exit }
/^      "set": / { set = plain($0); names[++count] = set; section = ""; next }
/^      "[^"]+": [\[{]$/ { section = key($0); next }
/^        "/ && section == "fitted_on_this_set" { ++fitted[set]; next }
/^      "fitted_on_this_set": \[".*\]/ { fitted[set] = 1 + gsub(/", "/, ""); section = ""; next }
/^      "/ { section = ""; value[set, key($0)] = number($0); next }
/^        "[^"]+": [{]$/ { if (section == "groups") { group = key($0); only_group[set] = ++num_groups[set] == 1 ? group : "" } next }
/^        "/ && section == "top1_regret" { regrets[set] = regrets[set] (regrets[set] == "" ? "" : "; ") key($0) " " percent(number($0)) }
/^        "/ && section != "" { value[set, section, key($0)] = number($0); next }
/^          "mape": / && section == "groups" { groups[set] = groups[set] (groups[set] == "" ? "" : "; ") group " " percent(number($0)) }
END {
  print "Iteration times, errors in %:"
  print ""
  print "| set | scored | mean | median | 90th percentile | worst | bias | without 5 % largest | bar to clear | inside 90 % interval | numbers fitted on it | others |"
  print "|---|---|---|---|---|---|---|---|---|---|---|---|"
  for (i = 1; i <= count; ++i) {
    s = names[i]
    if (value[s, "out_of_memory", "ran"] == "") continue
    covered = value[s, "interval_coverage"]
    printf "| %s | %d of %d | **%s** | %s | %s | %s | %s | %s | %s | %s | %d | %s |\n", s, value[s, "scored"], value[s, "points"],
      percent(value[s, "mape"]), percent(value[s, "median_ape"]), percent(value[s, "p90_ape"]), percent(value[s, "worst_ape"]),
      signed(value[s, "bias"]), percent(value[s, "without_largest", "mape"]), percent(value[s, "naive_mape"]),
      covered == "" ? "" : sprintf("%.0f %%", 100 * covered), fitted[s], rival[s]
  }
  print ""
  print "Order of plans that train one model on the same GPUs; regret is what the plan predicted fastest costs over the fastest, in %:"
  print ""
  print "| set | GPUs | plans | Spearman | Kendall | regret | others |"
  print "|---|---|---|---|---|---|---|"
  for (i = 1; i <= count; ++i) {
    s = names[i]
    g = only_group[s]
    if (order_rival[s] != "")
      printf "| %s | %s | %d | **%.3f** | %.3f | %s | %s |\n", s, g, value[s, "scored"], value[s, "spearman_rho", g],
        value[s, "kendall_tau", g], percent(value[s, "top1_regret", g]), order_rival[s]
  }
  print ""
  print "What it costs to take the plan predicted fastest, of those measured, over the one measured fastest, in % by group:"
  print ""
  print "| set | regret |"
  print "|---|---|"
  for (i = 1; i <= count; ++i) {
    s = names[i]
    if (value[s, "out_of_memory", "ran"] != "" && regrets[s] != "") printf "| %s | %s |\n", s, regrets[s]
  }
  print ""
  print "Memory, mean errors in %, and the verdict on whether a run fits:"
  print ""
  print "| set | allocated | reserved | nvidia-smi | out of memory: refused | out of memory: let run | ran: refused | ran: let run |"
  print "|---|---|---|---|---|---|---|---|"
  for (i = 1; i <= count; ++i) {
    s = names[i]
    if (value[s, "out_of_memory", "ran"] == "") continue
    allocated = value[s, "memory_allocated_mape"]
    printf "| %s | %s | %s | %s | %d | %d | %d | %d |\n", s, allocated == "" ? "" : sprintf("%.2f", 100 * allocated),
      percent(value[s, "memory_reserved_mape"]), percent(value[s, "memory_smi_mape"]), value[s, "out_of_memory", "caught"],
      value[s, "out_of_memory", "missed"], value[s, "out_of_memory", "refused_that_ran"], value[s, "out_of_memory", "ran"]
  }
  print ""
  print "Timers of the last pipeline stage, mean errors in %:"
  print ""
  print "| set | forward | backward |"
  print "|---|---|---|"
  for (i = 1; i <= count; ++i)
    if (value[names[i], "timers_mape", "forward-compute"] != "")
      printf "| %s | %s | %s |\n", names[i], percent(value[names[i], "timers_mape", "forward-compute"]),
        percent(value[names[i], "timers_mape", "backward-compute"])
  print ""
  print "Collectives, errors in %; the bar is one constant bus bandwidth fitted on the same rows:"
  print ""
  print "| set | points | mean | median | worst | bar to clear | mean by group | others |"
  print "|---|---|---|---|---|---|---|---|"
  for (i = 1; i <= count; ++i) {
    s = names[i]
    if (value[s, "out_of_memory", "ran"] != "" || value[s, "mape"] == "") continue
    printf "| %s | %d | **%s** | %s | %s | %s | %s | %s |\n", s, value[s, "scored"], percent(value[s, "mape"]),
      percent(value[s, "median_ape"]), percent(value[s, "worst_ape"]), percent(value[s, "naive_mape"]), groups[s], rival[s]
  }
}' "$scratch/scores.json" >"$scratch/card.md"

awk -v card="$scratch/card.md" '
/^<!-- score card:begin -->$/ { print; print ""; while ((getline line < card) > 0) print line; print ""; inside = 1; found = 1; next }
/^<!-- score card:end -->$/ { inside = 0 }
!inside { print }
END { exit found && !inside ? 0 : 2 }' docs/accuracy.md >"$scratch/accuracy.md" || {
  echo "error: docs/accuracy.md has not both markers of the score card" >&2
  exit 2
}
# The rows of README.md whose first cell ends in "<!-- SET -->": rows, mean, median, the bar to clear, and how many numbers were fitted on them.
# A last cell has the error with nothing of the set (the table that tools/leave_one_set_out.py writes to docs/accuracy.md); of a set marked "<!-- blind SET -->"
# that is the mean. The line with "<!-- range -->" gets the least and the greatest of their means, and those of the two sets that are not in the table.
awk -F ' *[|] *' -v card="$scratch/card.md" '
BEGIN {
  while ((getline line < card) > 0 && line !~ /^Order of plans/)
    if (split(line, cell, / *[|] */) > 10) { sub(/ of .*/, "", cell[3]); gsub(/[*]/, "", cell[4]); mean[cell[2]] = cell[4]; scores[cell[2]] = cell[3] " | " cell[4] " % | " cell[5] " % | " cell[10] " % | " (cell[12] == 0 ? "none" : cell[12] (cell[12] == 1 ? " number" : " numbers")) }
}
FILENAME == "docs/accuracy.md" {
  if (/^<!-- left out:/) inside = !inside
  if (inside && NF > 6) { gsub(/[*]/, "", $5); left_out[$2] = $5 }
  next
}
FILENAME == "README.md" && !seconds {
  if (match($0, /<!-- [a-z0-9-]+ --> [|]/) && (set = substr($0, RSTART + 5, RLENGTH - 11)) in mean) {
    if (least == "" || mean[set] + 0 < least + 0) least = mean[set]
    if (mean[set] + 0 > greatest + 0) greatest = mean[set]
  }
  next
}
/<!-- range -->/ {
  sub(/[0-9.]+ % to [0-9.]+ %/, least " % to " greatest " %")
  sub(/[0-9.]+ % and [0-9.]+ % on/, mean["amp-t4-v100-mixed"] " % and " mean["bigscience-v100-tables"] " % on")
}
match($0, /<!-- (blind )?[a-z0-9-]+ --> [|]/) {
  set = substr($0, RSTART + 5, RLENGTH - 11)
  is_blind = sub(/^blind /, "", set)
  if (set in scores) { print "| " $2 " | " scores[set] " | " (is_blind ? mean[set] " %" : set in left_out ? left_out[set] " %" : "–") " |"; next }
}
{ print }' docs/accuracy.md README.md seconds=1 README.md >"$scratch/README.md"
cmp -s "$scratch/README.md" README.md || { cat "$scratch/README.md" >README.md; echo "README.md updated: look at the difference before you commit it"; }

mkdir -p docs/img
cp "$scratch/accuracy.svg" docs/img/accuracy.svg
for device in h100-sxm-80gb b200; do
  "$program" device "$device" --kernels --quiet --svg "docs/img/kernels-$device.svg" >/dev/null
done
if cmp -s "$scratch/accuracy.md" docs/accuracy.md; then
  echo "docs/accuracy.md is up to date"
else
  cat "$scratch/accuracy.md" >docs/accuracy.md
  echo "docs/accuracy.md updated: look at the difference before you commit it"
fi
