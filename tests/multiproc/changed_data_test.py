"""Data files that change under a run: it ends, names the file, and goes on when they are back."""
import os
import unittest

from disturbed import DisturbedTest

IMAGES = "train-images-idx3-ubyte"


class ChangedData(DisturbedTest):
    def check(self, change):
        """`change(path)` is made to the images of a run with two workers."""
        run = self.start_run(2)
        path = self.data / IMAGES
        before = path.read_bytes()
        change(path)
        self.assert_fails(run, 65, names=path, says="changed")
        self.assert_nothing_left(run)
        self.assertNotIn("signal 7", run.text() + (run.run_dir / "logs/agent.log.jsonl").read_text())
        path.write_bytes(before)
        rest = self.finish(self.scratch / "job.yaml", "--resume", "--workers", 2)
        self.assert_same_result(rest, self.undisturbed)

    def test_one_that_is_cut_off_ends_the_run_by_name_and_the_rest_is_as_if_it_had_not_been(self):
        self.check(lambda path: os.truncate(path, 5000))

    def test_so_does_one_that_is_written_over(self):
        self.check(lambda path: path.write_bytes(bytes(path.stat().st_size)))


if __name__ == "__main__":
    unittest.main()
