"""lockstep.fit() and lockstep.Trainer on a device whose memory the host cannot read."""
import unittest

from framework_runs import FIT, HF, FrameworkTest
from stand_in import OnDevice


class Frameworks(OnDevice, FrameworkTest):
    """fit() and Trainer bring model and batches to the device. The plain loop computes on the
    CPU."""

    def assert_trains_there(self, script, *words, evaluated, other):
        output, found = self.alone_beside_a_plain_loop(script, *words, cluster__device="cuda")
        self.assertLess(found["weights"], 1e-4)
        run = self.with_a_killed_worker(script, *words, overrides=["cluster.device=cuda"])
        self.assertIn(f"weights_sha256 {run.summary()['weights_sha256']}", output)
        self.assert_close([row["loss"] for row in run.history()], found["plain"])
        self.assert_evaluated(run, output, evaluated, other)

    def test_a_lightning_module(self):
        self.assert_trains_there(FIT, "lightning", evaluated=[5, 10, 15], other="dataloader_idx_1")

    def test_hugging_faces_trainer(self):
        self.assert_trains_there(HF, evaluated=[4, 8], other="short")


if __name__ == "__main__":
    unittest.main()
