"""A LightningModule and Hugging Face's Trainer are script loops, too: the losses and weights of the
framework's own loop over the same slots, and the same bits for two workers of which one is killed."""
import unittest

from framework_runs import FIT, HF, FrameworkTest


class Frameworks(FrameworkTest):
    def test_lightning(self):
        output, found = self.alone_beside_a_plain_loop(FIT, "duck")
        self.assert_close(found["fit"], found["plain"])
        self.assertLess(found["weights"], 1e-5)
        run = self.with_a_killed_worker(FIT, "lightning")
        self.assert_same(run, output, "behind fit after 15 steps")
        self.assert_close([row["loss"] for row in run.history()], found["plain"])
        self.assertTrue(all(0 <= row["metrics"]["accuracy"] <= 1 for row in run.history()))
        self.assert_evaluated(run, output, [5, 10, 15], "dataloader_idx_1")
        self.assert_close([row["counted"] for row in self.logged(run) if "counted" in row],
                          found["counted"])
        clipped = [row["step"] for row in self.logged(run) if row["norm"] > 0.5]
        self.assertIn(f"{len(clipped)} clipped", output)

    def test_hugging_face(self):
        output, found = self.alone_beside_a_plain_loop(HF)
        self.assert_close(found["train"], found["plain"])
        self.assertEqual(*found["rates"])
        reports = (self.scratch / "report.txt").read_text()
        self.assertEqual(reports.splitlines(),
                         [f"{step + 1} {rate}" for step, rate in enumerate(found["rates"][0])])
        self.assertLess(found["weights"], 1e-4)
        run = self.with_a_killed_worker(HF)
        self.assert_close([row["loss"] for row in run.history()], found["plain"])
        self.assert_same(run, output, "behind train after 8 steps")
        self.assert_evaluated(run, output, [4, 8], "short")
        self.assertEqual([row["learning_rate"] for row in self.logged(run)], found["rates"][0])

    def test_hugging_face_ends_early_as_complete(self):
        seen = "self.events.append(state.global_step)"
        script = self.write_script(HF.read_text().replace(
            seen, f"{seen}\n        control.should_training_stop = state.global_step == 3", 1))
        output = self.alone(script, 0)
        self.take_ms(0)
        run = self.start_script(script, [self.pace], 2)
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assertEqual(run.summary()["steps"], 3)
        self.assert_same(run, output, "behind train after 3 steps")


if __name__ == "__main__":
    unittest.main()
