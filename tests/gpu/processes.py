"""Real processes that share one GPU: the promises, with the model's state on a device."""
import os
import random
import signal
import unittest

from fails_with import events, told
from gpu_test import DEVICE, GpuTest
from harness import synthetic_dataset, trace

TEXT = {"name": "gpt2", "n_layer": 2, "n_head": 2, "n_embd": 32, "block": 16}


class OnOneDevice(GpuTest):
    def test_any_number_of_workers_gives_the_same_weights(self):
        job = self.job_of()
        one, two, four = (self.finish(job, "--workers", n, name=f"w{n}") for n in (1, 2, 4))
        for run in (two, four):
            self.assert_same_result(run, one)

    @unittest.skipIf(DEVICE == "cpu", "NCCL is for GPUs")
    def test_nccl_gives_the_weights_of_the_host(self):
        host, nccl = (self.finish(self.job_of(comm={"backend": b}), "--workers", 1, name=b)
                      for b in ("host", "nccl"))
        self.assert_same_result(nccl, host)

    def test_slots_as_graphs_give_the_weights_of_eager_slots(self):
        text = self.scratch / "text.txt"
        text.write_text("".join(random.Random(1).choices(["the ", "rank ", "sums "], k=3000)))
        for name, job in (("cnn", {}), ("gpt2", {"data": text, "model": TEXT})):
            eager, graphs = (self.finish(self.job_of(graph=graph, **job), "--workers", 2,
                                         name=f"{name}-{graph}") for graph in ("off", "on"))
            self.assert_same_result(graphs, eager)
            without = [told(line) for line in events(graphs, "engine", "worker-*")
                       if "graph" in told(line)]
            self.assertEqual(without, [], "slots went without their graphs")

    def test_half_precision_too(self):
        for precision in ("bf16", "fp16"):
            job = self.job_of(precision=precision)
            one, three = (self.finish(job, "--workers", n, name=f"{precision}-{n}") for n in (1, 3))
            self.assert_same_result(three, one)

    def test_a_killed_worker_changes_nothing(self):
        job = self.job_of(epochs=12)
        whole = self.finish(job, "--workers", 3, name="whole")
        killed = self.start(job, "--workers", 3, name="killed")
        killed.wait_for_step(12)
        os.kill(killed.worker(1), signal.SIGKILL)
        self.assertEqual(killed.wait(), 0, killed.text()[-3000:])
        self.assert_same_result(killed, whole)

    def test_a_resume_with_other_workers_changes_nothing(self):
        job = self.job_of(epochs=12)
        whole = self.finish(job, "--workers", 1, name="whole")
        cut = self.start(job, "--workers", 3, name="cut")
        cut.wait_for_step(15)
        cut.process.send_signal(signal.SIGINT)
        self.assertEqual(cut.wait(), 75, cut.text()[-3000:])
        rest = self.finish(job, "--resume", "--workers", 2, name="cut")
        self.assertEqual(rest.summary()["weights_sha256"], whole.summary()["weights_sha256"])
        self.assertEqual(trace(rest), trace(whole))

    def test_the_losses_are_those_of_the_cpu_to_rounding(self):
        data = synthetic_dataset(self.scratch / "data")
        sections = {"model": {"name": "mlp"},
                    "train": {"global_batch": 64, "slots": 4, "max_steps": 20}}
        there = self.finish(self.job(data, cluster={"device": DEVICE}, **sections), name="there")
        here = self.finish(self.job(data, cluster={"device": "cpu"}, **sections), name="here")
        self.assertEqual(len(there.history()), 20)
        for a, b in zip(there.history(), here.history()):
            self.assertAlmostEqual(a["loss"], b["loss"], delta=2e-4 * max(1, abs(b["loss"])))


if __name__ == "__main__":
    unittest.main()
