#!/usr/bin/env bash
# Proves that extending_test.py accepts what it should and refuses what it should: a page of small examples, and what is said of each.
#   tools/extending_test_test.sh BUILD
set -euo pipefail
build=$(realpath -- "$1")
test=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")/extending_test.py")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

commands=$'~~~console\n$ cat models/new.txt LICENSE | head -1\nnew\n~~~'
new_file=$'New file `models/new.txt`:\n~~~\nnew\n~~~'
change=$'In `models/new.txt`, below `new`:\n~~~\nsecond\n~~~'
count=0

# example SAID FILES TEXT: an example that says it changes FILES files; SAID is what the test says of it. ~~~ stands for a fence.
example() {
  count=$((count + 1))
  printf '## Example %s\nFiles that change: %s.\n\n%s\n\n' "$count" "$2" "${3//'~~~'/'```'}" >>"$scratch/page.md"
  echo "Example $count: $1" >>"$scratch/expected"
}

example "changes 1 file, as it says" 1 "$new_file"$'\n'"$commands"
example "changes 1 file and says 2: models/new.txt" 2 "$new_file"$'\n'"$commands"
example "changes 2 files and says 1: models/new.txt, models/other.txt" 1 "$new_file"$'\nNew file `models/other.txt`:\n~~~\n~~~\n'"$commands"
five=""
for name in a b c d e; do five+=$'New file `models/'"$name"$'.txt`:\n~~~\n~~~\n'; done
example "changes 5 files, more than 4" 5 "$five$commands"
example "its commands:" 1 "$new_file"$'\n~~~console\n$ cat models/new.txt\nold\n~~~'
example "changes 1 file, as it says" 1 "$new_file"$'\n'"$change"$'\n~~~console\n$ cat models/new.txt\nnew\nsecond\n~~~'
example 'models/new.txt has 0 lines `none`' 1 "$new_file"$'\n'"${change/\`new\`/\`none\`}"$'\n'"$commands"
example "LICENSE is there already" 1 $'New file `LICENSE`:\n~~~\nnew\n~~~\n'"$commands"
example "../new.txt is not in the tree" 1 $'New file `../new.txt`:\n~~~\nnew\n~~~\n'"$commands"
example "sim/core/unlisted.cpp is not built: no list of CMake names it" 1 $'New file `sim/core/unlisted.cpp`:\n~~~\nint unlisted;\n~~~\n'"$commands"
example "… sources must be compiled anew" 1 $'In `sim/core/id.hpp`, above `#pragma once`:\n~~~\n// new\n~~~\n'"$commands"
example "has no \`\`\`console block" 1 "$new_file"
echo $'## Text\nNothing to add.\n' >>"$scratch/page.md"

code=0
"$test" "$build" --page "$scratch/page.md" >"$scratch/said" 2>&1 || code=$?
grep '^Example' "$scratch/said" | sed -E 's/, not one$//; s/: [0-9]+ (sources must be compiled anew):.*/: … \1/' >"$scratch/verdicts" || true
diff -u "$scratch/expected" "$scratch/verdicts" || { cat "$scratch/said"; exit 1; }
if [[ $code -ne 1 ]]; then echo "exit code $code"; exit 1; fi
echo "extending_test.py tells right from wrong"
