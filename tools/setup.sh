# shellcheck shell=bash
# Sourced by run.sh and test.sh: makes sure that the Debian packages are there, and configures the build.
# Exit codes as everywhere in Windtunnel: 2 bad usage, 3 the environment is in the way.

# Package and what it adds to a bare Debian 12, in MB, with what it pulls in (measured with apt on amd64).
readonly packages_to_run=(
  "g++ 190" "cmake 170" "ninja-build 1" "libsimgrid-dev 230" "libboost-graph-dev 85"
  "libcli11-dev 1" "nlohmann-json3-dev 2" "zlib1g-dev 1" "libeigen3-dev 9" "libzfp-dev 1" "pybind11-dev 1" "python3-dev 75"
)
# shellcheck disable=SC2034  # test.sh reads it
readonly packages_to_test=("${packages_to_run[@]}"
  "doctest-dev 1" "librapidcheck-dev 2" "libvalijson-dev 345" "libbenchmark-dev 1" "help2man 1" "dpkg-dev 10"
  "python3-numpy 40" "chromium-headless-shell 300" "fonts-dejavu-core 3" "openmpi-bin 22" "libopenmpi-dev 30" "file 10" "valgrind 80"
  "clang-14 250" "libclang-rt-14-dev 45" "clang-format-14 1" "mkdocs 41" "mkdocs-material 18"
)

environment_error() {
  printf 'error: %s\n' "$1" >&2
  if [[ $# -gt 1 ]]; then printf '  %s\n' "${@:2}" >&2; fi
  exit 3
}

is_installed() {
  [[ "$(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null)" == installed ]]
}

# install_missing "PACKAGE MB"...: says what it will do before it does it; returns at once when nothing is missing.
install_missing() {
  if ! { command -v dpkg-query && command -v apt-get; } >/dev/null; then
    environment_error "this set-up knows Debian 12 and its relatives only (no dpkg-query or apt-get here)." \
      "Install a C++20 compiler, CMake 3.25, Ninja, SimGrid 3.32, Boost.Graph 1.74, CLI11," \
      "nlohmann_json 3.11, zlib and Eigen 3.4, then: cmake --preset release && cmake --build --preset release"
  fi

  local entry missing=() size=0
  for entry in "$@"; do
    if ! is_installed "${entry% *}"; then
      missing+=("${entry% *}")
      size=$((size + ${entry#* }))
    fi
  done
  [[ ${#missing[@]} -gt 0 ]] || return 0

  local as_root=""
  if [[ $EUID -ne 0 ]]; then as_root="sudo "; fi
  local install="${as_root}apt-get update && ${as_root}env DEBIAN_FRONTEND=noninteractive apt-get install -y --no-install-recommends ${missing[*]}"
  if [[ $EUID -ne 0 ]]; then
    environment_error "${#missing[@]} packages are missing (about $size MB) and only root can install them. Run:" "$install"
  fi
  echo "installing ${#missing[@]} packages (about $size MB on disk, 1-2 minutes): ${missing[*]}" >&2
  { apt-get -qq update && DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends \
      -o DPkg::Lock::Timeout=120 -o Dpkg::Use-Pty=0 "${missing[@]}" >/dev/null; } || environment_error \
    "apt could not install the packages (its message stands above). Once that is mended, run:" "$install"
}

# Compilers that run at once: one a core, but no more than one for each 1.5 GB of memory.
build_jobs() {
  local memory_jobs
  memory_jobs=$(awk '/^MemTotal:/ {print int($2 / 1500000)}' /proc/meminfo)
  local jobs
  jobs=$(nproc)
  if [[ $memory_jobs -lt $jobs ]]; then jobs=$memory_jobs; fi
  if [[ $jobs -lt 1 ]]; then jobs=1; fi
  echo "$jobs"
}

# configure PRESET: does nothing when build/PRESET is up to date (Ninja sees changed CMake files by itself), starts
# afresh when the folder was copied from elsewhere.
configure() {
  local folder="build/$1" fresh=()
  if [[ -f $folder/CMakeCache.txt ]] && ! grep -qxF "CMAKE_HOME_DIRECTORY:INTERNAL=$PWD" "$folder/CMakeCache.txt"; then
    fresh=(--fresh)
  elif [[ -f $folder/build.ninja && $folder/build.ninja -nt CMakePresets.json && -z ${2:-} ]]; then
    return 0
  fi
  cmake --preset "$1" "${fresh[@]}" >/dev/null
}
