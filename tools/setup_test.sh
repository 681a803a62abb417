#!/usr/bin/env bash
# Proves what setup.sh tells an ordinary user: a line for apt that can be pasted, and exit code 3. Nothing is installed.
set -euo pipefail
cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")"
fail() { echo "FAILED: $1"; exit 1; }

ordinary_user=()
if [[ $EUID -eq 0 ]]; then
  if ! command -v setpriv >/dev/null; then echo "setpriv is missing: left out"; exit 77; fi
  ordinary_user=(setpriv --reuid=65534 --regid=65534 --clear-groups)
fi
# The file is read from stdin: another user may not be allowed into this folder.
code=0
said=$("${ordinary_user[@]}" bash -c 'source /dev/stdin; install_missing "no-such-package-1 7" "no-such-package-2 8"' <setup.sh 2>&1) || code=$?
[[ $code -eq 3 ]] || fail "exit code $code: $said"
line=$(grep apt-get <<<"$said")
[[ $line == *no-such-package-1\ no-such-package-2 ]] || fail "the line names the packages: $line"
while IFS= read -r command; do
  [[ $command =~ ^\ *sudo\  ]] || fail "without sudo: $command"
done < <(sed 's/ && /\n/g' <<<"$line")
[[ $said == *"2 packages are missing (about 15 MB)"* ]] || fail "the size: $said"
echo "an ordinary user is told what to run"
