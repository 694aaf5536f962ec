# shellcheck shell=bash
# Sourced by deploy/install_deps.sh, after environments.sh: LibTorch, given or private.
#
# The private one is the Python wheel in an environment of its own. All packages go in with
# --no-deps: the wheel's own list would bring 3 GB of CUDA libraries that training on a CPU never
# opens.

torch_version=2.11.0
# libtorch_cpu.so is linked against the CUDA runtime and its profiler, even where no GPU is used.
# Versions: what cuda-toolkit 13.0.2, the requirement of this wheel, asks for.
torch_packages=("torch==$torch_version" nvidia-cuda-runtime==13.0.96 nvidia-cuda-cupti==13.0.85)
# What `import torch` wants beyond that; and of the comparisons, numpy, xxhash for the golden models'
# order of samples, matplotlib for plots.
python_packages=(typing-extensions==4.16.0 sympy==1.14.0 mpmath==1.4.1 networkx==3.6.1
  jinja2==3.1.6 markupsafe==3.0.4 filelock==4.2.11 fsspec==2026.9.0 setuptools==81.0.0
  numpy==2.4.6 xxhash==4.1.0
  matplotlib==3.11.2 contourpy==1.3.3 cycler==0.12.1 fonttools==4.68.0 kiwisolver==1.5.1
  packaging==26.3 pillow==13.0.0 pyparsing==3.3.3 python-dateutil==4.0.0 tzdata==2026.6)
# libtorch_python.so is linked against all of these: library name, package that brings it. A
# package is left out where the loader finds the library anyway, from a CUDA toolkit.
cuda_libraries=(
  libcusparseLt.so.0 nvidia-cusparselt-cu13==0.8.0
  libnvshmem_host.so.3 nvidia-nvshmem-cu13==3.4.5
  libcufile.so.0 nvidia-cufile==1.15.1.6
  libcublas.so.13 nvidia-cublas==13.1.0.3
  libcudnn.so.9 nvidia-cudnn-cu13==9.19.0.56
  libnccl.so.2 nvidia-nccl-cu13==2.28.9
  libcufft.so.12 nvidia-cufft==12.0.0.61
  libcurand.so.10 nvidia-curand==10.4.0.35
  libcusparse.so.12 nvidia-cusparse==12.6.3.3
  libnvJitLink.so.13 nvidia-nvjitlink==13.0.88)

torch_environment() { private_environment "torch-$torch_version"; }

is_torch_root() { [[ -e $1/lib/libtorch_cpu.so && -e $1/include/ATen/ATen.h ]]; }

given_torch_root() {  # a LibTorch that the environment names; fails when it names none
  local prefix prefixes=() candidates=()
  [[ -z ${Torch_DIR:-} ]] || candidates+=("$Torch_DIR/../../..")
  IFS=: read -r -a prefixes <<<"${CMAKE_PREFIX_PATH:-}"
  for prefix in "${prefixes[@]}"; do candidates+=("$prefix" "$prefix/../.."); done
  [[ -z ${LOCKSTEP_TORCH_ROOT:-} ]] || candidates+=("$LOCKSTEP_TORCH_ROOT")
  for prefix in "${candidates[@]}"; do
    if is_torch_root "$prefix"; then
      (cd "$prefix" && pwd)
      return
    fi
  done
  return 1
}

private_torch_root() {  # of a complete private environment; fails when there is none
  local environment
  environment=$(torch_environment) && has_stamp "$environment" .complete "${torch_packages[@]}" &&
    printf '%s\n' "$environment"/lib/python3*/site-packages/torch
}

torch_root() { given_torch_root || private_torch_root || true; }

# Libraries that LIBRARY needs and the loader cannot find, with only what the library itself says
# about where to look: no loader cache, no LD_LIBRARY_PATH. (With --list the loader ends at the first.)
unresolved_libraries() {
  local loader
  loader=$(echo /lib64/ld-linux-x86-64.so.2 /lib/ld-linux-aarch64.so.1 | tr ' ' '\n' |
    while read -r path; do if [[ -x $path ]]; then echo "$path"; fi; done | head -1)
  env -u LD_LIBRARY_PATH LD_TRACE_LOADED_OBJECTS=1 "$loader" --inhibit-cache "$1" |
    awk '/not found/ {print $1}'
}

install_torch_environment() {  # install_torch_environment ENVIRONMENT LOG
  local environment=$1 log=$2 unresolved
  say "LibTorch to install: ${torch_packages[*]}"
  say "  into $environment (540 MB to download, 1.3 GB on disk)"
  check_room "$environment" 3000 LibTorch
  make_environment "$environment" "$log"
  pip_install "$log" "LibTorch $torch_version" "$environment" "${torch_packages[@]}"
  unresolved=$(unresolved_libraries "$environment"/lib/python3*/site-packages/torch/lib/libtorch_cpu.so)
  [[ -z $unresolved ]] ||
    fail 70 "LibTorch was installed but the loader cannot find" $unresolved "for it."
  printf '%s\n' "${torch_packages[*]}" >"$environment/.complete"
}

install_torch_python() {  # install_torch_python ENVIRONMENT LOG: `import torch` works afterwards
  local environment=$1 log=$2 i known packages=("${python_packages[@]}")
  known=$(/sbin/ldconfig -p)
  for ((i = 0; i < ${#cuda_libraries[@]}; i += 2)); do
    [[ $known == *"${cuda_libraries[i]} "* ]] || packages+=("${cuda_libraries[i + 1]}")
  done
  say "for the PyTorch side of comparisons: ${packages[*]}"
  check_room "$environment" 5000 PyTorch
  pip_install "$log" "what 'import torch' needs" "$environment" "${packages[@]}"
  "$environment/bin/python" -c 'import numpy, torch, torch.distributed as d
assert d.is_gloo_available()' >>"$log" 2>&1 ||
    fail 70 "Python cannot import torch from $environment. Details: $log"
  printf '%s\n' "${python_packages[*]}" >"$environment/.complete-python"
}

install_torch() {  # install_torch PURPOSE LOG
  local purpose=$1 log=$2 environment variable
  for variable in Torch_DIR LOCKSTEP_TORCH_ROOT; do
    [[ -z ${!variable:-} ]] || given_torch_root >/dev/null ||
      fail 78 "$variable is ${!variable}, but there is no LibTorch. Correct it, or unset it to" \
        "have one installed."
  done
  if [[ $purpose != bench ]] && { given_torch_root || private_torch_root; } >/dev/null; then
    return
  fi
  environment=$(torch_environment) || fail 78 "there is no python3 here (Debian: python3-venv)."
  mkdir -p "$(dirname "$environment")"
  (
    flock -n 9 || { say "  waiting for another installation of LibTorch ..." && flock 9; }
    has_stamp "$environment" .complete "${torch_packages[@]}" ||
      install_torch_environment "$environment" "$log"
    [[ $purpose != bench ]] || has_stamp "$environment" .complete-python "${python_packages[@]}" ||
      install_torch_python "$environment" "$log"
  ) 9>"$environment.lock"
}
