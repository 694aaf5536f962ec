"""The base of the tests with real processes on GPUs. The suite sets the variables."""
import os
import unittest

from harness import LockstepTest

DEVICE = os.environ.get("LOCKSTEP_SUITE_DEVICE", "cuda")
GPUS = int(os.environ.get("LOCKSTEP_SUITE_GPUS", "1"))
MODEL = {"name": "cnn", "dropout": 0.25, "batch_norm": True}

# verdicts.py knows these words, and does not count such a test as skipped.
needs_several_gpus = unittest.skipIf(GPUS < 2, "not applicable: one GPU")


def note(figure):
    """Adds a figure to the check's result (verdicts.NOTE). unittest may be within a line."""
    print(f"\nnote: {figure}", flush=True)


class GpuTest(LockstepTest):
    def job_of(self, model=None, data=None, comm=None, cluster=None, checkpoint=None, **train):
        data = data or self.small_data()
        settings = {"global_batch": 64, "slots": 4, "epochs": 4, **train}
        return self.job(data, model=model or MODEL, train=settings, comm=comm or {},
                        cluster={"device": DEVICE, **(cluster or {})},
                        checkpoint=checkpoint or {"every_steps": 7, "keep": 2})
