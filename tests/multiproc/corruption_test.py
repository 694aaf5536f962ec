"""A worker whose memory is wrong: one bit flips in its weights while it trains. The others outvote
it, it is put out, and the run ends as if nothing had happened.
"""
import json
import struct
import unittest

from harness import LockstepTest

# With such a learning rate the weights stay what they are in any checkpoint; that is how the test
# finds them in a worker's memory. Losses still differ from step to step, and with the weights.
SECTIONS = {"model": {"name": "mlp", "dropout": 0.25},
            "train": {"global_batch": 64, "slots": 4, "max_steps": 3000, "check_every": 50},
            "checkpoint": {"every_steps": 50, "keep": 2},
            "optimizer": {"name": "adamw", "lr": 1e-30},
            "cluster": {"lease_s": 2, "grace_s": 20}}


def some_weights(run):
    """The bytes of 1,024 weights, from the newest checkpoint."""
    newest = sorted((run.run_dir / "checkpoints").glob("step-*/model.safetensors"))[-1]
    with open(newest, "rb") as f:
        size = struct.unpack("<Q", f.read(8))[0]
        header = json.loads(f.read(size))
        begin, end = max((t["data_offsets"] for name, t in header.items() if name != "__metadata__"),
                         key=lambda offsets: offsets[1] - offsets[0])
        f.seek(8 + size + begin)
        return f.read(min(4096, end - begin))


def flip_one_bit(pid, pattern):
    """Wherever the process holds these bytes in memory it may write, as a faulty module would.
    Returns how often that was."""
    found = 0
    with open(f"/proc/{pid}/maps") as maps, open(f"/proc/{pid}/mem", "r+b", 0) as memory:
        for line in maps:
            fields = line.split()
            if not fields[1].startswith("rw") or fields[-1].startswith("[v"):
                continue
            begin, end = (int(x, 16) for x in fields[0].split("-"))
            memory.seek(begin)
            try:
                data = memory.read(end - begin)
            except OSError:
                continue
            at = data.find(pattern)
            while at >= 0:
                word = at + 40
                memory.seek(begin + word + 2)
                memory.write(bytes([data[word + 2] ^ 0x40]))
                found += 1
                at = data.find(pattern, at + 1)
    return found


class Corruption(LockstepTest):
    def test_one_flipped_bit_in_a_workers_weights_costs_that_worker_and_nothing_else(self):
        job = self.job(self.small_data(), **SECTIONS)
        undisturbed = self.finish(job, "--workers", 1, name="undisturbed")
        run = self.start(job, "--workers", 3)
        run.wait_for_step(150)
        victim = run.workers()[1]
        self.assertGreater(flip_one_bit(victim, some_weights(run)), 0)
        run.wait_for(lambda: len(run.workers()) == 2 and victim not in run.workers()
                     and run.status()["state"] == "training", "the others went on without it")
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assert_clear_line(run)
        log = (run.run_dir / "logs/coordinator.log.jsonl").read_text()
        said = [line for line in log.splitlines() if '"corruption"' in line]
        self.assertEqual(len(said), 1, said)
        self.assertIn(f"pid {victim}", said[0])
        self.assertIn("holds other weights", said[0])
        self.assert_nothing_left(run)
        self.assert_same_result(run, undisturbed)


if __name__ == "__main__":
    unittest.main()
