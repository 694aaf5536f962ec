"""Mixed precision in real processes: the same bits for any number of workers and after a stop, and
steps that the loss scaler skips, from the worker to the audit."""
import random
import re
import signal
import unittest

from harness import LockstepTest, trace

BLOCK = 16
WORDS = ["the ", "rank ", "sums ", "every ", "slot "]
MODELS = {"bf16": {"name": "cnn", "dropout": 0.25, "batch_norm": True},
          "fp16": {"name": "mlp", "dropout": 0.25, "batch_norm": True}}


def skipped_steps(run):
    return [row["step"] for row in run.history() if row.get("skipped")]


class Precision(LockstepTest):
    # 600 = 9 * 64 + 24; 40 epochs are 400 steps, so that a signal finds it in the middle.
    def job_in(self, precision, **train):
        return self.job(self.small_data(), model=MODELS[precision],
                        train={"global_batch": 64, "slots": 4, "epochs": 40,
                               "precision": precision, **train},
                        checkpoint={"every_steps": 7, "keep": 2})

    def test_bf16_gives_the_same_weights_for_any_number_of_workers(self):
        job = self.job_in("bf16", max_steps=25)
        runs = [self.finish(job, "--workers", n, name=f"w{n}") for n in (1, 3)]
        self.assertEqual(*[run.summary()["weights_sha256"] for run in runs])
        self.assertEqual(*map(trace, runs))

    def test_an_overflow_is_skipped_marked_replayed_and_no_bad_sample(self):
        # At first everything overflows, and later the scale grows until it does again. The loss
        # falls to a thousandth of what it was, and a batch that it has not fitted yet stands out.
        job = self.job_in("fp16", loss_scale=2**34, loss_scale_growth_every=20, loss_spike=1000)
        whole = self.finish(job, "--workers", 1, name="whole")
        skipped = skipped_steps(whole)
        self.assertEqual(skipped[:4], [1, 2, 3, 4])
        self.assertGreater(skipped[-1], 40)
        self.assertLess(whole.history()[-1]["loss"], whole.history()[0]["loss"] / 2)

        cut = self.start(job, "--workers", 3, name="cut", slot_ms=10)
        cut.wait_for_step(33)
        cut.process.send_signal(signal.SIGINT)
        self.assertEqual(cut.wait(), 75, cut.text()[-2000:])
        rest = self.finish(job, "--resume", "--workers", 2, name="cut")
        self.assertEqual(rest.summary()["weights_sha256"], whole.summary()["weights_sha256"])
        self.assertEqual(trace(rest), trace(whole))
        self.assertEqual(skipped_steps(rest), skipped)

        self.assertEqual(self.audit(rest)["skipped_steps"], skipped)
        for step, is_skipped in ((skipped[-1], True), (skipped[-1] - 1, False)):
            answer = self.succeed("replay", rest.run_dir, "--step", step)
            self.assertEqual("loss scaler" in answer, is_skipped)

    def test_the_precision_cannot_change_on_a_resume(self):
        self.finish(self.job_in("bf16", max_steps=10), "--workers", 1)
        again = self.start(self.job_in("bf16", max_steps=20), "--resume", "train.precision=fp16")
        self.assert_fails(again, 64, names=["train.precision", "bf16", "fp16"])


class Fp8(LockstepTest):
    # 103 = 5 * 20 + 3: the last step of an epoch leaves slots of one sequence, and an empty one.
    def fp8_job(self, name="job.yaml", model=(), train=(), **sections):
        directory = self.scratch / "text"
        if not directory.exists():
            directory.mkdir()
            for split, sequences in (("train", 103), ("val", 30)):
                words = random.Random(split).choices(WORDS, k=sequences * BLOCK)
                (directory / f"{split}.txt").write_text("".join(words)[:sequences * BLOCK + 5])
        return self.job(directory, name, **{
            "model": {"name": "gpt2", "n_layer": 2, "n_head": 2, "n_embd": 32, "block": BLOCK,
                      "dropout": 0.1, **dict(model)},
            "train": {"global_batch": 20, "slots": 4, "max_steps": 90, "precision": "fp8",
                      "check_every": 5, **dict(train)},
            "checkpoint": {"every_steps": 15, "keep": 3}, **sections})

    def test_workers_deaths_stops_checks_and_recomputing_change_no_bit(self):
        job = self.fp8_job()
        one = self.finish(job, "--workers", 1, name="one")
        self.assertRegex(one.text(), r"note: .*fp8 on a CPU")
        self.assertLess(one.history()[-1]["loss"], one.history()[0]["loss"])
        again = self.fp8_job("again.yaml", {"recompute": True}, {"check_every": 0})
        four = self.finish(again, "--workers", 4, name="four")
        self.assert_same_result(four, one)
        self.assertEqual(four.summary()["eval_loss"], one.summary()["eval_loss"])

        rest = self.goes_on_in_another_world(job, one, death=10, stop=30)
        self.succeed("replay", rest.run_dir, "--step", 81)  # fails where the losses are others
        other = self.start(job, "--resume", "train.max_steps=95", "train.precision=bf16",
                           name="killed")
        self.assert_fails(other, 64, names=["train.precision", "fp8", "bf16"])

    def test_a_loss_that_is_no_number_names_its_samples(self):
        run = self.start(self.fp8_job(optimizer={"name": "sgd", "lr": 1e25}), "--workers", 2)
        self.assert_fails(run, 65, says="loss",
                          advises=["train.on_bad_samples=skip", "lockstep replay"])
        step = int(re.search(r"replay \S+ --step (\d+)", run.summary()["message"]).group(1))
        self.assertRegex(self.succeed("replay", run.run_dir, "--step", step),
                         r"\nloss -?(nan|inf)\n")


if __name__ == "__main__":
    unittest.main()
