#!/usr/bin/env bash
# From a fresh clone to a trained network: installs what is missing, builds, trains.
set -euo pipefail

usage() {
  cat <<'TEXT'
usage: deploy/quickstart.sh [--build-only]

Installs what is missing, builds Lockstep, and trains a small convolutional network on
Fashion-MNIST with two workers on this machine. A second call finds everything in place and trains
again, in a new directory below runs/.

  --build-only   stop before training
  --help         this text

It needs Debian 12, root or sudo for the packages, and a network the first time; no GPU. On another
distribution install the packages by hand and set LOCKSTEP_SKIP_APT=1
(deploy/install_deps.sh --help says more, also how to use a LibTorch that you have).
TEXT
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/deploy/shell/common.sh"

build_only=0
for argument in "$@"; do
  case $argument in
    --build-only) build_only=1 ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; fail 64 "unknown argument '$argument'." ;;
  esac
done

mkdir -p "$root/build"
log=$root/build/quickstart.log
bin=$root/build/release/bin
: >"$log"

build_jobs_count=$(build_jobs)
phase() { say "[$(duration $SECONDS)] $*"; }

free_run_directory() {  # runs/quickstart, or the first of runs/quickstart-2, -3, ... not there yet
  local directory=runs/quickstart number=2
  while [[ -e $root/$directory ]]; do
    directory=runs/quickstart-$number
    number=$((number + 1))
  done
  echo "$directory"
}

phase "1/3 dependencies"
"$root/deploy/install_deps.sh"

# What compiling everything took on two cores of an AMD EPYC of 2.6 GHz, in CPU seconds.
readonly build_cpu_seconds=650
phase "2/3 build (the first time about $((build_cpu_seconds / build_jobs_count / 60 + 1)) minutes on" \
  "$build_jobs_count cores)"
configure_and_build "$root" release "$log" programs || exit 70
if ((build_only)); then
  phase "built: $bin"
  exit 0
fi

cd "$root"
run=$(free_run_directory)
phase "3/3 training, two workers, results in $run"
status=0
build/release/bin/lockstep run deploy/examples/fashion_mnist_cnn.yaml --workers 2 \
  --run-dir "$run" || status=$?
if ((status == 75)); then
  say "Stopped with a checkpoint. To go on: build/release/bin/lockstep run" \
    "deploy/examples/fashion_mnist_cnn.yaml --workers 2 --run-dir $run --resume"
  exit 75
fi
((status == 0)) || fail "$status" "the training failed; its logs are in $run/logs."

phase "done; $run holds summary.json, history.jsonl (a line a step), checkpoints and logs"
cat <<TEXT

To call the program by its name:
  export PATH=$bin:\$PATH
Worth trying next:
  # one worker instead of two: the same weights, bit for bit
  lockstep run deploy/examples/fashion_mnist_cnn.yaml --workers 1 --run-dir $run-alone
  # other settings: any key of the job file can be given like this
  lockstep run deploy/examples/fashion_mnist_cnn.yaml model.dropout=0.2 train.epochs=8 \\
      --workers 2 --run-dir $run-dropout
  # what a data set holds, before training on it
  lockstep data inspect /usr/share/datasets/fashion-mnist
TEXT
