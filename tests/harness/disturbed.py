"""Disturbed runs, and the undisturbed run whose result they must have."""
import pathlib
import shutil
import tempfile

from harness import LockstepTest, Run, synthetic_dataset
from pace import paced

# Long enough to be hit in the middle, short enough for a test: a few seconds. Slots stay where they
# are: workers that are stopped and killed differ in speed, and tests count the generations.
TRAIN = {"global_batch": 64, "slots": 4, "max_steps": 4500}
SECTIONS = {"model": {"name": "mlp", "dropout": 0.25},
            "checkpoint": {"every_steps": 250, "keep": 2},
            "optimizer": {"name": "adamw", "lr": 0.0001},
            "cluster": {"lease_s": 2, "grace_s": 20, "max_crashes": 1000, "rebalance": False}}


class DisturbedTest(LockstepTest):
    train = TRAIN  # its steps on a slow machine (pace.py)

    @classmethod
    def setUpClass(cls):
        cls.shared = pathlib.Path(tempfile.mkdtemp(prefix="lockstep-test-"))
        cls.addClassCleanup(shutil.rmtree, cls.shared, ignore_errors=True)
        cls.paced_train = paced(cls.train)
        cls.data = synthetic_dataset(cls.shared / "data", train=3000)
        cls.undisturbed = None

    def job_of(self, **sections):
        """Returns the job file. Makes the undisturbed run first, once for the class."""
        job = self.job(self.data, **{"train": self.paced_train, **SECTIONS, **sections})
        cls = type(self)
        if cls.undisturbed is None:
            cls.undisturbed = Run([job, "--workers", 1], self.shared / "undisturbed")
            self.assertEqual(cls.undisturbed.wait(), 0, cls.undisturbed.text()[-3000:])
        return job

    def start_run(self, workers, **sections):
        run = self.start(self.job_of(**sections), "--workers", workers)
        run.wait_for_step(300)
        return run

    def assert_as_if_nothing_had_happened(self, run):
        self.assertEqual(run.wait(), 0, run.text()[-3000:])
        self.assert_clear_line(run)
        self.assert_nothing_left(run)
        self.assert_same_result(run, self.undisturbed)
