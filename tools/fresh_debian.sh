#!/usr/bin/env bash
# Proves that set-up needs nothing but Debian 12: makes a minimal tree with mmdebstrap, clones the last commit into it (in a path with a
# space), and runs there
#   user   ./run.sh as an ordinary user: prints the exact apt line and exits 3
#   run    ./run.sh as root, twice: installs, builds, simulates; the second time starts at once
#   test   ./test.sh as root
# in this order, or those named:
#   tools/fresh_debian.sh [user] [run] [test]
# Needs root, mmdebstrap, a network to Debian's mirror, about 8 GB in TMPDIR (default /var/tmp). Prints time and disk of each step; exit code 0
# only when all did what is expected. The tree is removed at the end, or kept with KEEP=1.
set -euo pipefail

cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
readonly place="/home/guest/wind tunnel"  # in the tree

fail() { echo "fresh_debian.sh: $*" >&2; exit 1; }
if [[ $EUID -ne 0 ]]; then echo "error: only root can make a tree and enter it" >&2; exit 3; fi
command -v mmdebstrap >/dev/null || { echo "error: mmdebstrap is not installed (apt-get install mmdebstrap)" >&2; exit 3; }
steps=("$@")
if [[ ${#steps[@]} -eq 0 ]]; then steps=(user run test); fi
for step in "${steps[@]}"; do
  case "$step" in
    user | run | test) ;;
    *) echo "error: no step '$step': user, run or test" >&2; exit 2 ;;
  esac
done

work=$(mktemp --directory "${TMPDIR:-/var/tmp}/windtunnel-fresh-XXXXXX")
clean_up() {
  if [[ ${KEEP-} == 1 ]]; then echo "kept: $work" >&2; else rm -rf --one-file-system "$work"; fi
}
trap clean_up EXIT
readonly tree="$work/tree"

make_tree() {
  local sources=()
  if [[ -f /etc/apt/sources.list.d/debian.sources ]]; then sources=(/etc/apt/sources.list.d/debian.sources); fi
  mmdebstrap --quiet --variant=apt bookworm "$tree" "${sources[@]}"
  # The tree's apt asks the same mirrors in the same way as this machine's; nothing else of the machine is visible in it.
  find /etc/apt/apt.conf.d -maxdepth 1 -type f -exec grep -lE '^ *Acquire' {} + | while read -r file; do
    cp "$file" "$tree/etc/apt/apt.conf.d/"
  done
  cp /etc/resolv.conf "$tree/etc/resolv.conf"
  chroot "$tree" useradd --create-home guest
  git clone --quiet --no-hardlinks . "$tree$place"
  chroot "$tree" chown -R guest: "$place"
}

# as USER COMMAND: in the clone inside the tree, with its own /proc and /dev; what is mounted goes with the command.
as() {
  # shellcheck disable=SC2016  # the inner shell expands them
  unshare --mount --pid --fork --kill-child -- bash -c '
    mount --make-rprivate / && mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" &&
    exec chroot "$1" /usr/bin/env -i PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8 CI="$5" \
      su "$2" --command "cd \"$3\" && $4"' - "$tree" "$1" "$place" "$2" "${CI-}" </dev/null
}

# timed NAME COMMAND...: what it took of the clock and of the processors, and the disk afterwards; the code is the command's.
timed() {
  local name=$1 code=0 TIMEFORMAT="$1: %R s, %U s of CPU, %S s in the kernel"
  shift
  time "$@" || code=$?
  echo "$name: exit code $code; build/ $(du -sm "$tree$place/build" 2>/dev/null | cut -f1) MB; tree $(du -sm --one-file-system "$tree" | cut -f1) MB"
  return "$code"
}

check_user() {
  local code=0 said
  said=$(as guest ./run.sh 2>&1) || code=$?
  echo "$said"
  [[ $code -eq 3 ]] || fail "./run.sh of an ordinary user ends with $code, not 3"
  grep -q 'apt-get install -y' <<<"$said" || fail "./run.sh of an ordinary user names no apt line"
}

check_run() {
  timed "first ./run.sh" as root ./run.sh || fail "./run.sh failed"
  timed "second ./run.sh" as root ./run.sh || fail "the second ./run.sh failed"
  for file in report.json report.html trace.json.gz; do
    [[ -s "$tree$place/out/gpt3-175b-512xa100/$file" ]] || fail "./run.sh left no $file"
  done
}

make_tree
for step in "${steps[@]}"; do
  echo "== $step"
  case "$step" in
    user) check_user ;;
    run) check_run ;;
    test) timed "./test.sh" as root ./test.sh || fail "./test.sh failed" ;;
  esac
done
echo "fresh_debian.sh: all passed: ${steps[*]}"
