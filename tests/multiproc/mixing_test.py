"""Images mixed with others of their slot (mixup, cutmix) in real runs: the same bits for any number of
workers, through a kill and a resume, and in a replay."""
import json
import os
import signal
import unittest

from array_files import safetensors
from harness import LockstepTest

MIXED = ["flip", "normalize", "mixup=0.4", "cutmix"]
SHORT = {"global_batch": 64, "slots": 4, "epochs": 2}  # 600 = 9 * 64 + 24
LONG = {"global_batch": 64, "slots": 4, "max_steps": 200}


class Mixing(LockstepTest):
    def mixed_job(self, train, transforms=MIXED, name="job.yaml"):
        job = self.job(self.small_data(), train=train, name=name)
        text = json.loads(job.read_text())
        text["data"]["transforms"] = transforms
        job.write_text(json.dumps(text))
        return job

    def test_three_workers_give_the_bits_of_one_and_others_than_plain_images(self):
        job = self.mixed_job({**SHORT, "label_smoothing": 0.1})
        one = self.finish(job, "--workers", 1, name="w1")
        self.assert_same_result(self.finish(job, "--workers", 3, name="w3"), one)
        plain = self.finish(self.mixed_job(SHORT, MIXED[:2], name="plain.yaml"), name="plain")
        self.assertNotEqual(plain.summary()["weights_sha256"], one.summary()["weights_sha256"])
        self.assertGreater(one.history()[-1]["loss"], plain.history()[-1]["loss"])

    def test_a_worker_killed_and_a_resume_in_mid_epoch_change_nothing(self):
        job = self.mixed_job(LONG)
        undisturbed = self.finish(job, "--workers", 2, name="undisturbed")
        run = self.start(job, "--workers", 3, name="disturbed", slot_ms=20)
        run.wait_for_step(3)
        os.kill(run.worker(1), signal.SIGKILL)
        run.wait_for_more_steps(2)
        run.process.send_signal(signal.SIGINT)
        self.assertEqual(run.wait(), 75, run.text()[-2000:])
        resumed = self.finish(job, "--workers", 4, "--resume", name="disturbed")
        self.assert_same_result(resumed, undisturbed)

    def test_a_replay_gives_the_bits_and_shows_what_was_mixed_with_what(self):
        run = self.finish(self.mixed_job({**SHORT, "label_smoothing": 0.1}), "--workers", 2)
        self.assertRegex(self.succeed("replay", run.run_dir, "--step", 13),
                         r"label [0-9.e-]+ of \d and [0-9.e-]+ of \d \(sample \d+\) ")
        header, _ = safetensors(run.run_dir / "replay-step-13.safetensors")
        for name in ("labels", "other_labels", "shares"):
            self.assertEqual(header[name]["shape"], [64])

    def test_what_cannot_be_mixed_is_said_before_a_worker_starts(self):
        for transforms, subject, words in ((["mixup", "flip"], "flip", "last"),
                                           (["mixup=0"], "mixup=0", "0.001")):
            run = self.start(self.mixed_job(SHORT, transforms), "--workers", 1)
            self.assert_fails(run, 64, names=["data.transforms", subject], advises=words)


if __name__ == "__main__":
    unittest.main()
