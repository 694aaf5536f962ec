"""data.shuffle: block in real runs: same bits for any number of workers, after a kill, resumed,
audited and replayed."""
import unittest

from harness import LockstepTest, lockstep

BLOCKS = {"shuffle": "block", "block_samples": 16, "window_blocks": 8}
TRAIN = {"global_batch": 32, "slots": 4, "epochs": 3}


class BlockOrder(LockstepTest):
    def block_job(self, train):
        data = self.small_data()
        return self.job(data, data={"train": str(data), "eval": str(data), **BLOCKS}, train=train)

    def test_the_order_is_the_same_for_any_number_of_workers_and_proven(self):
        job = self.block_job(TRAIN)
        one = self.finish(job, "--workers", 1, name="one")
        four = self.finish(job, "--workers", 4, name="four")
        self.assert_same_result(four, one)
        found = self.audit(four)
        self.assertEqual((found["block_samples"], found["window_blocks"]), (16, 8))
        self.succeed("replay", four.run_dir, "--step", 25)
        other = self.finish(job, "--workers", 1, "data.window_blocks=4", name="other")
        self.assertNotEqual(other.summary()["weights_sha256"], one.summary()["weights_sha256"])

    def test_a_resume_goes_on_in_the_same_order_and_with_another_is_refused(self):
        job = self.block_job(TRAIN)
        whole = self.finish(job, "--workers", 1, name="whole")
        run = self.finish(job, "--workers", 3, "train.max_steps=30")
        resume = ["run", job, "--resume", "--run-dir", run.run_dir]
        self.assert_fails(lockstep(*resume, "data.block_samples=8"), 64,
                          names=["data.block_samples", "16", "8"])
        self.succeed(*resume, "--workers", 2, "train.max_steps=0")
        self.assert_same_result(run, whole)

    def test_a_killed_worker_changes_nothing(self):
        job = self.block_job({"global_batch": 32, "slots": 4, "max_steps": 200})
        self.assert_a_kill_changes_nothing(job)


if __name__ == "__main__":
    unittest.main()
