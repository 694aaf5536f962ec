#!/usr/bin/env bash
# One directory with everything that a GPU machine needs and does not have: see the usage below.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: deploy/bundle.sh [--out DIR] [--no-build]

Puts Lockstep with its GPU module, the tests and benchmarks of tests/gpu and the libraries that they
need into one directory (build/bundle), to be copied to a machine with an NVIDIA driver. There it
needs Python with the torch wheel of the version it was built with, and no network:

  scp -r build/bundle gpu-machine:lockstep && ssh gpu-machine lockstep/tests/gpu/run.sh

  --out DIR     the directory; what a former call has put there is replaced
  --no-build    take what lies in build/gpu
  --help        this text

Building needs what deploy/quickstart.sh --build-only installs, and a CUDA toolkit 13 with nccl.h.
TEXT
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/deploy/shell/common.sh"
. "$root/deploy/shell/environments.sh"
. "$root/deploy/shell/torch.sh"

out=$root/build/bundle
build=1
while (($# > 0)); do
  case $1 in
    --out) [[ -n ${2:-} ]] || fail 64 "--out needs a directory."; out=$2; shift ;;
    --no-build) build=0 ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; fail 64 "unknown argument '$1'." ;;
  esac
  shift
done

readonly limit_mib=60
readonly marker=.lockstep-bundle
tree=$root/build/gpu
log=$root/build/bundle.log

# Libraries of the C and C++ run time come with every machine; Torch and CUDA with the wheel.
is_left_out() {  # is_left_out NAME PATH
  case $1 in
    libc.so.* | libm.so.* | libdl.so.* | librt.so.* | libpthread.so.* | libutil.so.* | \
      libgcc_s.so.* | libstdc++.so.* | ld-linux* | linux-vdso*) return 0 ;;
  esac
  case $2 in */torch/lib/* | */nvidia/*) return 0 ;; esac
  case $1 in libcuda* | libnccl* | libcudnn* | libcublas* | libcupti*) return 0 ;; esac
  return 1
}

# All but the MPI backend: Open MPI would need its own plug-ins beside it, and nothing here uses it.
copy_programs() {
  local path
  mkdir -p "$out/bin" "$out/lib"
  for path in "$tree"/bin/lockstep "$tree"/bin/lockstep-coordinator "$tree"/bin/lockstep-worker \
    "$tree"/bin/liblockstep-cuda{,-torch}.so "$tree"/bin/bench_train "$tree"/tests/test_gpu*; do
    [[ -f $path ]] || fail 70 "$path was not built; leave out --no-build."
    strip -o "$out/bin/$(basename "$path")" "$path"
  done
}

# liblockstep-cuda-torch.so needs LibTorch's CUDA library, and what that needs is not for us to carry.
copy_libraries() {
  local name path
  find "$out/bin" -type f ! -name liblockstep-cuda-torch.so -exec ldd {} + | awk '$2 == "=>" {print $1, $3}' | sort -u | while read -r name path; do
    is_left_out "$name" "$path" && continue
    [[ -f $path ]] || fail 70 "$name, which a program needs, is not on this machine."
    cp "$(readlink -f "$path")" "$out/lib/$name"
  done
}

# What runs there: the suite, what it starts, and what it measures against. All of it needs no package
# of Python but torch.
copy_scripts() {
  local directory
  for directory in gpu/files harness bench golden; do mkdir -p "$out/tests/$directory"; done
  cp "$root"/tests/gpu/*.{sh,py} "$out/tests/gpu/"
  cp "$root"/tests/harness/{fails_with,harness,idx_files,inherited_signals}.py "$out/tests/harness/"
  cp "$root"/tests/bench/fused_gpt2.py "$out/tests/bench/"
  cp "$root"/tests/golden/{gpt2_model,image_models}.py "$out/tests/golden/"
  # Models for the tests, and what slows a run (harness.py: SLOW_SLOTS).
  cp "$root"/tests/golden/torchscript_*.pt "$out/tests/gpu/files/"
  strip -o "$out/tests/gpu/files/libsmall_net.so" "$tree/tests/plugin/libsmall_net.so"
  strip -o "$out/tests/gpu/files/libhanging_net.so" "$tree/tests/libhanging_net.so"
  strip -o "$out/tests/liblockstep_slow_slots.so" "$tree/tests/liblockstep_slow_slots.so"
  cp "$root/deploy/shell/with_torch.sh" "$out/with_torch.sh"
  printf '%s\n' "$torch_version" >"$out/torch_version"
}

if [[ -d $out && ! -f $out/$marker && -n $(ls -A "$out") ]]; then
  fail 64 "$out holds other things; name an empty directory, or one that this script has made."
fi
mkdir -p "$root/build"
: >"$log"
if ((build)); then
  logged "$log" "configuring preset gpu" cmake -S "$root" --preset gpu -DLOCKSTEP_BENCH=ON \
    -DLOCKSTEP_CUDA_COMPRESS=ON ||
    fail 78 "the GPU module cannot be configured here: $(last_line "$log"). Everything: $log"
  logged "$log" "building the bundle's programs" \
    cmake --build "$tree" -j "$(build_jobs)" --target gpu_programs ||
    fail 70 "the build failed. Everything it said: $log"
fi
rm -rf "$out"
mkdir -p "$out"
touch "$out/$marker"
copy_programs
copy_libraries
copy_scripts
mib=$(du -sm --apparent-size "$out" | cut -f 1)
say "$out: $mib MiB of at most $limit_mib"
((mib <= limit_mib)) || fail 70 "the bundle is larger than $limit_mib MiB: du -a $out | sort -n"
