"""The disk of the run directory is full: the run ends with words that say so, and with room again
it goes on as if nothing had happened. On a file system of its own, which only root can mount.
"""
import errno
import subprocess
import unittest

from disturbed import DisturbedTest

SIZE = "80m"  # a run wants 64 MiB to begin


class DiskFull(DisturbedTest):
    def setUp(self):
        super().setUp()
        self.disk = self.scratch / "disk"
        self.disk.mkdir()
        mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={SIZE}", "lockstep-test",
                                  self.disk], capture_output=True, text=True)
        if mounted.returncode != 0:
            self.skipTest("THE FULL DISK IS NOT TESTED: nothing can be mounted here: "
                          + mounted.stderr.strip())
        # Lazily: the kernel lets go of files that are still open later.
        self.addCleanup(subprocess.run, ["umount", "-l", self.disk], check=True)

    def fill(self):
        """Fills the disk to the last page."""
        filler = self.disk / "filler"
        with open(filler, "wb", buffering=0) as f:
            chunk = 1 << 20
            while chunk >= 1:
                try:
                    f.write(b"x" * chunk)
                except OSError as error:
                    self.assertEqual(error.errno, errno.ENOSPC)
                    chunk //= 2
        return filler

    def test_the_run_ends_and_says_why_and_with_room_again_it_goes_on(self):
        run = self.start(self.job_of(), "--workers", 3, name="disk/run")
        run.wait_for_step(150)
        filler = self.fill()
        self.assert_fails(run, 70, names=run.run_dir, says="free", advises=["room", "--resume"])
        self.assert_nothing_left(run)
        self.succeed("ckpt", "verify", run.run_dir)
        filler.unlink()
        rest = self.finish(self.scratch / "job.yaml", "--resume", "--workers", 2, name="disk/run")
        self.assert_same_result(rest, self.undisturbed)


if __name__ == "__main__":
    unittest.main()
