"""Undoes what a power cut loses: content that was written and not synced, and names given in a
directory that was not synced afterwards. bad_disk.cc keeps what was there before.
"""
import contextlib
import os
import pathlib


def undo_names(state):
    """Undoes renames since the last sync of their directory, the newest first. Returns their
    number."""
    open_renames = []
    names = state / "names"
    lines = names.read_text().splitlines() if names.exists() else []
    for line in lines:
        kind, *words = line.split("\t")
        if kind == "synced":
            open_renames = [each for each in open_renames
                            if os.path.dirname(each[1]) != words[0]]
        else:
            open_renames.append(words)
    for source, target, kept in reversed(open_renames):
        if not os.path.lexists(target) or os.path.lexists(source):
            continue  # it is gone since
        os.rename(target, source)
        if kept:
            with contextlib.suppress(OSError):
                os.link(kept, target)
    return len(open_renames)


def undo_content(state, run_dir):
    """Gives files the bytes of their last sync back. Returns their names."""
    shadows = {int(path.name.split("-")[1]): path for path in state.glob("inode-*")}
    undone = []
    for path in pathlib.Path(run_dir).rglob("*"):
        if path.is_file() and not path.is_symlink() and path.stat().st_ino in shadows:
            with open(path, "r+b") as f:
                f.write(shadows[path.stat().st_ino].read_bytes())
                f.truncate()
            undone.append(path.name)
    return undone
