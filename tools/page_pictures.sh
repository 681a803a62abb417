#!/usr/bin/env bash
# Writes a page of every kind and takes its picture; the pictures in docs/img/ are made by
#   tools/page_pictures.sh build/release/windtunnel docs/img
# With a third argument the pages stay in that folder.
set -euo pipefail
program=$(realpath -- "${1:?usage: page_pictures.sh PROGRAM PICTURES [PAGES]}")
pictures=$(realpath -- "${2:?usage: page_pictures.sh PROGRAM PICTURES [PAGES]}")
root=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/.." && pwd)
# shellcheck source=tools/browser.sh
source "$root/tools/browser.sh"
[[ -n $browser ]] || { echo "error: no Chromium (Debian: chromium-headless-shell)" >&2; exit 3; }

if [[ $# -gt 2 ]]; then
  pages=$(realpath -- "$3")
else
  pages=$(mktemp -d)
  trap 'rm -rf "$pages"' EXIT
fi

"$program" run gpt3-175b-512xa100 --quiet --report "$pages/run.html" >/dev/null
"$program" explain gpt-39b-512xa100 --quiet --report "$pages/explain.html" >/dev/null
"$program" validate megatron-sc21-table1 korthikanti-table5 --quiet --report "$pages/validate.html" >/dev/null
cp "$root/scenarios/gpt-8.3b-128xa100.json" "$pages"
cat >"$pages/tensor-4.json" <<END
{"extends": "gpt-8.3b-128xa100.json", "name": "gpt-8.3b-128xa100-tensor4", "parallel": {"tensor": 4, "data": 8}}
END
(cd "$pages" && "$program" compare gpt-8.3b-128xa100 tensor-4.json --quiet --json --report compare.html >compare.json)
rm -rf "$pages/sweep"
(cd "$pages" && "$program" sweep sweep-gpt-39b-cluster-size --out sweep --quiet --json --report sweep.html >sweep.json)

for kind in run explain compare sweep validate; do
  picture "$pages/$kind.html" "$pictures/report-$kind.png" 1280 1500
done
