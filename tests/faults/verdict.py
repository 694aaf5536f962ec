"""The verdict on every case. Either the run ends with the bits of the undisturbed run and with
every sample used once; or it ends with a clear error and nothing lost, and its advice leads to the
same bits.

In both: no crash, no exit code that JOB.md does not have, no process that stays, no return to step
0 or to before the newest checkpoint without a word, and the next step within a bound that counts
the run's own leases and starts.
"""
import contextlib
import json
import re
import shlex
import subprocess
import time

from fails_with import is_named
from stage import COMPLAINT, CRASH, EVERY, HANG_S, LEASE_S, Defect, checkpoints, harness, \
    log_events, poll, processes_of

ONLY_ENDED = "ended with code"  # says nothing about why
CODES = {0, 64, 65, 66, 70, 75, 78}  # deploy/JOB.md
TRACEBACKS = (*CRASH, "Traceback (most recent", "Sanitizer", "Assertion", "std::")
LEASES, STARTS = 8, 20  # of the bound


def bound_s(stage, run):
    """The bound for the next step: so many leases, and so many times this run's own time to its
    first step, which grows with the load of the machine."""
    return LEASES * LEASE_S + STARTS * max(0.5, stage.seen.get("first step", 0.5))


def note_first_step(stage, run):
    poll(lambda: run.steps() >= 1, "its first step", run)
    stage.seen.setdefault("first step", round(time.monotonic() - run.begun, 2))


def expect_next_step(stage, run):
    """Called when the fault has stopped. Waits for one more step than now, or for the end."""
    begin, before, bound = time.monotonic(), run.steps(), bound_s(stage, run)
    while run.steps() <= before and not run.ended():
        if time.monotonic() - begin > bound:
            raise Defect(f"hangs: no step within {bound:.1f} s after the fault (at {before}):\n"
                         + run.text()[-2000:])
        time.sleep(0.01)
    took = round(time.monotonic() - begin, 2)
    stage.seen["next step"] = max(took, stage.seen.get("next step", 0))


def wait_for_end(run):
    try:
        code = run.wait(HANG_S)
    except subprocess.TimeoutExpired:
        raise Defect(f"hangs: it did not end in {HANG_S} s:\n" + run.text()[-2000:]) from None
    poll(lambda: not processes_of(run.run_dir), "its processes were gone", timeout_s=60)
    return code


def check_no_crash(run, text):
    for word in TRACEBACKS:
        if word in text:
            raise Defect(f"it crashed ({word!r}):\n" + text[-3000:])
    with contextlib.suppress(OSError):
        for path in (run.run_dir / "logs").glob("*.stderr"):
            if path.is_file():
                for word in TRACEBACKS:
                    if word in path.read_text(errors="replace"):
                        raise Defect(f"{path.name} has {word!r}:\n"
                                     + path.read_text(errors="replace")[-3000:])


def check_same_bits(stage, run):
    weights, rows = stage.world.whole(stage.reference)
    found = run.summary()["weights_sha256"]
    if found != weights:
        raise Defect(f"other weights: {found}, not {weights}")
    ours = {row["step"]: row for row in run.history()}
    if len(ours) != len(rows) or len(run.history()) != len(rows):
        raise Defect(f"the history has {len(ours)} steps, not {len(rows)}")
    unknown = 0  # a journal that was rebuilt may lack what only one rank had reported
    for row in rows:
        mine = ours[row["step"]]
        if stage.may_lose_losses and mine["loss"] is None:
            unknown, mine = unknown + 1, {**mine, "loss": row["loss"]}
            mine = {**mine, "lr": row["lr"]} if mine["lr"] is None else mine
        if mine != row:
            raise Defect(f"other history: {mine}, not {row}")
    if unknown > EVERY:
        raise Defect(f"{unknown} losses are unknown")
    check_same_evaluations(stage, run)
    audit = harness.lockstep("audit", run.run_dir, "--json")
    if audit.returncode != 0:
        raise Defect("the audit refuses: " + (audit.stdout + audit.stderr)[-2000:])
    account = json.loads(audit.stdout)
    if (account["lost"], account["repeated"]) != (0, 0):
        raise Defect(f"the audit finds lost {account['lost']}, repeated {account['repeated']}")
    left = harness.temporary_files(run.run_dir)
    if left:
        raise Defect(f"temporary files left behind: {left}")


def check_same_evaluations(stage, run):
    """The run has the undisturbed run's evaluations. A rebuilt journal has lost those before."""
    def evaluations(directory):
        with open(directory / "evals.jsonl") as file:
            return [json.loads(line) for line in file]
    theirs, ours = evaluations(stage.world.directory / stage.reference), evaluations(run.run_dir)
    if stage.may_lose_losses:
        theirs = [row for row in theirs if not ours or row["step"] >= ours[0]["step"]]
    if ours != theirs:
        raise Defect(f"other evaluations: {ours}, not {theirs}")


def check_no_rewind(stage, run):
    """Each generation starts at or after the newest checkpoint that the log has told of before."""
    newest = 0
    for event in log_events(run.run_dir, "checkpoint_written", "generation_started"):
        if event["event"] == "checkpoint_written":
            newest = max(newest, int(re.search(r"step-0*(\d+)", event["message"])[1]))
            continue
        begins = int(re.search(r"after step (\d+)", event["message"])[1])
        if begins < newest and not stage.may_rewind:
            raise Defect(f"it went back to step {begins}, although there was a checkpoint of step "
                         f"{newest}")
        if begins < newest and "anew" not in run.text() and begins == 0:
            raise Defect("it began anew without a word")
        newest = min(newest, begins)


LAST_WORDS = "its last words:"  # the lines below it are a dead process's own words


def complaints_in(text):
    """Lines in which Lockstep's programs say what is wrong, and the last words of others that they
    pass on."""
    told, is_quoting = [], False
    for line in text.splitlines():
        is_ours = COMPLAINT.match(line) is not None
        is_quoting = line == LAST_WORDS or (is_quoting and not is_ours)
        if (is_ours and ONLY_ENDED not in line) or (is_quoting and line != LAST_WORDS):
            told.append(line)
    return "\n".join(told)


def check_clear(run, code, names):
    """stderr has a complaint. The complaint, or what the run has told before, names the subject."""
    complaint = complaints_in(run.text())
    if not complaint or not COMPLAINT.search(run.complaint()):
        raise Defect(f"code {code} without its cause:\n" + run.text()[-2000:])
    if names and not any(is_named(str(name), complaint) for name in names):
        raise Defect(f"code {code}, and the message names none of {[str(n) for n in names]}:\n"
                     + complaint)
    return complaint


def advised(text, run_dir):
    """The arguments of the first command that a message advises for going on."""
    commands = re.findall(r"lockstep run (--resume [^\n]*|[^\n]*--resume[^\n]*)", text)
    for command in sorted(commands, key=lambda each: "--from-checkpoint" not in each):
        words = []
        for word in shlex.split(command.split("#")[0].replace(",", " , ")):
            end = word.rstrip(".;:)")
            words.append(end)
            if end != word or word == ",":
                break
        words = [word for word in words if word not in ("", ",")]
        if "--run-dir" in words:
            at = words.index("--run-dir")
            if words[at + 1] != str(run_dir):
                continue
            del words[at:at + 2]
        keep = [word for i, word in enumerate(words)
                if word.startswith("--") or (i > 0 and words[i - 1].startswith("--from"))]
        if "--resume" in keep:
            return [word for word in keep if word != "--resume"]
    return None


def check_nothing_lost(stage, run):
    """The existing checkpoints are whole."""
    if checkpoints(run.run_dir) and not stage.may_rewind:
        verified = harness.lockstep("ckpt", "verify", run.run_dir)
        if verified.returncode != 0:
            raise Defect("checkpoints are damaged: " + verified.stdout + verified.stderr)


def judge(stage, run, names=(), mend=None, expect=None, again=None):
    """Waits for the end of a run, and judges it and the outcome of its advice.

    names: an error must name one of these
    mend: undoes the fault, before a second try if the first message gives no command
    expect: the right exit codes of the first run
    again: starts the run again (default: as the message advises, or --resume)
    """
    tries = []
    for number in range(4):
        code = wait_for_end(run)
        tries.append(code)
        stage.seen["codes"] = list(tries)
        if not stage.may_abort:
            check_no_crash(run, run.text())
        if number == 0 and expect is not None and code not in expect:
            raise Defect(f"code {code}, not {sorted(expect)}:\n" + run.text()[-3000:])
        if code == 0:
            check_no_rewind(stage, run)
            return check_same_bits(stage, run)
        killed = code < 0 and number == 0 and getattr(run, "was_killed", False)
        if code not in CODES and not killed:
            raise Defect(f"exit code {code} is none of ours:\n" + run.text()[-3000:])
        words = None
        check_nothing_lost(stage, run)
        if not killed and code != 75:
            complaint = check_clear(run, code, names if number == 0 else ())
            words = advised(complaint, run.run_dir)
        if number == 3:
            break
        if mend is not None and (words is None or "--from-checkpoint" not in words):
            mend()
            mend = None
        stage.may_lose_losses |= words is not None and "--from-checkpoint" in words
        run = again() if again else next_try(stage, run, words)
    raise Defect(f"four tries ended with {tries}:\n" + run.text()[-3000:])


def next_try(stage, run, words):
    """Goes on as a user who reads the message. A run that was killed before its first files starts
    as the first time."""
    if words is None and not (run.run_dir / "job.pb").exists() and \
            not (run.run_dir / "journal.db").exists():
        return stage.start(slot_ms=0)
    if words is None and "--resume" in run.args and "run it without --resume" in run.text():
        return stage.start(slot_ms=0)
    return stage.resume(*(words or []))
