# shellcheck shell=bash
# Sourced by deploy/install_deps.sh, after torch.sh: torchvision and transformers upon the private
# LibTorch, for the tests of models that go in and come out. Nothing of Lockstep needs them.
#
# `import torch` loads 3 GB of CUDA libraries, of which a CPU calls nothing. They are not installed:
# stand-ins of a few KB take their places, whose functions end the process (adr/0001).

models_packages=(torchvision==0.26.0 transformers==5.24.0 huggingface_hub==2.4.0 tokenizers==0.23.3
  safetensors==0.8.0 numpy==2.4.6 pillow==13.0.0 regex==2026.11.19 PyYAML==6.0.4 packaging==26.3
  tqdm==4.70.1 filelock==4.2.11 fsspec==2026.9.0 typing-extensions==4.16.0 sympy==1.14.0
  mpmath==1.3.0 networkx==3.6.1 Jinja2==3.1.6 MarkupSafe==3.0.4 setuptools==81.0.0
  requests==2.34.2 urllib3==2.8.0 certifi==2026.10.19.post1 charset-normalizer==3.5.2 idna==3.20
  httpx2==2.16.2 httpcore2==2.16.2 h11==0.16.0 anyio==4.16.0 truststore==0.10.5 click==8.5.1
  xxhash==4.1.0)  # the order of samples (tests/golden/order.py)

models_environment() { private_environment "models-${models_packages[1]#*==}"; }

models_stamp() { printf '%s\n' "torch==$torch_version ${models_packages[*]}"; }

# A Python that has them; nothing where it is not complete.
models_python() {
  local environment
  environment=$(models_environment) && private_torch_root >/dev/null &&
    has_stamp "$environment" .complete "$(models_stamp)" &&
    printf '%s\n' "$environment/bin/python-of-models" || true
}

# Libraries in DIRECTORY for those that TORCH lacks, with every function that it wants of them: first
# empty ones with the versions that it asks for, from which the loader tells what is wanted.
make_stand_ins() {  # make_stand_ins TORCH DIRECTORY
  local torch=$1 directory=$2 library version asked wanted
  local -A versions=()
  mkdir -p "$directory"
  asked=$(readelf -V -W "$torch"/lib/libtorch_{cuda,nvshmem}.so)
  for library in $(unresolved_libraries "$torch/lib/libtorch_python.so" | sort -u); do
    versions[$library]=$(awk -v name="$library" \
      '/Name:/ && found {print $3; exit} {found = index($0, "File: " name " ")}' <<<"$asked")
    make_stand_in "$directory/$library" "${versions[$library]}" </dev/null
  done
  wanted=$(for library in cuda nvshmem python; do
    LD_LIBRARY_PATH=$directory ldd -r "$torch/lib/libtorch_$library.so"
  done | sed -n 's/^undefined symbol: \([a-z]\w*\)\(, version \(\S*\)\)\?.*/\1 \3/p' | sort -u)
  for library in "${!versions[@]}"; do
    version=${versions[$library]}
    awk -v version="$version" '$2 == version {print "void " $1 "(void) { __builtin_trap(); }"}' \
      <<<"$wanted" | make_stand_in "$directory/$library" "$version"
  done
}

make_stand_in() {  # make_stand_in LIBRARY VERSION <SOURCE
  local name
  name=$(basename "$1")
  printf '%s { global: *; };\n' "${2:-$name}" >"$1.map"
  gcc -shared -nostdlib -fPIC -w -x c - -o "$1" -Wl,-soname,"$name" -Wl,--version-script="$1.map"
  rm "$1.map"
}

# `python-of-models` is an executable that any program can start; it sees no GPU.
write_models_python() {  # write_models_python ENVIRONMENT TORCH
  local environment=$1 torch=$2
  dirname "$torch" >"$(echo "$environment"/lib/python3*/site-packages)/torch.pth"
  cat >"$environment/bin/python-of-models" <<SCRIPT
#!/bin/sh
unset PYTHONPATH PYTHONHOME
export LD_LIBRARY_PATH='$environment/stand-ins' CUDA_VISIBLE_DEVICES= PYTHONNOUSERSITE=1
exec '$environment/bin/python' "\$@"
SCRIPT
  chmod +x "$environment/bin/python-of-models"
}

install_models() {  # install_models LOG
  local log=$1 environment torch
  # With a LibTorch that somebody has given there is no Python to go with it.
  torch=$(private_torch_root) || return 0
  environment=$(models_environment) || fail 78 "there is no python3 here (Debian: python3-venv)."
  ! has_stamp "$environment" .complete "$(models_stamp)" || return 0
  (
    flock -n 9 || { say "  waiting for another installation of transformers ..." && flock 9; }
    ! has_stamp "$environment" .complete "$(models_stamp)" || exit 0
    say "torchvision and transformers to install, for the tests: ${models_packages[*]:0:2}"
    say "  into $environment (62 MB to download, 420 MB on disk)"
    check_room "$environment" 900 transformers
    make_environment "$environment" "$log"
    pip_install "$log" "${models_packages[0]} and ${models_packages[1]}" "$environment" \
      "${models_packages[@]}"
    make_stand_ins "$torch" "$environment/stand-ins"
    write_models_python "$environment" "$torch"
    logged "$log" "trying them" "$environment/bin/python-of-models" -c \
      'import torch, torchvision, transformers
torch.export.export(torch.nn.Linear(2, 2), (torch.zeros(2, 2),))' ||
      fail 70 "the Python in $environment cannot load torchvision and transformers. Details: $log"
    models_stamp >"$environment/.complete"
  ) 9>"$environment.lock"
}
