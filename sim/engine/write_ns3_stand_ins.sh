#!/usr/bin/env bash
# Libraries that stand in for those of ns-3 that SimGrid is linked against (docs/decisions/simgrid-without-ns3.md):
#   write_ns3_stand_ins.sh LIBSIMGRID FOLDER
# Writes FOLDER/SONAME.cpp for each, with what SimGrid takes from it, functions that return 0 and objects of zeros, and prints the names. Prints
# nothing where SimGrid does not need ns-3, or where that cannot be found out.
set -euo pipefail
export LC_ALL=C
simgrid=$1 folder=$2
for tool in readelf nm awk; do command -v "$tool" >/dev/null || exit 0; done
mapfile -t names < <(readelf -dW "$simgrid" | sed -n 's/.*(NEEDED).*\[\(libns3-[^]]*\)\]$/\1/p')
((${#names[@]})) || exit 0
mkdir -p "$folder"
nm -D --undefined-only "$simgrid" | awk '{ print $NF }' >"$folder/wanted"
for name in "${names[@]}"; do
  library=$(dirname -- "$(readlink -f -- "$simgrid")")/$name
  [[ -f $library ]] || exit 0
  {
    echo 'extern "C" {'
    # Lines of nm: address, size, kind, name. T and W are functions, the rest objects.
    nm -D -S --defined-only "$library" | awk 'NR == FNR { wanted[$1]; next } NF == 4 && $4 in wanted { print $2, $3, $4 }' "$folder/wanted" - |
      while read -r size kind symbol; do
        case $kind in
          T | W) echo "int $symbol();"; echo "int $symbol() { return 0; }" ;;
          *) echo "extern char $symbol[$((16#$size))];"; echo "alignas(16) char $symbol[$((16#$size))]{};" ;;
        esac
      done
    echo '}'
  } >"$folder/$name.cpp.new"
  cmp -s "$folder/$name.cpp.new" "$folder/$name.cpp" || cp "$folder/$name.cpp.new" "$folder/$name.cpp"
  rm "$folder/$name.cpp.new"
done
printf '%s\n' "${names[@]}"
