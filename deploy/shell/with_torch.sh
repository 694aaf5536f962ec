#!/usr/bin/env bash
# with_torch.sh COMMAND...: runs COMMAND of a bundle with the LibTorch of this machine's python3
# (or $LOCKSTEP_PYTHON), and with the CUDA libraries of NVIDIA's wheels beside it. LibTorch's own
# find those by themselves, but our programs and modules need libcudart.so.13, too, and open NCCL.
#
# Exit codes: COMMAND's; 78 where there is no such LibTorch.
set -euo pipefail
bundle=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
python=${LOCKSTEP_PYTHON:-python3}
wanted=$(cat "$bundle/torch_version")

# Without importing it, which takes seconds.
found=$("$python" - <<'PYTHON'
import importlib.metadata
import importlib.util
spec = importlib.util.find_spec("torch")
if spec and spec.submodule_search_locations:
    print(importlib.metadata.version("torch"), spec.submodule_search_locations[0])
PYTHON
) || found=
if [[ -z $found ]]; then
  echo "error: $python has no torch; install torch==$wanted for it, or set LOCKSTEP_PYTHON." >&2
  exit 78
fi
if [[ ${found%% *} != "$wanted" && ${found%% *} != "$wanted"+* ]]; then
  echo "error: $python has torch ${found%% *}, and this bundle was built with $wanted:" \
    "install that version, or make the bundle with yours." >&2
  exit 78
fi
# Not the bundle's own libraries: the programs know where those lie, and Python has others.
torch=${found#* }
libraries=$torch/lib
for directory in "$(dirname "$torch")"/nvidia/*/lib; do
  [[ ! -d $directory ]] || libraries+=:$directory
done
export LD_LIBRARY_PATH="$libraries${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
exec "$@"
