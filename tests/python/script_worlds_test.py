"""The first promise for a training loop in Python: the same weights for 1 to 4 workers, for `python
train.py` alone, and for any number of data processes; and the second promise, by audit. Each run
trains an MLP, a CNN with batch norm and dropout and a small GPT, in fp32 and in bf16, because the
start of its processes is most of a run's cost."""
import re
import unittest

from script_runs import SCRIPTS, ScriptTest

TRAIN = SCRIPTS / "train.py"
CASES = [f"{model}-{precision}" for model in ("mlp", "cnn", "gpt") for precision in ("fp32", "bf16")]
STEPS = 22  # two epochs of 500 samples in steps of 48


def weights_in(output):
    """The hashes printed by each process that finished the loop: {case: [SHA-256]}"""
    found = {}
    for case, sha256 in re.findall(r"weights of (\S+): (\w{64})", output):
        found.setdefault(case, []).append(sha256)
    return found


class Worlds(ScriptTest):
    def test_every_model_and_precision_has_the_same_weights_in_every_world(self):
        alone = self.alone(TRAIN, "all", "both")
        weights = weights_in(alone)
        self.assertEqual([*weights], CASES)
        self.assertEqual(len({sha256 for [sha256] in weights.values()}), len(CASES))
        whole = None
        for workers, data_processes in ((1, 2), (2, 1), (3, 1), (4, 1)):
            with self.subTest(workers=workers, data_processes=data_processes):
                run = self.start_script(TRAIN, ["all", "both", data_processes], workers,
                                        name=f"world-{workers}")
                self.assertEqual(run.wait(), 0, run.text()[-3000:])
                found = weights_in(self.log_of(run))
                self.assertEqual([case for case in CASES
                                  if found.get(case) != weights[case] * workers], [])
                self.assertIn(f"weights_sha256 {run.summary()['weights_sha256']}", alone)
                self.assertEqual(len(run.history()), STEPS)
                whole = whole or run
                self.assert_same_result(run, whole)
                self.assertEqual(self.log_of(run).count(f"behind the loop after {STEPS} steps"), workers)
                self.assertEqual(self.log_of(run).count("writer since step 1\n"), 1)
                self.assert_whole_log(run)
                # A good run reports no trouble, nor do its workers when the first term ends.
                self.assertNotIn("Connection refused", run.text())
                self.assertNotIn("lost the coordinator", self.log_of(run))


if __name__ == "__main__":
    unittest.main()
