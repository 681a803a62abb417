#!/usr/bin/env bash
# What an explanation promises: the command of each what-if, typed in a shell, gives its time and breakdown to the last digit.
#   tools/windtunnel/explain_test.sh PROGRAM [small]
# "small" takes one scenario, for slow builds.
set -uo pipefail
program=$(realpath -- "${1:?usage: explain_test.sh PROGRAM [small]}")
here=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
root=$(cd -P -- "$here/../.." && pwd)
export WINDTUNNEL_DATA=$root NO_COLOR=1
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
cd "$scratch" || exit 3

# shellcheck source=tools/windtunnel/checks.sh
source "$here/checks.sh"

# The iteration time and the breakdown of the JSON document on stdin, a number a line, without lines that nothing is booked to.
figures() { sed -n -e '/^ *"iteration_time_s": /p' -e '/^ *"breakdown_s": {/,/}/p' | grep -E '": -?[0-9]' | sed -e 's/^ *//' -e 's/,$//' -e '/: 0\.0$/d'; }
# The what-ifs of the explanation in the file, one a line: its command, a tab, its figures apart by blanks. What failed is left out.
what_ifs() {
  sed -n '/^  "what_ifs": \[/,/^  \]/p' "$1" | awk '
    /^      "command": / { sub(/^      "command": "/, ""); sub(/",?$/, ""); gsub(/\\"/, "\""); gsub(/\\\\/, "\\"); command = $0 }
    /^      "iteration_time_s": / { sub(/,$/, ""); sub(/^ */, ""); figures = $0 }
    /^      "ordering": / { judged = 1 }
    /^      }/ { judged = 0 }
    !judged && /^        "[a-z_]+": -?[0-9]/ && !/: 0\.0,?$/ { sub(/,$/, ""); sub(/^ */, ""); figures = figures " " $0 }
    /^    }/ { if (figures != "") print command "\t" figures; figures = "" }'
}
# Runs a command that begins with "windtunnel" as a shell would.
typed() {
  windtunnel() { "$program" "$@"; }
  eval "$1 --json --quiet" 2>stderr
}

# repeats ARGUMENT...: every what-if of `explain ARGUMENT...` is what its command prints.
repeats() {
  local count=0 command expected got
  "$program" explain "$@" --json >explained.json 2>stderr
  while IFS=$'\t' read -r command expected; do
    count=$((count + 1))
    typed "$command" >stdout
    got=$(sed '/^  "memory": /q' stdout | figures | tr '\n' ' ')
    is "$command gives $expected, not ${got% }" test "${got% }" = "$expected"
  done < <(what_ifs explained.json)
  is "explain $* has what-ifs: $count" test $count -ge 20
  echo "explain $*: $count what-ifs repeated"
}

# Changes of one's own, in words that a shell would split.
cp "$root/scenarios/optimus-cc-2.5b.json" 'my own.json'
repeats 'my own.json' --set '/platform/node_types/0/nic_rate=50 Gbps' --set /name="it's mine"
if [[ ${2:-} != small ]]; then
  repeats gpt-8.3b-64xv100
  repeats "$root/scenarios/gpt-2.5b-uneven-links.json" --set /training/global_batch=128 --seed 3
  # Changes inside a value of one's own are written into it.
  repeats 'my own.json' --set /platform=a100-80gb-4hdr --set /training/micro_batch=1
  repeats hybrid-neox20b-lassen-zhybrid
  # A placement that was searched is part of the command: nothing is searched again.
  repeats pipette-placement-8.1b
  is "the placement is in the command" grep -q "'/parallel/placement=\[" explained.json
fi

# A page can be asked for together with either form of the result.
exits 0 explain gpt-8.3b-64xv100 --report why.html; prints "What if"; says "wrote why.html"
is "the page explains" grep -q '<section id="why">' why.html
exits 2 explain gpt-8.3b-64xv100 --report why.pdf; silent stdout
exits 2 explain 'my own.json' --report 'my own.json'; silent stdout
cp 'my own.json' my.html
exits 2 explain ./my.html --report my.html; says "is the same file as the input"

echo "$checks checks, $failures failed"
[[ $failures -eq 0 ]]
