#!/usr/bin/env bash
# Runs drawn cases of the oracles in validation/oracles against the program:
#   tools/oracles.sh [--cases N] [--seed S] [--oracle NAME] [PROGRAM]      (default: 300 cases of each, build/release/windtunnel)
# Exit code 1 when a case differs; its scenario is then kept in out/oracles.
set -euo pipefail
here=$(dirname -- "${BASH_SOURCE[0]}")
exec nice python3 "$here/../validation/oracles/play.py" "$@"
