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

install_arrow() {  # install_arrow LOG
  local environment
  environment=$(arrow_environment) || fail 78 "there is no python3 here (Debian: python3-venv)."
  install_wheels Arrow "Parquet files" "45 MB to download, 200 MB on disk" 500 "$environment" "$1" \
    "${arrow_packages[@]}"
}
