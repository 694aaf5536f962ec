"""Documents that are kept apart, in real runs: packed, padded, by length and from short to long."""
import os
import random
import signal
import unittest

from harness import LockstepTest, lockstep

BLOCK = 128
MODEL = {"name": "gpt2", "n_layer": 2, "n_head": 2, "n_embd": 32, "block": BLOCK}
WORDS = ["the ", "rank ", "sums ", "every ", "slot ", "again. "]


class Documents(LockstepTest):
    def text(self, count=300):
        """A file is a document: most are much shorter than a sequence, some are longer."""
        directory = self.scratch / "text"
        directory.mkdir()
        chance = random.Random(7)
        for split, files in (("train", count), ("val", 40)):
            for i in range(files):
                words = chance.choices(WORDS, k=chance.choice([1, 2, 3, 5, 8, 60]))
                (directory / f"{split}-{i:04}.txt").write_text("".join(words))
        return directory

    def document_job(self, train, **keys):
        data = self.scratch / "text"
        if not data.exists():
            self.text()
        return self.job(data, model=MODEL, train=train, checkpoint={"every_steps": 5, "keep": 3},
                        data={"train": str(data),
                              **({} if "holdout" in keys else {"eval": str(data)}), **keys})

    def assert_accuracy(self, run):
        """Right predictions are a share of those that count, not of the padding."""
        summary = run.summary()
        self.assertGreater(summary["eval_accuracy"], 0.3)
        self.assertLessEqual(summary["eval_accuracy"], 1)

    def assert_replays(self, run):
        self.succeed("replay", run.run_dir, "--step", 7)

    def test_padded_ones_by_length(self):
        job = self.document_job({"global_batch": 16, "slots": 4, "epochs": 4}, documents="pad",
                                shuffle="length", block_samples=32)
        one = self.finish(job, "--workers", 1, name="one")
        three = self.finish(job, "--workers", 3, name="three")
        self.assert_same_result(three, one)
        self.assert_accuracy(one)
        self.assertEqual(self.audit(three)["block_samples"], 32)
        self.assert_replays(one)

    def test_of_held_out_ones_the_same_are_evaluated_on_padded_by_length_and_packed(self):
        still = "optimizer.lr=1e-12"  # so that all evaluate the same weights
        losses = []
        for keys in ({"documents": "pad"}, {"documents": "pad", "length_classes": 5},
                     {"documents": "pack"}):
            job = self.document_job({"global_batch": 16, "slots": 4, "epochs": 1}, holdout=0.2,
                                    **keys)
            name = "-".join(map(str, keys.values()))
            one = self.finish(job, still, "--workers", 1, name=f"{name}-one")
            three = self.finish(job, still, "--workers", 3, name=f"{name}-three")
            self.assert_same_result(three, one)
            self.assertEqual(self.audit(three).get("length_classes"), keys.get("length_classes"))
            self.assert_replays(three)
            losses.append(one.summary()["eval_loss"])
        self.assertAlmostEqual(losses[1], losses[0], places=6)
        self.assertAlmostEqual(losses[2], losses[0], places=6)

    def test_packed_ones_are_the_same_through_a_kill_and_a_resume_with_others(self):
        train = {"global_batch": 16, "slots": 4, "epochs": 20}
        job = self.document_job(train, documents="pack")
        whole = self.finish(job, "--workers", 1, name="whole")
        run = self.start(job, "--workers", 3, slot_ms=30)
        run.wait_for_workers(3)
        run.wait_for_more_steps(5)
        os.kill(run.worker(1), signal.SIGKILL)
        run.wait_for_more_steps(5)
        run.process.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 75, run.text()[-2000:])
        resume = ["run", job, "--resume", "--run-dir", run.run_dir, "--workers", 2]
        self.assert_fails(lockstep(*resume, "data.documents=pad"), 64,
                          names=["data.documents", "pack", "pad"])
        self.succeed(*resume)
        self.assert_same_result(run, whole)
        self.assert_accuracy(run)
        self.assert_replays(whole)

    def test_what_cannot_be_told_apart_is_refused_with_the_key_that_helps(self):
        tokens = self.scratch / "tokens"
        tokens.mkdir()
        (tokens / "train.bin").write_bytes(bytes(4000))
        job = self.job(tokens, model=MODEL, train={"global_batch": 16, "slots": 4, "epochs": 1},
                       data={"train": str(tokens), "documents": "pack"})
        self.assert_fails(self.start(job, "--workers", 1), 64, advises="data.document_end")


if __name__ == "__main__":
    unittest.main()
