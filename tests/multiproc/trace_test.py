"""`lockstep run --trace`: a timeline of some steps, one file a rank and one of all."""
import json
import unittest

from harness import LockstepTest

PHASES = {"data_wait", "forward", "backward", "communication", "optimizer"}


def events(path):
    return [e for e in json.loads(path.read_text())["traceEvents"] if e["ph"] == "X"]


class Trace(LockstepTest):
    def test_the_steps_of_the_window_are_there_for_every_rank(self):
        job = self.job(self.small_data(), train={"global_batch": 64, "slots": 4, "max_steps": 20})
        run = self.finish(job, "--workers", 2, "--trace", "steps=10:13")
        self.assertIn("trace/all.json", run.text())
        everything = events(run.run_dir / "trace" / "all.json")
        self.assertEqual({e["pid"] for e in everything}, {0, 1})
        for rank in (0, 1):
            own = events(run.run_dir / "trace" / f"rank-{rank}.json")
            self.assertEqual([e for e in everything if e["pid"] == rank], own)
            self.assertEqual([e["name"] for e in own if e["cat"] == "step"],
                             ["step 11", "step 12", "step 13"])
            self.assertLessEqual(PHASES, {e["name"] for e in own if e["cat"] == "phase"})
            forward = next(e for e in own if e["cat"] == "phase" and e["name"] == "forward")
            inside = [e["name"] for e in own if e["cat"] == "operator"
                      and forward["ts"] <= e["ts"] <= forward["ts"] + forward["dur"]]
            self.assertIn("aten::conv2d", inside)
            self.assertTrue([e for e in own if e["cat"] == "bucket" and e["tid"] == 2])

        plain = self.finish(job, "--workers", 2, name="plain")
        self.assertEqual(plain.summary()["weights_sha256"], run.summary()["weights_sha256"])
        self.assertFalse((plain.run_dir / "trace").exists())

    def test_what_names_no_steps_is_refused(self):
        job = self.job(self.small_data())
        for text in ("10:13", "steps=13:10"):
            self.assert_fails(self.start(job, "--trace", text), 64,
                              names=["trace", text.removeprefix("steps=")], advises="steps")


if __name__ == "__main__":
    unittest.main()
