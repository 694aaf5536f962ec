"""`lockstep replay` of a script's run: the script computes the steps again, in one process, and a step
that comes out otherwise is named."""
import unittest

from script_runs import SCRIPTS, ScriptTest

PLANTED = "    run.backward(loss)\n"


class Replay(ScriptTest):
    def test_steps_of_a_run_are_computed_again_and_the_first_that_differs_is_named(self):
        text = (SCRIPTS / "train.py").read_text()
        self.assertIn(PLANTED, text)
        script = self.write_script(text)
        run = self.start_script(script, ["mlp"], 2)
        self.assertEqual(run.wait(), 0, run.text()[-3000:])

        told = self.replayed(run, 22)  # the newest checkpoint before it is of step 20
        self.assertIn("computed from step-0000000020", told)
        self.assertIn("steps 21 to 22 gave the recorded losses again, bit for bit", told)
        self.assertIn("the weights are those of step-0000000022", told)
        self.assertRegex(told, r"slot 5 of member \d+  positions \[\d+, 500\) of epoch 2  samples")
        self.assertNotIn("behind the loop", told)

        # It trains as before up to step 12, but for stops, which a replay does not obey.
        self.write_script(text.replace(
            PLANTED, "    run.request_stop()\n"
                     "    run.backward(loss * (1.5 if run.step >= 12 else 1))\n"))
        self.assertIn("steps 1 to 10 gave", self.replayed(run, 10))
        told = self.replayed(run, 20, expect=1)
        self.assertEqual(told.count("DIFFERS"), 1, told)
        self.assertIn("DIFFERS: the loss of step 13 is", told)
        self.assertIn("no step behind it was computed", told)
        self.assertRegex(told, r"(?m)^step 13, in the run of generation \d+:$")

        for words, names in ((("--step", 23), "step 23"), (("--step", 0), "counted from 1"),
                             (("--step", 3, "--slot", 1), "--slot")):
            self.assert_fails(self.try_replay(run, *words), 64, names=names)


if __name__ == "__main__":
    unittest.main()
