"""damage: one file of the run directory is changed, between a stop and the resume or under the live
run.
"""
import os
import shutil
import subprocess

from case import Case
from stage import Skip, checkpoints, poll
from verdict import expect_next_step, judge, note_first_step

# The files of a run directory that was killed in its third checkpoint. `newest` and `older` are its
# two checkpoints.
FILES = ("journal.db", "journal.db-wal", "journal.head", "job.pb", "facts.pb", "job.yaml",
         "history.jsonl", "evals.jsonl", "coordinator.json", "token", "http_token", "lock", "run.lock", "pulse",
         "terms/1", "logs/coordinator.log.jsonl", "logs/worker-0.log.jsonl", "cache/*",
         "newest/manifest.json", "newest/model.safetensors", "newest/optimizer.safetensors",
         "older/manifest.json")
DIRECTORIES = ("newest", "older", "checkpoints", "logs", "terms", "cache")


def resolve(run_dir, name):
    """`newest/…` and `older/…` are checkpoints; `*` is the first file there."""
    first, _, rest = name.partition("/")
    names = checkpoints(run_dir)
    if first in ("newest", "older"):
        path = run_dir / "checkpoints" / names[-1 if first == "newest" else 0] / rest
    elif rest == "*":
        path = sorted((run_dir / first).iterdir())[0]
    else:
        path = run_dir / name
    if not path.exists():
        raise Skip(f"there is no {name}")
    return path


def flip(path, share):
    content = bytearray(path.read_bytes())
    if not content:
        raise Skip(f"{path.name} is empty")
    content[min(len(content) - 1, int(share * len(content)))] ^= 0x04
    write_over(path, content)


def write_over(path, content):
    with open(path, "r+b") as f:
        f.write(content)
        f.truncate()


def cut(path, share):
    os.truncate(path, int(path.stat().st_size * share))


def remove(path):
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif path.exists() or path.is_symlink():
        path.unlink()


def replace_by_directory(path):
    path.unlink()
    path.mkdir()
    path.chmod(0o700)


def replace_by_link(path):
    """A link to the same content, elsewhere."""
    run_dir = next(parent for parent in path.parents if parent.name == "run")  # Stage.run_dir
    target = run_dir.with_name("elsewhere")
    shutil.move(path, target)
    path.symlink_to(target)


def replace_by_dangling_link(path):
    remove(path)
    path.symlink_to("/nonexistent/file")


def replace_by_file(path):
    remove(path)
    path.write_bytes(b"")
    path.chmod(0o600)


WAYS = {
    "flip-first-byte": lambda path: flip(path, 0),
    "flip-middle": lambda path: flip(path, 0.5),
    "flip-one-eighth": lambda path: flip(path, 0.125),
    "flip-quarter": lambda path: flip(path, 0.25),
    "flip-three-quarters": lambda path: flip(path, 0.75),
    "flip-last-byte": lambda path: flip(path, 1),
    "half": lambda path: cut(path, 0.5),
    "one-byte-short": lambda path: os.truncate(path, max(0, path.stat().st_size - 1)),
    "one-byte-left": lambda path: os.truncate(path, min(1, path.stat().st_size)),
    "empty": lambda path: os.truncate(path, 0),
    "zeros": lambda path: write_over(path, bytes(path.stat().st_size)),
    "doubled": lambda path: write_over(path, path.read_bytes() * 2),
    "deleted": remove,
    "directory": replace_by_directory,
    "link": replace_by_link,
    "dangling-link": replace_by_dangling_link,
}
SOME = ("flip-middle", "half", "empty", "deleted", "directory", "link", "dangling-link")
EVERY_WAY = ("journal.db", "journal.db-wal", "journal.head", "job.pb", "newest/manifest.json",
             "newest/model.safetensors")
# Root reads what its rights forbid, unless it gives that capability up.
NOT_ROOT = ("setpriv", "--bounding-set=-dac_override,-dac_read_search")


def put_back(stage, run_dir, path):
    """Returns a function that puts the file back, as from a backup."""
    def mend():
        remove(path)
        intact = stage.intact(path.relative_to(run_dir))
        (shutil.copytree if intact.is_dir() else shutil.copy2)(intact, path)
    return mend


def at_rest(name, way, state="killed"):
    def on(stage):
        run_dir = stage.copy_of(state)
        path = resolve(run_dir, name)
        stage.may_rewind = path.is_relative_to(run_dir / "checkpoints")
        WAYS[way](path)
        judge(stage, stage.resume(), names=[path, path.name, run_dir],
              mend=put_back(stage, run_dir, path))
    return on


def directory_at_rest(name, way):
    def on(stage):
        run_dir = stage.copy_of("killed")
        path = resolve(run_dir, name)
        stage.may_rewind = name in ("newest", "older", "checkpoints")
        {"deleted": remove, "file": replace_by_file, "link": replace_by_link}[way](path)
        judge(stage, stage.resume(), names=[path, path.name, run_dir],
              mend=put_back(stage, run_dir, path))
    return on


def unreadable(name):
    def on(stage):
        if shutil.which("setpriv") is None:
            raise Skip("there is no setpriv")
        run_dir = stage.copy_of("killed")
        path = resolve(run_dir, name)
        stage.may_rewind = path.is_relative_to(run_dir / "checkpoints")
        path.chmod(0)
        prefix = NOT_ROOT if os.geteuid() == 0 else ()
        judge(stage, stage.resume(prefix=prefix), names=[path, path.name, run_dir],
              mend=lambda: path.chmod(0o600 if path.is_file() else 0o700))
    return on


def restored(what):
    """A backup of step 55 brings some files back; the others stay as they were at the kill."""
    def on(stage):
        run_dir = stage.copy_of("killed")
        older = stage.world.directory / "killed-older"
        journal = ["journal.db", "journal.db-wal", "journal.head"]
        names = {"journal": journal, "journal-without-head": journal[:2],
                 "wal": journal[1:2], "head": journal[2:], "history": ["history.jsonl"],
                 "evals": ["evals.jsonl"],
                 "job": ["job.pb", "job.yaml", "facts.pb"], "checkpoints": ["checkpoints"],
                 "everything-but-journal": ["checkpoints", "history.jsonl", "job.pb", "token",
                                            "coordinator.json", "lock"],
                 "everything": [path.name for path in older.iterdir()]}[what]
        stage.may_rewind = "checkpoints" in names
        if what == "everything":
            shutil.rmtree(run_dir)
            run_dir.mkdir(mode=0o700)
        for name in names:
            remove(run_dir / name)
            if (older / name).exists():
                subprocess.run(["cp", "-a", older / name, run_dir / name], check=True)
        judge(stage, stage.resume(), names=["journal.db", *checkpoints(run_dir), run_dir])
    return on


def under_the_run(name, way):
    """Damages a file while the run trains. A run that cannot go on says so. It goes on when the
    file is back, from a copy of the run directory as it was."""
    def on(stage):
        run = stage.start(workers=2)
        note_first_step(stage, run)
        poll(lambda: len(checkpoints(run.run_dir)) >= 1 and run.steps() >= 55, "step 55", run)
        path = resolve(run.run_dir, name)
        stage.may_rewind = path.is_relative_to(run.run_dir / "checkpoints")
        backup = stage.scratch / "backup"
        subprocess.run(["cp", "-a", path, backup], check=True)
        WAYS[way](path)
        expect_next_step(stage, run)

        def mend():
            if not path.exists() or path.is_dir() != backup.is_dir():
                remove(path)
                subprocess.run(["cp", "-a", backup, path], check=True)
        judge(stage, run, names=[path, path.name, run.run_dir], mend=mend)
    return on


LIVE = {"journal.db": ("flip-middle", "empty", "deleted"),
        "journal.db-wal": ("flip-middle", "half", "deleted"),
        "journal.head": ("flip-middle", "empty", "deleted", "directory"),
        "job.pb": ("flip-middle", "deleted"),
        "job.yaml": ("empty", "deleted"),
        "history.jsonl": ("flip-middle", "half", "empty", "deleted", "directory", "dangling-link"),
        "evals.jsonl": ("flip-middle", "half", "empty", "doubled", "deleted", "directory", "link",
                        "dangling-link"),
        "coordinator.json": ("flip-middle", "empty", "deleted", "directory"),
        "token": ("flip-middle", "empty", "deleted"),
        "lock": ("deleted", "directory"), "run.lock": ("deleted",), "pulse": ("deleted", "directory"),
        "terms/1": ("deleted", "empty"),
        "logs/coordinator.log.jsonl": ("empty", "deleted", "directory"),
        "newest/manifest.json": ("flip-middle", "deleted"),
        "newest/model.safetensors": ("flip-middle", "half")}


def cases():
    for name in FILES:
        for way in (WAYS if name in EVERY_WAY else SOME):
            yield Case(f"damage/{name}/{way}/at-rest", at_rest(name, way))
        yield Case(f"damage/{name}/unreadable/at-rest", unreadable(name))
    for name in ("journal.db", "journal.head"):
        for way in SOME:
            yield Case(f"damage/{name}/{way}/after-stop", at_rest(name, way, "stopped"))
    for name in DIRECTORIES:
        for way in ("deleted", "file", "link"):
            yield Case(f"damage/{name}/{way}/at-rest", directory_at_rest(name, way))
    for what in ("journal", "journal-without-head", "wal", "head", "history", "evals", "job", "checkpoints",
                 "everything-but-journal", "everything"):
        yield Case(f"damage/{what}/older-copy/at-rest", restored(what))
    for name, ways in LIVE.items():
        for way in ways:
            yield Case(f"damage/{name}/{way}/live", under_the_run(name, way))
