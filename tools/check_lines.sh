#!/usr/bin/env bash
# The budget of lines: each folder of the product may only shrink, unless a commit raises its line of tools/line_budget.txt and says why.
#   tools/check_lines.sh [ROOT]      fails where a folder is over its budget, or more than 50 lines under it
#   tools/check_lines.sh --update    writes what the folders hold today as their budget
# Counted are lines of C++ of sim/, tools/ and bindings/, without tests, benchmarks, fuzz targets, and examples.
set -euo pipefail
slack=50  # lines that a folder may lie under its budget before the budget is lowered: few enough to keep what was won
home=$(dirname -- "${BASH_SOURCE[0]}")/..
if [[ ${1-} == --update ]]; then cd -- "$home"; else cd -- "${1:-$home}"; fi

counted() {
  find sim tools bindings -type f \( -name '*.cpp' -o -name '*.hpp' \) |
    grep -vE '_test\.|_bench\.|fuzz|/testing\.|fixtures|/corpus/|/samples/|^tools/(example|probe)/' |
    xargs wc -l | awk '$2 != "total" { split($2, path, "/"); lines[path[1] == "sim" ? "sim/" path[2] : path[1]] += $1 }
                       END { for (folder in lines) print folder, lines[folder] }' | LC_ALL=C sort
}

if [[ ${1-} == --update ]]; then
  counted | awk '{ total += $2; print } END { print "total", total }' >tools/line_budget.txt
  exit 0
fi
counted | awk -v slack="$slack" '
  NR == FNR { budget[$1] = $2; next }
  {
    total += $2
    if (!($1 in budget)) { printf "%s: has no line in tools/line_budget.txt\n", $1; wrong = 1 }
    else if ($2 > budget[$1]) { printf "%s: %d lines, budget %d. Delete before you add, or raise the budget and say why.\n", $1, $2, budget[$1]; wrong = 1 }
    else if ($2 < budget[$1] - slack) { printf "%s: %d lines, budget %d. Keep what was won: tools/check_lines.sh --update\n", $1, $2, budget[$1]; wrong = 1 }
  }
  END {
    if (total > budget["total"]) { printf "together: %d lines, budget %d\n", total, budget["total"]; wrong = 1 }
    exit wrong
  }' tools/line_budget.txt -
