"""Loops of other precisions than fp32, and what a step can have, against a plain loop of PyTorch over the
same slots: the same bits."""
import json
import unittest

from script_runs import SCRIPTS, ScriptTest

MIXED = SCRIPTS / "mixed.py"
STEPS = 12


class Precision(ScriptTest):
    def assert_as_plain(self, precision):
        """The weights of `python mixed.py`, and what it and the plain loop found."""
        told = self.scratch / f"{precision}.json"
        weights = self.weights_alone(MIXED, precision, told)
        found = json.loads(told.read_text())
        self.assertEqual(found["losses"], found["plain losses"])
        self.assertEqual(found["weights"], 0, "the weights of the two loops differ")
        self.assertTrue(found["spare is as it was"], "a decay of weights without a gradient")
        self.assertLess(found["steps of rare"], STEPS)
        self.assertLess(found["slots of rare"], 2 * found["steps of rare"], "in one slot of a step")
        return weights, found

    def test_fp16_with_a_scaler_that_overflows_and_a_frozen_batch_norm(self):
        weights, found = self.assert_as_plain("fp16")
        scales = found["scales"]
        self.assertEqual(scales, found["plain scales"])
        skipped = [step + 1 for step in range(STEPS - 1) if scales[step + 1] < scales[step]]
        self.assertIn(1, skipped)
        self.assertTrue(any(a < b for a, b in zip(scales, scales[1:])), "it grew again")
        run = self.start_script(MIXED, ["fp16"], 2)
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assertEqual(run.summary()["weights_sha256"], weights)
        self.assertEqual([row["step"] for row in run.history()[:-1] if row.get("skipped")], skipped)
        # The replay begins at the checkpoint of step 8, where the batch norm is frozen.
        self.assertIn("steps 9 to 12 gave the recorded losses again", self.replayed(run, STEPS))

    def test_weights_of_bf16(self):
        self.assert_as_plain("bf16")

    def test_a_compiled_model(self):
        self.assert_as_plain("compiled")


if __name__ == "__main__":
    unittest.main()
