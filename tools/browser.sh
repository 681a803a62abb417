# shellcheck shell=bash
# Sourced by what opens pages in a browser: Chromium without a window, and without network.

# The first of them that is installed; empty where none is.
browser=$(command -v chromium-headless-shell || command -v chromium || command -v google-chrome || true)

# open_page ADDRESS OPTION...: writes what the browser was asked for, its log to the file $browser_log.
open_page() {
  local address=$1 profile status=0
  shift
  profile=$(mktemp -d)
  # Pages are our own files: no sandbox, which root cannot have. The virtual clock ends a page that waits for nothing.
  timeout 120 "$browser" --headless --no-sandbox --disable-gpu --hide-scrollbars --user-data-dir="$profile" \
    --host-resolver-rules='MAP * ~NOTFOUND' --enable-logging=stderr --virtual-time-budget=10000 "$@" "$address" \
    2>"${browser_log:=/dev/null}" || status=$?
  rm -rf "$profile"
  return $status
}

# picture PAGE OUT.png WIDTH HEIGHT [light|dark]
picture() {
  local scheme=1 scratch status=0
  [[ ${5:-light} == light ]] || scheme=0
  scratch=$(mktemp -d)
  open_page "file://$(realpath -- "$1")" --window-size="$3,$4" --blink-settings=preferredColorScheme=$scheme \
    --screenshot="$scratch/picture.png" >/dev/null && mv "$scratch/picture.png" "$2" || status=1
  rm -rf "$scratch"
  return $status
}
