#!/usr/bin/env bash
# The fault suite: a table of named cases on real processes. tests/faults/README.md lists them.
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/deploy/shell/common.sh"

export LOCKSTEP_BIN=${LOCKSTEP_BIN:-$root/build/release/bin}
[[ -x $LOCKSTEP_BIN/lockstep ]] ||
  fail 66 "there is no $LOCKSTEP_BIN/lockstep; build it: cmake --build build/release"
exec env PYTHONDONTWRITEBYTECODE=1 python3 "$root/tests/faults/faults.py" "$@"
