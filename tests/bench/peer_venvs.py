#!/usr/bin/env python3
"""The peers of loader.py, each in a virtual environment of its own with pinned versions, made once.

    peer_venvs.py [NAME...]     makes them (all), and prints where each is, or why it is not

The environments are in ~/.cache/lockstep/peers (LOCKSTEP_DEPS_DIR/peers), by name and versions, so
a change of versions makes new ones. torch comes from `deploy/install_deps.sh --for bench`. spdl-io
also needs the libraries of FFmpeg 5: apt-get install libavcodec59 libavformat59 libavfilter8
libavdevice59.
"""
import fcntl
import hashlib
import os
import pathlib
import shutil
import subprocess
import sys

# By name: the module that has to be there, and the packages to install.
PEERS = {
    "grain": ("grain", ["grain==0.2.18", "numpy==2.4.6"]),
    "webdataset": ("webdataset", ["webdataset==1.0.2", "pillow==13.0.0", "numpy==2.4.6"]),
    "dali": ("nvidia.dali", ["nvidia-dali-cuda120==2.4.0", "numpy==2.4.6"]),
    "spdl": ("spdl.io", ["spdl-io==0.8.0", "numpy==2.4.6"]),
    "mosaic": ("streaming", ["mosaicml-streaming==0.13.0", "numpy==2.1.3"]),
}
DEADLINE_S = 1800


def directory():
    root = os.environ.get("LOCKSTEP_DEPS_DIR", pathlib.Path.home() / ".cache/lockstep")
    return pathlib.Path(root) / "peers"


def last_words(text):
    said = [line.strip() for line in text.splitlines() if line.strip()]
    return said[-1][:200] if said else "nothing was said"


def run(*command):
    """Runs the command. Returns why it failed; empty if it did not."""
    try:
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True,
                              timeout=DEADLINE_S)
    except subprocess.TimeoutExpired:
        return f"took more than {DEADLINE_S} s"
    return "" if done.returncode == 0 else last_words(done.stderr or done.stdout)


def make(name):
    """The peer's interpreter and None, or None and why there is none."""
    module, packages = PEERS[name]
    versions = hashlib.sha256(" ".join([sys.version.split()[0], *packages]).encode()).hexdigest()
    venv = directory() / f"{name}-{versions[:12]}"
    python = venv / "bin/python"
    venv.parent.mkdir(parents=True, exist_ok=True)
    with open(f"{venv}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        whole = venv / "whole"  # environments cannot be renamed, so this file marks a whole one
        if not whole.exists():
            print(f"installing {' '.join(packages)}", file=sys.stderr)
            shutil.rmtree(venv, ignore_errors=True)
            why = run(sys.executable, "-m", "venv", venv) or run(
                python, "-m", "pip", "install", "--quiet", *packages)
            if why:
                return None, why
            whole.touch()
        why = run(python, "-c", f"import {module}")
        return (None, why) if why else (python, None)


def main():
    for name in sys.argv[1:] or PEERS:
        python, why = make(name)
        print(f"{name}: {python or 'not there: ' + why}")


if __name__ == "__main__":
    main()
