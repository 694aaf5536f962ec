"""lockstep export tensorboard: what a reader of event files sees is the run's history."""
import math
import time
import unittest

from event_files import scalars
from exports import ExportTest


class Events(ExportTest):
    def assert_is_history(self, tags, history):
        for tag, key in (("train/loss", "loss"), ("train/lr", "lr")):
            self.assertEqual(sorted(tags[tag]), [row["step"] for row in history], tag)
            for row in history:
                self.assertTrue(math.isclose(tags[tag][row["step"]][1], row[key], rel_tol=1e-6))

    def test_a_finished_run_is_told_whole_and_only_once(self):
        run = self.finished_run()
        directory = self.export(run)
        (directory / "events.out.tfevents.1.other").write_bytes(b"")
        self.assertEqual(self.export(run), directory)
        self.assertEqual(len(list(directory.iterdir())), 2, "its own, and that of another writer")
        tags = scalars(directory)
        self.assert_is_history(tags, run.history())
        summary = run.summary()
        self.assertEqual(sorted(tags["eval/accuracy"]), [10, 20, 30, 40, 50])
        self.assertAlmostEqual(tags["eval/accuracy"][50][1], summary["eval_accuracy"], places=6)
        self.assertAlmostEqual(tags["eval/loss"][50][1], summary["eval_loss"], places=6)
        self.assertEqual(sorted(tags["train/samples_per_second"]), list(range(1, 51)))
        self.assertTrue(all(v > 0 for _, v in tags["train/samples_per_second"].values()))
        walls = [wall for _, (wall, _) in sorted(tags["train/loss"].items())]
        self.assertEqual(walls, sorted(walls))
        self.assertLess(abs(walls[-1] - time.time()), 600)

    def test_a_run_is_followed_over_a_way_back_to_a_checkpoint(self):
        directory, rows = self.followed_over_a_cut()
        self.assert_is_history(scalars(directory), rows)


if __name__ == "__main__":
    unittest.main()
