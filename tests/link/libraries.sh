#!/usr/bin/env bash
# What our programs load, and what they must not.
#
#   libraries.sh without-torch PROGRAM      no LibTorch, NCCL, CUDA or MPI, directly or indirectly
#   libraries.sh cpu-torch PROGRAM          links libtorch_cpu.so itself, and nothing that only a
#                                           machine with a GPU has
#   libraries.sh starts-uncached PROGRAM [--version]   starts although the loader may not use its cache of
#                                           libraries, nor LD_LIBRARY_PATH: its own run paths do
set -euo pipefail

heavy='^lib(torch|c10|caffe2|shm|nccl|cuda|cudart|cublas|cudnn|cupti|cufft|curand|cusolver|cusparse|nv|mpi)'

fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

needed() {  # names that PROGRAM itself asks for
  readelf -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p'
}

loaded() {  # names that the loader brings in for PROGRAM, at any depth
  ldd "$1" | awk '{print $1}' | sed 's|.*/||'
}

(($# >= 2)) || fail "usage: libraries.sh without-torch|cpu-torch|starts-uncached PROGRAM [ARGUMENT]"
program=$2
[[ -x $program ]] || fail "$program is not there; build it first."
[[ -n $(needed "$program") ]] || fail "readelf finds no libraries in $program; is it a program?"

case $1 in
  without-torch)
    found=$( (needed "$program"; loaded "$program") | sort -u | grep -E "$heavy" || true)
    [[ -z $found ]] || fail "$program loads" $found
    ;;
  cpu-torch)
    needed "$program" | grep -qx 'libtorch_cpu.so' || fail "$program does not link libtorch_cpu.so."
    found=$(needed "$program" | grep -E "$heavy" | grep -vxE 'lib(torch_cpu|c10)\.so' || true)
    [[ -z $found ]] || fail "$program links" $found "and would not start on a machine without GPU."
    ;;
  starts-uncached)
    loader=$(readelf -l "$program" | sed -n 's/.*program interpreter: \(.*\)\]/\1/p')
    env -u LD_LIBRARY_PATH "$loader" --inhibit-cache "$program" "${3:---version}" ||
      fail "$program does not start without the loader's cache."
    ;;
  *) fail "unknown check '$1'." ;;
esac
