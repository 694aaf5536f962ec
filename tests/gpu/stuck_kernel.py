"""A worker whose GPU never ends a kernel: it alone is put out, and the result is the same."""
import os
import unittest

from fails_with import events
from foreign_models import FILES
from gpu_test import GpuTest


class StuckKernel(GpuTest):
    def test_a_worker_in_a_kernel_without_end_is_put_out(self):
        job = self.job_of(model={"name": "plugin", "path": str(FILES / "libhanging_net.so")},
                          cluster={"hang_s": 10, "lease_s": 60}, epochs=20)
        whole = self.finish(job, "--workers", 1, name="whole")
        flag = self.scratch / "hangs"
        run = self.start(job, "--workers", 3, name="hanging",
                         env={**os.environ, "LOCKSTEP_TEST_HANG_ONCE": str(flag),
                              "LOCKSTEP_TEST_HANG_AFTER": "40"})
        victim = int(run.wait_for(flag.read_text, "a worker hangs"))
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assertEqual(len(events(run, "member_died")), 1, run.text())
        self.assert_event(run, "member_died", names=f"pid {victim}", says="hangs")
        self.assert_same_result(run, whole)


if __name__ == "__main__":
    unittest.main()
