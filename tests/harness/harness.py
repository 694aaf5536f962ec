"""Starts real Lockstep processes for the multi-process tests, and cleans up after them.

LOCKSTEP_BIN names the directory of the binaries (CMake sets it). LOCKSTEP_KEEP=1 keeps the scratch
directory of a failed test, and prints its path with the command that replays the test.
"""
import contextlib
import hashlib
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import unittest
import urllib.request

import inherited_signals  # noqa: F401, which it resets
from fails_with import FailsWith, outcome_of
from idx_files import synthetic_dataset, write_idx  # noqa: F401, for tests

ROOT = pathlib.Path(__file__).resolve().parents[2]
BIN = pathlib.Path(os.environ.get("LOCKSTEP_BIN", ROOT / "build/release/bin")).resolve()
FASHION = pathlib.Path("/usr/share/datasets/fashion-mnist")
SLOW_SLOTS = BIN.parent / "tests" / "liblockstep_slow_slots.so"
FLIP_BIT = BIN.parent / "tests" / "liblockstep_flip_bit.so"
DEADLINE_S = 300  # generous: these tests check outcomes, never speed
MOST_PAUSE_S = 0.5  # between two questions of wait_for
# A question raises one of these while its answer is not there yet.
NOT_YET = (OSError, ValueError, LookupError, StopIteration, subprocess.TimeoutExpired)


class Run:
    """One `lockstep run` in a process of its own. `prefix`: a command that starts its commands
    elsewhere, such as on another host. `program`: another copy of `lockstep`."""

    def __init__(self, args, run_dir, env=None, prefix=(), program=BIN / "lockstep"):
        self.spawn([*prefix, str(program), "run", *map(str, args),
                    "--run-dir", str(run_dir)], run_dir, env, prefix)

    def spawn(self, argv, run_dir, env, prefix=()):
        self.run_dir = pathlib.Path(run_dir)
        self.prefix = list(prefix)
        self.output = self.run_dir.with_name(self.run_dir.name + f".{time.monotonic_ns()}.out")
        self.args, self.env = argv, env
        with open(self.output, "wb") as out:
            self.process = subprocess.Popen(self.args, stdout=out, stderr=subprocess.STDOUT,
                                            stdin=subprocess.DEVNULL, env=env,
                                            start_new_session=True)

    def text(self):
        return self.output.read_text(errors="replace")

    def wait(self, timeout=DEADLINE_S):
        return self.process.wait(timeout)

    def summary(self):
        return json.loads((self.run_dir / "summary.json").read_text())

    def history(self):
        with open(self.run_dir / "history.jsonl") as f:
            return [json.loads(line) for line in f]

    def coordinator_log(self):
        """Its last lines, which say which process was disturbed, and by what."""
        return (self.run_dir / "logs" / "coordinator.log.jsonl").read_text()[-8000:]

    def coordinator(self):
        return json.loads((self.run_dir / "coordinator.json").read_text())

    def status(self):
        """The coordinator's status. Waits for it, since a new coordinator may be on its way."""
        return self.wait_for(self.ask, "a status")

    def ask(self):
        out = subprocess.run([*self.prefix, BIN / "lockstep", "status", "--run-dir", self.run_dir,
                              "--json"], capture_output=True, timeout=DEADLINE_S)
        return json.loads(out.stdout) if out.stdout.strip() else {}

    def wait_for(self, condition, what):
        """Polls `condition` until true; fails if the run ends first. It polls because other
        processes have no other way to tell us their outcome."""
        deadline = time.monotonic() + DEADLINE_S
        while (asked := time.monotonic()) < deadline:
            with contextlib.suppress(*NOT_YET):
                value = condition()
                if value:
                    return value
            if self.process.poll() is not None:
                raise AssertionError(f"the run ended ({self.process.returncode}) before {what}:\n"
                                     + self.text()[-2000:])
            # Asking takes at most a third of a processor from the run. The pause has a limit, since
            # asking is slow on a busy machine and the test must not miss the moment it waits for.
            time.sleep(min(max(0.02, 2 * (time.monotonic() - asked)), MOST_PAUSE_S))
        raise AssertionError(f"waited {DEADLINE_S} s for {what}:\n" + self.text()[-2000:])

    def workers(self):
        """Pids of the living workers by rank, as the coordinator sees them."""
        return workers_of(self.status())

    def worker(self, rank):
        """The pid of the living worker with this rank. Waits until there is one."""
        return self.wait_for(lambda: self.workers()[rank], f"there was a worker of rank {rank}")

    def agent(self):
        """The pid of the living agent."""
        agents = processes_of(self.run_dir, lambda words: words[1:2] == [b"agent"])
        return agents[0]

    def wait_for_workers(self, count):
        """Waits until this many workers train together."""
        return self.wait_for(lambda: self.status()["state"] == "training"
                             and len(self.workers()) == count, f"{count} workers trained")

    def wait_for_more_steps(self, count):
        """Waits until the history has this many steps more than now."""
        return self.wait_for_step(len(self.history()) + count)

    def wait_for_step(self, step):
        return self.wait_for(lambda: len(self.history()) >= step, f"step {step} was applied")


def workers_of(status):
    """Pids by rank, an empty list while no coordinator answers."""
    members = status.get("members", [])
    return [m["pid"] for m in sorted(members, key=lambda m: m["rank"])]


def lockstep(*words, prefix=(), timeout=DEADLINE_S, **more):
    """`lockstep WORDS`, ended. `prefix`: a command that starts it elsewhere."""
    return subprocess.run([*prefix, BIN / "lockstep", *map(str, words)], capture_output=True,
                          text=True, timeout=timeout, **more)


def replay(run_dir, *args):
    return lockstep("replay", run_dir, *args)


def scratch_directory(add_cleanup=None):
    """A new directory, which the cleanups remove. Without `add_cleanup` the caller removes it."""
    path = pathlib.Path(tempfile.mkdtemp(prefix="lockstep-test-"))
    if add_cleanup is not None:
        add_cleanup(shutil.rmtree, path, ignore_errors=True)
    return path


def processes_of(run_dir, of_interest=lambda words: True):
    """Pids of our living processes whose command line names the run directory."""
    pids = []
    for entry in pathlib.Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            with contextlib.suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                ours = os.fsencode(str(run_dir)) in words and b"lockstep" in words[0]
                if any(b"lockstep._script" in word for word in words):  # of a script, and its data processes
                    ours = b"run_dir=%b\n" % os.fsencode(run_dir) in (entry / "environ").read_bytes()
                if ours and of_interest(words):
                    state = (entry / "stat").read_text().rsplit(")", 1)[1].split()[0]
                    if state != "Z":
                        pids.append(int(entry.name))
    return pids


def kill_at_once(pids):
    """Kills all at once, so that none sees another die."""
    for number in (signal.SIGSTOP, signal.SIGKILL):
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):  # it has ended, or died with its parent
                os.kill(pid, number)


def sockets_of_others(directory):
    """Inodes of the sockets of all processes whose command line does not name the directory."""
    inodes = set()
    for entry in pathlib.Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with contextlib.suppress(OSError):
            if os.fsencode(str(directory)) in (entry / "cmdline").read_bytes():
                continue
            for fd in (entry / "fd").iterdir():
                with contextlib.suppress(OSError):
                    inodes.add(os.readlink(fd).removeprefix("socket:[").removesuffix("]"))
    return inodes


def our_sockets(directory):
    """Abstract Unix sockets of Lockstep that no other process holds."""
    lines = [line.split() for line in pathlib.Path("/proc/net/unix").read_text().splitlines()]
    others = sockets_of_others(directory)
    return {words[-1] for words in lines
            if words[-1].startswith("@lockstep-") and words[-2] not in others}


def our_shared_memory():
    """Named shared memory of a run. The simulator, which may run meanwhile, keeps scratch there,
    too."""
    return {path.name for path in pathlib.Path("/dev/shm").glob("*lockstep*")
            if not path.name.startswith("lockstep-sim-")}


def temporary_files(run_dir):
    return [str(path) for pattern in ("*.tmp*", "tmp-*")
            for path in pathlib.Path(run_dir).rglob(pattern)]


def socket_files(run_dir):
    return [str(path) for path in pathlib.Path(run_dir).rglob("*") if path.is_socket()]


def trace(run):
    """The computed steps, losses and samples of a run, as one value to compare."""
    rows = [(r["step"], r["loss"], r["samples"]) for r in run.history()]
    return len(rows), hashlib.sha256(repr(rows).encode()).hexdigest()


def get(url):
    with urllib.request.urlopen(url, timeout=DEADLINE_S) as answer:
        return answer.read()


@contextlib.contextmanager
def standing_still(run):
    """Stops the run's workers meanwhile, so that the run does not end, however fast the machine is.
    Their leases must be longer than the stop."""
    pids = run.workers()
    for pid in pids:
        os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for pid in pids:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)


def slow_slots(milliseconds, library=SLOW_SLOTS):
    """Variables that make every slot of a training step sleep for so long. So the run lasts on any
    machine, and leaves its processors to other tests."""
    return {"LD_PRELOAD": str(library), "LOCKSTEP_TEST_SLOT_MS": str(milliseconds)}


def installed(what):
    """The place where deploy/install_deps.sh has put it ("arrow-root"); empty if it is not
    installed."""
    return subprocess.run([ROOT / "deploy/install_deps.sh", f"--print-{what}"], capture_output=True,
                          text=True, check=True).stdout.strip()


class LockstepTest(FailsWith, unittest.TestCase):
    slot_ms = 0  # how much longer every slot of a step takes (slow_slots.cc)

    def setUp(self):
        self.scratch = scratch_directory()  # which a failed test may keep
        self.temporary = self.scratch / "tmp"  # what the programs take for /tmp
        self.temporary.mkdir()
        self.shared_memory = our_shared_memory()
        self.runs = []
        self.addCleanup(self._clean)

    def _clean(self):
        for run in self.runs:
            for pid in processes_of(run.run_dir):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            if run.process.poll() is None:
                run.process.kill()
                run.process.wait()
        try:
            for run in self.runs:  # however they ended
                self.assert_no_process_holds_anything(run)
            self.assertEqual(list(self.temporary.iterdir()), [], "temporary files left behind")
        finally:
            self._remove_scratch()

    def _remove_scratch(self):
        result = self._outcome.result
        failed = any(test.id().startswith(self.id()) for test, _ in
                     result.failures + result.errors)
        if failed:
            where = pathlib.Path(sys.modules[type(self).__module__].__file__).resolve().parent
            print(f"replay: PYTHONPATH={os.environ.get('PYTHONPATH', '')} LOCKSTEP_BIN={BIN} "
                  f"python3 -m unittest {self.id()} "
                  f"(in {where.relative_to(ROOT)}/)", file=sys.stderr)
        if failed and os.environ.get("LOCKSTEP_KEEP"):
            print(f"kept {self.scratch}", file=sys.stderr)
        else:
            shutil.rmtree(self.scratch, ignore_errors=True)

    def small_data(self):
        path = self.scratch / "data"
        return path if path.exists() else synthetic_dataset(path)

    def job(self, data, /, name="job.yaml", **sections):
        """Writes a job file. Keyword arguments replace whole sections."""
        job = {"job": "test", "seed": 11, "model": {"name": "cnn"},
               "data": {"train": {"path": str(data)}, "eval": {"path": str(data)}},
               "train": {"global_batch": 64, "slots": 4, "epochs": 1},
               "optimizer": {"name": "adamw", "lr": 0.002}}
        job.update(sections)
        path = self.scratch / name
        path.write_text(json.dumps(job))  # JSON is YAML
        return path

    def outcome(self, *args):
        """The exit code and output of `lockstep ARGS`."""
        return outcome_of(lockstep(*args))

    def succeed(self, *args):
        """The output of `lockstep ARGS`, which ends with code 0."""
        code, text = self.outcome(*args)
        self.assertEqual(code, 0, text)
        return text

    def printed(self, *args):
        """The stdout of `lockstep ARGS`, which ends with code 0; progress goes to stderr."""
        done = lockstep(*args)
        self.assertEqual(done.returncode, 0, done.stderr)
        return done.stdout

    def audit(self, run):
        """The report of `lockstep audit --json` on a run, which must have no defects."""
        found = json.loads(self.succeed("audit", run.run_dir, "--json"))
        self.assertEqual((found["lost"], found["repeated"]), (0, 0))
        return found

    def environment(self, env=None, slot_ms=None):
        """The environment of a run's processes, on top of `env`."""
        slot_ms = self.slot_ms if slot_ms is None else slot_ms
        # On a machine of a cloud the agents would ask its service.
        return {"LOCKSTEP_METADATA_URL": "none", **(env or os.environ), "TMPDIR": str(self.temporary),
                **(slow_slots(slot_ms) if slot_ms else {})}

    def start(self, job, *args, name="run", env=None, prefix=(), slot_ms=None, **more):
        run = Run([job, *args], self.scratch / name, self.environment(env, slot_ms), prefix, **more)
        self.runs.append(run)
        return run

    def finish(self, job, *args, name="run", expect=0, **more):
        run = self.start(job, *args, name=name, **more)
        code = run.wait()
        self.assertEqual(code, expect, run.text()[-3000:])
        return run

    def assert_no_process_holds_anything(self, run):
        """Every process of the run is gone, or goes within the deadline (the kernel reaps late). So
        are its sockets, and with them its ports, and its shared memory."""
        def left():
            found = {"processes": processes_of(run.run_dir),
                     "sockets": our_sockets(run.run_dir),
                     "shared memory": our_shared_memory() - self.shared_memory}
            return {what: which for what, which in found.items() if which}

        deadline = time.monotonic() + DEADLINE_S
        while (found := left()) and time.monotonic() < deadline:
            time.sleep(0.02)
        self.assertEqual(found, {})

    def assert_nothing_left(self, run):
        """A run that has ended by itself has left nothing."""
        self.assert_no_process_holds_anything(run)
        self.assertEqual(socket_files(run.run_dir), [], "socket files left behind")
        if run.process.returncode != -signal.SIGKILL:  # else no process was left to remove them
            self.assertEqual(temporary_files(run.run_dir), [], "temporary files left behind")

    def assert_same_result(self, run, undisturbed):
        """Checks the first two promises: the same bits, and every sample once."""
        self.assertEqual(run.summary()["weights_sha256"], undisturbed.summary()["weights_sha256"])
        self.assertEqual(trace(run), trace(undisturbed))
        self.audit(run)

    def goes_on_in_another_world(self, job, undisturbed, death=20, stop=60):
        """Runs the job with two workers, kills one after step `death`, stops the run after step
        `stop` and resumes it with three. Checks that it equals `undisturbed` step by step, and
        returns the whole run."""
        run = self.start(job, "--workers", 2, name="killed", slot_ms=40)
        run.wait_for_step(death)
        os.kill(run.worker(1), signal.SIGKILL)
        run.wait_for_step(stop)
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(), 75, run.text()[-3000:])
        rest = self.finish(job, "--resume", "--workers", 3, name="killed")
        self.assert_same_result(rest, undisturbed)
        self.assertEqual(rest.history(), undisturbed.history())
        return rest

    def assert_a_kill_changes_nothing(self, job):
        """Kills one of three workers of a job of 200 steps and more. Returns that run."""
        whole = self.finish(job, "--workers", 1, name="whole")
        run = self.start(job, "--workers", 3, slot_ms=20)
        run.wait_for_workers(3)
        run.wait_for_more_steps(5)
        os.kill(run.worker(1), signal.SIGKILL)
        self.assertEqual(run.wait(), 0, run.text()[-2000:])
        self.assert_same_result(run, whole)
        return run
