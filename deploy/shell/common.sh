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

# logged LOG WHAT COMMAND...: runs COMMAND with its output appended to LOG; says WHAT at once, that
# it still runs every 20 s, and how long it took. Returns COMMAND's status.
logged() {
  local log=$1 what=$2 begin=$SECONDS pid status=0
  shift 2
  say "  $what ..."
  printf '\n$ %s\n' "$*" >>"$log"
  "$@" >>"$log" 2>&1 </dev/null &
  pid=$!
  trap 'kill "$pid" 2>/dev/null; wait "$pid" 2>/dev/null; exit 130' INT TERM
  # `tail --pid` ends with the process, `timeout` after 20 s: whichever comes first.
  while ! timeout 20 tail --pid="$pid" -f /dev/null; do
    say "    ... still at it after $(duration $((SECONDS - begin)))"
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
