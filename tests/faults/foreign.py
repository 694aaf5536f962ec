"""foreign: a run directory, or one thing in it, belongs to another user, or others may write it. A
user who can write there could run code as the user who loads it. Commands that load refuse it and
name it; commands that only show it do not.
"""
import os
import subprocess

from case import Case
from damage import FILES, resolve
from stage import Defect, Skip, harness
from verdict import judge

STRANGER = 54321  # a uid of no user here
DIRECTORIES = ("newest", "checkpoints", "logs", "terms", "cache")
LOADS = {"eval": ["eval", "RUN"], "predict": ["predict", "RUN", "DATA"],
         "generate": ["generate", "RUN", "--prompt", "x"],
         "replay": ["replay", "RUN", "--step", "1"],
         "export": ["export", "model", "RUN", "OUT"],
         "agent": ["agent", "--run-dir", "RUN", "--workers", "1"], "scale": ["scale", "RUN", "2"],
         "drain": ["drain", "RUN", "--member", "1"], "stop": ["stop", "RUN"]}
SHOWS = {"status": ["status", "RUN"], "top": ["top", "RUN", "--once"], "runs": ["runs", "RUN"],
         "report": ["report", "RUN"], "audit": ["audit", "RUN"], "ckpt": ["ckpt", "verify", "RUN"]}


def need_root():
    if os.geteuid() != 0:
        raise Skip("only root can give files to another user")


def given_away(name):
    def on(stage):
        need_root()
        path = resolve(stage.copy_of("killed"), name)
        os.chown(path, STRANGER, STRANGER)
        judge(stage, stage.resume(), names=[path], expect={78}, mend=lambda: os.chown(path, 0, 0))
    return on


def open_to_others(name):
    def on(stage):
        run_dir = stage.copy_of("killed")
        path = resolve(run_dir, name)
        for parent in path.parents:  # so that others may enter
            parent.chmod(parent.stat().st_mode | 0o055)
            if parent == run_dir:
                break
        mode = path.stat().st_mode
        path.chmod(mode | 0o002)
        judge(stage, stage.resume(), names=[path], expect={78}, mend=lambda: path.chmod(mode))
    return on


def command(words, loads):
    """Runs a command on a run that belongs to another user as a whole."""
    def on(stage):
        need_root()
        run_dir = stage.copy_of("killed")
        places = {"RUN": run_dir, "DATA": stage.world.data, "OUT": stage.scratch / "out"}
        subprocess.run(["chown", "-R", str(STRANGER), run_dir], check=True)
        done = harness.lockstep(*(places.get(word, word) for word in words), cwd=stage.scratch)
        text = done.stdout + done.stderr
        is_refused = done.returncode == 78 and str(STRANGER) in done.stderr
        if loads and not is_refused:
            raise Defect(f"it was not refused ({done.returncode}):\n{text}")
        if not loads and (str(STRANGER) in text or done.returncode not in (0, 1, 3)):
            raise Defect(f"it did not show the run ({done.returncode}):\n{text}")
        subprocess.run(["chown", "-R", "0", run_dir], check=True)
        judge(stage, stage.resume())
    return on


def cases():
    for name in (*FILES, *DIRECTORIES):
        yield Case(f"foreign/{name}/given-away/at-rest", given_away(name))
    for name in ("job.pb", "terms/1", "cache/*", "newest/model.safetensors", *DIRECTORIES):
        yield Case(f"foreign/{name}/open-to-others/at-rest", open_to_others(name))
    for name, words in LOADS.items():
        yield Case(f"foreign/run/another-user's/{name}", command(words, loads=True))
    for name, words in SHOWS.items():
        yield Case(f"foreign/run/another-user's/{name}", command(words, loads=False))
