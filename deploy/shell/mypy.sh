# shellcheck shell=bash
# Sourced by deploy/install_deps.sh, after environments.sh: mypy, which checks a user's script against the
# types of the package, for the tests. Nothing of Lockstep needs it.

mypy_packages=(mypy==2.4.1 mypy_extensions==1.2.0 pathspec==1.1.1 librt==0.17.0 ast_serialize==0.13.1
  typing_extensions==4.16.0)

# Its Python; nothing where it is not complete.
mypy_python() { pinned_python mypy "${mypy_packages[@]}"; }

install_mypy() {  # install_mypy LOG
  install_wheels mypy "the tests" "17 MB to download, 95 MB on disk" 200 "$1" \
    mypy "${mypy_packages[@]}"
}
