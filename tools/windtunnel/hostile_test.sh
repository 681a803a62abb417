#!/usr/bin/env bash
# Files from strangers and slips of the user: no input is overwritten, nothing is written that was not asked for, and what a
# stranger wrote reaches no terminal, page, picture or table as anything but text.
#   tools/windtunnel/hostile_test.sh PROGRAM
set -uo pipefail
here=$(cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")" && pwd)
# shellcheck source=tools/windtunnel/checks.sh
source "$here/checks.sh"
in_scratch "$@"
cp "$here/../../sim/scenario/corpus/good/plain.json" plain.json

# keeps INPUT OUTPUT ARGUMENT...: the command refuses because both are one file, names both, and leaves it as it was
keeps() {
  local input=$1 output=$2 before
  shift 2
  before=$(sha256sum <"$input")
  exits 2 "$@"
  says "the output $output is the same file as the input $input"
  silent stdout
  is "$input is untouched" test "$(sha256sum <"$input")" = "$before"
}

# No output is a file that is read, under this or another name: every command that writes.
cp plain.json plain.html
ln -s plain.json link.json
ln plain.html twin.html
mkdir folder
cp plain.json folder/report.json
ln -s ../plain.json folder/trace.json.gz
cp "$WINDTUNNEL_DATA/models/tiny.json" model.html
ln model.html twin-model.html
cp "$WINDTUNNEL_DATA/platforms/boxes.json" boxes.json
echo '{"extends": "plain.html", "model": "./model.html"}' >child.json
keeps plain.json link.json run plain.json --trace link.json
keeps link.json plain.json run link.json --trace plain.json
keeps plain.html twin.html run plain.html --report twin.html
keeps folder/report.json folder/report.json run folder/report.json --out folder
keeps plain.json folder/trace.json.gz run plain.json --out folder
keeps plain.html twin.html run child.json --report twin.html
keeps model.html twin-model.html run child.json --report twin-model.html
keeps ./model.html model.html run plain.json --set /model=./model.html --report model.html
mkdir ranks && cp plain.json ranks/rank-0000.json.gz
keeps ranks/rank-0000.json.gz ranks/rank-0000.json.gz run ranks/rank-0000.json.gz --rank-traces ranks
keeps plain.html plain.html explain child.json --report plain.html
keeps plain.html plain.html compare plain.json plain.html --report plain.html
keeps plain.html plain.html rank child.json --report plain.html
keeps plain.json link.json rank plain.json --emit megatron --host-map link.json
echo '{"extends": "plain.json", "sweep": {"matrix": {"/training/micro_batch": [1, 2]}}}' >swept.html
keeps swept.html swept.html sweep swept.html --out points --report swept.html
is "nothing was begun" test ! -e points
mkdir points && cp swept.html points/results.csv && sed -i 's:plain:../plain:' points/results.csv
keeps points/results.csv points/results.csv sweep points/results.csv --out points
echo '{"version": 1, "stages": 1, "microbatches": 1, "orders": [["F0", "B0"]]}' >schedule.json
keeps ./schedule.json schedule.json schedule draw ./schedule.json --svg schedule.json
printf '\x93NUMPY\x01\x00\x3a\x00%-57s\n\x00\x00\x80\x3f\x00\x00\x00\x40' "{'descr': '<f4', 'fortran_order': False, 'shape': (2,), }" >two.npy
keeps two.npy two.npy codec two.npy --codec int8 -o two.npy
printf 'Send,a,b\na,0,1000\nb,900,0\n' >net.csv
keeps net.csv ./net.csv import mpigraph net.csv --base boxes -o ./net.csv
keeps boxes.json boxes.json import mpigraph net.csv --base boxes.json -o boxes.json
cat >set.json <<'END'
{"schema": "windtunnel/measurements-v1", "name": "set", "kind": "iteration", "source": {"citation": "none", "licence": "none"},
 "base": {"version": 1, "model": "tiny", "platform": "./boxes.json", "training": {"global_batch": 64, "micro_batch": 1},
          "parallel": {"tensor": 2, "pipeline": 2, "data": 2}},
 "points": [{"id": "a", "scenario": {}, "measured": {"iteration_time_s": 1.0}}]}
END
cp set.json set.html
keeps ./set.html set.html validate ./set.html --report set.html
keeps ./set.json set.json validate ./set.json --svg set.json
keeps ./set.json set.json calibrate ./set.json --fit emax --residuals set.json
keeps boxes.json boxes.json calibrate ./set.json --fit nic_efficiency --platform ./boxes.json -o boxes.json
keeps ./set.json set.json calibrate ./set.json --memory -o set.json
# A file that is there, but not read, is replaced; residuals are written anew with those of other stacks kept.
cp plain.json old.html
exits 0 run plain.json --report old.html; is "the page is written" grep -q '^<!DOCTYPE html>' old.html
exits 0 run plain.json --report old.html

# A name is text, whatever is in it: no file is named by it, no terminal obeys it, no picture or page breaks on it.
# plain WHAT FILE...: no ESC, BEL, other control characters, C1, marks of direction, nor bytes that are not UTF-8
plain() {
  local what=$1
  shift
  is "$what is plain text" bash -c '! LC_ALL=C.UTF-8 grep -nP "[\x00-\x08\x0b-\x1f\x7f-\x{9f}\x{200e}\x{200f}\x{2028}-\x{202e}\x{2066}-\x{2069}]" "$@" &&
    iconv -f UTF-8 -t UTF-8 "$@" >/dev/null' - "$@"
}
markup() {
  ! command -v python3 >/dev/null || is "$1 is well-formed" python3 -c 'import sys, xml.dom.minidom as m; m.parse(sys.argv[1])' "$1"
}
readonly evil='\u001b]0;owned\u0007\u001b[8m\u009b31m\u202e\u2066<b>&'
in_sed() { sed 's/[\\&|]/\\&/g' <<<"$1"; }  # as the right side of s||| wants it
named() {  # named FILE NAME: the plain scenario under another name, as JSON writes it
  sed "s|\"version\": 1,|\"version\": 1, \"name\": \"$(in_sed "$2")\",|" plain.json >"$1"
}
named evil.json "$evil"
sed -i 's|"parallel"|"sweep": {"matrix": {"/name": ["=1+1", "\\u001b[31m"], "/training/micro_batch": [1, 2]}}, "parallel"|' evil.json
grep -q 'sweep' evil.json || echo "FAILED: no sweep in evil.json"
for command in "run" "run --json" "check" "check --json" "show --resolved" "show --resolved --json" "explain" "explain --json" \
  "rank" "rank --json" "rank --emit megatron" "compare plain.json" "compare plain.json --json" "sweep --dry-run" "sweep --out evil"; do
  exits 0 $command evil.json
  plain "stdout of $command" stdout
  plain "stderr of $command" stderr
done
exits 0 run evil.json --json --quiet; prints '"name": "\u001b]0;owned\u0007\u001b[8m\u009b31m\u202e\u2066<b>&"'
exits 0 run evil.json --out evil/run --report evil/page.html; plain "the page" evil/page.html
exits 0 sweep evil.json --out evil --report evil/sweep.html; plain "the page" evil/sweep.html
exits 0 rank evil.json --report evil/rank.html; plain "the page" evil/rank.html
markup evil/sweep.svg
is "a text cell is no formula" grep -q ",'=1+1," evil/results.csv
sed "s|\"version\": 1,|\"version\": 1, \"name\": \"$(in_sed "$evil")\",|" schedule.json >evil-schedule.json
exits 0 schedule draw evil-schedule.json --svg evil/schedule.svg; plain "stdout" stdout; markup evil/schedule.svg
sed "s|\"name\": \"set\"|\"name\": \"$(in_sed "$evil")\"|; s|\"id\": \"a\"|\"id\": \"$(in_sed "$evil")\"|" set.json >evil-set.json
exits 0 validate ./evil-set.json --svg evil/set.svg --report evil/set.html; plain "stdout" stdout; plain "stderr" stderr
markup evil/set.svg; plain "the page" evil/set.html
for file in $'no\e[31mfile' $'no\xff\xc2\x9b.json'; do
  exits 2 run "$file"x; plain "stderr" stderr
  exits 3 run "$file.json"; plain "stderr" stderr
  cp plain.json "$file.json"; exits 0 run "$file.json" --set /name=x --report "$file.html"; plain "stderr" stderr
done
echo '{"\u001b[31m": 1, "version": 1, "model": "\u009b31m\u202e"}' >keys.json
exits 2 run keys.json; plain "stderr" stderr; says '\u001b[31m'
named lines.json 'one\ntwo'
exits 2 run lines.json; says "name has a line break in it"

# Nothing is written where the user did not say.
mkdir -p inner/folder
named inner/folder/up.json '../../escaped'
named inner/folder/root.json "$scratch/absolute"
named inner/folder/code.json '\u001b[31m/x'
before=$(find . | sort)
for name in up root code; do
  for format in megatron deepspeed torchtitan; do
    (cd inner/folder && "$program" rank $name.json --emit $format >../../stdout 2>../../stderr) || complain "rank $name.json --emit $format"
    plain "stderr" stderr
  done
done
is "no file is written" test "$(find . | sort)" = "$before"
is "no path is taken from a name" test ! -e "$scratch/absolute.hosts"

# A message shows nothing of a file that only another file names.
echo 'hunter2:$6$secret:19000:0' >secret
echo '{"hunter2": {"hunter2": "hunter2"}, "layers": "hunter2", "heads": "hunter2"}' >secret.json
ln -s secret secret-link.json
mkdir away && ln -s ../secret.json away/link.json && cp secret.json away/hard.json
for file in secret ./secret secret-link.json secret.json away/link.json "$scratch/secret" /etc/shadow; do
  for key in extends model platform software memory_correction schedule; do
    case $key in
      schedule) echo "{\"extends\": \"plain.json\", \"parallel\": {\"schedule\": \"./$file\"}}" >stranger.json ;;
      extends) echo "{\"extends\": [\"plain.json\", \"$file\"]}" >stranger.json ;;
      *) echo "{\"extends\": \"plain.json\", \"$key\": \"${file/#secret/./secret}\"}" >stranger.json ;;
    esac
    exits 2 check stranger.json
    is "nothing of $file is told by $key" bash -c '! grep -qE "hunter2|[$]6[$]|root:" stderr stdout'
  done
done
exits 2 check away/link.json; is "nothing is told through a link" bash -c '! grep -q "hunter2" stderr'
echo '{"extends": "plain.json", "training": {"micro_bath": 1}}' >mistyped.json
exits 2 check mistyped.json; says '"micro_bath"'; says '^~~~~~~~~~~'
echo '{"extends": "mistyped.json"}' >stranger.json
exits 2 check stranger.json; says "mistyped.json:1:40: error: unknown key"; says 'did you mean "micro_batch"?'; says "not shown"
exits 2 check plain.json --set /model=./secret.json; says '"hunter2"'

echo "$checks checks, $failures failed"
[[ $failures -eq 0 ]]
