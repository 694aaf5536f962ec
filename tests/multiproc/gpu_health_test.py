"""GPUs that are not fit, as a stand-in for NVML shows them: workers leave them and come back."""
import os
import signal
import unittest

from fails_with import events
from harness import BIN, LockstepTest

FAKE_NVML = BIN.parent / "tests" / "liblockstep_fake_nvml.so"
LOOK_MS = 50


class GpuHealth(LockstepTest):
    slot_ms = 20

    def setUp(self):
        super().setUp()
        self.assertTrue(FAKE_NVML.exists(), f"{FAKE_NVML} is not there: build lockstep_fake_nvml")
        self.gpus = self.scratch / "gpus"
        self.show()
        self.env = {**os.environ, "LOCKSTEP_NVML_LIBRARY": str(FAKE_NVML),
                    "FAKE_NVML": str(self.gpus), "LOCKSTEP_TEST_GPU_LOOK_MS": str(LOOK_MS)}
        self.endless = self.job(self.small_data(), model={"name": "mlp"},
                                train={"global_batch": 64, "slots": 4, "max_steps": 1_000_000_000})

    def show(self, *more):
        """Sets what NVML answers. A process may ask it at any moment."""
        new = self.gpus.with_name("gpus.new")
        new.write_text("\n".join(["devices 2", "whole_uuids 1", *more]))
        new.rename(self.gpus)

    def unfit(self, run):
        return [gpu["local_rank"] for gpu in run.status()["unfit_gpus"]]

    def test_a_worker_leaves_its_unfit_gpu_and_another_one_comes_when_it_is_fit(self):
        run = self.start(self.endless, "--workers", 2, env=self.env)
        run.wait_for_workers(2)
        self.show("remap_pending.1 1")
        run.wait_for_workers(1)
        self.assertEqual(self.unfit(run), [1])
        self.assert_event(run, "gpu_unfit", names="local rank 1", advises="reset")
        dead = run.coordinator()["pid"]
        os.kill(dead, signal.SIGKILL)
        run.wait_for(lambda: run.coordinator()["pid"] != dead and self.unfit(run) == [1],
                     "the next coordinator knew of the GPU")
        run.wait_for_more_steps(5)
        self.assertEqual(len(run.workers()), 1)
        self.show()
        run.wait_for_workers(2)
        self.assertEqual(self.unfit(run), [])
        run.wait_for_more_steps(5)
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(), 75, run.text()[-2000:])
        self.assert_event(run, "gpu_fit", names="local rank 1")
        self.audit(run)
        self.assertEqual(events(run, "member_died"), [], "it left by itself")

    def test_without_a_fit_gpu_no_run_begins_and_the_message_names_the_way_out(self):
        self.show("remap_failed 1")
        run = self.finish(self.endless, "--workers", 2, env=self.env, expect=78)
        for words in ("local rank 0", "local rank 1", "replace the GPU", "cluster.gpu_health=tell"):
            self.assertIn(words, run.text())

    def test_with_tell_the_run_uses_unfit_gpus(self):
        self.show("ecc.1 1")
        run = self.start(self.endless, "--workers", 2, "cluster.gpu_health=tell", env=self.env)
        run.wait_for_workers(2)
        run.wait_for(lambda: self.unfit(run) == [1], "the coordinator knew of the GPU")
        run.wait_for_more_steps(5)
        self.assertEqual(len(run.workers()), 2)


if __name__ == "__main__":
    unittest.main()
