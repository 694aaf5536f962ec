"""disk: a call fails as on a broken or full disk. power: everything is killed, and what was not
synced is lost.
"""
import errno
import signal

from case import Case
from jobs import check_script_log, resume_script, start_script
from lost_writes import undo_content, undo_names
from stage import BIN, Defect, Skip, poll, processes_of
from verdict import judge

BAD_DISK = BIN.parent / "tests" / "liblockstep_bad_disk.so"


def broken(stage, file, call, at, do):
    if not BAD_DISK.exists():
        raise Skip(f"there is no {BAD_DISK}; build lockstep_bad_disk")
    state = stage.scratch / "disk"
    state.mkdir(exist_ok=True)
    return {"LD_PRELOAD": str(BAD_DISK), "LOCKSTEP_TEST_DISK_IN": str(stage.run_dir),
            "LOCKSTEP_TEST_DISK_FILE": file, "LOCKSTEP_TEST_DISK_CALL": call,
            "LOCKSTEP_TEST_DISK_AT": at, "LOCKSTEP_TEST_DISK_DO": str(do),
            "LOCKSTEP_TEST_DISK_STATE": str(state)}


def fails(file, call, at, error, resumes):
    def on(stage):
        if resumes:
            stage.copy_of("killed")
        env = broken(stage, file, call, at, getattr(errno, error))
        begin = stage.resume if resumes else stage.start
        run = begin(env=env, slot_ms=2)
        run.wait()
        failed = stage.scratch / "disk" / "failed"
        if not failed.exists():
            raise Defect("no call failed: the case is wrong")
        path = failed.read_text().splitlines()[0]
        judge(stage, run, names=[path, path.rsplit("/", 1)[1], stage.run_dir])
    return on


def partly(file, call, at, do):
    """The call does less than asked, which is no error."""
    def on(stage):
        env = broken(stage, file, call, at, do)
        run = stage.start(env=env, slot_ms=2)
        judge(stage, run, expect={0})
    return on


def cut(file, call, at, names, is_script=False):
    def on(stage):
        env = broken(stage, file, call, str(at), "cut")
        run = start_script(stage, env=env, slot_ms=2) if is_script else stage.start(env=env, slot_ms=2)
        if run.wait() != -signal.SIGKILL:
            raise Defect(f"no power cut: it ended with {run.process.returncode}")
        poll(lambda: not processes_of(run.run_dir), "all were dead")
        state = stage.scratch / "disk"
        stage.seen["names undone"] = undo_names(state) if names else 0
        stage.seen["files undone"] = len(undo_content(state, stage.run_dir))
        run.was_killed = True
        stage.may_rewind = True  # the log is not synced, and may tell of undone steps
        judge(stage, run, again=(lambda: resume_script(stage)) if is_script else None)
        if is_script:
            check_script_log(run)
    return on


# file, call, which calls of it fail
FAILING = (("journal.db-wal", "sync", ("1", "4", "12+")),
           ("journal.db-wal", "write", ("1", "9", "40+")),
           ("journal.db", "make", ("1",)),
           ("journal.head", "make", ("1",)), ("journal.head", "write", ("1", "5+")),
           ("checkpoints", "make", ("1", "4", "6+")), ("checkpoints", "write", ("1", "8", "20+")),
           ("checkpoints", "sync", ("1", "6+")), ("checkpoints", "name", ("1", "3+")),
           ("history.jsonl", "write", ("1", "5+")), ("history.jsonl", "make", ("1",)),
           ("evals.jsonl", "write", ("1", "3+")), ("evals.jsonl", "make", ("1",)),
           ("job.pb", "write", ("1",)), ("job.yaml", "sync", ("1",)), ("token", "write", ("1",)),
           ("token", "make", ("1",)), ("facts.pb", "name", ("1",)),
           ("coordinator.json", "write", ("1+",)), ("coordinator.json", "name", ("1",)),
           ("terms", "make", ("1",)), ("terms", "name", ("1",)), ("terms", "write", ("1",)),
           ("pulse", "write", ("1+",)), ("summary.json", "write", ("1",)),
           ("summary.json", "name", ("1",)), ("lock", "make", ("1",)))
ERRORS = ("EIO", "ENOSPC", "EDQUOT", "EROFS")


def cases():
    number = 0
    for file, call, places in FAILING:
        for at in places:
            for error in (ERRORS[number % 4], ERRORS[(number + 1) % 4]):
                yield Case(f"disk/{file}/{call}-{at}-{error}/first-start",
                           fails(file, call, at, error, False))
            number += 1
    for file, call in (("journal.db-wal", "write"), ("journal.db-wal", "sync"),
                       ("checkpoints", "write"), ("checkpoints", "name"),
                       ("history.jsonl", "write"), ("evals.jsonl", "write"), ("job.pb", "name"), ("token", "write")):
        yield Case(f"disk/{file}/{call}-1-EIO/resume", fails(file, call, "1", "EIO", True))
    for file in ("journal.db", "checkpoints", "history.jsonl", "evals.jsonl", "job", ""):
        yield Case(f"disk/{file or 'all-files'}/short-writes/first-start",
                   partly(file, "write", "1+", "short"))
        yield Case(f"disk/{file or 'all-files'}/interrupted-write/first-start",
                   partly(file, "write", "3", errno.EINTR))
    for file, call, places in (("journal.db-wal", "sync", (1, 2, 3, 5, 8, 13, 20, 30)),
                               ("journal.db-wal", "write", (2, 7, 25, 60, 100)),
                               ("checkpoints", "sync", (1, 2, 3, 4, 6, 10)),
                               ("checkpoints", "name", (1, 2, 4)),
                               ("", "sync", (1, 3, 6, 9, 12, 15, 18, 25, 40))):
        for at in places:
            for names in (False, True):
                what = "content-and-names" if names else "content"
                yield Case(f"power/{file or 'all-files'}/{what}-lost/before-{call}-{at}",
                           cut(file, call, at, names))
    for file, call, places in (("script_log.jsonl", "sync", (1, 2, 3, 5)),
                               ("script_log.jsonl", "name", (1,)),
                               ("script_log.jsonl", "write", (5, 15, 35)),
                               ("", "sync", (20, 30, 45))):
        for at in places:
            for names in (False, True):
                what = "content-and-names" if names else "content"
                yield Case(f"power/script/{file or 'all-files'}/{what}-lost/before-{call}-{at}",
                           cut(file, call, at, names, is_script=True))
