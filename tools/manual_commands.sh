#!/usr/bin/env bash
# What help2man includes besides the program's own options: the hand-written sections, examples, exit codes, and every command with its options
# and examples, as the program tells them. help2man itself reads --help as far as "Examples:".
#   tools/manual_commands.sh PROGRAM >manual.h2m
set -euo pipefail
program=$1

# Names and what they mean, from lines of help: two blanks, a name, and two blanks or the end of the line before the meaning; what goes on is
# indented.
to_roff() {
  awk '
    function roff(text) { gsub(/\\/, "\\e", text); gsub(/-/, "\\-", text); return text }
    /^Examples:/ { print ".PP\nExamples:" }
    /^[A-Z].*:$/ || /^$/ { next }
    /^  [^ ]/ {
      name = $0; meaning = ""
      if (match(substr($0, 3), /  +/)) {
        name = substr($0, 1, RSTART + 1); meaning = substr($0, RSTART + RLENGTH + 2)
      }
      sub(/^ +/, "", name); sub(/ \.\.\.$/, "", name)
      printf ".TP\n.B %s\n", roff(name)
      if (meaning != "") print roff(meaning)
      next
    }
    { sub(/^ +/, ""); if ($0 ~ /^[a-z0-9-]+: /) print ".br"; print roff($0) }'
}

cat "$(dirname -- "${BASH_SOURCE[0]}")/manual.h2m"
help=$("$program" --help)
printf '\n[examples]\n'
sed -n '/^Examples:/,/^$/p' <<<"$help" | sed 1d | to_roff
printf '\n[exit status]\n'
sed -n '/^Exit codes:/,$p' <<<"$help" | to_roff
printf '\n[commands in detail]\n'
for command in $(sed -n '/^Commands:/,/^$/p' <<<"$help" | awk 'NR > 1 && NF { print $1 }'); do
  "$program" "$command" --help | awk '
    NR == 1 { about = $0 }
    NR == 2 { sub(/^Usage: /, ""); gsub(/-/, "\\-"); gsub(/-/, "\\-", about); printf ".SS \"%s\"\n%s.\n", $0, about }'
  "$program" "$command" --help | sed '1,2d; /^Options of every command:/,/^$/d; /^Exit codes:/,$d' | to_roff
done
