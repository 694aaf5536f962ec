"""TensorBoard itself reads what lockstep export tensorboard wrote."""
import math
import unittest

from exports import ExportTest

try:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
except ImportError:
    EventAccumulator = None


@unittest.skipUnless(EventAccumulator, "there is no tensorboard here (pip install tensorboard)")
class Reader(ExportTest):
    def read(self, directory):
        reader = EventAccumulator(str(directory), size_guidance={"scalars": 0, "tensors": 0})
        reader.Reload()
        return reader

    def assert_losses(self, reader, history):
        losses = reader.Scalars("train/loss")
        self.assertEqual([event.step for event in losses], [row["step"] for row in history])
        for event, row in zip(losses, history):
            self.assertTrue(math.isclose(event.value, row["loss"], rel_tol=1e-6))

    def test_it_finds_every_curve_of_a_run(self):
        run = self.finished_run()
        reader = self.read(self.export(run))
        self.assertEqual({"train/loss", "train/lr", "train/samples_per_second", "eval/accuracy",
                          "eval/loss"}, set(reader.Tags()["scalars"]))
        self.assert_losses(reader, run.history())

    def test_it_drops_what_the_run_has_taken_back(self):
        directory, rows = self.followed_over_a_cut()
        self.assert_losses(self.read(directory), rows)


if __name__ == "__main__":
    unittest.main()
