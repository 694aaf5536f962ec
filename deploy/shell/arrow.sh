# shellcheck shell=bash
# Sourced by deploy/install_deps.sh, after environments.sh: Arrow's C++ libraries with Parquet, from
# the wheel of pyarrow, which carries them and their headers. Debian 12 has no package of them.

arrow_packages=(pyarrow==26.0.1)

arrow_environment() { private_environment "arrow-${arrow_packages[0]#*==}"; }

# The directory with include/, libarrow.so.* and libparquet.so.*; nothing where it is not complete.
arrow_root() {
  local environment
  environment=$(arrow_environment) && has_stamp "$environment" .complete "${arrow_packages[@]}" &&
    printf '%s\n' "$environment"/lib/python3*/site-packages/pyarrow || true
}

install_arrow_environment() {  # install_arrow_environment ENVIRONMENT LOG
  local environment=$1 log=$2
  say "Arrow to install, for Parquet files: ${arrow_packages[*]}"
  say "  into $environment (45 MB to download, 200 MB on disk)"
  check_room "$environment" 500 Arrow
  make_environment "$environment" "$log"
  pip_install "$log" "${arrow_packages[*]}" "$environment" "${arrow_packages[@]}"
  printf '%s\n' "${arrow_packages[*]}" >"$environment/.complete"
}

install_arrow() {  # install_arrow LOG
  local log=$1 environment
  [[ -z $(arrow_root) ]] || return 0
  environment=$(arrow_environment) || fail 78 "there is no python3 here (Debian: python3-venv)."
  mkdir -p "$(dirname "$environment")"
  (
    flock -n 9 || { say "  waiting for another installation of Arrow ..." && flock 9; }
    [[ -n $(arrow_root) ]] || install_arrow_environment "$environment" "$log"
  ) 9>"$environment.lock"
}
