# shellcheck shell=bash
# Sourced by the scripts of deploy/ and tests/: what they say, how they fail, how they run things.
#
# Exit codes are those of every Lockstep program: 64 bad usage, 70 something failed on the way,
# 78 this machine is not one where it can work.

say() { printf '%s\n' "$*"; }
fail() {  # fail CODE SENTENCE...
  local code=$1
  shift
  printf 'error: %s\n' "$*" >&2
  exit "$code"
}

# "1 min 5 s" from seconds.
duration() {
  local s=$1
  if ((s >= 60)); then printf '%d min %d s' $((s / 60)) $((s % 60)); else printf '%d s' "$s"; fi
}

# The end of a log, short enough for a progress line.
last_line() { tail -n 1 "$1" 2>/dev/null | tr -d '\r' | cut -c 1-90; }

# logged LOG WHAT COMMAND...: runs COMMAND with its output appended to LOG; says WHAT at once, how
# far it is every 20 s, and how long it took. Returns COMMAND's status.
logged() {
  local log=$1 what=$2 begin=$SECONDS pid status=0
  shift 2
  say "  $what ..."
  printf '\n$ %s\n' "$*" >>"$log"
  "$@" >>"$log" 2>&1 </dev/null &
  pid=$!
  trap 'kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; exit 130' INT TERM
  # `tail --pid` ends with the process, `timeout` after 20 s: whichever comes first.
  while ! timeout 20 tail -s 0.1 --pid="$pid" -f /dev/null; do
    say "    ... $(duration $((SECONDS - begin))): $(last_line "$log")"
  done
  wait "$pid" || status=$?
  trap - INT TERM
  ((status != 0)) || say "    done in $(duration $((SECONDS - begin)))"
  return "$status"
}

# MiB free where PATH, or its nearest existing parent, lies.
free_mib() {
  local path=$1
  while [[ ! -d $path ]]; do path=$(dirname "$path"); done
  df -Pm "$path" | awk 'NR == 2 {print $4}'
}

# How many compilers may run at once: one a core, and 2 GiB for each.
build_jobs() {
  local cores gib
  cores=$(nproc)
  gib=$(awk '/^MemAvailable:/ {print int($2 / 1048576)}' /proc/meminfo)
  local jobs=$((gib / 2 < cores ? gib / 2 : cores))
  echo $((jobs > 0 ? jobs : 1))
}

# configure_and_build ROOT PRESET LOG TARGET...: into ROOT/build/PRESET. Returns 1 with the first
# error on stderr when it fails.
configure_and_build() {
  local root=$1 preset=$2 log=$3
  shift 3
  logged "$log" "configuring preset $preset" cmake -S "$root" --preset "$preset" || {
    grep -m1 -A12 'CMake Error' "$log" >&2 || tail -n 12 "$log" >&2
    printf 'error: CMake could not configure preset %s. Everything it said: %s\n' \
      "$preset" "$log" >&2
    return 1
  }
  local begin_line
  begin_line=$(($(wc -l <"$log") + 1))
  logged "$log" "building $*" "${without_aslr[@]}" \
    cmake --build "$root/build/$preset" -j "$(build_jobs)" --target "$@" || {
    tail -n "+$begin_line" "$log" | grep -m1 -A30 -E '^FAILED:|^ninja: error' |
      awk 'NR > 1 && /^(\[[0-9]+\/|FAILED:)/ {exit} {print}' | cut -c 1-2000 >&2
    printf 'error: the build of preset %s failed; that was the first error. Everything: %s\n' \
      "$preset" "$log" >&2
    return 1
  }
}

# The sanitizers of g++ 12 and clang 14 cannot live with the address randomisation of newer
# kernels; their programs also run while building, to list the tests.
without_aslr=()
if setarch "$(uname -m)" -R true 2>/dev/null; then without_aslr=(setarch "$(uname -m)" -R); fi
