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
        run.wait_for_step(200)
        self.assertEqual(self.nodes_of(run), ["n0", "n1", "n2", "n3"])
        victim = run.workers()[2]
        os.kill(victim, signal.SIGKILL)
        run.wait_for(lambda: len(run.workers()) == 4 and victim not in run.workers(),
                     "another worker had its place")
        self.assert_as_if_nothing_had_happened(run)
        self.assert_clear_line(run, "signal 9", str(victim))
        logs = {path.name for path in (run.run_dir / "logs").iterdir()}
        self.assertLessEqual({f"worker-n{i}-0.log.jsonl" for i in range(4)}, logs)
        self.assertLessEqual({"agent-n0.log.jsonl", "agent-1.log.jsonl"}, logs)

    def assert_gpus(self, options, workers):
        """Every worker of a node computes on a GPU of its own, as far as there are enough."""
        run = self.srun(self.job_of(), "cluster.lease_s=30", options=options)
        run.wait_for_workers(workers)
        gpus = {}
        for pid in processes_of(run.run_dir, lambda words: words[0].endswith(b"lockstep-worker")):
            words = words_of(pid)
            seen = variables_of(pid)["CUDA_VISIBLE_DEVICES"].split(",")
            number = int(words[words.index("--gpu") + 1])
            gpus.setdefault(words[words.index("--node") + 1].split(":")[0], []).append(
                seen[number % len(seen)])
        self.assert_as_if_nothing_had_happened(run)
        return {node: sorted(of_node) for node, of_node in gpus.items()}

    def test_several_tasks_of_a_node_that_all_see_its_gpus_take_one_each(self):
        self.assertEqual(self.assert_gpus(["-N", "2", "--ntasks-per-node=2", "--gpus-per-node=2"],
                                          4), {"n0": ["0", "1"], "n1": ["0", "1"]})

    def test_a_task_that_was_given_a_gpu_computes_there(self):
        self.assertEqual(self.assert_gpus(["-N", "2", "--ntasks-per-node=2", "--gpus-per-task=1"],
                                          4), {"n0": ["0", "1"], "n1": ["0", "1"]})


if __name__ == "__main__":
    unittest.main()
