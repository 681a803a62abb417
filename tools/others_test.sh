#!/usr/bin/env bash
# Proves that what docs/others.md says of other projects can be looked up: each project of its table has an entry that names a version with
# its date, and every claim there names a place.
set -euo pipefail
cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
failures=0
fail() { echo "FAILED: $1"; failures=$((failures + 1)); }

projects=$(sed -n '/^| | needs/,/^They are/p' docs/others.md | sed -nE 's/^\| \[[^]]*\]\(([^)]*)\).*/\1/p')
[[ $(wc -l <<<"$projects") -ge 10 ]] || fail "docs/others.md compares hardly any projects"
for project in $projects; do
  version=$(grep -F "]($project)" docs/others.md || true)
  [[ $version =~ [0-9]{4}-[0-9]{2}-[0-9]{2} ]] || fail "docs/others.md does not say which version of $project was looked at, and its date"
done
grep -qE 'looked at on \*\*[0-9]{4}-[0-9]{2}-[0-9]{2}\*\*' docs/others.md || fail "docs/others.md has no date"

# A claim ends with its place in parentheses.
while IFS= read -r claim; do
  [[ $claim =~ \(.+\)$ ]] || fail "docs/others.md names no place: $claim"
done < <(grep '^- ' docs/others.md)

[[ $failures -eq 0 ]] && echo "$(wc -l <<<"$projects") projects can be looked up"
