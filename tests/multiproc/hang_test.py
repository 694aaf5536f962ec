"""A worker is stuck while all others wait for it. The run evicts it alone, and saves its stacks."""
import ctypes
import json
import os
import pathlib
import subprocess
import threading
import unittest

from fails_with import events
from harness import LockstepTest, lockstep

HANG_S = 15  # a worker that a busy machine holds up for seconds does not count as one that hangs

WAITS = ("202 ", "232 ")  # futex and epoll_wait: the numbers of the calls on x86-64
PTRACE_SEIZE, PTRACE_INTERRUPT, PTRACE_DETACH = 0x4206, 0x4207, 17


def waiting_thread(pid, name):
    """The oldest thread of this name if it waits, for room, a lock or a message, else None: it holds no
    lock of the allocator then, for which all others would wait, too."""
    tasks = sorted(pathlib.Path(f"/proc/{pid}/task").iterdir(), key=lambda task: int(task.name))
    task = next(task for task in tasks if (task / "comm").read_text().strip() == name)
    return int(task.name) if (task / "syscall").read_text().startswith(WAITS) else None


class StoppedThread:
    """Stops one thread of another process, as a read that never returns would, and no other one."""

    def __init__(self, tid):
        self.tid = tid
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.over = threading.Event()
        self.ready = threading.Event()
        self.error = None
        self.thread = threading.Thread(target=self._hold)  # ptrace belongs to the thread that began it
        self.thread.start()
        self.ready.wait()
        if self.error:
            raise OSError(self.error, os.strerror(self.error))

    def _ptrace(self, request):
        self.libc.ptrace.argtypes = [ctypes.c_long] * 4
        if self.libc.ptrace(request, self.tid, 0, 0) != 0:
            self.error = self.error or ctypes.get_errno()

    def _hold(self):
        self._ptrace(PTRACE_SEIZE)
        self._ptrace(PTRACE_INTERRUPT)
        self.ready.set()
        self.over.wait()
        # If the process died meanwhile, no thread is left to let go.
        self.libc.ptrace(PTRACE_DETACH, self.tid, 0, 0)

    def let_go(self):
        self.over.set()
        self.thread.join()


class Hang(LockstepTest):
    def test_the_one_that_is_stuck_goes_its_stacks_are_saved_and_the_result_is_the_same(self):
        sections = {"model": {"name": "mlp"},
                    "train": {"global_batch": 64, "slots": 4, "epochs": 40},
                    "checkpoint": {"every_steps": 100, "keep": 2}}
        data = self.small_data()
        alone = self.finish(self.job(data, "alone.json", **sections), "--workers", 1, name="alone")
        job = self.job(data, cluster={"hang_s": HANG_S, "lease_s": 120}, **sections)
        run = self.start(job, "--workers", 4, slot_ms=20)
        run.wait_for_step(30)
        victim = run.wait_for(lambda: next(m for m in run.status()["members"] if m["rank"] == 2),
                              "a member of rank 2")
        # Its loader never delivers again; its heartbeats go on.
        stopped = StoppedThread(run.wait_for(lambda: waiting_thread(victim["pid"], "loader"),
                                             "its loader waited"))
        self.addCleanup(stopped.let_go)
        # The file gets the stacks thread by thread, oldest first: the training thread before the
        # loader, which may go on once its stack is there.
        stacks = run.wait_for(lambda: next(path for path in (run.run_dir / "logs").glob(
            f"worker-*.{victim['pid']}.stacks.txt") if " loader\n" in path.read_text()),
            "the stacks were saved")
        stopped.let_go()
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        text = stacks.read_text()
        self.assertIn(" training", text)
        self.assertIn(" loader", text)
        self.assertIn("data::Loader::next", self.names(text), text)
        self.assertEqual(len(events(run, "member_died")), 1, run.text())
        self.assert_event(run, "member_died", names=f"pid {victim['pid']}", says="hangs")
        self.assertEqual(run.summary()["weights_sha256"], alone.summary()["weights_sha256"])
        self.assertEqual(run.history(), alone.history())
        self.assert_the_report_names(run, victim["rank"])
        self.assert_nothing_left(run)

    def assert_the_report_names(self, run, rank):
        """Each worker recorded where its collectives stood; the report names the rank that did not
        come."""
        done = lockstep("report", run.run_dir, "-o", "-")
        self.assertEqual(done.returncode, 0, done.stderr)
        data = done.stdout.split('id="data">', 1)[1].split("</script>", 1)[0]
        hang = json.loads(data)["hang"]
        self.assertEqual({each["rank"] for each in hang["ranks"]}, {0, 1, 2, 3}, hang)
        self.assertEqual(hang["ranks"][0]["rank"], rank, hang)
        self.assertRegex(" ".join(hang["findings"]),
                         f"ranks 0, 1, 3 wait in .*; rank {rank} has not come to it")

    def names(self, stacks):
        """The names that addr2line, by the command in the file, gives the training thread's
        frames."""
        training = stacks.split(" training\n")[1].split("\nthread ")[0]
        frames = [line.split("(+") for line in training.splitlines() if "(+" in line]
        found = ""
        for program, rest in frames:
            offset = rest.split(")")[0]
            if os.path.basename(program).startswith("lockstep-worker"):
                found += subprocess.run(["addr2line", "-Cfipe", program, offset], text=True,
                                        capture_output=True, check=True).stdout
        return found


if __name__ == "__main__":
    unittest.main()
