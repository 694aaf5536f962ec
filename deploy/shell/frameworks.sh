# shellcheck shell=bash
# Sourced by deploy/install_deps.sh, after models.sh, for the tests, upon the environment of models.sh:
# PyTorch Lightning, and accelerate, without which transformers' Trainer trains nothing (lockstep.fit()
# and lockstep.Trainer); peft, hydra and IPython, around loops in Python; pandas, which reads the rows
# that an exported model wants. Nothing of Lockstep needs them.

frameworks_packages=(pytorch-lightning==2.6.1 torchmetrics==1.9.0 lightning-utilities==0.15.3
  accelerate==1.15.0 psutil==7.2.2 peft==0.21.2
  hydra-core==1.3.8 omegaconf==2.3.1 antlr4-python3-runtime==4.9.3
  pandas==3.1.1 python-dateutil==4.0.0
  ipython==9.18.1 ipython-pygments-lexers==1.1.1 jedi==0.20.1 parso==0.8.7 matplotlib-inline==0.2.2
  traitlets==5.16.1 pexpect==4.9.0 ptyprocess==0.7.0 prompt-toolkit==3.0.53 wcwidth==0.9.4
  pygments==2.21.0 stack-data==0.6.3 executing==2.3.0 asttokens==3.0.2 pure-eval==0.2.4)

# The directory of their modules, for PYTHONPATH; nothing where it is not complete.
frameworks_root() { pinned_modules frameworks "${frameworks_packages[@]}"; }

install_frameworks() {  # install_frameworks LOG
  install_wheels "libraries around loops in Python" "the tests" "20 MB to download, 200 MB on disk" 400 "$1" \
    frameworks "${frameworks_packages[@]}"
}
