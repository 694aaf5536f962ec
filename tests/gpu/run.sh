#!/usr/bin/env bash
# Tests and measures Lockstep on this machine's GPU, from a bundle (deploy/bundle.sh): see suite.py.
set -euo pipefail
bundle=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
# A plan starts no program: it needs neither a bundle nor torch.
[[ " $* " == *" --plan "* ]] && exec "${LOCKSTEP_PYTHON:-python3}" "$bundle/tests/gpu/suite.py" "$@"
if [[ ! -f $bundle/.lockstep-bundle ]]; then
  echo "error: this runs from a bundle: deploy/bundle.sh makes one, and run.sh lies in it." >&2
  exit 64
fi
exec "$bundle/with_torch.sh" "${LOCKSTEP_PYTHON:-python3}" "$bundle/tests/gpu/suite.py" "$@"
