# shellcheck shell=bash
# Sourced by deploy/install_deps.sh: Python wheels whose libraries we link, each in a virtual
# environment of its own, outside the clone, so that clones share it.
#
# An environment counts as installed only when its stamp, written last, says what is wanted;
# anything else is removed and made again.

private_python() {
  local python=${LOCKSTEP_PYTHON:-/usr/bin/python3}
  [[ -x $python ]] || python=$(command -v python3) || return 1
  printf '%s\n' "$python"
}

# private_environment NAME: the directory of a private environment, whether it exists or not
private_environment() {
  local python version
  python=$(private_python) || return 1
  version=$("$python" -c 'import sys; print("%d.%d" % sys.version_info[:2])') || return 1
  printf '%s/%s-py%s\n' \
    "${LOCKSTEP_DEPS_DIR:-${XDG_CACHE_HOME:-${HOME:-/root}/.cache}/lockstep}" "$1" "$version"
}

has_stamp() {  # has_stamp ENVIRONMENT NAME PACKAGE...
  [[ -r $1/$2 && $(<"$1/$2") == "${*:3}" ]]
}

# One of pinned wheels and nothing else, NAME and the version of the first of them.
pinned_environment() {  # pinned_environment NAME PACKAGE...
  private_environment "$1-${2#*==}"
}

complete_environment() {  # complete_environment NAME PACKAGE...: nothing where it is not complete
  local environment
  environment=$(pinned_environment "$@") || return 0
  ! has_stamp "$environment" .complete "${@:2}" || printf '%s\n' "$environment"
}

pinned_python() {  # pinned_python NAME PACKAGE...: its Python; nothing where it is not complete
  local environment
  environment=$(complete_environment "$@")
  [[ -z $environment ]] || printf '%s\n' "$environment/bin/python"
}

pinned_modules() {  # pinned_modules NAME PACKAGE...: its site-packages; nothing where it is not complete
  local environment
  environment=$(complete_environment "$@")
  [[ -z $environment ]] || echo "$environment"/lib/python3*/site-packages
}

check_room() {  # check_room ENVIRONMENT MIB WHAT
  local free
  free=$(free_mib "$1")
  ((free >= $2)) || fail 78 "the disk of $1 has $free MiB free; $3 needs $2 while it is installed." \
    "Make room, or set LOCKSTEP_DEPS_DIR to a directory on another disk."
}

make_environment() {  # make_environment ENVIRONMENT LOG: an empty one; what is there goes
  local environment=$1 log=$2
  rm -rf "$environment"
  "$(private_python)" -m venv "$environment" >>"$log" 2>&1 ||
    fail 78 "$(private_python) cannot make a virtual environment (Debian: python3-venv)." \
      "Details: $log"
}

pip_install() {  # pip_install LOG WHAT ENVIRONMENT PACKAGE...
  local log=$1 what=$2 environment=$3
  shift 3
  mkdir -p "$environment/tmp"
  # Unpacked beside its destination: /tmp is often too small for a wheel of this size.
  logged "$log" "$what" env TMPDIR="$environment/tmp" PYTHONNOUSERSITE=1 \
    "$environment/bin/python" -m pip install --disable-pip-version-check --no-input \
    --no-cache-dir --no-deps "$@" ||
    fail 70 "pip could not install $what; is there a network? Details: $log"
  rm -rf "$environment/tmp"
}

# One of pinned wheels, unless it is there already; one process at a time.
# install_wheels WHAT PURPOSE SIZE MIB LOG NAME PACKAGE...
install_wheels() {
  local what=$1 purpose=$2 size=$3 mib=$4 log=$5 environment
  environment=$(pinned_environment "${@:6}") ||
    fail 78 "there is no python3 here (Debian: python3-venv)."
  shift 6
  ! has_stamp "$environment" .complete "$@" || return 0
  mkdir -p "$(dirname "$environment")"
  (
    flock -n 9 || { say "  waiting for another installation of $what ..." && flock 9; }
    ! has_stamp "$environment" .complete "$@" || exit 0
    say "$what to install, for $purpose: $1"
    say "  into $environment ($size)"
    check_room "$environment" "$mib" "$what"
    make_environment "$environment" "$log"
    pip_install "$log" "$1" "$environment" "$@"
    printf '%s\n' "$*" >"$environment/.complete"
  ) 9>"$environment.lock"
}
