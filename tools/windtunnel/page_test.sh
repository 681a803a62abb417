#!/usr/bin/env bash
# Pages in a browser: each kind is written, opened, checks itself, and has its picture taken.
#   tools/windtunnel/page_test.sh PROGRAM FOLDER
# Pages and pictures stay in FOLDER. 77: skipped, no browser.
set -uo pipefail
program=$(realpath -- "${1:?usage: page_test.sh PROGRAM FOLDER}")
mkdir -p "${2:?usage: page_test.sh PROGRAM FOLDER}"
folder=$(realpath -- "$2")
root=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/../.." && pwd)
# shellcheck source=tools/browser.sh
source "$root/tools/browser.sh"
if [[ -z $browser ]]; then
  echo "skipped: there is no Chromium to open the pages with (Debian: chromium-headless-shell)"
  exit 77
fi
rm -f "$folder"/*.html "$folder"/*.png "$folder"/*.json
rm -rf "$folder"/sweep "$folder"/sweep-*
cd "$folder" || exit 3
browser_log=$folder/browser.log
checks=0 failures=0
is() {
  local what=$1
  shift
  checks=$((checks + 1))
  "$@" || { echo "FAILED: $what"; failures=$((failures + 1)); }
}

# What the page says about itself: PASSED or FAILED in its first line. Messages on the console follow.
self_test() {
  open_page "file://$folder/$1#selftest" --dump-dom |
    sed -n '/<pre id="selftest-result">/,$ { s/.*<pre id="selftest-result">//; s/<\/pre>.*//; p }'
  grep -o 'CONSOLE.*' "$browser_log"
}
passes() {
  local said
  said=$(self_test "$1")
  checks=$((checks + 1))
  echo "$1: ${said:-says nothing}"
  [[ $said == PASSED* && $said != *CONSOLE* ]] || failures=$((failures + 1))
}
fails() {
  local said
  said=$(self_test "$1")
  is "$1 is found wrong: $2" grep -q "$2" <<<"$said"
}
# The document in the page is the one that --json printed, byte for byte but for the time it took: holds PAGE JSON [ID].
holds() {
  local id=${3:-report}
  is "$1 holds $2" cmp -s <(sed -z 's/,\n *"wall_s": [^,\n]*//g' "$2") <(sed -n "/<script type=\"application\/json\" id=\"$id\">/,/<\/script>/p" "$1" |
    sed -e "1s/.*id=\"$id\">//" -e '$d' -e 's/\\u003c/</g')
}
stands_alone() {
  is "$1 names nothing outside itself" test -z "$(grep -oE '(src|href|action|data|poster|srcset)="[^"#][^"]*"|url\([^)]*\)|@import' "$1")"
  is "$1 evaluates nothing" test -z "$(grep -oE '\beval\(|new Function|innerHTML|document\.write' "$1")"
  is "$1 has a policy" grep -q "Content-Security-Policy.*default-src 'none'; style-src 'sha256-[^;]*; script-src 'sha256-" "$1"
  is "$1 has no inline styles or handlers" test -z "$(sed '/<script/,/<\/script>/d; /<style>/,/<\/style>/d' "$1" | grep -oE ' (style|on[a-z]+)="')"
}
differ() { ! cmp -s "$1" "$2"; }
is_picture() {
  is "$1 is a picture" test "$(head -c 4 "$1" 2>/dev/null | tail -c 3)" = PNG
  is "$1 is more than a blank page" test "$(stat -c %s "$1" 2>/dev/null || echo 0)" -gt 20000
}

is "pictures are taken" "$root/tools/page_pictures.sh" "$program" "$folder" "$folder"
for kind in run explain compare sweep validate; do
  passes $kind.html
  stands_alone $kind.html
  is_picture report-$kind.png
done
picture run.html report-run-dark.png 1280 800 dark
picture run.html report-run-narrow.png 420 800
is_picture report-run-dark.png
is "dark is another picture" differ report-run.png report-run-dark.png
is_picture report-run-narrow.png
picture explain.html report-explain-dark.png 1280 800 dark
is_picture report-explain-dark.png
for kind in compare sweep; do
  holds $kind.html $kind.json
  picture $kind.html report-$kind-dark.png 1280 800 dark
  picture $kind.html report-$kind-narrow.png 420 800
  is_picture report-$kind-narrow.png
  is "dark is another picture" differ report-$kind.png report-$kind-dark.png
done

# Plans that are ranked, and why one is not the best.
"$program" rank rank-gpt-39b-512xa100 --quiet --json --report rank.html >rank.json
passes rank.html
stands_alone rank.html
holds rank.html rank.json
picture rank.html report-rank-narrow.png 390 800
is_picture report-rank-narrow.png
"$program" rank rank-gpt-39b-512xa100 --why tensor=8,pipeline=8,micro_batch=24 --quiet --report rank-why.html >/dev/null
passes rank-why.html
stands_alone rank-why.html

# Runs that are compared: one that does not fit, three, one known by its report, break-evens, compression.
"$program" compare gpt-39b-512xa100 --toggle /training/recompute --quiet --json --report toggle.html >toggle.json
is "a run that does not fit is a negative verdict" test $? -eq 1
holds toggle.html toggle.json
passes toggle.html
is "it says which does not fit" grep -q 'A does not fit in memory' toggle.html
"$program" run optimus-cc-2.5b --quiet --json >baseline.json
"$program" compare baseline.json optimus-cc-2.5b-cb optimus-cc-2.5b-cb-fe --break-even --quiet --report three.html >/dev/null
passes three.html
stands_alone three.html
is "it says what has no timeline" grep -q 'baseline.json is known by its report alone' three.html
is "break-evens are in it" grep -q 'id="break-even"' three.html

# A trace compared with a scenario.
"$program" compare "$root/sim/importers/samples/trace-1-step.json.gz" gpt-8.3b-128xa100 --quiet --json --report timelines.html >timelines.json
passes timelines.html
stands_alone timelines.html
holds timelines.html timelines.json

"$program" compare optimus-cc-2.5b optimus-cc-2.5b-cb --break-even --quiet --report even.html >/dev/null
passes even.html
is "a break-even found by simulation is in it" grep -q 'The bandwidth of the network is multiplied' even.html

# Sweeps of other shapes: names on the axis, points that fail, too many lines, nothing at all.
sweep_page() {
  local name=$1
  shift
  "$program" sweep sweep-gpt-39b-cluster-size --out sweep-"$name" --quiet --report "$name".html "$@" >/dev/null
}
sweep_page names --set '/sweep={"matrix": {"/training/recompute": ["none", "selective", "full"], "/parallel/schedule": ["1f1b", "gpipe"]}}'
passes names.html
sweep_page failing --set '/sweep/matrix={"/parallel/data": [8, 12], "/training/micro_batch": [1, 5]}'
passes failing.html
is "reasons stand in the page" grep -q 'id="failed"' failing.html
sweep_page single --set '/sweep/matrix={"/nodes": [64]}'
passes single.html

# A sweep of best plans, ordered by what they cost.
"$program" sweep job-llama3-70b-clusters --out sweep-best --quiet --report best.html --set '/sweep/plan="best"' \
  --set /sweep/objective=cost_per_token --set '/sweep/matrix={"/nodes": [64, 128]}' --set /sweep/include=null >/dev/null
passes best.html
stands_alone best.html

# Steps with noise.
"$program" run gpt-39b-512xa100 --set /noise=mlperf-small --steps 100 --quiet --json --report steps.html >steps.json
passes steps.html
stands_alone steps.html
holds steps.html steps.json

# The numbers are those of the JSON, which the page repeats.
"$program" run "$root/scenarios/gpt-2.5b-uneven-links.json" --quiet --out out >/dev/null
mv out/report.html uneven.html && mv out/report.json uneven.json && rm -r out
holds uneven.html uneven.json
passes uneven.html
# What traces of real jobs say: one GPU, two ranks, the stragglers of a job.
samples=$root/sim/importers/samples
"$program" import kineto "$samples/trace-1-step.json.gz" --quiet --report trace.html >/dev/null
"$program" import kineto "$samples"/trace-v100-*.json.gz --quiet --report ranks.html >/dev/null
"$program" import straggler-trace "$samples/straggler-AR.json.gz" --quiet --report stragglers.html >/dev/null
for page in trace ranks stragglers; do
  passes $page.html
  stands_alone $page.html
  picture $page.html report-$page.png 1280 800
  is_picture report-$page.png
done
"$program" validate korthikanti-table5 --quiet --json --report set.html >set.json
holds set.html set.json

# What explains, in the page as in the JSON.
"$program" explain "$root/scenarios/gpt-2.5b-uneven-links.json" --quiet --json --report why.html >why.json
holds why.html why.json explanation
passes why.html
is "the shares of the critical path are said" grep -q 'waited for <b><span data-of="explanation" data-at="/critical_path/0/share">[0-9.]* %</span></b>' why.html
is "each what-if has its command" test "$(grep -o '<summary>repeat</summary>' why.html | wc -l)" -eq "$(grep -c '^      "command": ' why.json)"
is "a run's page says how to ask what-ifs" grep -qE '<code>windtunnel explain .*uneven-links\.json(&#39;)? --report why\.html</code>' uneven.html
sed 's/\(data-of="explanation" data-at="[^"]*\/iteration_time_s">\)/\19/' why.html >wrong_what_if.html
fails wrong_what_if.html "/what_ifs/0/iteration_time_s: "
sed 's/\("on_path_s": \)/\11/' why.html >wrong_slack.html
fails wrong_slack.html "/stages/"
rm -f wrong_*.html

# That the checks can fail: a wrong number, another script, another style.
sed 's/\(data-at="\/mfu">\)/\19/' uneven.html >wrong_number.html
fails wrong_number.html "/mfu: "
sed 's/^const faults = /const  faults = /' uneven.html >wrong_script.html
fails wrong_script.html "CONSOLE.*Content Security Policy"
sed 's/box-sizing: border-box/box-sizing: content-box/' uneven.html >wrong_style.html
fails wrong_style.html "policy: style-src"
sed 's/\(data-at="\/0\/tokens_per_s">\)/\19/' sweep.html >wrong_point.html
fails wrong_point.html "/0/tokens_per_s: "
sed 's/\(data-per="\/runs\/0\/iteration_time_s">\)−/\1+/' compare.html >wrong_change.html
fails wrong_change.html "/runs/1/iteration_time_s: "
sed 's/"iteration_time_s": [0-9]/"iteration_time_s": 8/' uneven.html >wrong_data.html
fails wrong_data.html "timeline: another end"
rm -f wrong_*.html

# Without a script the headline is there.
is "the headline needs no script" grep -q '<span class="big"><span data-at="/iteration_time_s">[0-9.]* m\?s</span>' uneven.html

# One trillion parameters on 3072 GPUs (Narayanan et al. 2021, Table 1).
"$program" run "$root/scenarios/gpt3-175b-512xa100.json" --quiet --report large.html --set /model=gpt-1t --set /nodes=384 \
  --set /training/global_batch=3072 --set /parallel/pipeline=64 --set /parallel/data=6 >/dev/null
is "the page of 3072 GPUs is smaller than 5 MB" test "$(stat -c %s large.html)" -lt 5000000
is "it says which GPUs it shows" grep -q '512 of 3,072 GPUs' large.html
passes large.html
"$program" explain "$root/scenarios/gpt3-175b-512xa100.json" --quiet --report large_why.html --set /model=gpt-1t --set /nodes=384 \
  --set /training/global_batch=3072 --set /parallel/pipeline=64 --set /parallel/data=6 >/dev/null
is "its explanation is smaller than 5 MB" test "$(stat -c %s large_why.html)" -lt 5000000
passes large_why.html
# 5000 points: one is simulated, the rows of the others are made up.
axes='/sweep={"matrix": {"/training/global_batch": ['$(seq -s, 8 8 10000)'], "/training/micro_batch": [1, 2, 4, 8]}}'
sweep_page many --set "$axes" --shard 0/5000
seq 1 4999 | awk '{ printf "{\"point\": %d, \"id\": \"%032d\", \"/training/global_batch\": %d, \"/training/micro_batch\": %d, \"ok\": true, \"gpus\": 512, \"iteration_time_s\": %.12f, \"iteration_time_interval_s\": [%.12f, %.12f], \"samples_per_s\": %.12f, \"tokens_per_s\": %.12f, \"model_tflops_per_gpu\": %.12f, \"mfu\": %.12f, \"memory_max_bytes\": %.0f, \"fits\": %s}\n",
  $1, $1, 8 * (1 + int($1 / 4)), 2 ^ ($1 % 4), 1 + $1 / 300, 0.9 + $1 / 300, 1.1 + $1 / 300, 9000 * $1 / (300 + $1), 9e6 * $1 / (300 + $1), $1 / 30, $1 / 9000, 2e10 + $1 * 1e7, $1 < 4500 ? "true" : "false" }' | "$root/tools/windtunnel/seal_rows.py" sweep-many >sweep-many/parts/made-up.jsonl
sweep_page many --set "$axes" --status
is "all made-up rows count" test "$(wc -l <sweep-many/results.jsonl)" -eq 5000
is "the page of 5000 points is smaller than 5 MB" test "$(stat -c %s many.html)" -lt 5000000
passes many.html

echo "$checks checks, $failures failed"
[[ $failures -eq 0 ]]
