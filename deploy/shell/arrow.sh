# shellcheck shell=bash
# Sourced by deploy/install_deps.sh, after environments.sh: Arrow's C++ libraries with Parquet, from
# the wheel of pyarrow, which carries them and their headers. Debian 12 has no package of them.

arrow_packages=(pyarrow==26.0.1)

# The directory with include/, libarrow.so.* and libparquet.so.*; nothing where it is not complete.
arrow_root() {
  local modules
  modules=$(pinned_modules arrow "${arrow_packages[@]}")
  [[ -z $modules ]] || printf '%s\n' "$modules/pyarrow"
}

install_arrow() {  # install_arrow LOG
  install_wheels Arrow "Parquet files" "45 MB to download, 200 MB on disk" 500 "$1" \
    arrow "${arrow_packages[@]}"
}
