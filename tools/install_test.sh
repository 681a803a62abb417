#!/usr/bin/env bash
# Installs a build, and uses what was installed as its users do: the program, its manual page and completions, the libraries from a
# program of one's own, and the Debian packages in a tree of their own.
#   tools/install_test.sh BUILD_DIRECTORY
set -euo pipefail
build=$(realpath -- "${1:?usage: install_test.sh BUILD_DIRECTORY}")
cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
unset WINDTUNNEL_DATA COMP_WORDS COMP_CWORD
export NO_COLOR=1

fail() {
  echo "FAILED: $1"
  exit 1
}
# The program in a tree says which version it is and of which commit, and finds its data
# there and nowhere else.
check_program() {
  "$1/bin/windtunnel" --version | grep -qE '^windtunnel [0-9]+\.[0-9]+\.[0-9]+ \(([0-9a-f]{12}(\+dirty)?|unknown), SimGrid [0-9.]+\)$' ||
    fail "$1/bin/windtunnel --version"
  (cd "$scratch" && "$1/bin/windtunnel" run gpt-39b-512xa100 --quiet) | grep -q 'per iteration' || fail "$1/bin/windtunnel run"
  (cd "$scratch" && "$1/bin/windtunnel" list models) | grep -q gpt3-175b || fail "$1/bin/windtunnel list models"
  bash -n "$1/share/bash-completion/completions/windtunnel" || fail "the completion of bash"
  grep -q '^#compdef windtunnel' "$1/share/zsh/vendor-completions/_windtunnel" || fail "the completion of zsh"
  grep -q 'complete -c windtunnel' "$1/share/fish/vendor_completions.d/windtunnel.fish" || fail "the completion of fish"
}
# Files that the pages use are where their commands look for them, below the installed data.
check_samples() {
  local file
  for file in $(grep -hoE '\b(sim/importers/samples|models|platforms|scenarios)/[A-Za-z0-9_./-]*[A-Za-z0-9]' README.md docs/*.md | sort -u); do
    [[ ! -e $file || -e $1/$file ]] || fail "the pages use $file, which is not installed"
  done
}
# The options in the help of a command ("" for those of every command), with their dashes, long and short.
options_of() {
  local section="Options:"
  [[ -n $1 ]] || section="Options of every command:"
  "$program" ${1:+"$1"} --help | sed -n "/^$section/,/^\$/p" | sed -nE 's/^  (-[a-zA-Z],)?(-[a-zA-Z0-9-]+).*/\1 \2/p' | tr ', ' '\n\n' | grep '^-'
}
# What the three completions offer behind WORDS, of which the last is being typed. Where a shell is not installed its script is searched for the word.
bash_offers() {
  bash -c 'source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); _windtunnel; printf "%s\n" "${COMPREPLY[@]}"' \
    - "$share/bash-completion/completions/windtunnel" "$@"
}
fish_offers() {
  if command -v fish >/dev/null; then
    HOME=$scratch fish -c 'source $argv[1]; complete -C "$argv[2..]"' "$share/fish/vendor_completions.d/windtunnel.fish" "$@" | cut -f1
  else
    sed -nE "s/^complete .*-n '?(__fish_use_subcommand|__fish_seen_subcommand_from ${2:-})'? .*/&/p; /-n/! p" \
      "$share/fish/vendor_completions.d/windtunnel.fish" | grep -oE -- ' -[als] [a-zA-Z-]+' | sed 's/^ -a //; s/^ -l /--/; s/^ -s /-/'
  fi
}
zsh_offers() {  # COMMAND: its part of the script
  sed -n "/^    $1)/,/;;/p" "$share/zsh/vendor-completions/_windtunnel" | tr -d "'" | sed -nE 's/^ +(-[a-zA-Z-]+)[=+[].*/\1/p'
}
offered() {  # offered WHERE WORD, with what is offered on stdin
  grep -qx -- "$2" || fail "$1 does not complete $2"
}
# Values: pointers of the scenario on the line, or of any; names of what is built in.
check_values() {
  local pointer=/platform/node_types/0/nic_rate
  offered "bash, of --set," "$pointer=" <<<"$(bash_offers windtunnel run gpt-39b-512xa100 --set /platform)"
  offered "bash, of --set=," /parallel/tensor= <<<"$(bash_offers windtunnel run --set = /par)"
  offered "bash, of compare --toggle," /compression <<<"$(bash_offers windtunnel compare none.json --toggle /comp)"
  offered "bash, of import --base," selene-a100 <<<"$(bash_offers windtunnel import topo x --base sel)"
  offered "bash, of run," gpt-39b-512xa100 <<<"$(bash_offers windtunnel run gpt)"
  offered "bash, of --color," always <<<"$(bash_offers windtunnel run x --color "")"
  offered "bash, of help," sweep <<<"$(bash_offers windtunnel help sw)"
  if command -v fish >/dev/null; then
    offered "fish, of --set," "$pointer=" <<<"$(fish_offers windtunnel run gpt-39b-512xa100 --set /platform)"
    offered "fish, of --set," /parallel/tensor= <<<"$(fish_offers windtunnel run --set /par)"
    offered "fish, of import --base," selene-a100 <<<"$(fish_offers windtunnel import topo x --base sel)"
    offered "fish, of run," gpt-39b-512xa100 <<<"$(fish_offers windtunnel run gpt)"
  fi
  if command -v zsh >/dev/null; then
    offered "zsh, of --set," "$pointer" <<<"$(zsh_values _windtunnel_pointers run gpt-39b-512xa100 --set /platform)"
    offered "zsh, of --set," /parallel/tensor <<<"$(zsh_values _windtunnel_pointers run --set /par)"
    offered "zsh, of import --base," selene-a100 <<<"$(zsh_values '_windtunnel_names platforms' import topo x --base sel)"
  fi
}
# What a helper of the zsh script offers where WORD... stand on the line.
zsh_values() {
  zsh -fc 'compadd() { shift; print -l -- ${(P)1} }; _files() {}; _arguments() {}; _describe() {}
    helper=$1; CURRENT=2 words=(windtunnel); source $2; words=(${@[3,-1]}); ${=helper}' \
    - "$1" "$share/zsh/vendor-completions/_windtunnel" "${@:2}"
}
# Every command and every option that --help lists is completed by each shell, and stands in the manual page.
check_completions() {
  local program=$1/bin/windtunnel share=$1/share command option commands PATH=$1/bin:$PATH
  commands=$("$program" --help | sed -n '/^Commands:/,/^$/p' | awk 'NR > 1 && NF { print $1 }')
  bash_offers windtunnel "" >"$scratch/bash"
  fish_offers windtunnel "" >"$scratch/fish"
  for command in $commands; do
    offered "bash" "$command" <"$scratch/bash"
    offered "fish" "$command" <"$scratch/fish"
    grep -q "'$command'" "$share/zsh/vendor-completions/_windtunnel" || fail "zsh does not complete $command"
    { bash_offers windtunnel "$command" --; bash_offers windtunnel "$command" -; } >"$scratch/bash options"
    { fish_offers windtunnel "$command" --; fish_offers windtunnel "$command" -; } >"$scratch/fish options"
    zsh_offers "$command" >"$scratch/zsh options"
    for option in $(options_of "") $(options_of "$command"); do
      offered "bash, of $command," "$option" <"$scratch/bash options"
      offered "zsh, of $command," "$option" <"$scratch/zsh options"
      offered "fish, of $command," "$option" <"$scratch/fish options"
      options_seen=$((${options_seen:-0} + 1))
    done
    check_manual "$command"
  done
  if [[ -f $share/man/man1/windtunnel.1 ]]; then
    sed 's/\\f[A-Z]//g; s/\\//g' "$share/man/man1/windtunnel.1" >"$scratch/manual"
    for option in $(options_of ""); do
      grep -qE -- "(^|[ ,])$option\b" "$scratch/manual" || fail "the manual page has no $option"
    done
  fi
  [[ ${options_seen:-0} -gt 100 ]] || fail "the help lists hardly any options (${options_seen:-0})"
  offered "bash, of import," topo <<<"$(bash_offers windtunnel import "")"
  check_values
  offered "bash, of rank --emit," megatron <<<"$(bash_offers windtunnel rank x --emit "")"
  for command in zsh fish; do
    if command -v "$command" >/dev/null; then
      "$command" -n "$(ls "$share/zsh/vendor-completions/_windtunnel" "$share"/fish/*/windtunnel.fish | grep "$command")" || fail "the completion of $command"
    fi
  done
}
# The manual page has the command, and each of its options behind its name.
check_manual() {
  local page=$share/man/man1/windtunnel.1 option
  [[ -f $page ]] || return 0
  tr -d '\\' <"$page" | awk -v start=".SS \"windtunnel $1 " '/^\.S[SH] / { inside = index($0, start) == 1 } inside' >"$scratch/manual"
  for option in $(options_of "$1"); do
    grep -qE -- "^\.B (.*,)?$option(,| |$)" "$scratch/manual" || fail "the manual page has no $option of $1"
  done
}

# As ./run.sh leaves a build, which makes the program alone.
rm -f "$build"/generated/windtunnel.bash "$build"/generated/_windtunnel
cmake --install "$build" --prefix "$scratch/prefix" >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "cmake --install"; }
check_program "$scratch/prefix"
check_completions "$scratch/prefix"
if command -v help2man >/dev/null; then
  for section in 'EXIT STATUS' EXAMPLES; do
    [[ $(grep -c "^\.SH .*$section" "$scratch/prefix/share/man/man1/windtunnel.1") -eq 1 ]] || fail "the manual page has not one section $section"
  done
else
  echo "manual page: left out, help2man is not installed"
fi

# What needs no SimGrid goes without its module; what needs it says so.
mv "$scratch/prefix/lib/windtunnel/windtunnel-simgrid.so" "$scratch"
"$scratch/prefix/bin/windtunnel" run gpt-8.3b-128xa100 --engine native --quiet | grep -q "per iteration" || fail "run --engine native without SimGrid"
"$scratch/prefix/bin/windtunnel" explain gpt-8.3b-128xa100 --quiet | grep -q "per iteration" || fail "explain without SimGrid"
status=0
"$scratch/prefix/bin/windtunnel" run gpt-39b-512xa100 >/dev/null 2>"$scratch/log" || status=$?
[[ $status -eq 3 ]] && grep -q 'error: cannot load SimGrid: windtunnel-simgrid.so.*--engine native does without' "$scratch/log" || { cat "$scratch/log"; fail "run without SimGrid (exit code $status)"; }
mv "$scratch/windtunnel-simgrid.so" "$scratch/prefix/lib/windtunnel"

cmake -S tools/example -B "$scratch/example" -G Ninja -DCMAKE_BUILD_TYPE=Debug -DCMAKE_PREFIX_PATH="$scratch/prefix" \
  >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "find_package(windtunnel)"; }
cmake --build "$scratch/example" >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "the example does not build"; }
"$scratch/example/tensor_sizes" "$scratch/prefix/share/windtunnel" scenarios/gpt-8.3b-128xa100.json >"$scratch/sizes"
# The program that docs/install.md shows, built exactly as it stands there, gives the report of ours.
shown() { sed -n "/^\`\`\`$1\$/,/^\`\`\`\$/{/^\`\`\`/d;p}" docs/install.md; }
mkdir "$scratch/mine"
shown cmake >"$scratch/mine/CMakeLists.txt"
shown cpp >"$scratch/mine/one_iteration.cpp"
cmp tools/example/one_iteration.cpp "$scratch/mine/one_iteration.cpp" || fail "docs/install.md does not show tools/example/one_iteration.cpp"
{ cmake -S "$scratch/mine" -B "$scratch/mine/build" -G Ninja -DCMAKE_PREFIX_PATH="$scratch/prefix" && cmake --build "$scratch/mine/build"; } \
  >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "what docs/install.md shows does not build"; }
"$scratch/mine/build/one_iteration" "$scratch/prefix/share/windtunnel" scenarios/gpt-8.3b-128xa100.json 2>"$scratch/time" | grep -v wall_s >"$scratch/report"
"$scratch/prefix/bin/windtunnel" run scenarios/gpt-8.3b-128xa100.json --engine native --json | grep -v wall_s | cmp - "$scratch/report" || fail "the example's report is not the program's"
grep -q '^tensor 8, data 4: ' "$scratch/sizes" || { cat "$scratch/sizes"; fail "the example's answer"; }

# The wheel of `pip install .`: module, program, what drives SimGrid, and the data, under a prefix of its own.
if [[ -e $build/python/windtunnel/__init__.py ]] && /usr/bin/python3 -m pip --version >/dev/null 2>&1; then
  { /usr/bin/python3 -m pip wheel . --no-deps --no-index --config-settings "build-dir=$build" --wheel-dir "$scratch/wheel" &&
    PIP_BREAK_SYSTEM_PACKAGES=1 /usr/bin/python3 -m pip install --no-deps --no-index --prefix "$scratch/pip" "$scratch"/wheel/*.whl; } >"$scratch/log" 2>&1 ||
    { cat "$scratch/log"; fail "pip wheel and pip install"; }
  packages=$(dirname "$(dirname "$(find "$scratch/pip" -name _windtunnel.*.so)")")
  for engine in native simgrid; do
    (cd "$scratch" && PYTHONPATH=$packages /usr/bin/python3 -c "
import windtunnel
assert str(windtunnel.library_root()).startswith('$scratch/pip')
print(f'{windtunnel.simulate(\"gpt-39b-512xa100\", engine=\"$engine\").iteration_time_s:.2f}')") >"$scratch/seconds" || fail "the module of the wheel, on $engine"
    "$scratch/prefix/bin/windtunnel" run gpt-39b-512xa100 --quiet | grep -qF "$(<"$scratch/seconds") s per iteration" || fail "the module's answer on $engine: $(<"$scratch/seconds") s"
  done
else
  echo "wheel: left out, the Python module or pip is not there"
fi

if command -v dpkg-deb >/dev/null && command -v dpkg-shlibdeps >/dev/null; then
  cpack -G DEB --config "$build/CPackConfig.cmake" -B "$scratch/packages" >"$scratch/log" 2>&1 || { cat "$scratch/log"; fail "cpack"; }
  dpkg-deb -x "$scratch"/packages/windtunnel_*.deb "$scratch/debian"
  dpkg-deb -x "$scratch"/packages/libwindtunnel-dev_*.deb "$scratch/debian"
  check_program "$scratch/debian/usr"
  check_samples "$scratch/debian/usr/share/windtunnel"
  [[ ! -x $build/windtunnel-mpi || -x $scratch/debian/usr/bin/windtunnel-mpi ]] || fail "the package has no windtunnel-mpi"
  dpkg-deb -f "$scratch"/packages/windtunnel_*.deb Depends | grep -q libsimgrid || fail "the package does not depend on SimGrid"
  [[ -f $scratch/debian/usr/include/windtunnel/windtunnel.hpp ]] || fail "the headers"
  ! grep -rlE '#include <(doctest|rapidcheck)' "$scratch/debian/usr/include" || fail "headers of tests among them"
else
  echo "Debian packages: left out, dpkg-deb or dpkg-shlibdeps is not installed"
fi
echo "installed, linked and packaged: all as it should be"
