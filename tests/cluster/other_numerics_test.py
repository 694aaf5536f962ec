"""Machines that compute other bits are told by the bits, whatever makes them differ."""
import os
import signal
import unittest

from launches import LaunchTest

# oneDNN has two names for it, and takes either.
OTHER_KERNELS = ({"DNNL_MAX_CPU_ISA": "SSE41"}, {"ONEDNN_MAX_CPU_ISA": "SSE41"},
                 {"ATEN_CPU_CAPABILITY": "default"})


class OtherNumerics(LaunchTest):
    def cnn(self):
        return self.job(self.data, model={"name": "cnn"}, checkpoint={"every_steps": 10},
                        train={"global_batch": 64, "slots": 4, "max_steps": 200})

    def test_one_rank_with_other_kernels_ends_the_start(self):
        job = self.cnn()
        for i, variables in enumerate(OTHER_KERNELS):
            with self.subTest(variables):
                ranks = self.ranks(job, name=f"run{i}", size=2, env_of={1: variables})
                self.assertEqual(self.codes(ranks), [78, 78], ranks[0].text()[-2000:])
                self.assert_fails(ranks[0], 78, says="other bits", advises="comm.numerics=fast")

    def test_a_resume_with_other_kernels_is_refused_unless_it_is_wanted(self):
        job = self.cnn()
        run = self.start(job, "--workers", 1, slot_ms=20)
        run.wait_for_step(12)
        run.process.send_signal(signal.SIGTERM)
        self.assertEqual(run.wait(), 75, run.text()[-2000:])
        for variables in OTHER_KERNELS:
            with self.subTest(variables):
                again = self.start(job, "--workers", 1, "--resume",
                                   env={**os.environ, **variables})
                self.assert_fails(again, 78, says="other bits",
                                  advises="comm.other_numerics=continue")
        last = self.start(job, "--workers", 1, "--resume", "comm.other_numerics=continue",
                          env={**os.environ, **OTHER_KERNELS[0]})
        self.assertEqual(last.wait(), 0, last.text()[-2000:])
        self.assert_event(last, "other_numerics", names="comm.other_numerics")


if __name__ == "__main__":
    unittest.main()
