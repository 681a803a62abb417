#!/usr/bin/env bash
# Runs every command in the ```console blocks of README.md and docs/*.md in a terminal of 80 columns and compares what it prints.
#   tools/check_docs.sh PROGRAM [FILE...]
# A line "$ COMMAND" (continued by a last backslash) is run by bash in a copy of the repository without build outputs,
# where `windtunnel` is PROGRAM. The commands of a page run in one shell, as a reader pastes them: a changed folder or variable stays changed
# until the end of the page. Each must exit 0; to show a failure, write: windtunnel ...; echo "exit code $?".
# The lines below it, where there are any, must be what it prints on stdout and stderr. In them "…" stands for any
# text, and a line of its own "…" for any number of lines.
# No line that the program prints for people, also into a pipe, may be wider than the terminal, unless a word of it (a path, an address) is
# wider than half of that; nor may it fail in a pipe (an exit code above 1) where the page does not ask for the exit code.
set -euo pipefail
if [[ $# -lt 1 || ! -x $1 ]]; then
  echo "usage: tools/check_docs.sh PROGRAM [FILE...]" >&2
  exit 2
fi
program=$(realpath -- "$1")
shift
cd -P -- "$(dirname -- "${BASH_SOURCE[0]}")/.."
if [[ $# -eq 0 ]]; then
  set -- README.md
  # The examples of docs/extending.md need what they add: tools/extending_test.py runs them.
  for file in docs/*.md; do if [[ -f $file && $file != docs/extending.md ]]; then set -- "$@" "$file"; fi; done
fi

columns=80
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir "$scratch/bin" "$scratch/copy"
cat >"$scratch/bin/windtunnel" <<EOF
#!/usr/bin/env bash
# What the program prints, and its lines that are too wide. Files and scripts (JSON, scenarios, probes) keep their lines.
out=\$(mktemp -p "$scratch") err=\$(mktemp -p "$scratch")
if [[ /proc/self/fd/1 -ef /proc/self/fd/2 ]]; then
  "$program" "\$@" >"\$out" 2>&1 <&0  # in the order in which it is printed
else
  "$program" "\$@" >"\$out" 2>"\$err" <&0
fi
code=\$?
case " \$* " in
  *" --json "* | *" --emit "* | *" --resolved "* | *" new "* | *" probe "* | *" completion "* | *" --from-datasheet "* | *" draw "* | *" --simgrid "*) files="" ;;
  *) files="\$out" ;;
esac
export LC_ALL=C  # characters are counted by their first bytes
sed 's/[\x80-\xbf]//g' \$files "\$err" | awk -v most=$columns -v command="\$*" 'length > most && substr(\$0, 1, 1) != "/" {
  for (i = 1; i <= NF; ++i) if (length(\$i) > most / 2) next
  print "windtunnel " command ": " length " columns: " \$0
}' >>"$scratch/wide"
if [[ \$code -gt 1 ]] && ! grep -qF '\$?' "$scratch/page/\$(cat "$scratch/current").command"; then
  { echo "windtunnel \$*: exit code \$code"; cat "\$err" "\$out" | head -5; } >>"$scratch/failed"
fi
cat "\$out"
cat "\$err" >&2
exit \$code
EOF
chmod +x "$scratch/bin/windtunnel"
touch "$scratch/wide" "$scratch/failed"
tar --exclude=./build --exclude=./out --exclude=./.git -cf - . | tar -xf - -C "$scratch/copy"
export PATH="$scratch/bin:$PATH" WINDTUNNEL_DATA="$scratch/copy" NO_COLOR=1 COLUMNS=$columns

# matches EXPECTED_FILE ACTUAL_FILE
matches() {
  awk '
    FNR == NR { expected[++num_expected] = $0; next }
    { actual[++num_actual] = $0 }
    function line_matches(pattern, text,    parts, count, i, at) {
      count = split(pattern, parts, "…")
      if (count <= 1) return pattern == text
      if (substr(text, 1, length(parts[1])) != parts[1]) return 0
      text = substr(text, length(parts[1]) + 1)
      for (i = 2; i < count; ++i) {
        at = index(text, parts[i])
        if (at == 0) return 0
        text = substr(text, at + length(parts[i]))
      }
      return length(text) >= length(parts[count]) &&
             substr(text, length(text) - length(parts[count]) + 1) == parts[count]
    }
    function rest_matches(e, a) {
      if (e > num_expected) return a > num_actual
      if (expected[e] ~ /^ *… *$/) {
        for (; a <= num_actual + 1; ++a) if (rest_matches(e + 1, a)) return 1
        return 0
      }
      return a <= num_actual && line_matches(expected[e], actual[a]) && rest_matches(e + 1, a + 1)
    }
    END { exit !rest_matches(1, 1) }
  ' "$1" "$2"
}

runs=0 failures=0

# read_page FILE: its commands and what they should print, as page/1.command, page/1.expected, page/1.place, page/2.command, ...
read_page() {
  local inside="" number=0 line command="$scratch/page/0.command"
  rm -rf "$scratch/page"
  mkdir "$scratch/page"
  num_commands=0
  while IFS= read -r line || [[ -n $line ]]; do
    number=$((number + 1))
    if [[ -z $inside ]]; then
      if [[ $line == '```console' ]]; then inside=yes; fi
    elif [[ $line == '```' ]]; then
      inside=""
    elif [[ $inside == continued ]]; then
      printf '%s\n' "$line" >>"$command"
      if [[ $line != *\\ ]]; then inside=yes; fi
    elif [[ $line == '$ '* ]]; then
      num_commands=$((num_commands + 1))
      command=$scratch/page/$num_commands.command
      printf '%s\n' "${line#'$ '}" >"$command"
      echo "$1:$number" >"$scratch/page/$num_commands.place"
      : >"$scratch/page/$num_commands.expected"
      if [[ $line == *\\ ]]; then inside=continued; fi
    else
      printf '%s\n' "$line" >>"$scratch/page/$num_commands.expected"
    fi
  done <"$1"
  if [[ -n $inside ]]; then echo "$1: a console block has no end"; failures=$((failures + 1)); fi
}

# Runs the commands of the page in one shell, each with what it prints in N.actual and its exit code in N.code.
# shellcheck disable=SC2016  # the inner shell expands them
run_page() {
  (cd "$scratch/copy" && bash -c '
    _check_docs=("$1" "$2" 0)
    while [[ $((++_check_docs[2])) -le ${_check_docs[1]} ]]; do
      echo "${_check_docs[2]}" >"${_check_docs[0]}/../current"
      { eval "$(<"${_check_docs[0]}/${_check_docs[2]}.command")"; } >"${_check_docs[0]}/${_check_docs[2]}.actual" 2>&1 </dev/null
      echo $? >"${_check_docs[0]}/${_check_docs[2]}.code"
    done' bash "$scratch/page" "$num_commands") || true
}

fail() {  # fail NUMBER WHAT
  echo "$(cat "$scratch/page/$1.place"): $2: $(cat "$scratch/page/$1.command")"
  sed 's/^/    /' "$scratch/page/$1.actual" | head -40
  failures=$((failures + 1))
}

check_page() {
  local n of_command code
  for ((n = 1; n <= num_commands; ++n)); do
    runs=$((runs + 1))
    of_command=$scratch/page/$n
    if [[ ! -f $of_command.code ]]; then
      fail "$n" "ends the reader's shell"
      return
    fi
    code=$(cat "$of_command.code")
    # Progress is told only of what takes long, which depends on the machine.
    sed -i -E '/^windtunnel: still [a-z ]+ after /d; /^[0-9,]+ of [0-9,]+ points.* a second, .* left$/d' "$of_command.actual"
    if [[ $code -ne 0 ]]; then
      fail "$n" "exit code $code"
    elif [[ -s $of_command.expected ]] && ! matches "$of_command.expected" "$of_command.actual"; then
      fail "$n" "prints something else"
      diff -u --label documented --label printed "$of_command.expected" "$of_command.actual" | sed 's/^/    /' | head -40 || true
    fi
  done
}

for file in "$@"; do
  read_page "$file"
  run_page
  check_page
done

if [[ $failures -gt 0 ]]; then
  echo "$failures of $runs documented commands do not do what the documentation says"
  exit 1
fi
cat "$scratch/wide" "$scratch/failed"
if [[ -s $scratch/wide || -s $scratch/failed ]]; then exit 1; fi
echo "$runs documented commands do what the documentation says, in $columns columns"
