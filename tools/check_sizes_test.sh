#!/usr/bin/env bash
# Proves that check_sizes.py finds what is too large, from its first line to its last, and nothing else.
set -euo pipefail
check=$(realpath -- "$(dirname -- "${BASH_SOURCE[0]}")/check_sizes.py")
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

lines() { for ((line = 0; line < $1; ++line)); do echo "  f();  // }"; done; }
{
  printf 'namespace a {\nvoid fits() {\n'; lines 58; printf '}\n'                                 # 60 lines
  printf 'template <class T>\nvoid too_long(T t = {}) {\n'; lines 58; printf '}\n'                # 61, with its template line
  printf 'struct Small {\n  Small() : a_{1}, b_(2) {\n'; lines 59; printf '  }\n};\n'             # 61 inside a class
  printf 'const int table[] = {\n'; lines 400; printf '};\n'
  printf 'enum class Kind {\n'; lines 400; printf '};\n'
  printf 'class TooLarge final : public Small {\n public:\n'; lines 299; printf '};\n}\n'
} >"$scratch/sizes.cpp"
cat >"$scratch/expected" <<END
$scratch/sizes.cpp:62: a function of 61 lines, more than 60: template <class T> void too_long(T t = {})
$scratch/sizes.cpp:124: a function of 61 lines, more than 60: Small() : a_{1}, b_(2)
$scratch/sizes.cpp:990: a class of 302 lines, more than 300: class TooLarge final : public Small
END
code=0
"$check" "$scratch/sizes.cpp" >"$scratch/said" || code=$?
diff -u "$scratch/expected" "$scratch/said"
[[ $code -eq 1 ]]
echo "check_sizes.py finds what is too large"
