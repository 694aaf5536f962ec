# shellcheck shell=bash
# Sourced by deploy/install_deps.sh, after models.sh: PyTorch Lightning, and accelerate, without which
# transformers' Trainer trains nothing. For the tests of lockstep.fit() and lockstep.Trainer, upon the
# environment of models.sh. Nothing of Lockstep needs them.

frameworks_packages=(pytorch-lightning==2.6.1 torchmetrics==1.9.0 lightning-utilities==0.15.3
  accelerate==1.15.0 psutil==7.2.2)

# The directory of their modules, for PYTHONPATH; nothing where it is not complete.
frameworks_root() { pinned_modules frameworks "${frameworks_packages[@]}"; }

install_frameworks() {  # install_frameworks LOG
  install_wheels "PyTorch Lightning and accelerate" "the tests" "3 MB to download, 45 MB on disk" 150 "$1" \
    frameworks "${frameworks_packages[@]}"
}
