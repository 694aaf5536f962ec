"""Kills a worker with kill -9 while NCCL sums large buckets: its GPU's memory is free before the
next worker connects, and no GPU keeps more from death to death. Without a GPU, the test reads the
memory of the worker's process, and the host sums."""
import os
import pathlib
import random
import signal
import subprocess
import unittest

from gpu_test import DEVICE, GPUS, GpuTest, needs_several_gpus, note

RANKS = min(GPUS, 8) if DEVICE == "cuda" else 2
KILLS = 2
# Drivers and allocators take and give back less than this by themselves. A rank that kept a dead
# peer's memory would keep the whole result, 340 MB.
MARGIN_MIB = 256
TEXT = {"cuda": {"name": "gpt2", "size": "d12", "block": 256},
        "cpu": {"name": "gpt2", "n_layer": 2, "n_head": 2, "n_embd": 64, "block": 32}}[DEVICE]


def gpu_of(place):
    """The GPU's name for nvidia-smi, which does not know CUDA_VISIBLE_DEVICES."""
    names = [name for name in os.environ.get("CUDA_VISIBLE_DEVICES", "").split(",") if name]
    return names[place] if names else str(place)


def place_of(pid):
    """The worker's number on its node, which is also its GPU's number. None without such a
    process."""
    try:
        words = pathlib.Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return None
    return int(words[words.index(b"--local-rank") + 1]) if b"--local-rank" in words else None


def gpu_mib(place):
    said = subprocess.run(["nvidia-smi", "-i", gpu_of(place), "--query-gpu=memory.used",
                           "--format=csv,noheader,nounits"], check=True, capture_output=True,
                          text=True, timeout=60).stdout
    return int(said.strip())


def resident_mib(pid):
    try:
        pages = int(pathlib.Path(f"/proc/{pid}/statm").read_text().split()[1])
    except (OSError, IndexError):
        return 0
    return pages * os.sysconf("SC_PAGE_SIZE") >> 20


@needs_several_gpus
class NcclMemory(GpuTest):
    def begin(self):
        text = self.scratch / "text.txt"
        text.write_text("".join(random.Random(1).choices(["the ", "rank ", "sums "], k=20_000)))
        job = self.job_of(model=TEXT, data=text, global_batch=4 * RANKS, slots=RANKS,
                          epochs=100_000, checkpoint={"every_steps": 1_000_000},
                          comm={"backend": "nccl" if DEVICE == "cuda" else "host"})
        return self.start(job, "--workers", RANKS)

    def mib(self, run, place):
        """MiB in use at this place, on its GPU or by the worker's process. Raises LookupError if
        there is no worker."""
        if DEVICE == "cuda":
            return gpu_mib(place)
        return sum(resident_mib(pid) for pid in run.workers() if place_of(pid) == place)

    def steady(self, run):
        run.wait_for_workers(RANKS)
        run.wait_for_more_steps(5)
        return [self.mib(run, place) for place in range(RANKS)]

    def kill(self, run, rank):
        """Kills a worker. Returns its place, and the least MiB in use there before another worker
        comes."""
        victim = run.worker(rank)
        place = place_of(victim)
        os.kill(victim, signal.SIGKILL)
        used = []

        def another():
            used.append(self.mib(run, place))
            return [pid for pid in run.workers() if pid != victim and place_of(pid) == place]

        run.wait_for(another, "another worker was in the victim's place")
        return place, min(used)

    def test_a_kill_under_load_gives_the_memory_back(self):
        before = [gpu_mib(place) if DEVICE == "cuda" else 0 for place in range(RANKS)]
        run = self.begin()
        first = self.steady(run)
        note(f"MiB before the run {before}, in it {first}")
        for number in range(KILLS):
            place, least = self.kill(run, rank=1 if number == 0 else 0)
            now = self.steady(run)
            note(f"kill -9 at place {place}: {first[place]} MiB, {least} after the death, then {now}")
            self.assertLess(least, before[place] + MARGIN_MIB)
            for used, used_first in zip(now, first):
                self.assertLess(used, used_first + MARGIN_MIB)
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(), 75, run.text()[-3000:])


if __name__ == "__main__":
    unittest.main()
