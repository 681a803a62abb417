#!/usr/bin/env bash
# Installs a build, and uses what was installed as its users do: the program, its manual page and completions, the libraries from a
# program of one's own, and the Debian packages in a tree of their own.
#   tools/install_test.sh BUILD_DIRECTORY
set -euo pipefail
build=$(realpath -- "${1:?usage: install_test.sh BUILD_DIRECTORY}")
cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset WINDTUNNEL_DATA
export NO_COLOR=1

fail() {
  echo "FAILED: $1"
  exit 1
}
# The program in a tree finds its data there and nowhere else.
check_program() {
  (cd "$scratch" && "$1/bin/windtunnel" run gpt-39b-512xa100 --quiet) | grep -q 'per iteration' || fail "$1/bin/windtunnel run"
  (cd "$scratch" && "$1/bin/windtunnel" list models) | grep -q gpt3-175b || fail "$1/bin/windtunnel list models"
  bash -n "$1/share/bash-completion/completions/windtunnel" || fail "the completion of bash"
  grep -q '^#compdef windtunnel' "$1/share/zsh/vendor-completions/_windtunnel" || fail "the completion of zsh"
  grep -q 'complete -c windtunnel' "$1/share/fish/vendor_completions.d/windtunnel.fish" || fail "the completion of fish"
}
# Every command that --help lists is completed.
check_completions() {
  local command
  for command in $("$1/bin/windtunnel" --help | sed -n '/^Commands:/,$p' | awk 'NR > 1 { print $1 }'); do
    bash -c 'source "$1"; COMP_WORDS=(windtunnel "$2"); COMP_CWORD=1; _windtunnel; [[ " ${COMPREPLY[*]} " == *" $2 "* ]]' \
      - "$1/share/bash-completion/completions/windtunnel" "$command" || fail "bash does not complete $command"
    grep -q "'$command'" "$1/share/zsh/vendor-completions/_windtunnel" || fail "zsh does not complete $command"
    grep -q -- "-a $command " "$1/share/fish/vendor_completions.d/windtunnel.fish" || fail "fish does not complete $command"
  done
}

cmake --install "$build" --prefix "$scratch/prefix" >"$scratch/log" || { cat "$scratch/log"; fail "cmake --install"; }
check_program "$scratch/prefix"
check_completions "$scratch/prefix"
if command -v help2man >/dev/null; then
  grep -q 'EXIT STATUS' "$scratch/prefix/share/man/man1/windtunnel.1" || fail "the manual page"
else
  echo "manual page: left out, help2man is not installed"
fi

cmake -S tools/example -B "$scratch/example" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_PREFIX_PATH="$scratch/prefix" \
  >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "find_package(windtunnel)"; }
cmake --build "$scratch/example" >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "the example does not build"; }
"$scratch/example/tensor_sizes" "$scratch/prefix/share/windtunnel" scenarios/gpt-8.3b-128xa100.json >"$scratch/sizes"
grep -q '^tensor 8, data 4: ' "$scratch/sizes" || { cat "$scratch/sizes"; fail "the example's answer"; }

if command -v dpkg-deb >/dev/null && command -v dpkg-shlibdeps >/dev/null; then
  cpack -G DEB --config "$build/CPackConfig.cmake" -B "$scratch/packages" >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "cpack"; }
  dpkg-deb -x "$scratch"/packages/windtunnel_*.deb "$scratch/debian"
  dpkg-deb -x "$scratch"/packages/libwindtunnel-dev_*.deb "$scratch/debian"
  check_program "$scratch/debian/usr"
  dpkg-deb -f "$scratch"/packages/windtunnel_*.deb Depends | grep -q libsimgrid || fail "the package does not depend on SimGrid"
  [[ -f $scratch/debian/usr/include/windtunnel/windtunnel.hpp ]] || fail "the headers"
else
  echo "Debian packages: left out, dpkg-deb or dpkg-shlibdeps is not installed"
fi
echo "installed, linked and packaged: all as it should be"
