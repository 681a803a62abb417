#!/usr/bin/env bash
# Builds tools/Containerfile as a user would, without a registry: the base image is a Debian 12 that mmdebstrap makes. Then asks the image
# the first question, from the program's own data and from a mounted folder.
#   tools/container_test.sh
# Needs root, buildah, mmdebstrap, a network to Debian's mirror, about 6 GB in TMPDIR (default /var/tmp) and the time of a full build.
# BASE=FILE.tar uses a base made before. Everything it makes is removed at the end, or kept with KEEP=1.
set -euo pipefail

cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
fail() { echo "container_test.sh: $*" >&2; exit 1; }
if [[ $EUID -ne 0 ]]; then echo "error: only root can make the base image" >&2; exit 3; fi
for tool in buildah mmdebstrap; do
  command -v "$tool" >/dev/null || { echo "error: $tool is not installed (apt-get install buildah mmdebstrap)" >&2; exit 3; }
done

work=$(mktemp --directory "${TMPDIR:-/var/tmp}/windtunnel-container-XXXXXX")
clean_up() {
  if [[ ${KEEP-} == 1 ]]; then echo "kept: $work" >&2; else rm -rf --one-file-system "$work"; fi
}
trap clean_up EXIT
export TMPDIR=$work BUILDAH_ISOLATION=chroot
image_tool() { buildah --root "$work/images" --runroot "$work/run" --storage-driver vfs "$@"; }

# The base, under the name that the recipe asks for; its apt asks the mirrors of this machine in the same way.
make_base() {
  local sources=() hooks=() file container
  if [[ -z ${BASE-} ]]; then
    if [[ -f /etc/apt/sources.list.d/debian.sources ]]; then sources=(/etc/apt/sources.list.d/debian.sources); fi
    for file in $(grep -lE '^ *Acquire' /etc/apt/apt.conf.d/*); do hooks+=("--customize-hook=copy-in $file /etc/apt/apt.conf.d"); done
    BASE=$work/base.tar
    mmdebstrap --quiet --variant=minbase "${hooks[@]}" bookworm "$BASE" "${sources[@]}"
  fi
  container=$(image_tool from scratch)
  image_tool add --quiet "$container" "$BASE" / >/dev/null
  image_tool config --cmd /bin/bash "$container"
  image_tool commit --quiet --rm "$container" docker.io/library/debian:bookworm-slim >/dev/null
}

make_base
# The repository alone, as someone has it who cloned it.
git clone --quiet --no-hardlinks . "$work/clone"
echo "building the image" >&2
image_tool build --pull-never --quiet -f "$work/clone/tools/Containerfile" -t windtunnel "$work/clone" >"$work/log" 2>&1 ||
  { tail -40 "$work/log" >&2; fail "the image does not build"; }

# ask FOLDER WORD...: what `podman run --rm -v FOLDER:/work windtunnel WORD...` runs: the image's entrypoint in its working directory.
container=$(image_tool from --pull-never windtunnel)
entrypoint=$(image_tool inspect --type image --format '{{.OCIv1.Config.Entrypoint}}' windtunnel)
[[ $entrypoint == '[windtunnel]' ]] || fail "the entrypoint is $entrypoint"
ask() {
  local folder=$1
  shift
  image_tool run --volume "$folder:/work" "$container" -- windtunnel "$@"
}
mkdir "$work/mine"
hash=$(git -C "$work/clone" rev-parse --short=12 HEAD)
ask "$work/mine" --version | grep -F "($hash," || fail "--version does not name commit $hash"
ask "$work/mine" run gpt-8.3b-128xa100 | grep 'per iteration' || fail "run gpt-8.3b-128xa100"
ask "$work/mine" run gpt-8.3b-128xa100 --engine simgrid --quiet | grep 'per iteration' >/dev/null || fail "run --engine simgrid"
cp scenarios/gpt-8.3b-128xa100.json "$work/mine/mine.json"
ask "$work/mine" run mine.json --out out --quiet | grep 'per iteration' >/dev/null || fail "a scenario in the mounted folder"
[[ -s $work/mine/out/report.html ]] || fail "--out wrote no page to the mounted folder"
echo "container_test.sh: the image is built, and answers: $(du -sm --one-file-system "$(image_tool mount "$container")" | cut -f1) MB"
