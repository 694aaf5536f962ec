"""The first promise for a training loop in Python: the same weights for 1 to 4 workers, for
`python train.py` alone, and for any number of data processes; and the second, by audit."""
import unittest

from script_runs import SCRIPTS, ScriptTest

TRAIN = SCRIPTS / "train.py"
STEPS = 22  # two epochs of 500 samples in steps of 48


class Worlds(ScriptTest):
    def assert_same_everywhere(self, model, precision, *worlds):
        """`worlds`: numbers of workers, and of data processes of each."""
        weights = self.weights_alone(TRAIN, model, precision)
        whole = None
        for workers, data_processes in worlds:
            with self.subTest(workers=workers, data_processes=data_processes):
                run = self.start_script(TRAIN, [model, precision, data_processes], workers,
                                        name=f"{model}-{precision}-{workers}")
                self.assertEqual(run.wait(), 0, run.text()[-3000:])
                self.assertEqual(run.summary()["weights_sha256"], weights)
                self.assertEqual(len(run.history()), STEPS)
                whole = whole or run
                self.assert_same_result(run, whole)
                self.assertIn(f"behind the loop after {STEPS} steps", self.log_of(run))
                self.assertEqual(self.log_of(run).count("writer since step 1\n"), 1)
                self.assert_whole_log(run)

    def test_mlp(self):
        self.assert_same_everywhere("mlp", "fp32", (1, 1), (3, 0))

    def test_cnn_with_batch_norm_and_dropout(self):
        self.assert_same_everywhere("cnn", "fp32", (1, 0), (2, 2), (3, 1), (4, 0))

    def test_gpt_in_bf16(self):
        self.assert_same_everywhere("gpt", "bf16", (2, 0), (4, 1))

    def test_alone_with_data_processes_and_in_another_precision(self):
        self.assertEqual(self.weights_alone(TRAIN, "cnn", "bf16", 2),
                         self.weights_alone(TRAIN, "cnn", "bf16"))
        self.assertEqual(self.weights_alone(TRAIN, "gpt", "fp32", 1),
                         self.weights_alone(TRAIN, "gpt", "fp32"))


if __name__ == "__main__":
    unittest.main()
