#!/usr/bin/env bash
# What help2man includes beside `--help`: the hand-written sections, and every command with its options, as the program tells them.
#   tools/manual_commands.sh PROGRAM >manual.h2m
set -euo pipefail
program=$1
cat "$(dirname -- "${BASH_SOURCE[0]}")/manual.h2m"
printf '\n[commands in detail]\n'
commands=$("$program" --help | sed -n '/^Commands:/,$p' | awk 'NR > 1 { print $1 }')
for command in $commands; do
  "$program" "$command" --help | awk '
    function roff(text) { gsub(/\\/, "\\e", text); gsub(/-/, "\\-", text); return text }
    NR == 1 { about = $0 }
    NR == 2 { sub(/^Usage: /, ""); printf ".SS \"%s\"\n%s.\n", roff($0), roff(about) }
    /^windtunnel --help lists/ || /^[A-Z][a-z]*:$/ || /^$/ || NR <= 2 { next }
    # Two blanks, a name, and two blanks or the end of the line before what it means; what goes on is indented.
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
done
