#!/usr/bin/env bash
# Seeds of faults against real runs: kill -9, SIGSTOP, SIGTERM, dead coordinators and agents, cut
# connections, other numbers of workers; each compared with an undisturbed run with one worker.
set -euo pipefail

usage() {
  cat <<TEXT
usage: tests/chaos.sh [--seeds N] [--first SEED] [--workers N] [--faults N] [--model NAME]
                      [--python]

  --seeds    how many (3)
  --first    the first of them (1)
  --workers  of the disturbed run (8)
  --faults   in each run (50)
  --model    mlp or cnn (mlp); with --python also gpt, all (the three in fp32 and bf16), drawn
             (samples drawn by weights), package (the same, a module started by -m), phases (two
             networks that take turns on each batch) and everyday (natural epochs, early stopping,
             samples by weight, buffers by rule, two evaluations)
  --python   a training loop in Python; faults of its data processes and their zygote, too, and
             resumes in another world
Needs the preset release; \$LOCKSTEP_BIN names other programs. A seed that fails prints the command
that replays it.
TEXT
}

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
. "$root/deploy/shell/common.sh"

seeds=3 first=1
arguments=()
while (($# > 0)); do
  case $1 in
    --seeds) seeds=${2:?"--seeds needs a number"}; shift ;;
    --first) first=${2:?"--first needs a number"}; shift ;;
    --workers | --faults | --model) arguments+=("$1" "${2:?"$1 needs a value"}"); shift ;;
    --python) arguments+=("$1") ;;
    -h | --help) usage; exit 0 ;;
    *) usage >&2; fail 64 "unknown argument '$1'." ;;
  esac
  shift
done
export LOCKSTEP_BIN=${LOCKSTEP_BIN:-$root/build/release/bin}
[[ -x $LOCKSTEP_BIN/lockstep ]] ||
  fail 66 "there is no $LOCKSTEP_BIN/lockstep; build it: cmake --build build/release"

failed=0
for ((seed = first; seed < first + seeds; seed++)); do
  python3 "$root/tests/chaos/chaos.py" --seed "$seed" "${arguments[@]}" || failed=$((failed + 1))
done
say "$((seeds - failed)) of $seeds seeds passed"
((failed == 0))
