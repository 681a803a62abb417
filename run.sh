#!/usr/bin/env bash
# Sets up what is missing, builds the program, and simulates one scenario:
#   ./run.sh                                   the main job, scenarios/gpt3-175b-512xa100.json
#   ./run.sh scenarios/other.json              another file
#   ./run.sh other                             one of scenarios/ by name
# Exit code: that of the program (0 done, 1 the plan does not fit in memory, 2 bad input), 3 when set-up fails.
set -euo pipefail

usage() { sed -n '2,6s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; }

case "${1-}" in
  -h | --help) usage; exit 0 ;;
  -*) echo "error: unknown option $1" >&2; usage >&2; exit 2 ;;
esac
if [[ $# -gt 1 ]]; then
  echo "error: one scenario at a time ($# given)" >&2; usage >&2; exit 2
fi
asked=${1-}
if [[ -n $asked && -f $asked ]]; then asked=$(realpath -- "$asked"); fi

cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")"
# shellcheck source=tools/setup.sh
source tools/setup.sh

scenario=${asked:-scenarios/gpt3-175b-512xa100.json}
scenario=${scenario#"$PWD"/}
if [[ ! -f $scenario && -f scenarios/${scenario%.json}.json ]]; then scenario="scenarios/${scenario%.json}.json"; fi
if [[ ! -f $scenario ]]; then
  echo "error: no scenario '$scenario'; in scenarios/ are:" >&2
  for file in scenarios/*.json; do echo "  $(basename "$file" .json)" >&2; done
  exit 2
fi

install_missing "${packages_to_run[@]}"
configure release || environment_error "cmake could not configure build/release (its message stands above)"
program=build/release/windtunnel
build=(cmake --build --preset release --target windtunnel_to_run --parallel "$(build_jobs)")
if [[ ! -x $program ]]; then
  echo "building the program (about two minutes on two cores, this first time)" >&2
elif [[ -z $(find CMakeLists.txt sim tools -newer "$program" -print -quit) ]]; then
  build+=(-- --quiet)  # nothing that it is made of has changed
fi
"${build[@]}" >&2 || environment_error "the program does not build (the compiler's message stands above)"

name=$(basename -- "$scenario" .json)
verdict=0
"$program" run "$scenario" --out "out/$name" || verdict=$?
if [[ $verdict -gt 1 ]]; then exit "$verdict"; fi

echo
echo "Written:"
for file in "out/$name"/*; do printf '  %s\n' "$file"; done
address=$(printf '%s' "$PWD/out/$name/report.html" | sed 's/%/%25/g; s/ /%20/g; s/#/%23/g; s/?/%3F/g')
echo "Why it takes this long: open the report in a browser"
echo "  xdg-open 'out/$name/report.html'    or    file://$address"
echo "  (on another machine: copy that one file; it needs nothing else)"
cat <<NEXT
Try next:
  $program show --resolved $scenario
  $program run $scenario --set /parallel/pipeline_send=eager
  $program validate
  $program --help
NEXT
if [[ $verdict -eq 1 ]]; then
  echo "The plan does not fit in the GPUs' memory (see the summary above): exit code 1." >&2
fi
exit "$verdict"
