#!/usr/bin/env bash
# Installs what is missing, and nothing else: Debian packages, and LibTorch and Arrow from their Python
# wheels into private directories outside the clone, and moto, torchvision, transformers, Lightning and
# mypy for the tests, auditwheel for a wheel. When nothing is missing it ends within a second.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: deploy/install_deps.sh [--for build|wheel|tests|bench] [--no-apt] [--print-torch-root]
                              [--print-arrow-root] [--print-moto-python]
                              [--print-models-python] [--print-frameworks-root]
                              [--print-wheel-python] [--print-mypy-python]

  --for build   what building and running needs (default)
  --for wheel   that, and auditwheel, with which deploy/wheel.py makes a wheel
  --for tests   that, and clang with its fuzzer, Google Benchmark, Open MPI, Slurm, Prometheus,
                Chromium, curl, sshd, what validates manifests for Kubernetes, moto, which
                imitates Amazon's services, torchvision, transformers, libraries around loops in
                Python (Lightning, peft, hydra, IPython, pandas) and mypy
  --for bench   that, and what `import torch` needs, for the PyTorch side of the comparisons
                (about 1.5 GB more where there is no CUDA toolkit)
  --no-apt      leave Debian packages alone, e.g. on another distribution
                (same as LOCKSTEP_SKIP_APT=1)
  --print-torch-root  print the directory that holds LibTorch's include/ and lib/, or nothing,
                and install nothing
  --print-arrow-root  likewise, of Arrow's include/ and libraries
  --print-moto-python  likewise, the Python that has moto
  --print-models-python  likewise, the Python that has torch, torchvision and transformers
  --print-frameworks-root  likewise, the modules of Lightning, peft, pandas and others for that
                      Python
  --print-wheel-python  likewise, the Python that has auditwheel
  --print-mypy-python  likewise, the Python that has mypy

environment:
  Torch_DIR, CMAKE_PREFIX_PATH, LOCKSTEP_TORCH_ROOT   use this LibTorch; none is downloaded
  LOCKSTEP_DEPS_DIR   where the private ones go (default: ~/.cache/lockstep)
  LOCKSTEP_PYTHON     the Python that makes their environments (default: /usr/bin/python3)
TEXT
}

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(dirname "$here")
. "$here/shell/common.sh"
. "$here/shell/environments.sh"
. "$here/shell/torch.sh"
. "$here/shell/arrow.sh"
. "$here/shell/moto.sh"
. "$here/shell/models.sh"
. "$here/shell/frameworks.sh"
. "$here/shell/wheel.sh"
. "$here/shell/mypy.sh"

build_packages=(g++ cmake ninja-build ccache mold pkg-config python3-venv libboost1.81-dev
  libssl-dev libprotobuf-dev protobuf-compiler libsqlite3-dev prometheus-cpp-dev libyaml-cpp-dev
  nlohmann-json3-dev libcli11-dev libspdlog-dev libxxhash-dev zlib1g-dev libcurl4-openssl-dev libjpeg62-turbo-dev
  libpng-dev libwebp-dev liblz4-dev libzstd-dev libflatbuffers-dev flatbuffers-compiler
  libgtest-dev libgmock-dev librapidcheck-dev dataset-fashion-mnist)
test_packages=(clang clang-format-14 clang-tidy-14 libclang-rt-14-dev debootstrap libbenchmark-dev libopenmpi-dev openmpi-bin curl procps
  binutils iproute2 openssl prometheus slurm-wlm munge chromium openssh-client openssh-server
  python3-jsonschema python3-yaml libjpeg-turbo-progs python3-fusepy fuse3)

purpose=build
use_apt=1
[[ -z ${LOCKSTEP_SKIP_APT:-} || ${LOCKSTEP_SKIP_APT:-} == 0 ]] || use_apt=0
print_root=
while (($# > 0)); do
  case $1 in
    --for) purpose=${2:-}; shift ;;
    --for=*) purpose=${1#--for=} ;;
    --no-apt) use_apt=0 ;;
    --print-torch-root) print_root=torch_root ;;
    --print-arrow-root) print_root=arrow_root ;;
    --print-moto-python) print_root=moto_python ;;
    --print-models-python) print_root=models_python ;;
    --print-frameworks-root) print_root=frameworks_root ;;
    --print-wheel-python) print_root=wheel_python ;;
    --print-mypy-python) print_root=mypy_python ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; fail 64 "unknown argument '$1'." ;;
  esac
  shift
done
case $purpose in
  build | wheel | tests | bench) ;;
  *) fail 64 "--for takes build, wheel, tests or bench." ;;
esac
for_tests=0  # tests and bench, which needs all that tests do
case $purpose in tests | bench) for_tests=1 ;; esac

if [[ -n $print_root ]]; then
  "$print_root"
  exit 0
fi

mkdir -p "$root/build"
log=$root/build/install_deps.log

missing_packages() {
  local wanted=("${build_packages[@]}") name
  local -A have=()
  ((!for_tests)) || wanted+=("${test_packages[@]}")
  while read -r name; do have[$name]=1; done < <(
    dpkg-query -W -f '${Package} ${Status}\n' "${wanted[@]}" 2>/dev/null |
      awk '/install ok installed$/ {print $1}')
  for name in "${wanted[@]}"; do
    [[ -n ${have[$name]:-} ]] || printf '%s\n' "$name"
  done
}

check_distribution() {
  local id='' version='' name='an unknown system'
  if [[ -r /etc/os-release ]]; then
    id=$(. /etc/os-release && printf %s "${ID:-}")
    version=$(. /etc/os-release && printf %s "${VERSION_ID:-}")
    name=$(. /etc/os-release && printf %s "${PRETTY_NAME:-$ID}")
  fi
  [[ $id == debian && $version == 12 ]] || fail 78 "this is $name, and the package names here are" \
    "those of Debian 12. Install the equivalents of: ${build_packages[*]}; then run this again" \
    "with --no-apt (or LOCKSTEP_SKIP_APT=1)."
}

install_packages() {
  local missing=("$@") as_root=()
  say "Debian packages to install: ${missing[*]}"
  if ((EUID != 0)); then
    command -v sudo >/dev/null || fail 78 "installing Debian packages needs root, and there is no" \
      "sudo here. As root: apt-get install ${missing[*]}"
    sudo -v || fail 78 "sudo was refused. As root: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  local free
  free=$(free_mib /usr)
  ((free >= 1500)) || fail 78 "the disk of /usr has $free MiB free; the packages need 1500."
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get
    -o DPkg::Lock::Timeout=300 -o Acquire::Retries=2)
  logged "$log" "reading the package lists" "${apt[@]}" update ||
    fail 70 "the package lists could not be read; is there a network? Details: $log"
  logged "$log" "installing ${#missing[@]} packages" \
    "${apt[@]}" install -y --no-install-recommends "${missing[@]}" ||
    fail 70 "apt-get could not install the packages; is there a network? Details: $log"
  # The tests start their own; nobody has asked for a service that listens.
  local pair
  for pair in prometheus:prometheus munge:munge openssh-server:ssh; do
    if [[ " ${missing[*]} " == *" ${pair%:*} "* && -d /run/systemd/system ]]; then
      logged "$log" "stopping the service ${pair#*:}" \
        "${as_root[@]}" systemctl disable --now "${pair#*:}"
    fi
  done
}

if ((use_apt)); then
  check_distribution
  mapfile -t missing < <(missing_packages)
  ((${#missing[@]} == 0)) || install_packages "${missing[@]}"
fi
install_torch "$purpose" "$log"
install_arrow "$log"
[[ $purpose == build ]] || install_wheel_tools "$log"
((!for_tests)) || install_moto "$log"
((!for_tests)) || install_models "$log"
((!for_tests)) || install_frameworks "$log"
((!for_tests)) || install_mypy "$log"
