"""srun starts one agent a task on a real cluster of four nodes: each finds its place, its GPU and
the run by itself."""
import os
import pathlib
import signal
import unittest

from launches import processes_of
from slurm_runs import SlurmTest


def words_of(pid):
    return (pathlib.Path("/proc") / str(pid) / "cmdline").read_bytes().decode().split("\0")


def variables_of(pid):
    pairs = (pathlib.Path("/proc") / str(pid) / "environ").read_bytes().decode().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if pair)


class Srun(SlurmTest):
    def test_four_nodes_train_together_and_a_killed_worker_is_not_seen_by_srun(self):
        run = self.srun(self.job_of(), options=["-N", "4", "--ntasks-per-node=1"])
        run.wait_for_workers(4)
        run.wait_for_step(50)
        self.assertEqual(self.nodes_of(run), ["n0", "n1", "n2", "n3"])
        victim = run.worker(2)
        os.kill(victim, signal.SIGKILL)
        run.wait_for(lambda: len(run.workers()) == 4 and victim not in run.workers(),
                     "another worker had its place")
        self.assert_as_if_nothing_had_happened(run)
        self.assert_event(run, "member_died", names=f"pid {victim}")
        logs = {path.name for path in (run.run_dir / "logs").iterdir()}
        self.assertLessEqual({f"worker-n{i}-0.log.jsonl" for i in range(4)}, logs)
        self.assertLessEqual({"agent-n0.log.jsonl", "agent-1.log.jsonl"}, logs)

    def gpus_of(self, run, workers):
        """The GPUs of each node's workers, as the driver would number them."""
        run.wait_for_workers(workers)
        gpus = {}
        for pid in processes_of(run.run_dir, lambda words: words[0].endswith(b"lockstep-worker")):
            words = words_of(pid)
            seen = variables_of(pid)["CUDA_VISIBLE_DEVICES"].split(",")
            number = int(words[words.index("--gpu") + 1])
            node = words[words.index("--node") + 1].split(":")[0]
            gpus.setdefault(node, []).append(seen[number % len(seen)])
        return {node: sorted(of_node) for node, of_node in gpus.items()}

    def test_every_worker_of_a_node_has_a_gpu_and_a_usr1_is_a_checkpoint(self):
        # First the tasks of a node see all of its GPUs, then each was given some.
        job = self.job_of()
        run = self.srun(job, options=["-N", "2", "--ntasks-per-node=2", "--gpus-per-node=2"])
        self.assertEqual(self.gpus_of(run, 4), {"n0": ["0", "1"], "n1": ["0", "1"]})
        run.process.send_signal(signal.SIGUSR1)
        self.assertEqual(run.wait(), 75, run.text()[-3000:])
        again = self.srun(job, "--workers", "2",
                          options=["-N", "1", "--ntasks-per-node=2", "--gpus-per-task=2"])
        # On any node: Slurm may not be done yet with those that the first job had.
        self.assertEqual(list(self.gpus_of(again, 4).values()), [["0", "1", "2", "3"]])
        self.assert_as_if_nothing_had_happened(again)


if __name__ == "__main__":
    unittest.main()
